// A model as a declarative list: what each layer consists of and which weights it uses. One forward pass
// (engine/) reads it; an architecture is a function from ModelConfig to ModelSpec (arch_<name>.cc), not a
// forward function of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace wring::model {

/// Where the input of a linear map is taken: calibration statistics hang there, shared by the maps that read
/// it.
enum class Site { kQkv, kO, kGateUp, kDown };

/// A linear map y = W x (+ bias), W (rows, columns). Names are Hugging Face's, without ".weight".
struct LinearSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool bias = false;
  int rotary_head_dim = 0;  // > 0: rows are rotary heads of this size (GGUF files order their rows in pairs)
};

/// y = x · (weight + weight_offset) / rms(x).
struct NormSpec {
  std::string name;  // without ".weight"
  std::int64_t size = 0;
  float eps = 0;
  float weight_offset = 0;
};

/// Softmax attention with grouped key/value heads and rotary positions.
struct AttentionSpec {
  LinearSpec q, k, v, o;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  float scale = 0;  // of q · k
};

/// down(silu(gate x) * up x).
struct MlpSpec {
  LinearSpec gate, up, down;
};

/// One block: x += mixer(norm(x)); x += mlp(norm(x)).
struct LayerSpec {
  NormSpec input_norm;
  AttentionSpec attention;
  NormSpec post_attention_norm;
  MlpSpec mlp;
};

/// What a layer keeps a sequence: bytes for each position in pages, and bytes of fixed size.
struct StateSpec {
  std::uint64_t page_bytes_per_token = 0;  // float32 keys and values
  std::uint64_t fixed_bytes = 0;           // recurrent state
};
StateSpec state_of(const LayerSpec& layer);

struct ModelSpec {
  std::string embedding;  // name without ".weight": (vocab_size, hidden_size)
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::vector<LayerSpec> layers;
  NormSpec final_norm;
  LinearSpec head;                              // its name is the embedding's where the two are tied
  std::vector<float> rope_inverse_frequencies;  // (head_dim / 2), radians a position
  float rope_magnitude = 1.0F;                  // multiplies cosine and sine
};

/// The spec of a model; errors: kNotSupported for an unknown model_type.
ModelSpec make_spec(const ModelConfig& config);

/// A linear map with its place: what quantizers and calibration walk over.
struct LinearUse {
  const LinearSpec* linear;  // into the spec
  int layer;
  Site site;  // of a block's maps
};

/// The linear maps of the blocks, in the order of computation: these are what recipes quantize by default.
std::vector<LinearUse> block_linears(const ModelSpec& spec);

/// Multiply-adds of one position through the blocks' linear maps: attention and head are left out.
double block_macs(const ModelSpec& spec);

}  // namespace wring::model
