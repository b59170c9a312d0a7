// Expressions, look-ups and iteration. Attributes prefer Python's methods to a dict's keys, subscripts the
// other way round, and what neither finds is undefined, which prints as nothing and fails on any other use.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/evaluator.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

std::string missing(const Value& base, std::string_view name) {
  return fmt::format("'{} object' has no attribute '{}'", base.type(), name);
}

Value loop_attribute(Loop& loop, std::string_view name) {
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(!loop.peek());
  if (name == "length") return Value(loop.length());
  if (name == "revindex") return Value(loop.length() - loop.index0);
  if (name == "revindex0") return Value(loop.length() - loop.index0 - 1);
  if (name == "previtem") {
    return loop.index0 > 0 && loop.before ? *loop.before : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") return loop.peek() ? *loop.after : Value::undefined("there is no next item");
  if (name == "depth") return Value(std::int64_t{1});
  if (name == "depth0") return Value(std::int64_t{0});
  return Value::undefined(fmt::format("'loop' has no attribute '{}'", name));
}

/// Start, stop and step as Python's slice.indices gives them for `size` items.
struct Span {
  std::int64_t start, stop, step, count;
};

Span span_of(const Value* from, const Value* to, const Value* by, std::int64_t size) {
  const auto number = [](const Value* v, std::int64_t fallback) {
    if (v == nullptr || v->is_none()) return fallback;
    if (v->is_undefined()) fail_undefined(*v);
    if (!v->is_integral()) fail("slice indices must be integers or None");
    return v->as_int();
  };
  const std::int64_t step = std::clamp<std::int64_t>(number(by, 1), -INT64_MAX, INT64_MAX);
  if (step == 0) fail("slice step cannot be zero");
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? size : size - 1;
  const auto bound = [&](const Value* v, std::int64_t fallback) {
    if (v == nullptr || v->is_none()) return fallback;
    std::int64_t i = number(v, 0);
    if (i < 0) i += size;  // cannot overflow: the signs differ
    return std::clamp(i, low, high);
  };
  const std::int64_t start = bound(from, step > 0 ? low : high);
  const std::int64_t stop = bound(to, step > 0 ? high : low);
  std::int64_t count = 0;
  if (step > 0 && start < stop) count = (stop - start - 1) / step + 1;
  if (step < 0 && start > stop) count = (start - stop - 1) / -step + 1;
  return {start, stop, step, count};
}

}  // namespace

Value Evaluator::look_up(const std::string& name) {
  if (const Value* found = scope_->find(name)) return *found;
  if (const Builtin* function = find_builtin(name)) return Value(*function);
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Value Evaluator::evaluate(const Expression& e) {
  if (depth_ >= kMaxDepth) fail(fmt::format("evaluations are nested deeper than {}", kMaxDepth));
  struct Level {
    int& depth;
    explicit Level(int& d) : depth(d) { ++depth; }
    ~Level() { --depth; }
  };
  const Level level(depth_);
  charge(1);
  line_ = e.line;
  switch (e.kind) {
    case ExpressionKind::kConstant:
      return e.constant;
    case ExpressionKind::kName:
      return look_up(e.name);
    case ExpressionKind::kNamespaceName:
      break;
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return evaluate_items(e);
    case ExpressionKind::kDict:
      return evaluate_dict(e);
    case ExpressionKind::kAttribute:
      return attribute(evaluate(*e.parts[0]), e.name);
    case ExpressionKind::kItem: {
      const Value base = evaluate(*e.parts[0]);
      const Value key = evaluate(*e.parts[1]);
      line_ = e.line;
      return item(base, key);
    }
    case ExpressionKind::kSlice:
      return evaluate_slice(e);
    case ExpressionKind::kCall: {
      const Value callee = evaluate(*e.parts[0]);
      Arguments arguments = arguments_of(e, 1);
      line_ = e.line;
      return call(callee, std::move(arguments));
    }
    case ExpressionKind::kFilter:
      return evaluate_filter(e);
    case ExpressionKind::kTest: {
      const Value input = evaluate(*e.parts[0]);
      Arguments arguments = arguments_of(e, 1);
      line_ = e.line;
      return Value(apply_test(*this, e.name, input, std::move(arguments)));
    }
    case ExpressionKind::kNot:
      return Value(!evaluate(*e.parts[0]).truthy());
    case ExpressionKind::kMinus:
    case ExpressionKind::kPlus: {
      const Value value = evaluate(*e.parts[0]);
      const bool minus = e.kind == ExpressionKind::kMinus;
      if (value.is_undefined()) fail_undefined(value);
      if (!value.is_number())
        fail(fmt::format("bad operand type for unary {}: '{}'", minus ? '-' : '+', value.type()));
      if (minus && value.is_float()) return Value(-value.as_double());
      return number_operation(minus ? "-" : "+", Value(std::int64_t{0}), value);
    }
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr: {
      Value value;
      for (const ExpressionPtr& part : e.parts) {
        value = evaluate(*part);
        if (value.truthy() != (e.kind == ExpressionKind::kAnd)) break;
      }
      return value;
    }
    case ExpressionKind::kConcat: {
      std::string text;
      for (const ExpressionPtr& part : e.parts) {
        const Value value = evaluate(*part);
        charge(value.weight() / 32);
        text += to_text(value);
        check_text_size(text.size());
      }
      return make_text(std::move(text));
    }
    case ExpressionKind::kBinary: {
      const Value a = evaluate(*e.parts[0]);
      const Value b = evaluate(*e.parts[1]);
      line_ = e.line;
      return binary(e.name, a, b);
    }
    case ExpressionKind::kCompare:
      return evaluate_compare(e);
    case ExpressionKind::kIfElse:
      if (evaluate(*e.parts[1]).truthy()) return evaluate(*e.parts[0]);
      if (e.parts[2]) return evaluate(*e.parts[2]);
      return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
  }
  return Value();
}

Value Evaluator::evaluate_items(const Expression& e) {
  std::vector<Value> items;
  items.reserve(e.parts.size());
  for (const ExpressionPtr& part : e.parts) items.push_back(evaluate(*part));
  return Value::sequence(e.kind == ExpressionKind::kList ? Sequence::kList : Sequence::kTuple,
                         std::move(items));
}

Value Evaluator::evaluate_dict(const Expression& e) {
  const auto size = static_cast<std::int64_t>(e.parts.size());
  charge(size * size / 256);  // each key is looked for among those before it
  std::vector<std::pair<Value, Value>> entries;
  for (std::size_t i = 0; i + 1 < e.parts.size(); i += 2) {
    Value key = evaluate(*e.parts[i]);
    entries.emplace_back(std::move(key), evaluate(*e.parts[i + 1]));
  }
  return Value::dict(std::move(entries));
}

Value Evaluator::evaluate_filter(const Expression& e) {
  const Value input = e.parts[0] ? evaluate(*e.parts[0]) : *piped_;
  Arguments arguments = arguments_of(e, 1);
  line_ = e.line;
  return apply_filter(*this, e.name, input, std::move(arguments));
}

Arguments Evaluator::arguments_of(const Expression& e, std::size_t first) {
  Arguments out;
  for (std::size_t i = first; i < e.parts.size(); ++i) out.positional.push_back(evaluate(*e.parts[i]));
  for (const auto& [name, value] : e.named) out.named.emplace_back(name, evaluate(*value));
  if (e.star) {
    for (Value& value : items_of(evaluate(*e.star))) out.positional.push_back(std::move(value));
  }
  if (e.star_star) {
    const Value more = evaluate(*e.star_star);
    if (more.dict() == nullptr) fail(fmt::format("argument after ** must be a mapping, not {}", more.type()));
    for (const auto& [key, value] : more.dict()->entries) {
      if (!key.is_text()) fail("keywords must be strings");
      out.named.emplace_back(key.text(), value);
    }
    charge(static_cast<std::int64_t>(out.named.size() * out.named.size() / 64));
  }
  return out;
}

bool Evaluator::equals(const Value& a, const Value& b) {
  charge(std::min(a.weight(), b.weight()) / 32);
  return equal(a, b);
}

bool Evaluator::contains(const Value& container, const Value& item) {
  if (container.is_text()) {
    if (item.is_undefined()) fail_undefined(item);
    if (!item.is_text())
      fail(fmt::format("'in <string>' requires string as left operand, not {}", item.type()));
    charge_search(container.text().size(), item.text().size());
    return container.text().find(item.text()) != std::string::npos;
  }
  if (const DictData* dict = container.dict()) {
    charge(static_cast<std::int64_t>(dict->entries.size() / 64));
    if (!hashable(item)) fail(fmt::format("unhashable type: '{}'", item.type()));
    return dict->find(item) != nullptr;
  }
  if (const SeqData* seq = container.seq()) {
    charge(static_cast<std::int64_t>(seq->items.size() / 32));
    return std::any_of(seq->items.begin(), seq->items.end(), [&](const Value& v) { return equals(v, item); });
  }
  if (auto* iterator = container.as<Iterator>()) {
    while (iterator->next < iterator->items.size()) {
      charge(1);
      if (equals(iterator->items[iterator->next++], item)) return true;
    }
    return false;
  }
  if (container.is_undefined()) return false;
  fail(fmt::format("argument of type '{}' is not iterable", container.type()));
}

bool Evaluator::compare_by(std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return equals(a, b);
  if (op == "!=") return !equals(a, b);
  if (op == "in") return contains(b, a);
  if (op == "not in") return !contains(b, a);
  charge(std::min(a.weight(), b.weight()) / 32);
  const int order = compare(a, b, op);
  const auto is_nan = [](const Value& v) { return v.is_float() && std::isnan(v.as_double()); };
  if (is_nan(a) || is_nan(b)) return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == ">" ? order > 0 : order >= 0;
}

Value Evaluator::evaluate_compare(const Expression& e) {
  Value left = evaluate(*e.parts[0]);
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    Value right = evaluate(*e.parts[i + 1]);
    line_ = e.line;
    if (!compare_by(e.operators[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Evaluator::evaluate_slice(const Expression& e) {
  const Value base = evaluate(*e.parts[0]);
  Value bounds[3];
  const Value* given[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!e.parts[i + 1]) continue;
    bounds[i] = evaluate(*e.parts[i + 1]);
    given[i] = &bounds[i];
  }
  line_ = e.line;
  if (base.is_undefined()) fail_undefined(base);
  if (base.is_text()) {
    const std::string& text = base.text();
    charge_bytes(text.size());
    const Span span = span_of(given[0], given[1], given[2], static_cast<std::int64_t>(length(text)));
    if (span.step == 1) {
      const std::size_t begin = byte_offset(text, static_cast<std::size_t>(span.start));
      const std::string_view rest = std::string_view(text).substr(begin);
      return make_text(std::string(rest.substr(0, byte_offset(rest, static_cast<std::size_t>(span.count)))));
    }
    charge(static_cast<std::int64_t>(text.size() / 32));
    const std::vector<std::string> all = characters(text);
    std::string out;
    for (std::int64_t i = 0; i < span.count; ++i)
      out += all[static_cast<std::size_t>(span.start + i * span.step)];
    return make_text(std::move(out));
  }
  const SeqData* seq = base.seq();
  if (seq == nullptr || seq->kind >= Sequence::kKeys)
    fail(fmt::format("'{}' object cannot be sliced", base.type()));
  const Span span = span_of(given[0], given[1], given[2], static_cast<std::int64_t>(seq->items.size()));
  charge(span.count / 32);
  if (seq->kind == Sequence::kRange) {
    if (std::abs(span.step) > kMaxValueWeight) fail_not_supported("a range sliced by a giant step");
    return Value::range(seq->start + span.start * seq->step, seq->start + span.stop * seq->step,
                        seq->step * span.step, span.count);
  }
  std::vector<Value> items;
  for (std::int64_t i = 0; i < span.count; ++i) {
    items.push_back(seq->items[static_cast<std::size_t>(span.start + i * span.step)]);
  }
  return Value::sequence(seq->kind == Sequence::kList ? Sequence::kList : Sequence::kTuple, std::move(items));
}

std::vector<Value> Evaluator::items_of(const Value& v) {
  std::vector<Value> out;
  if (v.is_undefined()) return out;
  if (v.is_text()) {
    charge(static_cast<std::int64_t>(v.text().size() / 16));
    for (std::string& character : characters(v.text())) out.emplace_back(std::move(character));
  } else if (const SeqData* seq = v.seq()) {
    charge(static_cast<std::int64_t>(seq->items.size() / 32));
    out = seq->items;
  } else if (const DictData* dict = v.dict()) {
    charge(static_cast<std::int64_t>(dict->entries.size() / 32));
    for (const auto& [key, value] : dict->entries) out.push_back(key);
  } else if (auto* iterator = v.as<Iterator>()) {
    const auto begin = iterator->items.begin() + static_cast<std::ptrdiff_t>(iterator->next);
    out.assign(begin, iterator->items.end());
    charge(static_cast<std::int64_t>(out.size() / 32));
    iterator->next = iterator->items.size();
  } else {
    fail(fmt::format("'{}' object is not iterable", v.type()));
  }
  return out;
}

Value Evaluator::item(const Value& base, const Value& key) {
  if (base.is_undefined()) fail_undefined(base);
  if (const DictData* dict = base.dict()) {
    charge(static_cast<std::int64_t>(dict->entries.size() / 64));
    if (hashable(key)) {
      if (const Value* found = dict->find(key)) return *found;
    }
  } else if (key.is_integral() &&
             (base.is_text() || (base.seq() != nullptr && base.seq()->kind < Sequence::kKeys))) {
    if (base.is_text()) charge_bytes(base.text().size());
    const auto size =
        static_cast<std::int64_t>(base.is_text() ? length(base.text()) : base.seq()->items.size());
    const std::int64_t index = key.as_int() < 0 ? key.as_int() + size : key.as_int();
    if (index >= 0 && index < size) {
      if (!base.is_text()) return base.seq()->items[static_cast<std::size_t>(index)];
      const std::size_t begin = byte_offset(base.text(), static_cast<std::size_t>(index));
      std::size_t end = begin;
      next_code_point(base.text(), end);
      return Value(base.text().substr(begin, end - begin));
    }
    return Value::undefined(fmt::format("{} object has no element {}", base.type(), key.as_int()));
  }
  if (key.is_text() && base.dict() == nullptr) return attribute(base, key.text());
  if (key.is_text() && has_method(base, key.text())) return attribute(base, key.text());
  charge(key.weight() / 32);
  return Value::undefined(key.is_text() ? missing(base, key.text())
                                        : fmt::format("{} object has no element {}", base.type(), repr(key)));
}

Value Evaluator::attribute(const Value& base, std::string_view name) {
  if (base.is_undefined()) fail_undefined(base);
  if (has_method(base, name)) {
    if (is_changing_method(base, name)) {
      return Value::undefined(
          fmt::format("'{}' would change a {}, which a template may not do", name, base.type()));
    }
    return Value::method(base, name);
  }
  if (const DictData* dict = base.dict()) {
    charge(static_cast<std::int64_t>(dict->entries.size() / 64));
    if (const Value* found = dict->find(name)) return *found;
  } else if (auto* space = base.as<Namespace>()) {
    if (const Value* found = space->find(name)) return *found;
  } else if (auto* loop = base.as<Loop>()) {
    return loop_attribute(*loop, name);
  } else if (auto* cycler = base.as<Cycler>()) {
    if (name == "current") return cycler->items[cycler->at];
  } else if (const SeqData* seq = base.seq(); seq != nullptr && seq->kind == Sequence::kGroup) {
    if (name == "grouper") return seq->items[0];
    if (name == "list") return seq->items[1];
  }
  return Value::undefined(missing(base, name));
}

Value Evaluator::attribute_path(const Value& base, const Value& path, const Value* fallback) {
  if (path.is_none()) return base;
  const auto step = [&](const Value& from, const Value& key) {
    Value value = item(from, key);
    return value.is_undefined() && fallback != nullptr ? *fallback : value;
  };
  if (!path.is_text()) return step(base, path);
  Value value = base;
  for (const std::string& part : split(path.text(), ".", -1, false)) {
    std::int64_t index = 0;
    const bool is_index = all_of_class(part, CharClass::kDigit) && part.size() < 18 &&
                          std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc();
    value = step(value, is_index ? Value(index) : Value(part));
  }
  return value;
}

Value Evaluator::call(const Value& callee, Arguments arguments) {
  charge(1);
  if (callee.is_undefined()) fail_undefined(callee);
  if (const MethodData* method = callee.method()) return call_method(*this, *method, std::move(arguments));
  if (const Builtin* function = callee.builtin()) return call_builtin(*this, *function, std::move(arguments));
  if (const auto* macro = callee.as<Macro>()) return call_macro(*macro, std::move(arguments));
  if (auto* joiner = callee.as<Joiner>()) {
    const Bound none("joiner", std::move(arguments), {});
    return std::exchange(joiner->used, true) ? joiner->separator : Value(std::string());
  }
  fail(fmt::format("'{}' object is not callable", callee.type()));
}

}  // namespace wring::text::jinja
