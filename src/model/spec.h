// A model as a declarative list: what each layer consists of and which weights it uses. One forward pass
// (engine/) reads it; an architecture is a function from ModelConfig to ModelSpec (arch_<name>.cc), not a
// forward function of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace wring::model {

/// Where the input of a linear map is taken: calibration statistics hang there, shared by the maps that read
/// it. Of latent attention: compressed queries (kLatent), a head's queries without positions (kLatentKeys, of
/// k_b) and its output in the latent space (kLatentValues, of v_b, and where kv_b is listed). kKept: of small
/// maps that are never quantized, which observers are not shown.
enum class Site {
  kQkv,
  kLatent,
  kLatentKeys,
  kLatentValues,
  kO,
  kGateUp,
  kDown,
  kKept,
  kExpertGateUp,
  kExpertDown
};
inline constexpr std::size_t kSites = 10;

/// Rows of a tensor that holds several maps: `first`, `first + stride`, … of `total`.
struct StoredRows {
  std::string name;  // of the tensor; empty: the map has one of its own
  std::int64_t first = 0, total = 0, stride = 1;
};

/// A linear map y = W x (+ bias), W (rows, columns). Names are Hugging Face's, without ".weight".
struct LinearSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool bias = false;
  int rotary_head_dim = 0;  // > 0: rows are rotary heads of this size (GGUF files order their rows in pairs)
  int expert = -1;          // ≥ 0: the map of this expert, which may lie in one tensor with all others'
  StoredRows stored;
  bool transposed = false;   // Hugging Face's tensor is (columns, rows)
  std::int64_t stacked = 0;  // > 0: the tensor has three dimensions, this many matrices one after the other
};

/// y = x · (weight + weight_offset) / rms(x), or LayerNorm.
struct NormSpec {
  std::string name;  // without ".weight"
  std::int64_t size = 0;
  float eps = 0;
  float weight_offset = 0;
  bool layer_norm = false;  // y = (x − mean(x)) · weight / deviation(x) + bias; weight_offset is 0
};

/// Rotary positions: of the first 2n values of a head, n frequencies, value i is rotated with value i + n.
struct RopeSpec {
  std::vector<float> inverse_frequencies;  // radians a position
  float magnitude = 1.0F;                  // multiplies cosine and sine
  /// Instead of the above in sequences of more than `long_from` positions (longrope); empty: none.
  std::vector<float> long_inverse_frequencies;
  std::int64_t long_from = 0;
};

/// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2"): keys and values of all heads are linear in
/// one latent vector a position, which is what the cache keeps. A head's query goes into the latent space by
/// its part of k_b, and its output out of it by its part of v_b, so that attention itself is that of
/// AttentionSpec with one key/value head: keys [latent | rotary part], values the latent.
struct LatentSpec {
  std::optional<LinearSpec> q_a;  // none: queries come from the layer's input
  std::optional<NormSpec> q_a_norm;
  LinearSpec q_b;   // (heads · (nope_dim + rotary)): a head's rows are [without positions | rotary]
  LinearSpec kv_a;  // (latent + rotary)
  std::optional<NormSpec> kv_a_norm;  // of the latent
  /// Either both in one, a head's rows being [nope_dim of keys | value_dim], or apart with keys transposed:
  /// k_b (heads · latent, nope_dim), v_b (heads · value_dim, latent).
  LinearSpec kv_b, k_b, v_b;
  int nope_dim = 0, value_dim = 0;
};

/// Gated DeltaNet (Yang et al. 2024): a causal depthwise convolution over [q | k | v] and SiLU, q and k
/// scaled to unit length, then the gated delta rule (kernel_table.h) per value head with decay e^(−e^a_log ·
/// softplus(a + dt_bias)) and beta sigmoid(b), normalized per head and multiplied by silu(z).
struct DeltaNetSpec {
  LinearSpec qkv, z, b, a, out;
  /// qkv's rows are [q, k, v, z] of one key head after the other, b's [b, a]; z and a are none.
  bool fused = false;
  LinearSpec conv;             // (channels, width), the last column being the position's own
  std::string a_log, dt_bias;  // vectors (value_heads); GGUF holds −e^a_log
  bool in_gguf_form = false;   // value heads go round the key heads: head h reads key head h mod key_heads
  NormSpec norm;               // of a value head's output
  int key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
};

/// Softmax attention with grouped key/value heads.
struct AttentionSpec {
  LinearSpec q, k, v, o;
  /// Of queries and keys before they are rotated: each `size` values of a row are normalized alone, a head
  /// (Qwen 3) or the whole projection (OLMo 2).
  std::optional<NormSpec> q_norm, k_norm;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;                  // of queries and keys
  int value_dim = 0;                 // of values; 0: head_dim
  float scale = 0;                   // of q · k
  float softcap = 0;                 // of scores; 0: none
  int window = 0;                    // positions seen, the token's own included; 0: all
  int rope = 0;                      // into ModelSpec::ropes; −1: no positions
  int rotary_begin = 0;              // the first value of a head that is rotated
  bool rotary_pairs = false;         // value 2i is rotated with value 2i + 1
  std::optional<LatentSpec> latent;  // then q, k and v are none
  std::string sinks;   // vector (num_heads): one more logit a head, which attends to nothing; empty: none
  bool gated = false;  // q's rows are [query | gate] a head: outputs are multiplied by sigmoid(gate)

  int values() const { return value_dim > 0 ? value_dim : head_dim; }
};

enum class Activation { kSilu, kGeluTanh, kClampedSwiglu };

/// The activation of the configuration's name: silu, or a form of GELU by tanh.
Activation activation_named(std::string_view hidden_act);

/// down(activation(gate x) * up x), without a gate down(activation(up x)). kClampedSwiglu (gpt_oss): of
/// g = min(gate x, limit) and u = up x within ± limit, g · sigmoid(alpha · g) · (u + 1).
struct MlpSpec {
  LinearSpec gate, up, down;
  Activation activation = Activation::kSilu;
  float alpha = 0, limit = 0;  // of kClampedSwiglu

  bool gated() const { return !gate.name.empty(); }
};

/// How a router's logits become weights of experts.
enum class RouterScores { kSoftmax, kSigmoid };

/// Mixture of experts: each token goes through the `per_token` experts with the highest scores, and adds
/// their outputs by weight in the order of their scores. Equal scores: the expert with the lower number.
struct MoeSpec {
  LinearSpec router;  // (experts, hidden_size)
  RouterScores scores = RouterScores::kSoftmax;
  std::string selection_bias;  // vector (experts) added to scores for the choice alone; empty: none
  /// Only experts of the best groups are chosen; a group counts as its `group_best` best scores, 1 or 2, do.
  int groups = 1, groups_per_token = 1, group_best = 2;
  int per_token = 0;
  bool normalize = true;  // chosen weights are divided by their sum
  float scale = 1.0F;     // of the weights
  std::vector<MlpSpec> experts;
  std::optional<MlpSpec> shared;          // for every token, added to the sum
  std::optional<LinearSpec> shared_gate;  // (1, hidden_size): the shared expert's output times sigmoid of it
};

/// One block: x += output_norm(mixer(norm(x))); x += output_norm(mlp(norm(x))), norms where there are any.
struct LayerSpec {
  std::optional<NormSpec> mixer_norm, mixer_output_norm;
  AttentionSpec attention;  // where there is no delta_net
  std::optional<DeltaNetSpec> delta_net;
  std::optional<NormSpec> mlp_norm, mlp_output_norm;
  MlpSpec mlp;  // where there is no moe
  std::optional<MoeSpec> moe;
};

/// The norms and linear maps of a block, in the order of computation: f(const NormSpec&), f(const
/// LinearSpec&, Site).
template <class Norm, class Map>
void for_each_part(const LayerSpec& layer, Norm&& norm, Map&& map) {
  const auto optional_norm = [&](const std::optional<NormSpec>& n) {
    if (n) norm(*n);
  };
  const AttentionSpec& a = layer.attention;
  optional_norm(layer.mixer_norm);
  if (layer.delta_net) {
    const DeltaNetSpec& d = *layer.delta_net;
    map(d.qkv, Site::kQkv);
    if (!d.fused) map(d.z, Site::kQkv);
    map(d.b, Site::kKept);
    if (!d.fused) map(d.a, Site::kKept);
    map(d.conv, Site::kKept);
    norm(d.norm);
    map(d.out, Site::kO);
  } else if (a.latent) {
    const LatentSpec& l = *a.latent;
    if (l.q_a) map(*l.q_a, Site::kQkv);
    optional_norm(l.q_a_norm);
    map(l.q_b, l.q_a ? Site::kLatent : Site::kQkv);
    map(l.kv_a, Site::kQkv);
    optional_norm(l.kv_a_norm);
    for (const LinearSpec* m : {&l.kv_b, &l.k_b, &l.v_b}) {
      if (!m->name.empty()) map(*m, m == &l.k_b ? Site::kLatentKeys : Site::kLatentValues);
    }
  } else {
    for (const LinearSpec* l : {&a.q, &a.k, &a.v}) map(*l, Site::kQkv);
  }
  optional_norm(a.q_norm);
  optional_norm(a.k_norm);
  if (!layer.delta_net) map(a.o, Site::kO);
  optional_norm(layer.mixer_output_norm);
  optional_norm(layer.mlp_norm);
  const auto mlp = [&](const MlpSpec& m, Site gate_up, Site down) {
    if (m.gated()) map(m.gate, gate_up);
    map(m.up, gate_up);
    map(m.down, down);
  };
  if (layer.moe) {
    map(layer.moe->router, Site::kKept);
    if (layer.moe->shared_gate) map(*layer.moe->shared_gate, Site::kKept);
    for (const MlpSpec& expert : layer.moe->experts) mlp(expert, Site::kExpertGateUp, Site::kExpertDown);
    if (layer.moe->shared) mlp(*layer.moe->shared, Site::kGateUp, Site::kDown);
  } else {
    mlp(layer.mlp, Site::kGateUp, Site::kDown);
  }
  optional_norm(layer.mlp_output_norm);
}

/// What a layer keeps a sequence: bytes for each position in pages, and bytes of fixed size.
struct StateSpec {
  std::uint64_t page_bytes_per_token = 0;  // float32 keys and values
  std::uint64_t fixed_bytes = 0;           // recurrent state
};
StateSpec state_of(const LayerSpec& layer);

struct ModelSpec {
  std::string model_type;  // whose tensor names are meant (names.h)
  std::string embedding;   // name without ".weight": (vocab_size, hidden_size)
  float embedding_scale = 1.0F;
  std::string positions;  // learned, added to the embedding: (max_positions, hidden_size); empty: none
  std::int64_t max_positions = 0;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::vector<LayerSpec> layers;
  NormSpec final_norm;
  LinearSpec head;          // its name is the embedding's where the two are tied
  float logit_softcap = 0;  // 0: none
  std::vector<RopeSpec> ropes;
};

/// The name of an expert's map, "….experts.3.gate_proj", in its parts.
struct ExpertName {
  std::string before, part;  // "….experts.", "gate_proj"
};
ExpertName expert_name(const LinearSpec& linear);

/// The spec of a model; errors: kNotSupported for an unknown model_type.
ModelSpec make_spec(const ModelConfig& config);

/// All that the computation depends on besides weights, as text: equal for equal specs.
std::string describe(const ModelSpec& spec);

/// Whether two specs compute the same of the same weights, up to float32 rounding of numbers and up to the
/// form of weights (norms with 1 + w, or w with the 1 in it; kv_b or its halves; value heads grouped or
/// tiled). Sliding windows of model types that share Llama's GGUF form are passed over: it has none.
bool same_computation(const ModelSpec& a, const ModelSpec& b);

/// A linear map with its place: what quantizers and calibration walk over.
struct LinearUse {
  const LinearSpec* linear;  // into the spec
  int layer;
  Site site;  // of a block's maps
};

/// The linear maps of the blocks, in the order of computation. Recipes quantize all but those of
/// Site::kKept.
std::vector<LinearUse> block_linears(const ModelSpec& spec);

/// Whether any layer keeps a recurrent state.
bool is_recurrent(const ModelSpec& spec);

/// Multiply-adds of one position through the blocks' linear maps, of experts those that it is sent to:
/// attention, head and maps of Site::kKept are left out.
double block_macs(const ModelSpec& spec);

}  // namespace wring::model
