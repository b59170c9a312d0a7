// Statements. Scopes follow Jinja: for, with, macro, call, filter, set-block and generation bodies have their
// own, if has none.

#include "text/jinja/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace wring::text::jinja {

namespace {

/// Moves the argument of that name into `out`, if there is one.
bool take_named(Arguments& arguments, std::string_view name, Value& out) {
  auto& named = arguments.named;
  const auto found =
      std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == named.end()) return false;
  out = std::move(found->second);
  named.erase(found);
  return true;
}

}  // namespace

class Evaluator::Depth {
 public:
  explicit Depth(Evaluator& evaluator) : evaluator_(evaluator) {
    if (evaluator.depth_ >= kMaxDepth) fail(fmt::format("evaluations are nested deeper than {}", kMaxDepth));
    ++evaluator.depth_;
  }
  ~Depth() { --evaluator_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Evaluator& evaluator_;
};

/// A scope inside `parent` (by default the current one) until the end of a C++ block.
class Evaluator::InnerScope {
 public:
  explicit InnerScope(Evaluator& evaluator) : InnerScope(evaluator, evaluator.scope_) {}
  InnerScope(Evaluator& evaluator, std::shared_ptr<Scope> parent)
      : evaluator_(evaluator), outer_(evaluator.scope_) {
    evaluator.scope_ = std::make_shared<Scope>();
    evaluator.scope_->parent = std::move(parent);
  }
  ~InnerScope() { evaluator_.scope_ = std::move(outer_); }
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;

 private:
  Evaluator& evaluator_;
  std::shared_ptr<Scope> outer_;
};

Evaluator::Evaluator(const nlohmann::ordered_json& context, std::time_t now, long max_steps)
    : now_(now), max_steps_(max_steps), scope_(std::make_shared<Scope>()) {
  if (!context.is_object()) throw Error(ErrorCode::kInternal, "a template's context is not an object");
  context_names_.reserve(context.size());  // the scope keeps views of the names
  for (const auto& [name, value] : context.items()) {
    context_names_.push_back(name);
    scope_->set(context_names_.back(), Value::from_json(value));
  }
}

void Evaluator::charge(std::int64_t steps) {
  steps_ += steps;
  if (steps_ > max_steps_) fail(fmt::format("the chat template takes more than {} steps", max_steps_));
}

void Evaluator::charge_search(std::size_t bytes, std::size_t needle_bytes) {
  // As floating-point numbers the product cannot overflow.
  const double work = static_cast<double>(bytes) * static_cast<double>(needle_bytes) / 16384.0;
  charge_bytes(bytes);
  charge(static_cast<std::int64_t>(std::min(work, 1e12)));
}

std::string Evaluator::render(const Block& block) {
  std::string out;
  out_ = &out;
  const InnerScope inner(*this);
  run(block);
  return out;
}

void Evaluator::emit(std::string_view text) {
  charge_bytes(text.size());
  check_text_size(out_->size() + text.size());
  *out_ += text;
}

Value Evaluator::make_text(std::string text, bool safe) {
  charge_bytes(text.size());
  check_text_size(text.size());
  return Value(std::move(text), safe);
}

Value Evaluator::make_iterator(std::vector<Value> items) {
  charge(static_cast<std::int64_t>(items.size() / 32));
  auto* iterator = heap_.make<Iterator>();
  iterator->items = std::move(items);
  return Value(iterator);
}

Evaluator::Flow Evaluator::run(const Block& block) {
  for (const Statement& statement : block) {
    const Flow flow = run(statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run(const Statement& statement) {
  const Depth depth(*this);
  charge(1);
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::kText:
      emit(statement.text);
      return Flow::kNext;
    case StatementKind::kPrint: {
      const Value value = evaluate(*statement.value);
      if (value.is_text()) {
        emit(value.text());
      } else {
        charge(value.weight() / 32);
        emit(to_text(value));
      }
      return Flow::kNext;
    }
    case StatementKind::kIf:
      return run_if(statement);
    case StatementKind::kFor:
      return run_for(statement);
    case StatementKind::kSet:
      assign(*statement.target, evaluate(*statement.value));
      return Flow::kNext;
    case StatementKind::kSetBlock:
    case StatementKind::kFilterBlock: {
      std::string text;
      const Flow flow = run_captured(statement.body, text);
      if (flow != Flow::kNext) return flow;  // the text is lost, as in Jinja
      Value value = make_text(std::move(text));
      if (statement.value) {
        const Value* const outer = std::exchange(piped_, &value);
        Value filtered = evaluate(*statement.value);
        piped_ = outer;
        value = std::move(filtered);
      }
      if (statement.kind == StatementKind::kSetBlock) {
        assign(*statement.target, value);
      } else {
        emit(to_text(value));
      }
      return Flow::kNext;
    }
    case StatementKind::kMacro:
      scope_->set(statement.name, make_macro(statement));
      return Flow::kNext;
    case StatementKind::kCallBlock:
      run_call_block(statement);
      return Flow::kNext;
    case StatementKind::kWith: {
      std::vector<Value> values;  // of the outer scope, all of them
      for (const auto& [target, value] : statement.assignments) values.push_back(evaluate(*value));
      const InnerScope inner(*this);
      for (std::size_t i = 0; i < values.size(); ++i) assign(*statement.assignments[i].first, values[i]);
      return run(statement.body);
    }
    case StatementKind::kScope: {
      const InnerScope inner(*this);
      return run(statement.body);
    }
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_if(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (!branch.condition || evaluate(*branch.condition).truthy()) return run(branch.body);
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_for(const Statement& statement) {
  auto* loop = heap_.make<Loop>();
  loop->source = items_of(evaluate(*statement.value));
  const std::shared_ptr<Scope> outer = scope_;
  if (statement.condition) {
    loop->wanted = [this, outer, &statement](const Value& candidate) {
      const InnerScope inner(*this, outer);
      assign(*statement.target, candidate);
      return evaluate(*statement.condition).truthy();
    };
  }
  bool completed = false;  // some iteration reached the body's end; Jinja runs else without one, after
                           // continue or break too
  while (loop->advance()) {
    charge(2);  // a scope is dearer than an expression
    const InnerScope inner(*this);
    scope_->set("loop", Value(loop));
    assign(*statement.target, *loop->current);
    const Flow flow = run(statement.body);
    completed = completed || flow == Flow::kNext;
    if (flow == Flow::kBreak) break;
  }
  if (completed || statement.otherwise.empty()) return Flow::kNext;
  const InnerScope inner(*this);
  return run(statement.otherwise);
}

Evaluator::Flow Evaluator::run_captured(const Block& body, std::string& out) {
  struct Capture {  // restores the output on every way out
    Evaluator& evaluator;
    std::string* outer;
    ~Capture() { evaluator.out_ = outer; }
  };
  const Capture capture{*this, std::exchange(out_, &out)};
  const InnerScope inner(*this);
  return run(body);
}

void Evaluator::run_call_block(const Statement& statement) {
  const Expression& call_expression = *statement.value;
  const Value callee = evaluate(*call_expression.parts[0]);
  Arguments arguments = arguments_of(call_expression, 1);
  arguments.named.emplace_back("caller", make_macro(statement));
  emit(to_text(call(callee, std::move(arguments))));
}

void Evaluator::assign(const Expression& target, const Value& value) {
  line_ = target.line;
  if (target.kind == ExpressionKind::kName) {
    scope_->set(target.name, value);
  } else if (target.kind == ExpressionKind::kNamespaceName) {
    auto* space = look_up(target.name).as<Namespace>();
    if (space == nullptr)
      fail(fmt::format("cannot set {}.{}: it is not a namespace", target.name, target.attribute));
    if (target.attribute.starts_with('_')) {
      fail(fmt::format("a namespace's attribute may not begin with an underscore: {}", target.attribute));
    }
    space->set(target.attribute, value);
  } else {
    const std::vector<Value> items = items_of(value);
    if (items.size() != target.parts.size()) {
      fail(fmt::format("{} values to unpack into {} names", items.size(), target.parts.size()));
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], items[i]);
  }
}

Value Evaluator::make_macro(const Statement& definition) {
  auto* macro = heap_.make<Macro>();
  macro->definition = &definition;
  macro->scope = scope_;
  return Value(macro);
}

Value Evaluator::call_macro(const Macro& macro, Arguments arguments) {
  const Statement& definition = *macro.definition;
  const int caller_line = line_;
  const InnerScope inner(*this, macro.scope);
  auto& named = arguments.named;
  const std::size_t count = definition.parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = definition.parameters[i];
    Value given = Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    if (i < arguments.positional.size()) {
      given = arguments.positional[i];
    } else if (!take_named(arguments, parameter.name, given) && parameter.fallback) {
      given = evaluate(*parameter.fallback);
    }
    scope_->set(parameter.name, std::move(given));
  }
  if (definition.takes_caller) {
    Value caller = Value::undefined("No caller defined");
    take_named(arguments, "caller", caller);
    scope_->set("caller", std::move(caller));
  }
  if (definition.takes_kwargs) {
    std::vector<std::pair<Value, Value>> entries;
    for (auto& [name, value] : named) entries.emplace_back(Value(name), std::move(value));
    scope_->set("kwargs", Value::dict(std::move(entries)));
  } else if (!named.empty()) {
    fail(fmt::format("macro '{}' takes no keyword argument '{}'", definition.name, named.front().first));
  }
  if (definition.takes_varargs) {
    auto& all = arguments.positional;
    std::vector<Value> rest(all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size())),
                            all.end());
    scope_->set("varargs", Value::tuple(std::move(rest)));
  } else if (arguments.positional.size() > count) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", definition.name, count));
  }
  std::string text;
  run_captured(definition.body, text);
  line_ = caller_line;
  return make_text(std::move(text));
}

}  // namespace wring::text::jinja
