// Where models keep their chat template: transformers' folder layout (a file of its own since 4.43), or a
// GGUF key.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/gguf.h"
#include "formats/json.h"
#include "text/chat_template.h"

namespace wring::text {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxConfigBytes = std::size_t{64}
                                        << 20;  // tokenizer_config.json also lists the added tokens

std::string text_of(const nlohmann::json& value, const std::string& where) {
  if (!value.is_string()) throw Error(ErrorCode::kBadInput, "a chat template is not a string", where);
  return value.get<std::string>();
}

std::optional<std::string> from_config(const std::filesystem::path& file) {
  const nlohmann::json config = formats::read_json_file(file, kMaxConfigBytes);
  const std::string where = file.string() + ", chat_template";
  if (!config.is_object()) throw Error(ErrorCode::kBadInput, "not a JSON object", file.string());
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (!found->is_array()) return text_of(*found, where);
  std::string names;
  for (const auto& entry : *found) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template")) {
      throw Error(ErrorCode::kBadInput, "a listed chat template lacks name or template", where);
    }
    const std::string name = text_of(entry["name"], where);
    if (name == "default") return text_of(entry["template"], where);
    names += (names.empty() ? "" : ", ") + name;
  }
  throw Error(ErrorCode::kBadInput, fmt::format("none of the chat templates ({}) is named default", names),
              where);
}

}  // namespace

std::optional<std::string> find_chat_template(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "chat_template.jinja")) {
    return read_text_file(folder / "chat_template.jinja", kMaxBytes);
  }
  const std::filesystem::path config = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(config)) return std::nullopt;
  return from_config(config);
}

std::optional<std::string> find_chat_template(const formats::GgufReader& file) {
  if (!file.has("tokenizer.chat_template")) return std::nullopt;
  return file.string("tokenizer.chat_template");
}

}  // namespace wring::text
