// The public face of the interpreter: parse once, render often, and every error with the place in the
// template.

#include "text/chat_template.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/parser.h"

namespace wring::text {

struct ChatTemplate::State {
  std::string where;
  jinja::Block block;
};

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

ChatTemplate ChatTemplate::parse(std::string_view source, std::string_view where) {
  auto state = std::make_unique<State>();
  state->where = where;
  with_context(where, [&] { state->block = jinja::parse_template(source); });
  return ChatTemplate(std::move(state));
}

std::string ChatTemplate::render(const nlohmann::ordered_json& context, std::time_t now,
                                 long max_steps) const {
  jinja::Evaluator evaluator =
      with_context(state_->where, [&] { return jinja::Evaluator(context, now, max_steps); });
  try {
    return evaluator.render(state_->block);
  } catch (Error& e) {
    e.add_context(fmt::format("{}, line {}", state_->where, evaluator.line()));
    throw;
  }
}

}  // namespace wring::text
