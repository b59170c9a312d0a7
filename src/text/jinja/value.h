// The values of a template: Python's, as far as chat templates see them. Texts, sequences and dicts never
// change once made (the sandbox that Hugging Face renders in forbids it too), so they are shared and cannot
// form cycles; the few things that do change (namespaces, loops, iterators, macros) are `Object`s that live
// as long as the rendering.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace wring::text::jinja {

class Value;

struct TextData {
  std::string text;
  bool safe;  // the result of |safe or |escape: Python escapes what is added to it, which is refused here
};

enum class Sequence { kList, kTuple, kGroup, kRange, kKeys, kValues, kItems };
struct SeqData;
struct DictData;
struct MethodData;

/// Things with identity, owned by the Heap of one rendering.
struct Object {
  virtual ~Object() = default;
  virtual std::string_view type() const = 0;  // for messages
};

/// A function that every template can call: range, namespace, raise_exception …
enum class Builtin { kRange, kDict, kNamespace, kRaiseException, kStrftimeNow, kCycler, kJoiner };

struct Undefined {
  std::shared_ptr<const std::string> why;  // "'x' is undefined"
};
struct None {};

/// The nesting of lists and dicts in one another, and what one value may hold with everything in it (a value
/// counts 1, and each 16 bytes of text). More is an error, so that walking a value needs no guard, even if
/// its parts are shared many times.
inline constexpr int kMaxValueDepth = 200;
inline constexpr std::int64_t kMaxValueWeight = 4'000'000;
/// Bytes of one text, and of the whole output.
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

class Value {
 public:
  Value() : data_(None{}) {}
  explicit Value(bool b) : data_(b) {}
  explicit Value(std::int64_t i) : data_(i) {}
  explicit Value(double d) : data_(d) {}
  explicit Value(std::string text, bool safe = false)
      : data_(std::make_shared<const TextData>(TextData{std::move(text), safe})) {}
  explicit Value(Object* object) : data_(object) {}
  explicit Value(Builtin function) : data_(function) {}
  static Value undefined(std::string why);
  /// Errors: kBadInput above kMaxValueDepth or kMaxValueWeight.
  static Value sequence(Sequence kind, std::vector<Value> items);
  static Value list(std::vector<Value> items) { return sequence(Sequence::kList, std::move(items)); }
  static Value tuple(std::vector<Value> items) { return sequence(Sequence::kTuple, std::move(items)); }
  /// `count` integers from `start` on; `stop` is only shown.
  static Value range(std::int64_t start, std::int64_t stop, std::int64_t step, std::int64_t count);
  /// Later entries replace earlier ones of an equal key, in its place. Keys must be hashable (checked).
  static Value dict(std::vector<std::pair<Value, Value>> entries);
  static Value method(Value self, std::string_view name);
  /// Errors: kBadInput for nesting, kNotSupported for an integer above 2^63 - 1.
  static Value from_json(const nlohmann::ordered_json& json);

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_text() const { return std::holds_alternative<std::shared_ptr<const TextData>>(data_); }
  bool is_safe_text() const { return is_text() && text_data().safe; }

  // Access to a value known to be of the kind.
  const std::string& text() const { return text_data().text; }
  double as_double() const;     // of any number
  std::int64_t as_int() const;  // of an int or bool
  bool is_integral() const { return is_bool() || is_int(); }
  const SeqData* seq() const;    // null if it is not a sequence
  const DictData* dict() const;  // null if not
  const MethodData* method() const;
  Object* object() const;
  const Builtin* builtin() const { return std::get_if<Builtin>(&data_); }
  /// The object as a `T`, or null.
  template <class T>
  T* as() const {
    return dynamic_cast<T*>(object());
  }
  const std::string& why_undefined() const { return *std::get<Undefined>(data_).why; }

  /// Python's name of the type, for messages.
  std::string_view type() const;
  int depth() const;
  std::int64_t weight() const;
  bool truthy() const;

 private:
  const TextData& text_data() const { return *std::get<std::shared_ptr<const TextData>>(data_); }

  std::variant<None, Undefined, bool, std::int64_t, double, std::shared_ptr<const TextData>,
               std::shared_ptr<const SeqData>, std::shared_ptr<const DictData>,
               std::shared_ptr<const MethodData>, Object*, Builtin>
      data_;
};

struct SeqData {
  Sequence kind;
  std::vector<Value> items;
  std::int64_t start, stop, step;  // of a range
  int depth;
  std::int64_t weight;
};

struct DictData {
  std::vector<std::pair<Value, Value>> entries;  // in order of insertion
  int depth;
  std::int64_t weight;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};

struct MethodData {
  Value self;
  std::string name;
};

/// Python's ==; never fails.
bool equal(const Value& a, const Value& b);
/// < 0, 0, > 0. Errors: kBadInput where Python has no order, naming `op`.
int compare(const Value& a, const Value& b, std::string_view op);
/// Whether a dict may have it as a key.
bool hashable(const Value& v);

/// str(v), as {{ v }} prints it. Errors: kBadInput for what has no stable text (methods, iterators, macros).
std::string to_text(const Value& v);
std::string repr(const Value& v);
std::string repr_text(std::string_view text);
std::string repr_float(double d);

[[noreturn]] void fail(std::string message);               // kBadInput
[[noreturn]] void fail_undefined(const Value& undefined);  // with what is undefined
[[noreturn]] void fail_not_supported(std::string message);
void check_text_size(std::size_t bytes);  // fails above kMaxTextBytes

}  // namespace wring::text::jinja
