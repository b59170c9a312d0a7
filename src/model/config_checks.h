// What must hold of hyper-parameters wherever they were read from: limits, and how heads divide the hidden
// size. The two forms of configuration differ in the names that messages use.
#pragma once

#include <cstdint>
#include <string>

#include "model/config.h"

namespace wring::model {

// Far above any published model, far below what would overflow a product of two of them.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxLayers = 4096;
inline constexpr std::int64_t kMaxContext = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxHeadDim = 4096;
inline constexpr std::int64_t kMaxExperts = 4096;

/// A form's names of the fields.
struct HeadNames {
  std::string hidden_size, num_attention_heads, num_key_value_heads, head_dim;
};

/// hidden_size / num_attention_heads; kBadInput where that leaves a rest and the file gives no head size.
std::int64_t default_head_dim(const ModelConfig& config, bool given, const HeadNames& names,
                              const std::string& where);

/// Errors: kBadInput where key/value heads do not divide the heads, or a head has no pairs to rotate.
void check_heads(const ModelConfig& config, const HeadNames& names, const std::string& where);

/// Of GPT-2, whose heads fill the hidden size, each with keys and values of its own. Errors: kBadInput
/// otherwise.
void check_whole_heads(const ModelConfig& config, const HeadNames& names, const std::string& where);

/// Errors: kBadInput where groups do not divide the experts, or hold too few of them for a token.
void check_experts(const ModelConfig& config, const std::string& where);

}  // namespace wring::model
