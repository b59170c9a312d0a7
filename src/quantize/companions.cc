#include "quantize/companions.h"

#include <array>

#include "base/error.h"

namespace wring::quantize {
namespace {

constexpr std::array<const char*, 13> kCompanions = {
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
};

}  // namespace

void copy_companions(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const char* name : kCompanions) {
    std::error_code error;
    if (!std::filesystem::exists(from / name, error)) continue;
    std::filesystem::copy_file(from / name, to / name, error);
    if (error) throw_errno(error.value(), "copying", (from / name).string());
  }
}

}  // namespace wring::quantize
