// Runs a parsed template over its variables. One Evaluator renders once; it owns everything that the
// rendering makes, and counts its steps, so that a template which would not end, or would fill the memory,
// ends in an error instead.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/library.h"
#include "text/jinja/object.h"

namespace wring::text::jinja {

/// Evaluations inside one another, macros included; each takes some hundred bytes of stack.
inline constexpr int kMaxDepth = 800;

class Evaluator {
 public:
  /// `context`: an object. `now`: what strftime_now shows, in local time.
  Evaluator(const nlohmann::ordered_json& context, std::time_t now, long max_steps);

  std::string render(const Block& block);
  /// The line of the template at which an error was thrown.
  int line() const { return line_; }

  // For the library.
  Heap& heap() { return heap_; }
  std::time_t now() const { return now_; }
  /// Counts work. Errors: kBadInput above the limit.
  void charge(std::int64_t steps);
  /// So a rendering makes at most 256 MB of text.
  void charge_bytes(std::size_t bytes) { charge(static_cast<std::int64_t>(bytes / 128)); }
  /// Before looking for `needle_bytes` in `bytes`: the product bounds the worst case.
  void charge_search(std::size_t bytes, std::size_t needle_bytes);
  bool equals(const Value& a, const Value& b);
  bool contains(const Value& container, const Value& item);
  /// What a for loop would see. Iterators are used up. Errors: kBadInput for what cannot be iterated.
  std::vector<Value> items_of(const Value& v);
  Value item(const Value& base, const Value& key);            // base[key]
  Value attribute(const Value& base, std::string_view name);  // base.name
  /// "a.b.0", as filters take it. What is undefined on the way becomes `fallback` if there is one.
  Value attribute_path(const Value& base, const Value& path, const Value* fallback = nullptr);
  Value call(const Value& callee, Arguments arguments);
  Value binary(std::string_view op, const Value& a, const Value& b);  // + - * / // % **
  Value make_iterator(std::vector<Value> items);
  Value make_text(std::string text, bool safe = false);  // charged

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class Depth;
  class InnerScope;

  // Statements (evaluator.cc).
  Flow run(const Block& block);
  Flow run(const Statement& statement);
  Flow run_if(const Statement& statement);
  Flow run_for(const Statement& statement);
  Flow run_captured(const Block& body, std::string& out);
  void run_call_block(const Statement& statement);
  void assign(const Expression& target, const Value& value);
  void emit(std::string_view text);
  Value make_macro(const Statement& definition);
  Value call_macro(const Macro& macro, Arguments arguments);

  // Expressions (evaluator_expression.cc).
  Value evaluate(const Expression& e);
  Value evaluate_items(const Expression& e);
  Value evaluate_dict(const Expression& e);
  Value evaluate_compare(const Expression& e);
  Value evaluate_slice(const Expression& e);
  Value evaluate_filter(const Expression& e);
  Value look_up(const std::string& name);
  Arguments arguments_of(const Expression& e, std::size_t first);
  bool compare_by(std::string_view op, const Value& a, const Value& b);
  // Arithmetic (arithmetic.cc).
  Value add(const Value& a, const Value& b);
  Value multiply(const Value& a, const Value& b);
  Value repeat(const Value& what, std::int64_t times);

  Heap heap_;
  std::time_t now_;
  long max_steps_;
  long steps_ = 0;
  int depth_ = 0;
  int line_ = 1;
  std::vector<std::string> context_names_;
  std::shared_ptr<Scope> scope_;
  std::string* out_ = nullptr;
  const Value* piped_ = nullptr;  // what a filter block pipes into its filters
};

/// Null for a name that is no function of the environment.
const Builtin* find_builtin(std::string_view name);
/// Python's arithmetic on numbers. Errors: kBadInput for a division by zero, kNotSupported above 64 bits.
Value number_operation(std::string_view op, const Value& a, const Value& b);

}  // namespace wring::text::jinja
