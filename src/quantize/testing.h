// What the tests of this room share: small llama folders with weights of one's own, and scratch folders that
// go away.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/floats.h"
#include "base/mapped_file.h"
#include "engine/engine.h"
#include "engine/weight_rows.h"
#include "formats/safetensors.h"
#include "kernels/kernel_table.h"
#include "model/model.h"
#include "quantize/plan.h"
#include "quantize/tensor_stream.h"
#include "quantize/write_gguf.h"
#include "quantize/write_hf.h"

namespace wring::quantize::testing {

/// A folder of one test, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("wring_quantize_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(WRING_SOURCE_DIR) / "tests" / "data" / name;
}

/// Deterministic values with a bell-like spread of about 0.02 (a sum of four uniforms), rounded to BF16.
inline float test_weight(std::uint64_t& state) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    sum += static_cast<float>(state >> 40) * 0x1p-24F - 0.5F;
  }
  return bf16_to_float(float_to_bf16(sum * 0.035F));
}

/// Changes a tensor's values before they are written.
using Change = std::function<void(const std::string& name, std::vector<float>& values)>;

/// A model of `config` (config.json's text) with random F32 weights.
inline void write_random_model(const std::filesystem::path& folder, const std::string& config,
                               const Change& change = {}) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "config.json", config);
  const model::ModelSpec spec = model::make_spec(model::read_hf_config(folder));
  const QuantPlan plan = make_convert_plan(spec, formats::QuantType::kF32, FileForm::kHf, 1);
  formats::SafetensorsWriter writer(folder / "model.safetensors");
  for (const PlannedTensor& t : plan.tensors) writer.declare(t.name, formats::QuantType::kF32, t.shape());
  writer.begin_data();
  std::uint64_t state = 1;
  for (const PlannedTensor& t : plan.tensors) {
    std::vector<float> values(t.elements());
    for (float& v : values) v = test_weight(state) + (t.name.find("norm") != std::string::npos ? 1.0F : 0.0F);
    if (change) change(t.name, values);
    writer.write(std::as_bytes(std::span(values)));
  }
  writer.commit();
}

/// A llama of one block (hidden 256, intermediate 512, 4 heads of 64, 2 key/value heads) with F32 weights.
inline void write_small_llama(const std::filesystem::path& folder, const Change& change = {},
                              const std::string& more_config = "", int vocab_size = 96) {
  write_random_model(folder,
                     R"({"model_type": "llama", "vocab_size": )" + std::to_string(vocab_size) +
                         R"(, "hidden_size": 256, "intermediate_size": 512,
  "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0)" +
                         more_config + "}",
                     change);
}

/// A config.json of two blocks with experts (hidden 256, 4 heads of 64, 2 key/value heads, experts of 256)
/// for the model types that tests/data has no model of.
inline std::string small_moe_config(const std::string& model_type) {
  std::string config = R"({"model_type": ")" + model_type + R"(", "vocab_size": 96, "hidden_size": 256,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
  "hidden_act": "silu", "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "intermediate_size": 256,
  "num_experts_per_tok": 2, "tie_word_embeddings": false, "norm_topk_prob": true,
  "moe_intermediate_size": 256, "sliding_window": null)";
  config += model_type == "mixtral" ? R"(, "num_local_experts": 6)" : R"(, "num_experts": 6)";
  if (!model_type.starts_with("qwen3_5")) return config + R"(, "rope_theta": 10000.0})";
  return config + R"(, "shared_expert_intermediate_size": 256, "full_attention_interval": 2,
  "linear_conv_kernel_dim": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 6,
  "linear_key_head_dim": 32, "linear_value_head_dim": 64,
  "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}})";
}

inline QuantPlan settled_plan(const model::Model& model, QuantPlan plan, ThreadPool& pool) {
  settle_plan(plan, largest_magnitudes(model, plan, pool, silent_progress()));
  return plan;
}

/// The model written plainly in `type`.
inline void to_gguf_file(const model::Model& model, formats::QuantType type,
                         const std::filesystem::path& out) {
  ThreadPool pool(2);
  write_gguf(model, settled_plan(model, make_convert_plan(model.spec(), type, FileForm::kGguf, 2), pool),
             nullptr, out, pool, silent_progress());
}
inline void to_hf_folder(const model::Model& model, formats::QuantType type,
                         const std::filesystem::path& out) {
  ThreadPool pool(2);
  write_hf(model, settled_plan(model, make_convert_plan(model.spec(), type, FileForm::kHf, 2), pool), type,
           out, pool, silent_progress());
}

inline QuantizeReport to_quantized_file(const model::Model& model, const std::string& recipe,
                                        const std::filesystem::path& out,
                                        const formats::Imatrix* imatrix = nullptr) {
  ThreadPool pool(2);
  return write_gguf(model, settled_plan(model, make_plan(model.spec(), parse_recipe(recipe), {}), pool),
                    imatrix, out, pool, silent_progress());
}

/// All values of a weight in Hugging Face's order.
inline std::vector<float> values_of(const model::Model& model, const std::string& name) {
  return engine::read_matrix(model.weight(name), kernels::kernels());
}

inline std::string bytes_of_file(const std::filesystem::path& path) {
  return read_text_file(path, std::size_t{64} << 20);
}

/// Logits after each of some tokens, in exact mode.
inline std::vector<float> all_logits(const model::Model& model) {
  engine::Engine engine(model, {});
  const std::vector<engine::TokenId> ids = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 31, 77, 40};
  const engine::StepResult r = engine.step({{{engine.add_sequence(), 0, ids, engine::Logits::kAll}}});
  std::vector<float> out;
  for (std::int64_t i = 0; i < r.logits.count; ++i)
    out.insert(out.end(), r.logits.row(i).begin(), r.logits.row(i).end());
  return out;
}
inline std::vector<float> all_logits(const std::filesystem::path& path) {
  return all_logits(model::Model::open(path));
}

/// The error that `f` throws; a test failure and an internal error if it throws none.
template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(ErrorCode::kInternal, "none");
}

}  // namespace wring::quantize::testing
