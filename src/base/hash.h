// Hashes: XXH3 where speed matters (line checksums, cache keys), SHA-256 where others must be able to check
// (documents, files).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace wring {

std::uint64_t xxh3_64(std::string_view bytes);

/// 32 lower-case hex digits.
std::string xxh3_128_hex(std::string_view bytes);

/// SHA-256 in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes);
  /// 64 lower-case hex digits. Call once, last.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace wring
