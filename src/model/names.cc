#include "model/names.h"

#include <array>
#include <utility>

namespace wring::model {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;  // Hugging Face's stem, GGUF's stem

constexpr std::array<Pair, 3> kGlobal = {{
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
}};

// Below "model.layers.<i>." and "blk.<i>.".
constexpr std::array<Pair, 25> kInBlock = {{
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.k_b_proj", "attn_k_b"},  // GGUF's halves of kv_b_proj
    {"self_attn.v_b_proj", "attn_v_b"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.experts.gate_proj", "ffn_gate_exps"},  // stacked, as GGUF has them
    {"mlp.experts.up_proj", "ffn_up_exps"},
    {"mlp.experts.down_proj", "ffn_down_exps"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
}};

// Gated DeltaNet's, and what differs beside it.
constexpr std::array<Pair, 12> kQwen35 = {{
    {"post_attention_layernorm", "post_attention_norm"},
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.conv1d", "ssm_conv1d"},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
}};

// Phi 3's tensors that hold several maps.
constexpr std::array<Pair, 2> kPhi3 = {{
    {"self_attn.qkv_proj", "attn_qkv"},
    {"mlp.gate_up_proj", "ffn_up"},
}};

// Mixtral's own names of the same.
constexpr std::array<Pair, 4> kMixtral = {{
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.experts.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.w3", "ffn_up_exps"},
    {"block_sparse_moe.experts.w2", "ffn_down_exps"},
}};

// GPT-2's own names; outside of blocks and in them.
constexpr std::array<Pair, 3> kGpt2Global = {{
    {"transformer.wte", "token_embd"},
    {"transformer.wpe", "position_embd"},
    {"transformer.ln_f", "output_norm"},
}};
constexpr std::array<Pair, 6> kGpt2 = {{
    {"ln_1", "attn_norm"},
    {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"},
    {"ln_2", "ffn_norm"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
}};

constexpr std::array<Pair, 2> kGptOss = {{
    {"post_attention_layernorm", "post_attention_norm"},
    {"mlp.router", "ffn_gate_inp"},
}};

// Before the above, where norms stand on what a part adds.
constexpr std::array<Pair, 3> kOutputNorms = {{
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
}};

bool has_output_norms(std::string_view model_type) {
  return model_type.starts_with("gemma") || model_type == "olmo2" || model_type == "exaone4";
}

constexpr std::string_view kGgufBlock = "blk.";

std::string_view block_prefix(std::string_view model_type, bool hf) {
  if (!hf) return kGgufBlock;
  return model_type == "gpt2" ? "transformer.h." : "model.layers.";
}

struct Split {
  std::string_view layer, stem, suffix;  // "3", "mlp.down_proj", ".weight"; layer empty outside blocks
};

std::optional<Split> split(std::string_view name, std::string_view prefix) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  Split s{{}, name.substr(0, dot), name.substr(dot)};
  if (s.suffix != ".weight" && s.suffix != ".bias") return std::nullopt;
  if (!s.stem.starts_with(prefix)) return s;
  s.stem.remove_prefix(prefix.size());
  const std::size_t end = s.stem.find('.');
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  s.layer = s.stem.substr(0, end);
  if (s.layer.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  s.stem.remove_prefix(end + 1);
  return s;
}

template <std::size_t N>
const Pair* find(const std::array<Pair, N>& table, std::string_view stem, bool by_hf) {
  for (const Pair& pair : table) {
    if ((by_hf ? pair.first : pair.second) == stem) return &pair;
  }
  return nullptr;
}

std::optional<std::string> translate(std::string_view model_type, std::string_view name, bool from_hf) {
  const std::optional<Split> s = split(name, block_prefix(model_type, from_hf));
  if (!s) return std::nullopt;
  const Pair* pair = nullptr;
  if (s->layer.empty()) {
    if (model_type == "gpt2") pair = find(kGpt2Global, s->stem, from_hf);
    if (pair == nullptr) pair = find(kGlobal, s->stem, from_hf);
  } else {
    if (has_output_norms(model_type)) pair = find(kOutputNorms, s->stem, from_hf);
    if (model_type == "mixtral") pair = find(kMixtral, s->stem, from_hf);
    if (model_type == "gpt2") pair = find(kGpt2, s->stem, from_hf);
    if (model_type == "gpt_oss") pair = find(kGptOss, s->stem, from_hf);
    if (model_type == "phi3") pair = find(kPhi3, s->stem, from_hf);
    if (model_type.starts_with("qwen3_5")) pair = find(kQwen35, s->stem, from_hf);
    if (pair == nullptr) pair = find(kInBlock, s->stem, from_hf);
  }
  if (pair == nullptr) return std::nullopt;
  std::string out;
  if (!s->layer.empty()) {
    out += block_prefix(model_type, !from_hf);
    out += s->layer;
    out += '.';
  }
  out += from_hf ? pair->second : pair->first;
  out += s->suffix;
  return out;
}

// Vectors that are neither a weight nor a bias of a map: whole names below a block.
constexpr std::array<Pair, 5> kVectors = {{
    {"self_attn.sinks", "attn_sinks.weight"},
    {"mlp.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},  // DeepSeek's name of the same
    {"linear_attn.A_log", "ssm_a"},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
}};

std::optional<std::string> translate_vector(std::string_view model_type, std::string_view name,
                                            bool from_hf) {
  const std::string_view prefix = block_prefix(model_type, from_hf);
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  const std::size_t end = name.find('.');
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  const std::string_view layer = name.substr(0, end), rest = name.substr(end + 1);
  if (layer.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  for (const Pair& pair : kVectors) {
    if ((from_hf ? pair.first : pair.second) != rest) continue;
    const bool deepseek = model_type.starts_with("deepseek");
    if (pair.second == "exp_probs_b.bias" && pair.first.starts_with("mlp.gate.") != deepseek) continue;
    std::string out(block_prefix(model_type, !from_hf));
    return out.append(layer).append(".").append(from_hf ? pair.second : pair.first);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> gguf_name(std::string_view model_type, std::string_view hf_name) {
  if (auto vector = translate_vector(model_type, hf_name, true)) return vector;
  return translate(model_type, hf_name, true);
}

std::string nested_name(std::string_view hf_name) {
  constexpr std::string_view kModel = "model.";
  if (!hf_name.starts_with(kModel)) return std::string(hf_name);
  return "model.language_model." + std::string(hf_name.substr(kModel.size()));
}

std::optional<std::string> hf_name(std::string_view model_type, std::string_view gguf_name) {
  if (auto vector = translate_vector(model_type, gguf_name, false)) return vector;
  return translate(model_type, gguf_name, false);
}

}  // namespace wring::model
