// GPT-2's config.json, which has names of its own. Source: configuration_gpt2.py of transformers.
#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/json.h"
#include "model/config_checks.h"
#include "model/config_parts_hf.h"

namespace wring::model {
namespace {

using formats::json_bool_or;
using formats::json_int;
using nlohmann::json;

void require_bool(const json& config, const char* key, bool value, const std::string& where) {
  if (json_bool_or(config, key, value, where) == value) return;
  throw Error(ErrorCode::kNotSupported, fmt::format("{} {} is not supported", key, !value), where,
              fmt::format("supported: {}", value));
}

}  // namespace

void read_gpt2(const json& config, ModelConfig& c, const std::string& where) {
  for (const char* key : {"layer_norm_epsilon", "activation_function"}) require_value(config, key, where);
  require_bool(config, "scale_attn_weights", true, where);
  require_bool(config, "scale_attn_by_inverse_layer_idx", false, where);
  require_bool(config, "add_cross_attention", false, where);
  const std::string activation = formats::json_string_or(config, "activation_function", "", where);
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("activation_function {} is not supported", printable(activation)), where,
                "supported: gelu_new, gelu_pytorch_tanh");
  }
  c.hidden_act = "gelu_pytorch_tanh";  // the same function
  c.vocab_size = json_int(config, "vocab_size", 1, kMaxSize, where);
  c.hidden_size = json_int(config, "n_embd", 1, kMaxSize, where);
  c.num_hidden_layers = json_int(config, "n_layer", 1, kMaxLayers, where);
  c.num_attention_heads = c.num_key_value_heads = json_int(config, "n_head", 1, kMaxSize, where);
  const HeadNames names = {"n_embd", "n_head", "n_head", "n_embd / n_head"};
  c.head_dim = default_head_dim(c, false, names, where);
  check_whole_heads(c, names, where);
  c.intermediate_size = formats::json_int_or(config, "n_inner", 4 * c.hidden_size, 1, kMaxSize, where);
  c.max_position_embeddings = json_int(config, "n_positions", 1, kMaxSize, where);
  c.rms_norm_eps = formats::json_number(config, "layer_norm_epsilon", 0, 1, where);
  c.tie_word_embeddings = json_bool_or(config, "tie_word_embeddings", true, where);
}

}  // namespace wring::model
