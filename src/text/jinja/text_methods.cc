// Methods of texts. Positions in arguments and results count code points.

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/evaluator.h"
#include "text/jinja/text.h"

namespace wring::text::jinja {
namespace {

Value list_of(Evaluator& evaluator, std::vector<std::string> parts) {
  evaluator.charge(static_cast<std::int64_t>(parts.size() / 8));
  std::vector<Value> out;
  out.reserve(parts.size());
  for (std::string& part : parts) out.emplace_back(std::move(part));
  return Value::list(std::move(out));
}

/// Bytes [begin, end) that the optional start and end arguments name, in code points; empty optional: start
/// behind the end.
struct Window {
  std::size_t begin, end;
  bool valid;
};

Window window_of(const Bound& bound, const std::string& self, std::size_t first) {
  const auto size = static_cast<std::int64_t>(length(self));
  const auto position = [&](std::size_t i, std::int64_t fallback) {
    if (bound.get_not_none(i) == nullptr) return fallback;
    const std::int64_t value = bound.integer(i, fallback);
    return value < 0 ? std::max<std::int64_t>(value + size, 0) : value;
  };
  const std::int64_t start = position(first, 0);
  const std::int64_t end = std::min(position(first + 1, size), size);
  if (start > end) return {0, 0, false};
  return {byte_offset(self, static_cast<std::size_t>(start)),
          byte_offset(self, static_cast<std::size_t>(end)), true};
}

Value starts_or_ends(const std::string& self, std::string_view name, Arguments arguments) {
  const Bound bound(name, std::move(arguments), {"prefix", "start", "end"}, 1);
  const Window window = window_of(bound, self, 1);
  const std::string_view text = std::string_view(self).substr(window.begin, window.end - window.begin);
  const auto holds = [&](const Value& v) {
    if (v.is_undefined()) fail_undefined(v);
    if (!v.is_text()) fail(fmt::format("{} needs a str or a tuple of str, not {}", name, v.type()));
    return window.valid && (name == "startswith" ? text.starts_with(v.text()) : text.ends_with(v.text()));
  };
  const SeqData* several = bound.need(0).seq();
  if (several == nullptr || several->kind != Sequence::kTuple) return Value(holds(bound.need(0)));
  return Value(std::any_of(several->items.begin(), several->items.end(), holds));
}

Value find_in(Evaluator& evaluator, const std::string& self, std::string_view name, Arguments arguments) {
  const Bound bound(name, std::move(arguments), {"sub", "start", "end"}, 1);
  const std::string& wanted = bound.text(0);
  evaluator.charge_search(self.size(), wanted.size());
  const Window window = window_of(bound, self, 1);
  const std::string_view text = std::string_view(self).substr(window.begin, window.end - window.begin);
  if (name == "count") {
    if (!window.valid) return Value(std::int64_t{0});
    if (wanted.empty()) return Value(static_cast<std::int64_t>(length(text)) + 1);
    std::int64_t count = 0;
    for (std::size_t at = text.find(wanted); at != std::string_view::npos;
         at = text.find(wanted, at + wanted.size()))
      ++count;
    return Value(count);
  }
  const bool from_right = name == "rfind" || name == "rindex";
  const std::size_t found =
      !window.valid ? std::string_view::npos : (from_right ? text.rfind(wanted) : text.find(wanted));
  if (found != std::string_view::npos) {
    return Value(static_cast<std::int64_t>(length(std::string_view(self).substr(0, window.begin + found))));
  }
  if (name == "index" || name == "rindex") fail("substring not found");
  return Value(std::int64_t{-1});
}

Value strip_method(Evaluator& evaluator, const std::string& self, std::string_view name,
                   Arguments arguments) {
  const Bound bound(name, std::move(arguments), {"chars"});
  std::optional<std::string_view> chars;
  if (bound.get_not_none(0) != nullptr) chars = bound.text(0);
  if (chars) evaluator.charge_search(self.size(), chars->size());
  const Side side = name == "strip" ? Side::kBoth : (name == "lstrip" ? Side::kLeft : Side::kRight);
  return evaluator.make_text(std::string(strip(self, side, chars)));
}

Value split_method(Evaluator& evaluator, const std::string& self, std::string_view name,
                   Arguments arguments) {
  const Bound bound(name, std::move(arguments), {"sep", "maxsplit"});
  std::optional<std::string_view> separator;
  if (bound.get_not_none(0) != nullptr) separator = bound.text(0);
  if (separator && separator->empty()) fail("empty separator");
  evaluator.charge_search(self.size(), separator ? separator->size() : 1);
  return list_of(evaluator, split(self, separator, bound.integer(1, -1), name == "rsplit"));
}

Value join_method(Evaluator& evaluator, const std::string& self, Arguments arguments) {
  const Bound bound("join", std::move(arguments), {"iterable"}, 1);
  std::string out;
  bool first = true;
  for (const Value& item : evaluator.items_of(bound.need(0))) {
    if (!item.is_text()) fail(fmt::format("join needs texts, not {}", item.type()));
    if (!first) out += self;
    first = false;
    out += item.text();
    check_text_size(out.size());
  }
  return evaluator.make_text(std::move(out));
}

Value partition(Evaluator& evaluator, const std::string& self, bool from_right, Arguments arguments) {
  const Bound bound("partition", std::move(arguments), {"sep"}, 1);
  const std::string& separator = bound.text(0);
  if (separator.empty()) fail("empty separator");
  evaluator.charge_search(self.size(), separator.size());
  const std::size_t found = from_right ? self.rfind(separator) : self.find(separator);
  const Value none{std::string()};
  if (found == std::string::npos) {
    const Value all{self};
    return from_right ? Value::tuple({none, none, all}) : Value::tuple({all, none, none});
  }
  return Value::tuple(
      {Value(self.substr(0, found)), Value(separator), Value(self.substr(found + separator.size()))});
}

Value pad(Evaluator& evaluator, const std::string& self, std::string_view name, Arguments arguments) {
  const Bound bound(name, std::move(arguments), {"width", "fillchar"}, 1);
  std::string fill = name == "zfill" ? "0" : " ";
  if (bound.get(1) != nullptr && name != "zfill") fill = bound.text(1);
  if (length(fill) != 1) fail("the fill character must be exactly one character long");
  const auto missing = bound.integer(0, 0) - static_cast<std::int64_t>(length(self));
  if (missing <= 0) return Value(self);
  check_text_size(static_cast<std::size_t>(missing));
  const std::string padding = evaluator.binary("*", Value(fill), Value(missing)).text();
  if (name == "ljust") return evaluator.make_text(self + padding);
  const std::size_t sign = name == "zfill" && (self.starts_with('-') || self.starts_with('+')) ? 1 : 0;
  return evaluator.make_text(self.substr(0, sign) + padding + self.substr(sign));
}

Value remove_affix(Evaluator& evaluator, const std::string& self, bool prefix, Arguments arguments) {
  const Bound bound("removeprefix", std::move(arguments), {"affix"}, 1);
  const std::string& affix = bound.text(0);
  if (prefix && self.starts_with(affix)) return evaluator.make_text(self.substr(affix.size()));
  if (!prefix && self.ends_with(affix))
    return evaluator.make_text(self.substr(0, self.size() - affix.size()));
  return Value(self);
}

Value without_arguments(Evaluator& evaluator, const std::string& self, std::string_view name,
                        Arguments arguments) {
  const Bound none(name, std::move(arguments), {});
  evaluator.charge(static_cast<std::int64_t>(self.size() / 32));
  if (name == "upper") return evaluator.make_text(upper(self));
  if (name == "lower") return evaluator.make_text(lower(self));
  if (name == "title") return evaluator.make_text(title(self));
  if (name == "capitalize") return evaluator.make_text(capitalize(self));
  if (name == "isalpha") return Value(all_of_class(self, CharClass::kAlpha));
  if (name == "isdigit") return Value(all_of_class(self, CharClass::kDigit));
  if (name == "isalnum") return Value(all_of_class(self, CharClass::kAlnum));
  if (name == "isspace") return Value(all_of_class(self, CharClass::kSpace));
  if (name == "islower") return Value(has_only_case(self, true));
  if (name == "isupper") return Value(has_only_case(self, false));
  fail_not_supported(fmt::format("the chat template uses the method '{}' of a text", name));
}

}  // namespace

Value call_text_method(Evaluator& evaluator, const std::string& self, std::string_view name,
                       Arguments arguments) {
  evaluator.charge_bytes(self.size());
  if (name == "startswith" || name == "endswith") return starts_or_ends(self, name, std::move(arguments));
  if (name == "find" || name == "rfind" || name == "index" || name == "rindex" || name == "count") {
    return find_in(evaluator, self, name, std::move(arguments));
  }
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return strip_method(evaluator, self, name, std::move(arguments));
  if (name == "split" || name == "rsplit") return split_method(evaluator, self, name, std::move(arguments));
  if (name == "join") return join_method(evaluator, self, std::move(arguments));
  if (name == "replace") {
    const Bound bound("replace", std::move(arguments), {"old", "new", "count"}, 2);
    return replace_text(evaluator, self, bound.text(0), bound.text(1), bound.integer(2, -1));
  }
  if (name == "splitlines") {
    const Bound bound("splitlines", std::move(arguments), {"keepends"});
    return list_of(evaluator, split_lines(self, bound.truth(0, false)));
  }
  if (name == "partition" || name == "rpartition")
    return partition(evaluator, self, name[0] == 'r', std::move(arguments));
  if (name == "ljust" || name == "rjust" || name == "zfill")
    return pad(evaluator, self, name, std::move(arguments));
  if (name == "removeprefix" || name == "removesuffix") {
    return remove_affix(evaluator, self, name == "removeprefix", std::move(arguments));
  }
  if (name == "format") return evaluator.make_text(brace_format(self, arguments));
  return without_arguments(evaluator, self, name, std::move(arguments));
}

}  // namespace wring::text::jinja
