// Metadata values printed for people and held against limits. Their kinds are listed in gguf.h.
#include "formats/gguf_metadata.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace wring::formats {
namespace {

constexpr std::size_t kShownBytes = 80;

std::string quoted(const std::string& text) {
  return fmt::format("\"{}\"",
                     printable(text.size() > kShownBytes ? text.substr(0, kShownBytes) + "…" : text));
}

struct Printer {
  bool is_f32;  // a float32 that a double holds prints with a float32's digits

  std::string operator()(const std::string& text) const { return quoted(text); }
  std::string operator()(double number) const {
    return is_f32 ? fmt::format("{}", static_cast<float>(number)) : fmt::format("{}", number);
  }
  template <class T>
  std::string operator()(const T& item) const {
    return fmt::format("{}", item);
  }
  template <class T>
  std::string operator()(const std::vector<T>& items) const {
    constexpr std::size_t kShownItems = 4;
    std::string text = "[";
    for (std::size_t i = 0; i < items.size() && i < kShownItems; ++i)
      text += (i == 0 ? "" : ", ") + (*this)(T(items[i]));
    if (items.size() > kShownItems) text += fmt::format(", … {} in all", items.size());
    return text + "]";
  }
};

}  // namespace

std::string to_text(const GgufEntry& entry) {
  return std::visit(Printer{entry.kind == GgufKind::kF32}, entry.value);
}

void refuse_value(std::string_view path, std::string_view key, const GgufEntry& entry,
                  std::string_view expected) {
  throw Error(ErrorCode::kBadInput, fmt::format("{} must be {}", key, expected),
              fmt::format("{}, {} = {}", path, key, to_text(entry)));
}

std::int64_t metadata_integer(const GgufMetadata& metadata, std::string_view path, std::string_view key,
                              std::int64_t low, std::int64_t high) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) {
    throw Error(ErrorCode::kBadInput, fmt::format("metadata key {} is missing", key), std::string(path));
  }
  const auto* u = std::get_if<std::uint64_t>(&found->second.value);
  const auto* i = std::get_if<std::int64_t>(&found->second.value);
  const bool fits = i != nullptr || (u != nullptr && *u <= static_cast<std::uint64_t>(INT64_MAX));
  const std::int64_t value = i != nullptr ? *i : fits ? static_cast<std::int64_t>(*u) : 0;
  if (!fits || value < low || value > high) {
    refuse_value(path, key, found->second, fmt::format("an integer from {} to {}", low, high));
  }
  return value;
}

}  // namespace wring::formats
