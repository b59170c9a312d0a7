// Values as they are stored, F32, F16 or BF16, read as floats: what cached keys and values and unquantized
// weights have in common. Pointers need no alignment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wring::kernels::vector {

template <class V>
struct StoredF32 {
  using Value = float;
  static typename V::F load(const void* p) { return V::load(static_cast<const float*>(p)); }
  static typename V::F load_first(const void* p, int n) {
    return V::load_first(static_cast<const float*>(p), n);
  }
};

/// The first n of a vector of 16-bit values, 0 in the others; nothing beyond is read.
template <class V>
inline void copy_first(const void* p, int n, std::uint16_t (&some)[V::kLanes]) {
  const auto* from = static_cast<const unsigned char*>(p);
  for (int i = 0; i < V::kLanes; ++i) {
    some[i] = i < n ? static_cast<std::uint16_t>(from[2 * i] | from[2 * i + 1] << 8) : std::uint16_t{0};
  }
}

template <class V>
struct StoredF16 {
  using Value = std::uint16_t;
  static typename V::F load(const void* p) { return V::load_f16(p); }
  static typename V::F load_first(const void* p, int n) {
    std::uint16_t some[V::kLanes];
    copy_first<V>(p, n, some);
    return V::load_f16(some);
  }
};

template <class V>
struct StoredBF16 {
  using Value = std::uint16_t;
  static typename V::F load(const void* p) { return V::load_bf16(p); }
  static typename V::F load_first(const void* p, int n) {
    std::uint16_t some[V::kLanes];
    copy_first<V>(p, n, some);
    return V::load_bf16(some);
  }
};

}  // namespace wring::kernels::vector
