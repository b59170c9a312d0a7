// What templates can call: filters, tests, methods of texts, lists and dicts, and global functions. Each
// takes its arguments as Python does, by position or name, and fails as Python does on wrong ones.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace wring::text::jinja {

class Evaluator;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Arguments sorted to the parameters of a function.
class Bound {
 public:
  /// Errors: kBadInput for too many, unknown or repeated ones, and if one of the first `required` is missing.
  Bound(std::string_view callee, Arguments arguments, std::initializer_list<std::string_view> parameters,
        std::size_t required = 0);

  /// Null where it was not given.
  const Value* get(std::size_t parameter) const { return given_[parameter] ? &values_[parameter] : nullptr; }
  /// Null where it was not given, or given as none.
  const Value* get_not_none(std::size_t parameter) const;
  const Value& need(std::size_t parameter) const { return values_[parameter]; }

  // Of the kind, or the fallback where it was not given. Errors: kBadInput for another kind.
  std::int64_t integer(std::size_t parameter, std::int64_t fallback) const;
  const std::string& text(std::size_t parameter) const;
  bool truth(std::size_t parameter, bool fallback) const;

 private:
  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<Value> values_;
  std::vector<char> given_;
};

struct Filter {
  std::string_view name;
  Value (*apply)(Evaluator&, const Value& input, Arguments arguments);
};

std::span<const Filter> text_filters();      // filters_text.cc
std::span<const Filter> number_filters();    // filters_number.cc
std::span<const Filter> sequence_filters();  // filters_sequence.cc
std::span<const Filter> order_filters();     // filters_order.cc

bool is_filter(std::string_view name);
bool is_test(std::string_view name);
/// Methods and functions of Jinja's Python that are not here: refused when a template is parsed.
bool is_unsupported_method(std::string_view name);
bool is_unsupported_global(std::string_view name);

Value apply_filter(Evaluator& evaluator, std::string_view name, const Value& input, Arguments arguments);
bool apply_test(Evaluator& evaluator, std::string_view name, const Value& input, Arguments arguments);

/// Whether Python's type of `self` has this method, one that changes it included.
bool has_method(const Value& self, std::string_view name);
/// Whether the method would change `self`: the sandbox hides those.
bool is_changing_method(const Value& self, std::string_view name);
Value call_method(Evaluator& evaluator, const MethodData& method, Arguments arguments);
Value call_text_method(Evaluator& evaluator, const std::string& self, std::string_view name,
                       Arguments arguments);
Value call_builtin(Evaluator& evaluator, Builtin function, Arguments arguments);

/// json.dumps with the arguments that Hugging Face's tojson takes.
Value to_json(Evaluator& evaluator, const Value& input, Arguments arguments);
/// Text with each `old_text` replaced, as str.replace; the size is known before it is made.
Value replace_text(Evaluator& evaluator, const std::string& text, const std::string& old_text,
                   const std::string& new_text, std::int64_t limit);
/// format % right, as Python's str has it.
std::string percent_format(const std::string& format, const Value& right);
/// "{…}".format(…).
std::string brace_format(const std::string& format, const Arguments& arguments);

}  // namespace wring::text::jinja
