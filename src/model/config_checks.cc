#include "model/config_checks.h"

#include <fmt/format.h>

#include "base/error.h"

namespace wring::model {

std::int64_t default_head_dim(const ModelConfig& c, bool given, const HeadNames& names,
                              const std::string& where) {
  if (!given && c.hidden_size % c.num_attention_heads != 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} {} is not a multiple of {} {} and {} is not given", names.hidden_size,
                            c.hidden_size, names.num_attention_heads, c.num_attention_heads, names.head_dim),
                where);
  }
  return c.hidden_size / c.num_attention_heads;
}

void check_heads(const ModelConfig& c, const HeadNames& names, const std::string& where) {
  if (c.num_attention_heads % c.num_key_value_heads != 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} {} does not divide {} {}", names.num_key_value_heads, c.num_key_value_heads,
                            names.num_attention_heads, c.num_attention_heads),
                where);
  }
  if (c.head_dim % 2 != 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} {} is odd: rotary positions need pairs", names.head_dim, c.head_dim), where);
  }
}

void check_whole_heads(const ModelConfig& c, const HeadNames& names, const std::string& where) {
  if (c.head_dim > kMaxHeadDim || c.head_dim * c.num_attention_heads != c.hidden_size) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} heads ({}) of {} ({}) do not fill {} {}, or one is larger than {}",
                            c.num_attention_heads, names.num_attention_heads, c.head_dim, names.head_dim,
                            names.hidden_size, c.hidden_size, kMaxHeadDim),
                where);
  }
  if (c.num_key_value_heads != c.num_attention_heads) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} {} differs from {} {}", names.num_key_value_heads, c.num_key_value_heads,
                            names.num_attention_heads, c.num_attention_heads),
                where);
  }
}

void check_experts(const ModelConfig& c, const std::string& where) {
  constexpr std::int64_t kMostInAll = std::int64_t{1} << 17;
  if (c.num_experts * c.num_hidden_layers > kMostInAll) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} layers of {} experts are more than {} experts in all", c.num_hidden_layers,
                            c.num_experts, kMostInAll),
                where);
  }
  if (c.num_experts % c.n_group != 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} experts do not divide into {} groups", c.num_experts, c.n_group), where);
  }
  if (c.num_experts / c.n_group * c.topk_group < c.num_experts_per_tok) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} of {} groups hold fewer than the {} experts of a token", c.topk_group,
                            c.n_group, c.num_experts_per_tok),
                where);
  }
}

}  // namespace wring::model
