// Chat templates: the model's own Jinja template, run by an interpreter of ours (jinja.h) in the environment that Hugging Face
// defines for it (trim_blocks, lstrip_blocks, loop controls, tojson without HTML escaping, raise_exception, strftime_now).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace wring::text {

class ChatTemplate {
 public:
  /// Parses `source`. Errors: kBadInput for a syntax error, kNotSupported for a construct that is not implemented; both name
  /// line and construct.
  static ChatTemplate parse(std::string_view source, std::string_view where);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// Renders. `context` is an object of the template's variables: messages, add_generation_prompt, bos_token, eos_token, tools, …
  /// Errors: kBadInput with the template's message for raise_exception, for a run-time fault, and for more than `kMaxSteps` steps.
  std::string render(const nlohmann::ordered_json& context) const;

  static constexpr long kMaxSteps = 2'000'000;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace wring::text
