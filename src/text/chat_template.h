// Chat templates: the model's own Jinja template, run by an interpreter of ours (text/jinja/) in the
// environment that Hugging Face defines for it (trim_blocks, lstrip_blocks, loop controls, tojson without
// HTML escaping, raise_exception, strftime_now, the immutable sandbox).
#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace wring::formats {
class GgufReader;
}

namespace wring::text {

class ChatTemplate {
 public:
  /// Evaluated nodes; work that grows with data (texts, lists) counts further steps. It bounds time to a
  /// second or so, and memory.
  static constexpr long kMaxSteps = 2'000'000;

  /// Parses `source`. Errors: kBadInput for a syntax error, kNotSupported for a construct that is not
  /// implemented; both name line and construct.
  static ChatTemplate parse(std::string_view source, std::string_view where);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// Renders. `context` is an object of the template's variables: messages, add_generation_prompt, bos_token,
  /// eos_token, tools, … `now` is what strftime_now shows, in local time. Thread-safe. Errors: kBadInput with
  /// the template's message for raise_exception, for a run-time fault, and for more than `max_steps` steps;
  /// kNotSupported for a value or operation that only shows while it runs.
  std::string render(const nlohmann::ordered_json& context, std::time_t now,
                     long max_steps = kMaxSteps) const;
  std::string render(const nlohmann::ordered_json& context) const {
    return render(context, std::time(nullptr));
  }

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The template of a model folder: chat_template.jinja, else "chat_template" of tokenizer_config.json (a
/// string, or a list of {name, template} with one named "default"). Empty if the model has none. Errors:
/// kBadInput naming file and field.
std::optional<std::string> find_chat_template(const std::filesystem::path& folder);

/// The template of a GGUF (tokenizer.chat_template). Empty if it has none.
std::optional<std::string> find_chat_template(const formats::GgufReader& file);

}  // namespace wring::text
