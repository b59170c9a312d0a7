// Expressions, from the loosest binding (… if … else …) to the tightest (names, literals, subscripts, calls).
// Note two of Jinja's own choices: ~ binds tighter than +, and unary minus tighter than a filter.

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/library.h"
#include "text/jinja/parser.h"
#include "text/jinja/parser_base.h"

namespace wring::text::jinja {

ExpressionPtr Parser::make(ExpressionKind kind, int line) const {
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->line = line;
  return out;
}

ExpressionPtr Parser::finished(ExpressionPtr e) const {
  int deepest = 0;
  const auto see = [&](const ExpressionPtr& part) {
    if (part) deepest = std::max(deepest, part->depth);
  };
  for (const auto& part : e->parts) see(part);
  for (const auto& [name, part] : e->named) see(part);
  see(e->star);
  see(e->star_star);
  e->depth = deepest + 1;
  if (e->depth > kMaxNesting) fail_syntax(e->line, fmt::format("nested deeper than {} levels", kMaxNesting));
  return e;
}

ExpressionPtr Parser::binary(std::string op, ExpressionPtr left, ExpressionPtr right, int line) const {
  auto out = make(ExpressionKind::kBinary, line);
  out->name = std::move(op);
  out->parts.push_back(std::move(left));
  out->parts.push_back(std::move(right));
  return finished(std::move(out));
}

bool Parser::at_tuple_end(std::string_view end_word) const {
  const TokenKind kind = current().kind;
  return kind == TokenKind::kPrintEnd || kind == TokenKind::kBlockEnd || is_operator(")") ||
         (!end_word.empty() && is_name(end_word));
}

ExpressionPtr Parser::parse_tuple(bool with_condition, std::string_view end_word, bool in_parentheses) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (!at_tuple_end(end_word)) {
    parts.push_back(parse_expression(with_condition));
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (parts.empty() && !in_parentheses)
    fail_here(fmt::format("expected an expression, got {}", describe(current())));
  auto out = make(ExpressionKind::kTuple, line);
  out->parts = std::move(parts);
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_target_part(bool with_namespace) {
  Nesting nesting(*this);
  const int line = current().line;
  if (skip_operator("(")) {
    ExpressionPtr inner = parse_target(false, {});
    expect_operator(")");
    return inner;
  }
  const Token name = expect(TokenKind::kName, "a name to assign to");
  for (const std::string_view reserved : {"true", "false", "none", "True", "False", "None"}) {
    if (name.text == reserved) fail_syntax(line, fmt::format("cannot assign to '{}'", reserved));
  }
  auto out = make(ExpressionKind::kName, line);
  out->name = name.text;
  if (with_namespace && skip_operator(".")) {
    out->kind = ExpressionKind::kNamespaceName;
    out->attribute = expect(TokenKind::kName, "an attribute's name").text;
  }
  return out;
}

ExpressionPtr Parser::parse_target(bool with_namespace, std::string_view end_word) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  do {
    if (is_tuple && (at_tuple_end(end_word) || is_operator("="))) break;
    parts.push_back(parse_target_part(with_namespace));
    is_tuple = is_tuple || is_operator(",");
  } while (skip_operator(","));
  if (!is_tuple) return std::move(parts[0]);
  auto out = make(ExpressionKind::kTuple, line);
  out->parts = std::move(parts);
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_expression(bool with_condition) {
  return with_condition ? parse_conditional() : parse_or();
}

ExpressionPtr Parser::parse_conditional() {
  const int line = current().line;
  ExpressionPtr value = parse_or();
  while (skip_name("if")) {
    auto out = make(ExpressionKind::kIfElse, line);
    out->parts.push_back(std::move(value));
    out->parts.push_back(parse_or());
    Nesting nesting(*this);
    out->parts.push_back(skip_name("else") ? parse_conditional() : nullptr);
    value = finished(std::move(out));
  }
  return value;
}

ExpressionPtr Parser::parse_or() {
  const int line = current().line;
  ExpressionPtr first = parse_and();
  if (!is_name("or")) return first;
  auto out = make(ExpressionKind::kOr, line);
  out->parts.push_back(std::move(first));
  while (skip_name("or")) out->parts.push_back(parse_and());
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_and() {
  const int line = current().line;
  ExpressionPtr first = parse_not();
  if (!is_name("and")) return first;
  auto out = make(ExpressionKind::kAnd, line);
  out->parts.push_back(std::move(first));
  while (skip_name("and")) out->parts.push_back(parse_not());
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_not() {
  if (!is_name("not")) return parse_compare();
  Nesting nesting(*this);
  auto out = make(ExpressionKind::kNot, take().line);
  out->parts.push_back(parse_not());
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_compare() {
  const int line = current().line;
  ExpressionPtr first = parse_sum();
  ExpressionPtr out;
  for (;;) {
    std::string op;
    const bool not_in = is_name("not") && look_ahead().kind == TokenKind::kName && look_ahead().text == "in";
    for (const std::string_view sign : {"==", "!=", "<", "<=", ">", ">="}) {
      if (is_operator(sign)) op = sign;
    }
    if (is_name("in")) op = "in";
    if (not_in) op = "not in";
    if (op.empty()) break;
    take();
    if (not_in) take();
    if (!out) {
      out = make(ExpressionKind::kCompare, line);
      out->parts.push_back(std::move(first));
    }
    out->operators.push_back(op);
    out->parts.push_back(parse_sum());
  }
  return out ? finished(std::move(out)) : std::move(first);
}

ExpressionPtr Parser::parse_sum() {
  const int line = current().line;
  ExpressionPtr left = parse_concat();
  while (is_operator("+") || is_operator("-")) {
    std::string op = take().text;
    left = binary(std::move(op), std::move(left), parse_concat(), line);
  }
  return left;
}

ExpressionPtr Parser::parse_concat() {
  const int line = current().line;
  ExpressionPtr first = parse_product();
  if (!is_operator("~")) return first;
  auto out = make(ExpressionKind::kConcat, line);
  out->parts.push_back(std::move(first));
  while (skip_operator("~")) out->parts.push_back(parse_product());
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_product() {
  const int line = current().line;
  ExpressionPtr left = parse_power();
  while (is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%")) {
    std::string op = take().text;
    left = binary(std::move(op), std::move(left), parse_power(), line);
  }
  return left;
}

ExpressionPtr Parser::parse_power() {
  const int line = current().line;
  ExpressionPtr left = parse_unary(true);
  while (skip_operator("**")) left = binary("**", std::move(left), parse_unary(true), line);
  return left;
}

ExpressionPtr Parser::parse_unary(bool with_filters) {
  Nesting nesting(*this);
  ExpressionPtr out;
  if (is_operator("-") || is_operator("+")) {
    out = make(is_operator("-") ? ExpressionKind::kMinus : ExpressionKind::kPlus, current().line);
    take();
    out->parts.push_back(parse_unary(false));
    out = finished(std::move(out));
  } else {
    out = parse_primary();
  }
  out = parse_postfix(std::move(out));
  return with_filters ? parse_filters_and_tests(std::move(out)) : std::move(out);
}

ExpressionPtr Parser::parse_primary() {
  const Token& token = current();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString: {
      std::string text;
      while (current().kind == TokenKind::kString)
        text += take().text;  // neighbours are joined, as in Python
      auto out = make(ExpressionKind::kConstant, line);
      out->constant = Value(std::move(text));
      return out;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat: {
      auto out = make(ExpressionKind::kConstant, line);
      out->constant = token.kind == TokenKind::kInteger ? Value(token.integer) : Value(token.real);
      take();
      return out;
    }
    default:
      break;
  }
  if (skip_operator("(")) {
    ExpressionPtr inner = parse_tuple(true, {}, true);
    expect_operator(")");
    return inner;
  }
  if (is_operator("[")) return parse_list();
  if (is_operator("{")) return parse_dict();
  fail_here(fmt::format("unexpected {}", describe(token)));
}

ExpressionPtr Parser::parse_name() {
  const Token token = take();
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
      name == "None") {
    auto out = make(ExpressionKind::kConstant, token.line);
    if (name[0] != 'n' && name[0] != 'N') out->constant = Value(name[0] == 't' || name[0] == 'T');
    return out;
  }
  for (MacroUse* use : macros_) {
    use->varargs = use->varargs || name == "varargs";
    use->kwargs = use->kwargs || name == "kwargs";
    use->caller = use->caller || name == "caller";
  }
  if (is_unsupported_global(name) && is_operator("(")) {
    refuse_construct(token.line, fmt::format("the function '{}'", name));
  }
  auto out = make(ExpressionKind::kName, token.line);
  out->name = name;
  return out;
}

ExpressionPtr Parser::parse_list() {
  auto out = make(ExpressionKind::kList, take().line);
  while (!is_operator("]")) {
    if (!out->parts.empty()) expect_operator(",");
    if (is_operator("]")) break;
    out->parts.push_back(parse_expression());
  }
  take();
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_dict() {
  auto out = make(ExpressionKind::kDict, take().line);
  while (!is_operator("}")) {
    if (!out->parts.empty()) expect_operator(",");
    if (is_operator("}")) break;
    out->parts.push_back(parse_expression());
    expect_operator(":");
    out->parts.push_back(parse_expression());
  }
  take();
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr base) {
  for (;;) {
    if (is_operator(".")) {
      base = parse_dot(std::move(base));
    } else if (is_operator("[")) {
      base = parse_subscript(std::move(base));
    } else if (is_operator("(")) {
      auto call = make(ExpressionKind::kCall, current().line);
      if (base->kind == ExpressionKind::kAttribute && is_unsupported_method(base->name)) {
        refuse_construct(base->line, fmt::format("the method '{}'", base->name));
      }
      call->parts.push_back(std::move(base));
      parse_arguments(*call);
      base = finished(std::move(call));
    } else {
      return base;
    }
  }
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr base) {
  for (;;) {
    if (is_operator("|")) {
      base = parse_filter_chain(std::move(base));
    } else if (is_name("is")) {
      base = parse_test(std::move(base));
    } else if (is_operator("(")) {
      base = parse_postfix(std::move(base));
    } else {
      return base;
    }
  }
}

ExpressionPtr Parser::parse_dot(ExpressionPtr base) {
  const int line = take().line;
  const Token name = take();
  if (name.kind == TokenKind::kName) {
    auto out = make(ExpressionKind::kAttribute, line);
    out->name = name.text;
    out->parts.push_back(std::move(base));
    return finished(std::move(out));
  }
  if (name.kind != TokenKind::kInteger)
    fail_syntax(name.line, fmt::format("expected a name or number, got {}", describe(name)));
  auto index = make(ExpressionKind::kConstant, name.line);
  index->constant = Value(name.integer);
  auto out = make(ExpressionKind::kItem, line);
  out->parts.push_back(std::move(base));
  out->parts.push_back(std::move(index));
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr base) {
  const int line = take().line;
  ExpressionPtr bounds[3];
  int colons = 0;
  for (; colons < 3; ++colons) {
    if (!is_operator(":") && !is_operator("]") && !is_operator(",")) bounds[colons] = parse_expression();
    if (colons == 2 || !skip_operator(":")) break;
  }
  if (is_operator(",")) refuse_construct(line, "a subscript of several parts");
  if (colons == 0 && !bounds[0]) fail_here("an empty subscript");
  expect_operator("]");
  auto out = make(colons == 0 ? ExpressionKind::kItem : ExpressionKind::kSlice, line);
  out->parts.push_back(std::move(base));
  for (int i = 0; i < (colons == 0 ? 1 : 3); ++i) out->parts.push_back(std::move(bounds[i]));
  return finished(std::move(out));
}

void Parser::parse_arguments(Expression& call) {
  const int line = current().line;
  expect_operator("(");
  const auto ensure = [&](bool fine) {
    if (!fine) fail_syntax(line, "the arguments of a call are in a wrong order");
  };
  bool first = true;
  while (!is_operator(")")) {
    if (!first) expect_operator(",");
    first = false;
    if (is_operator(")")) break;
    if (skip_operator("*")) {
      ensure(!call.star && !call.star_star);
      call.star = parse_expression();
    } else if (skip_operator("**")) {
      ensure(!call.star_star);
      call.star_star = parse_expression();
    } else if (current().kind == TokenKind::kName && look_ahead().kind == TokenKind::kOperator &&
               look_ahead().text == "=") {
      ensure(!call.star_star);
      std::string name = take().text;
      take();
      for (const auto& [known, value] : call.named) {
        if (known == name) fail_syntax(line, fmt::format("the argument '{}' is given twice", name));
      }
      call.named.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(!call.star && !call.star_star && call.named.empty());
      call.parts.push_back(parse_expression());
    }
  }
  take();
}

ExpressionPtr Parser::parse_filter(ExpressionPtr base) {
  const Token token = expect(TokenKind::kName, "a filter's name");
  if (is_operator(".") || !is_filter(token.text)) {
    refuse_construct(token.line, fmt::format("the filter '{}'", token.text));
  }
  auto out = make(ExpressionKind::kFilter, token.line);
  out->name = token.text;
  out->parts.push_back(std::move(base));
  if (is_operator("(")) parse_arguments(*out);
  return finished(std::move(out));
}

ExpressionPtr Parser::parse_filter_chain(ExpressionPtr base) {
  while (skip_operator("|")) base = parse_filter(std::move(base));
  return base;
}

ExpressionPtr Parser::parse_test(ExpressionPtr base) {
  const int line = take().line;
  const bool negated = skip_name("not");
  const Token name = expect(TokenKind::kName, "a test's name");
  if (is_operator(".") || !is_test(name.text))
    refuse_construct(name.line, fmt::format("the test '{}'", name.text));
  auto out = make(ExpressionKind::kTest, line);
  out->name = name.text;
  out->parts.push_back(std::move(base));
  const Token& next = current();
  const bool word_ends = is_name("else") || is_name("or") || is_name("and");
  if (is_operator("(")) {
    parse_arguments(*out);
  } else if ((next.kind == TokenKind::kName && !word_ends) || next.kind == TokenKind::kString ||
             next.kind == TokenKind::kInteger || next.kind == TokenKind::kFloat || is_operator("[") ||
             is_operator("{")) {
    if (is_name("is")) fail_here("tests cannot be chained with 'is'");
    out->parts.push_back(parse_postfix(parse_primary()));
  }
  out = finished(std::move(out));
  if (!negated) return out;
  auto negation = make(ExpressionKind::kNot, line);
  negation->parts.push_back(std::move(out));
  return finished(std::move(negation));
}

}  // namespace wring::text::jinja
