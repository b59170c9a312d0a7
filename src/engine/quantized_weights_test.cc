// Checkpoints that are already quantized: each layout is packed here by its definition, one value at a time,
// and must be read as (code − zero) · scale.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/floats.h"
#include "engine/weight_rows.h"
#include "formats/safetensors.h"
#include "model/model.h"

namespace wring::engine {
namespace {

using formats::QuantType;

constexpr int kRows = 40, kColumns = 64;  // of the matrix that is quantized

struct Stored {
  QuantType type;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};
using Tensors = std::map<std::string, Stored>;  // by what follows the map's name

template <class T>
Stored stored(QuantType type, std::vector<std::uint64_t> shape, const std::vector<T>& values) {
  Stored s{type, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(s.bytes.data(), values.data(), s.bytes.size());
  return s;
}

Stored number(float value, std::vector<std::uint64_t> shape) {
  return stored(QuantType::kF32, std::move(shape), std::vector<float>{value});
}

/// A layout with a matrix in it.
struct Example {
  std::string quantization;  // config.json's
  Tensors tensors;
  std::vector<float> values;  // (kRows, kColumns)
  std::string scheme;
};

/// Codes, zeros and scales drawn for groups of columns.
struct Draw {
  int groups;
  std::vector<int> codes, zeros;  // (kRows, kColumns), (kRows, groups): below 2^bits
  std::vector<float> scales;      // (kRows, groups), of BF16

  Draw(int bits, int group, unsigned seed) : groups(kColumns / group) {
    std::mt19937 generator(seed);
    for (int i = 0; i < kRows * kColumns; ++i) codes.push_back(static_cast<int>(generator() % (1U << bits)));
    for (int i = 0; i < kRows * groups; ++i) {
      zeros.push_back(static_cast<int>(generator() % (1U << bits)));
      scales.push_back(bf16_to_float(float_to_bf16(0.001F * static_cast<float>(1 + generator() % 1000))));
    }
  }
  int code(int r, int c) const { return codes[static_cast<std::size_t>(r * kColumns + c)]; }
  int zero(int r, int g) const { return zeros[static_cast<std::size_t>(r * groups + g)]; }
  float scale(int r, int g) const { return scales[static_cast<std::size_t>(r * groups + g)]; }
};

std::vector<float> expected(const Draw& d, float zero_offset, bool with_zeros,
                            const std::vector<int>& group_of) {
  std::vector<float> out;
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const int g = group_of[static_cast<std::size_t>(c)];
      const int zero = with_zeros ? d.zero(r, g) : 0;
      out.push_back((static_cast<float>(d.code(r, c)) - (static_cast<float>(zero) + zero_offset)) *
                    d.scale(r, g));
    }
  }
  return out;
}

std::vector<int> groups_in_order(int group) {
  std::vector<int> out;
  for (int c = 0; c < kColumns; ++c) out.push_back(c / group);
  return out;
}

std::vector<std::uint16_t> bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> out;
  for (const float v : values) out.push_back(float_to_bf16(v));
  return out;
}

std::string ints(int bits, bool symmetric) {
  return R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["re:.*down_proj", "Linear"], "weights": {"num_bits": )" +
         std::to_string(bits) + R"(, "type": "int", "strategy": "group", "group_size": 32, "symmetric": )" +
         (symmetric ? "true" : "false") + "}}}}";
}

Example pack_quantized(int bits, bool symmetric) {
  const Draw d(bits, 32, 1);
  const int per_word = 32 / bits, words = kColumns / per_word, zero_words = kRows / per_word;
  std::vector<std::uint32_t> packed(static_cast<std::size_t>(kRows * words)),
      zeros(static_cast<std::size_t>(zero_words * d.groups));
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c)
      packed[static_cast<std::size_t>(r * words + c / per_word)] |= static_cast<std::uint32_t>(d.code(r, c))
                                                                    << (bits * (c % per_word));
    for (int g = 0; g < d.groups; ++g)
      zeros[static_cast<std::size_t>(r / per_word * d.groups + g)] |= static_cast<std::uint32_t>(d.zero(r, g))
                                                                      << (bits * (r % per_word));
  }
  Example e;
  e.quantization = ints(bits, symmetric);
  e.tensors["weight_packed"] = stored(QuantType::kI32, {kRows, static_cast<std::uint64_t>(words)}, packed);
  e.tensors["weight_scale"] = stored(QuantType::kBF16, {kRows, 2}, bf16(d.scales));
  e.tensors["weight_shape"] = stored(QuantType::kI64, {2}, std::vector<std::int64_t>{kRows, kColumns});
  if (!symmetric)
    e.tensors["weight_zero_point"] =
        stored(QuantType::kI32, {static_cast<std::uint64_t>(zero_words), 2}, zeros);
  e.values =
      expected(d, symmetric ? static_cast<float>(1 << (bits - 1)) : 0.0F, !symmetric, groups_in_order(32));
  e.scheme = "INT" + std::to_string(bits) + " g32" + (symmetric ? "" : " asymmetric");
  return e;
}

Example gptq(bool in_order) {
  Draw d(4, 32, 2);
  std::vector<int> group_of = groups_in_order(32);
  if (!in_order) std::shuffle(group_of.begin(), group_of.end(), std::mt19937(3));
  std::vector<std::uint32_t> packed(static_cast<std::size_t>(kColumns / 8 * kRows)), zeros(2 * kRows / 8);
  std::vector<float> scales(2 * kRows);
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c)
      packed[static_cast<std::size_t>(c / 8 * kRows + r)] |= static_cast<std::uint32_t>(d.code(r, c))
                                                             << (4 * (c % 8));
    for (int g = 0; g < 2; ++g) {
      zeros[static_cast<std::size_t>(g * kRows / 8 + r / 8)] |= static_cast<std::uint32_t>(d.zero(r, g))
                                                                << (4 * (r % 8));
      scales[static_cast<std::size_t>(g * kRows + r)] = d.scale(r, g);
    }
  }
  Example e;
  e.quantization = R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true, "sym": false})";
  e.tensors["qweight"] = stored(QuantType::kI32, {kColumns / 8, kRows}, packed);
  e.tensors["qzeros"] = stored(QuantType::kI32, {2, kRows / 8}, zeros);
  e.tensors["scales"] = stored(QuantType::kF32, {2, kRows}, scales);
  e.tensors["g_idx"] = stored(QuantType::kI32, {kColumns}, group_of);
  for (int& zero : d.zeros) zero = (zero + 1) % 16;  // what the stored ones mean
  e.values = expected(d, 0.0F, true, group_of);
  e.scheme = "INT4 g32 asymmetric";
  return e;
}

Example awq() {
  const Draw d(4, 32, 4);
  const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};  // which of eight rows each nibble holds, lowest first
  std::vector<std::uint32_t> packed(static_cast<std::size_t>(kColumns * kRows / 8)), zeros(2 * kRows / 8);
  std::vector<float> scales(2 * kRows);
  for (int word = 0; word < kRows / 8; ++word) {
    for (int nibble = 0; nibble < 8; ++nibble) {
      const int r = 8 * word + order[nibble];
      for (int c = 0; c < kColumns; ++c)
        packed[static_cast<std::size_t>(c * kRows / 8 + word)] |= static_cast<std::uint32_t>(d.code(r, c))
                                                                  << (4 * nibble);
      for (int g = 0; g < 2; ++g)
        zeros[static_cast<std::size_t>(g * kRows / 8 + word)] |= static_cast<std::uint32_t>(d.zero(r, g))
                                                                 << (4 * nibble);
    }
  }
  for (int g = 0; g < 2; ++g) {
    for (int r = 0; r < kRows; ++r) scales[static_cast<std::size_t>(g * kRows + r)] = d.scale(r, g);
  }
  Example e;
  e.quantization =
      R"({"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": true, "version": "gemm"})";
  e.tensors["qweight"] = stored(QuantType::kI32, {kColumns, kRows / 8}, packed);
  e.tensors["qzeros"] = stored(QuantType::kI32, {2, kRows / 8}, zeros);
  e.tensors["scales"] = stored(QuantType::kF32, {2, kRows}, scales);
  e.values = expected(d, 0.0F, true, groups_in_order(32));
  e.scheme = "INT4 g32 asymmetric";
  return e;
}

Example int8(bool symmetric) {
  const Draw d(8, kColumns, 5);
  std::vector<std::int8_t> codes, zeros;
  Example e;
  for (int r = 0; r < kRows; ++r) {
    zeros.push_back(static_cast<std::int8_t>(d.zero(r, 0)));
    for (int c = 0; c < kColumns; ++c) {
      codes.push_back(static_cast<std::int8_t>(d.code(r, c)));
      const float zero = symmetric ? 0.0F : static_cast<float>(zeros.back());
      e.values.push_back((static_cast<float>(codes.back()) - zero) * d.scale(r, 0));
    }
  }
  e.quantization = R"({"quant_method": "compressed-tensors", "format": "int-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": )" +
                   std::string(symmetric ? "true" : "false") +
                   R"(}, "input_activations": {"num_bits": 8, "type": "int", "dynamic": true}}}})";
  e.tensors["weight"] = stored(QuantType::kI8, {kRows, kColumns}, codes);
  e.tensors["weight_scale"] = stored(QuantType::kBF16, {kRows, 1}, bf16(d.scales));
  if (!symmetric) e.tensors["weight_zero_point"] = stored(QuantType::kI8, {kRows, 1}, zeros);
  e.scheme = std::string("INT8 channel") + (symmetric ? "" : " asymmetric") + " (INT8 activations)";
  return e;
}

/// E4M3 by its definition: bias 7, no infinities.
float e4m3(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(1.0F + static_cast<float>(mantissa) / 8, exponent - 7);
  return code < 128 ? magnitude : -magnitude;
}

/// Every finite code, again and again.
std::vector<std::uint8_t> e4m3_codes() {
  std::vector<std::uint8_t> codes;
  for (int i = 0; static_cast<int>(codes.size()) < kRows * kColumns; ++i) {
    if ((i & 127) != 127) codes.push_back(static_cast<std::uint8_t>(i));
  }
  return codes;
}

Example fp8_blocks() {  // 16 x 48: the last blocks are cut at both edges
  const std::vector<std::uint8_t> codes = e4m3_codes();
  std::vector<float> scales;
  for (int i = 0; i < 6; ++i) scales.push_back(0.01F * static_cast<float>(i + 1));
  Example e;
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const std::size_t at = static_cast<std::size_t>(r / 16 * 2 + c / 48);
      e.values.push_back(e4m3(codes[static_cast<std::size_t>(r * kColumns + c)]) * scales[at]);
    }
  }
  e.quantization =
      R"({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [16, 48]})";
  e.tensors["weight"] = stored(QuantType::kF8_E4M3, {kRows, kColumns}, codes);
  e.tensors["weight_scale_inv"] = stored(QuantType::kF32, {3, 2}, scales);
  e.scheme = "FP8 16x48 (FP8 activations)";
  return e;
}

Example fp8_scales(const std::string& quantization, std::vector<std::uint64_t> shape,
                   const std::string& scheme) {
  const std::vector<std::uint8_t> codes = e4m3_codes();
  std::vector<float> scales(shape.empty() || shape[0] == 1 ? 1 : kRows);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 0.25F + static_cast<float>(i);
  Example e;
  for (std::size_t i = 0; i < codes.size(); ++i)
    e.values.push_back(e4m3(codes[i]) * scales[scales.size() == 1 ? 0 : i / kColumns]);
  e.quantization = quantization;
  e.tensors["weight"] = stored(QuantType::kF8_E4M3, {kRows, kColumns}, codes);
  e.tensors["weight_scale"] = stored(QuantType::kF32, std::move(shape), scales);
  e.tensors["input_scale"] = number(0.5F, {});
  e.scheme = scheme;
  return e;
}

enum class Fp4 { kNv, kModelOpt, kMx };

Example fp4(Fp4 kind) {
  const float magnitudes[8] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  const int group = kind == Fp4::kMx ? 32 : 16, groups = kColumns / group;
  std::mt19937 generator(6);
  std::vector<std::uint8_t> codes, packed, scales;
  for (int i = 0; i < kRows * kColumns; ++i) codes.push_back(static_cast<std::uint8_t>(generator() % 16));
  for (std::size_t i = 0; i < codes.size(); i += 2)
    packed.push_back(static_cast<std::uint8_t>(codes[i] | codes[i + 1] << 4));
  for (int i = 0; i < kRows * groups; ++i)
    scales.push_back(
        static_cast<std::uint8_t>(kind == Fp4::kMx ? 120 + generator() % 10 : 1 + generator() % 0x7E));
  Example e;
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const int code = codes[static_cast<std::size_t>(r * kColumns + c)];
      const int stored_scale = scales[static_cast<std::size_t>(r * groups + c / group)];
      const float scale = kind == Fp4::kMx   ? std::ldexp(1.0F, stored_scale - 127)
                          : kind == Fp4::kNv ? e4m3(stored_scale) / 3000.0F
                                             : e4m3(stored_scale) * 0.0003F;
      e.values.push_back((code < 8 ? magnitudes[code] : -magnitudes[code - 8]) * scale);
    }
  }
  const auto n = static_cast<std::uint64_t>(groups);
  const QuantType scale_type = kind == Fp4::kMx ? QuantType::kU8 : QuantType::kF8_E4M3;
  e.tensors["weight_scale"] = stored(scale_type, {kRows, n}, scales);
  e.tensors[kind == Fp4::kModelOpt ? "weight" : "weight_packed"] =
      stored(QuantType::kU8, {kRows, kColumns / 2}, packed);
  if (kind == Fp4::kModelOpt) {
    e.quantization = R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})";
    e.tensors["weight_scale_2"] = number(0.0003F, {});
    e.tensors["input_scale"] = number(0.5F, {});
    e.scheme = "NVFP4 (FP4 activations)";
    return e;
  }
  const bool nv = kind == Fp4::kNv;
  e.quantization =
      std::string(R"({"quant_method": "compressed-tensors", "format": ")") + (nv ? "nvfp4" : "mxfp4") +
      R"(-pack-quantized", "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": ")" +
      (nv ? R"(tensor_group", "group_size": 16)" : R"(group", "group_size": 32)") +
      R"(, "symmetric": true}}}})";
  if (nv) e.tensors["weight_global_scale"] = number(3000.0F, {1});
  e.scheme = nv ? "NVFP4" : "MXFP4";
  return e;
}

const std::map<std::string, Example>& examples() {
  static const std::map<std::string, Example> all = {
      {"PackQuantized4", pack_quantized(4, true)},
      {"PackQuantized4Asymmetric", pack_quantized(4, false)},
      {"PackQuantized8", pack_quantized(8, true)},
      {"PackQuantized8Asymmetric", pack_quantized(8, false)},
      {"Int8", int8(true)},
      {"Int8Asymmetric", int8(false)},
      {"Gptq", gptq(true)},
      {"GptqActOrder", gptq(false)},
      {"Awq", awq()},
      {"Fp8Blocks", fp8_blocks()},
      {"Fp8Tensor", fp8_scales(R"({"quant_method": "modelopt", "quant_algo": "FP8"})", {},
                               "FP8 tensor (FP8 activations)")},
      {"Fp8Rows", fp8_scales(R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})", {kRows, 1},
                             "FP8 channel (FP8 activations)")},
      {"Nvfp4", fp4(Fp4::kNv)},
      {"Nvfp4ModelOpt", fp4(Fp4::kModelOpt)},
      {"Mxfp4", fp4(Fp4::kMx)},
  };
  return all;
}

constexpr const char* kMap = "model.layers.0.mlp.gate_proj";

/// A llama folder whose gate is stored as `tensors` say.
class Checkpoint {
 public:
  Checkpoint(const std::string& quantization, const Tensors& tensors)
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("wring_quantized_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
    write_file_atomically(
        path_ / "config.json",
        R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 64, "intermediate_size": 40,
      "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 16, "tie_word_embeddings": true,
      "quantization_config": )" +
            quantization + "}");
    std::multimap<int, std::pair<std::string, Stored>> by_size;  // wide elements come first in a file
    const auto add = [&](const std::string& name, const Stored& s) {
      by_size.emplace(-static_cast<int>(formats::info_of(s.type).block_bytes), std::pair{name, s});
    };
    for (const auto& [part, s] : tensors) add(std::string(kMap) + "." + part, s);
    const std::string layer = "model.layers.0.";
    const std::vector<std::pair<std::string, std::vector<std::uint64_t>>> plain = {
        {"model.embed_tokens", {8, 64}},        {"model.norm", {64}},
        {layer + "input_layernorm", {64}},      {layer + "post_attention_layernorm", {64}},
        {layer + "self_attn.q_proj", {64, 64}}, {layer + "self_attn.k_proj", {64, 64}},
        {layer + "self_attn.v_proj", {64, 64}}, {layer + "self_attn.o_proj", {64, 64}},
        {layer + "mlp.up_proj", {kRows, 64}},   {layer + "mlp.down_proj", {64, kRows}}};
    for (const auto& [name, shape] : plain) {
      const std::uint64_t n = shape.size() == 1 ? shape[0] : shape[0] * shape[1];
      add(name + ".weight", stored(QuantType::kF32, shape, std::vector<float>(n, 0.5F)));
    }
    formats::SafetensorsWriter writer(path_ / "model.safetensors");
    for (const auto& [size, entry] : by_size)
      writer.declare(entry.first, entry.second.type, entry.second.shape);
    writer.begin_data();
    for (const auto& [size, entry] : by_size) writer.write(entry.second.bytes);
    writer.commit();
  }
  ~Checkpoint() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class QuantizedWeights : public ::testing::TestWithParam<std::string> {};

TEST_P(QuantizedWeights, AreReadByTheirDefinition) {
  const Example& e = examples().at(GetParam());
  const Checkpoint folder(e.quantization, e.tensors);
  const model::Model model = model::Model::open(folder.path());
  const model::Weight& weight = model.weight(std::string(kMap) + ".weight");
  EXPECT_EQ(model.warnings().empty(), e.scheme.find("activations") == std::string::npos);
  EXPECT_EQ(weight.type_name(), e.scheme);
  EXPECT_TRUE(model.is_quantized());
  const std::vector<float> got = read_matrix(weight, kernels::kernels());
  ASSERT_EQ(got.size(), e.values.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], e.values[i]) << i;
  for (const auto& [first, count] : {std::pair{0, 1}, {3, 1}, {5, 2}, {1, 17}, {7, 33}, {39, 1}}) {
    std::vector<float> some(static_cast<std::size_t>(count * 70));
    read_rows(weight, first, count, some.data(), 70, kernels::kernels());
    for (int r = 0; r < count; ++r) {
      for (int c = 0; c < kColumns; ++c)
        ASSERT_EQ(some[static_cast<std::size_t>(r * 70 + c)],
                  got[static_cast<std::size_t>((first + r) * kColumns + c)])
            << first << ' ' << count;
    }
  }
}

TEST_P(QuantizedWeights, TensorsThatAreMissingOrCutAreRefusedByName) {
  const Example& e = examples().at(GetParam());
  for (const auto& [part, whole] : e.tensors) {
    if (part == "input_scale") continue;
    for (const bool cut : {false, true}) {
      Tensors tensors = e.tensors;
      Stored& s = tensors.at(part);
      if (!cut) {
        tensors.erase(part);
      } else if (s.shape.empty()) {
        continue;
      } else {  // one row less
        s.bytes.resize(s.bytes.size() / s.shape[0] * (s.shape[0] - 1));
        if (--s.shape[0] == 0) continue;
      }
      if (part == "g_idx" && !cut) continue;  // then groups follow each other
      const Checkpoint folder(e.quantization, tensors);
      try {
        model::Model::open(folder.path());
        FAIL() << part << " was missing or cut";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kBadInput) << part;
        EXPECT_NE(std::string(error.what()).find("gate_proj"), std::string::npos) << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, QuantizedWeights, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, e] : examples()) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& layout) { return layout.param; });

std::string scheme_read(const std::string& quantization, const Tensors& tensors) {
  const Checkpoint folder(quantization, tensors);
  return model::Model::open(folder.path()).weight(std::string(kMap) + ".weight").type_name();
}

TEST(QuantizationConfig, OtherFormsOfTheSame) {
  const Tensors& ints4 = examples().at("PackQuantized4").tensors;
  std::string frozen = ints(4, true);
  frozen.insert(1, R"("quantization_status": "frozen", )");
  EXPECT_EQ(scheme_read(frozen, ints4), "INT4 g32");
  // A name counts before the class, wherever it stands.
  std::string two = ints(4, true);
  const std::string groups = R"("config_groups": {)";
  two.insert(two.find(groups) + groups.size(),
             R"("a": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int",
    "strategy": "channel"}}, "b": {"targets": ["re:.*gate_proj"], "weights": {"num_bits": 4, "type": "int", "strategy": "group",
    "group_size": 32, "symmetric": true}}, )");
  EXPECT_EQ(scheme_read(two, ints4), "INT4 g32");
  // transformers' fp8 without blocks: one scale, under either name, and one of its activations.
  Tensors fp8 = examples().at("Fp8Tensor").tensors;
  const std::string plain =
      R"({"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": null})";
  EXPECT_EQ(scheme_read(plain, fp8), "FP8 tensor (FP8 activations)");
  fp8["weight_scale_inv"] = fp8.extract("weight_scale").mapped();
  fp8["activation_scale"] = fp8.extract("input_scale").mapped();
  EXPECT_EQ(scheme_read(plain, fp8), "FP8 tensor (FP8 activations)");
}

ErrorCode refusal(const std::string& quantization, const std::string& word) {
  const Checkpoint folder(quantization, examples().at("PackQuantized4").tensors);
  try {
    model::Model::open(folder.path());
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(QuantizationConfig, WhatIsNotReadIsRefusedByName) {
  const ErrorCode no = ErrorCode::kNotSupported, bad = ErrorCode::kBadInput;
  EXPECT_EQ(refusal(R"({"quant_method": "bitsandbytes"})", "bitsandbytes"), no);
  EXPECT_EQ(refusal(R"({"quant_method": "gptq", "bits": 3, "group_size": 32})", "num_bits 3"), no);
  EXPECT_EQ(refusal(R"({"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*up": {"bits": 8}}})", "+:.*up"),
            no);
  EXPECT_EQ(refusal(R"({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemv"})", "gemv"),
            no);
  EXPECT_EQ(refusal(R"({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"})", "W4A8_AWQ"), no);
  EXPECT_EQ(refusal(R"({"quant_method": "fp8", "fmt": "e5m2"})", "e5m2"), no);
  EXPECT_EQ(refusal(R"({"quant_method": "compressed-tensors"})", "config_groups"), bad);
  std::string config = ints(4, true);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = config;
    return changed.replace(changed.find(from), from.size(), to);
  };
  EXPECT_EQ(refusal(with("pack-quantized", "marlin-24"), "marlin-24"), no);
  EXPECT_EQ(refusal(with(R"("ignore")", R"("transform_config": {"a": 1}, "ignore")"), "transform_config"),
            no);
  EXPECT_EQ(refusal(with(R"("ignore")", R"("sparsity_config": {"format": "sparse-24-bitmask"}, "ignore")"),
                    "sparsity_config"),
            no);
  EXPECT_EQ(refusal(with(R"("Linear")", R"("re:((")"), "re:(("), bad);
  EXPECT_EQ(refusal(with(R"("Linear")", R"("lm_head")"), "no target"), bad);
  EXPECT_EQ(refusal(with(R"("group_size": 32)", R"("group_size": 48)"), "group_size 48"), bad);
  EXPECT_EQ(refusal(with(R"("type": "int")", R"("type": "nf4")"), "nf4"), no);
}

}  // namespace
}  // namespace wring::engine
