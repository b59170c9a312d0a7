#include "engine/kv_cache.h"

#include <fmt/format.h>

#include "base/error.h"

namespace wring::engine {

KvCache::KvCache(const model::ModelSpec& spec, formats::QuantType type, std::uint64_t limit_bytes)
    : type_(type), value_bytes_(formats::info_of(type).block_bytes), limit_bytes_(limit_bytes) {
  if (type != formats::QuantType::kF32 && type != formats::QuantType::kF16 &&
      type != formats::QuantType::kBF16)
    throw Error(ErrorCode::kInternal, fmt::format("a cache cannot be kept in {}", formats::name_of(type)));
  for (const model::LayerSpec& layer : spec.layers) {
    const std::size_t head_values =
        static_cast<std::size_t>(layer.attention.head_dim + layer.attention.values()) * kernels::kPageTokens;
    layers_.push_back({page_values_, head_values, layer.attention.head_dim});
    page_values_ += head_values * static_cast<std::size_t>(layer.attention.num_kv_heads);
  }
}

void KvCache::grow(BlockTable& table, std::int64_t positions) {
  const auto wanted = static_cast<std::size_t>((positions + kernels::kPageTokens - 1) / kernels::kPageTokens);
  if (wanted <= table.size()) return;
  const std::size_t missing = wanted - table.size();
  if (missing > free_.size() && limit_bytes_ != 0) {
    const std::uint64_t needed = (pages_.size() + missing - free_.size()) * page_bytes();
    if (needed > limit_bytes_) {
      throw Error(ErrorCode::kIo, fmt::format("the key/value cache is full: {} bytes needed, {} allowed",
                                              needed, limit_bytes_));
    }
  }
  while (free_.size() < missing) {
    pages_.emplace_back(page_bytes());
    free_.push_back(static_cast<PageId>(pages_.size() - 1));
  }
  for (std::size_t i = 0; i < missing; ++i) {
    table.push_back(free_.back());
    free_.pop_back();
  }
}

void KvCache::release(BlockTable& table) {
  free_.insert(free_.end(), table.begin(), table.end());
  table.clear();
}

}  // namespace wring::engine
