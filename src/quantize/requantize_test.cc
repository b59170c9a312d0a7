// Checkpoints that are already quantized are quantized again: what is written is what their values would
// give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "engine/engine.h"
#include "formats/gguf.h"
#include "quantize/testing.h"

namespace wring::quantize {
namespace {

namespace fs = std::filesystem;
using formats::QuantType;
using testing::all_logits;
using testing::ScratchFolder;

constexpr std::int64_t kBlock = 128;

/// The finite magnitudes of E4M3, rising.
std::array<float, 127> e4m3_magnitudes() {
  std::array<float, 127> out;
  for (int code = 0; code < 127; ++code) {
    const int exponent = code >> 3, mantissa = code & 7;
    out[static_cast<std::size_t>(code)] =
        exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                      : std::ldexp(8.0F + static_cast<float>(mantissa), exponent - 10);
  }
  return out;
}

std::uint8_t e4m3_code(float value) {
  static const std::array<float, 127> magnitudes = e4m3_magnitudes();
  const auto above = std::ranges::lower_bound(magnitudes, std::min(std::abs(value), 448.0F));
  auto nearest = above;
  if (above != magnitudes.begin() && std::abs(value) - *(above - 1) < *above - std::abs(value)) --nearest;
  return static_cast<std::uint8_t>((nearest - magnitudes.begin()) | (std::signbit(value) ? 128 : 0));
}

struct Fp8 {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;  // by blocks of kBlock rows and columns
};

Fp8 to_fp8(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  const std::int64_t across = (columns + kBlock - 1) / kBlock, down = (rows + kBlock - 1) / kBlock;
  Fp8 out{std::vector<std::uint8_t>(values.size()),
          std::vector<float>(static_cast<std::size_t>(down * across))};
  const auto scale_of = [&](std::int64_t r, std::int64_t c) -> float& {
    return out.scales[static_cast<std::size_t>(r / kBlock * across + c / kBlock)];
  };
  const auto value = [&](std::int64_t r, std::int64_t c) {
    return values[static_cast<std::size_t>(r * columns + c)];
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      scale_of(r, c) = std::max(scale_of(r, c), std::abs(value(r, c)) / 448);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      out.codes[static_cast<std::size_t>(r * columns + c)] = e4m3_code(value(r, c) / scale_of(r, c));
  }
  return out;
}

/// The model with its blocks' matrices in FP8, as DeepSeek publishes.
void write_fp8_copy(const model::Model& model, const std::string& config, const fs::path& folder) {
  fs::create_directories(folder);
  write_file_atomically(folder / "config.json",
                        config.substr(0, config.rfind('}')) +
                            R"(, "quantization_config": {"quant_method": "fp8", "fmt": "e4m3",
      "activation_scheme": "dynamic", "weight_block_size": [128, 128]}})");
  const QuantPlan plan = make_convert_plan(model.spec(), QuantType::kF32, FileForm::kHf, 1);
  std::vector<std::pair<std::string, Fp8>> quantized;
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role == TensorRole::kBlockMatrix)
      quantized.emplace_back(t.name, to_fp8(testing::values_of(model, t.name), t.rows, t.columns));
  }
  formats::SafetensorsWriter writer(folder / "model.safetensors");
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role != TensorRole::kBlockMatrix) writer.declare(t.name, QuantType::kF32, t.shape());
  }
  const auto blocks = [](std::uint64_t n) { return (n + kBlock - 1) / kBlock; };
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role != TensorRole::kBlockMatrix) continue;
    const std::array<std::uint64_t, 2> shape = {blocks(t.shape()[0]), blocks(t.shape()[1])};
    writer.declare(t.name + "_scale_inv", QuantType::kF32, shape);
  }
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role == TensorRole::kBlockMatrix) writer.declare(t.name, QuantType::kF8_E4M3, t.shape());
  }
  writer.begin_data();
  for (const PlannedTensor& t : plan.tensors) {
    if (t.role == TensorRole::kBlockMatrix) continue;
    const std::vector<float> values = testing::values_of(model, t.name);
    writer.write(std::as_bytes(std::span(values)));
  }
  for (const auto& [name, fp8] : quantized) writer.write(std::as_bytes(std::span(fp8.scales)));
  for (const auto& [name, fp8] : quantized) writer.write(std::as_bytes(std::span(fp8.codes)));
  writer.commit();
}

TEST(Requantize, AnFp8MixtureOfExpertsGivesWhatItsValuesGive) {
  const ScratchFolder scratch;
  const std::string config = testing::small_moe_config("qwen3_moe");
  testing::write_random_model(scratch / "source", config);
  write_fp8_copy(model::Model::open(scratch / "source"), config, scratch / "fp8");
  const model::Model fp8 = model::Model::open(scratch / "fp8");
  EXPECT_TRUE(fp8.is_quantized());
  EXPECT_EQ(fp8.weight("model.layers.1.mlp.experts.5.up_proj.weight").type_name(),
            "FP8 128x128 (FP8 activations)");

  testing::to_hf_folder(fp8, QuantType::kF32, scratch / "plain");
  const model::Model plain = model::Model::open(scratch / "plain");
  EXPECT_FALSE(plain.is_quantized());
  EXPECT_EQ(all_logits(plain), all_logits(fp8));
  EXPECT_NE(all_logits(plain), all_logits(scratch / "source"));

  testing::to_quantized_file(fp8, "q4_k", scratch / "from_fp8.gguf");
  testing::to_quantized_file(plain, "q4_k", scratch / "from_plain.gguf");
  const auto a = formats::GgufReader::open(scratch / "from_fp8.gguf"),
             b = formats::GgufReader::open(scratch / "from_plain.gguf");
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  std::size_t q4_k = 0;
  for (const formats::TensorInfo& t : a.tensors()) {
    EXPECT_TRUE(std::ranges::equal(t.data, b.find(t.name)->data)) << t.name;
    q4_k += t.type == QuantType::kQ4_K;
  }
  EXPECT_EQ(q4_k, 2U * (4 + 3));
}

}  // namespace
}  // namespace wring::quantize
