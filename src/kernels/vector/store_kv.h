// Keys and values into the cache, as a template over a level's vector class V: F16, which every token's pass
// through in packed mode, by whole vectors; the other types as scalar/ stores them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/levels.h"

namespace wring::kernels::vector {

/// n floats as F16 to to[0], to[step], …
template <class V>
inline void store_f16s(const float* from, int n, std::uint16_t* to, std::ptrdiff_t step) {
  for (int i = 0; i < n; i += V::kLanes) {
    const int some = n - i < V::kLanes ? n - i : V::kLanes;
    std::uint16_t halves[V::kLanes];
    V::store_f16(halves, V::load_first(from + i, some));
    for (int j = 0; j < some; ++j) to[(i + j) * step] = halves[j];
  }
}

template <class V>
void store_kv(formats::QuantType type, const float* k, const float* v, int head_dim, int value_dim, int slot,
              void* k_page, void* v_page) {
  if (type != formats::QuantType::kF16)
    return scalar::store_kv(type, k, v, head_dim, value_dim, slot, k_page, v_page);
  store_f16s<V>(k, head_dim, static_cast<std::uint16_t*>(k_page) + slot, kPageTokens);
  store_f16s<V>(v, value_dim,
                static_cast<std::uint16_t*>(v_page) + static_cast<std::ptrdiff_t>(slot) * value_dim, 1);
}

}  // namespace wring::kernels::vector
