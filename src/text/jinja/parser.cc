// Statements: the tags, their bodies and their ends.

#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/parser_base.h"

namespace wring::text::jinja {

Block parse_template(std::string_view source) {
  return Parser(tokenize(source)).parse();
}

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (parser.nesting_ >= kMaxNesting) {
    fail_syntax(parser.current().line, fmt::format("nested deeper than {} levels", kMaxNesting));
  }
  ++parser.nesting_;
}

Token Parser::take() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_operator(std::string_view op) {
  const bool there = is_operator(op);
  if (there) take();
  return there;
}

bool Parser::skip_name(std::string_view name) {
  const bool there = is_name(name);
  if (there) take();
  return there;
}

void Parser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail_here(fmt::format("expected '{}', got {}", op, describe(current())));
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_here(fmt::format("expected '{}', got {}", name, describe(current())));
}

Token Parser::expect(TokenKind kind, std::string_view what) {
  if (current().kind != kind) fail_here(fmt::format("expected {}, got {}", what, describe(current())));
  return take();
}

void Parser::fail_here(std::string_view message) const {
  fail_syntax(current().line, message);
}

Block Parser::parse() {
  Block out = parse_until({}, {}, 0);
  return out;
}

Block Parser::parse_until(std::initializer_list<std::string_view> ends, std::string_view opener,
                          int opened_at) {
  Nesting nesting(*this);
  Block out;
  for (;;) {
    const Token token = current();
    switch (token.kind) {
      case TokenKind::kText:
        out.push_back({.kind = StatementKind::kText, .line = token.line, .text = take().text});
        break;
      case TokenKind::kPrintBegin: {
        take();
        Statement print{.kind = StatementKind::kPrint, .line = token.line};
        print.value = parse_tuple();
        expect(TokenKind::kPrintEnd, "'}}'");
        out.push_back(std::move(print));
        break;
      }
      case TokenKind::kBlockBegin:
        take();
        if (current().kind != TokenKind::kName)
          fail_here(fmt::format("expected a tag's name, got {}", describe(current())));
        if (std::find(ends.begin(), ends.end(), current().text) != ends.end()) return out;
        parse_statement(out);
        expect(TokenKind::kBlockEnd, "'%}'");
        break;
      case TokenKind::kEnd:
        if (ends.size() == 0) return out;
        fail_here(fmt::format("the template ends inside '{}' of line {}", opener, opened_at));
      default:
        fail_here(fmt::format("unexpected {}", describe(token)));
    }
  }
}

Block Parser::parse_body(std::initializer_list<std::string_view> ends, std::string_view opener,
                         int opened_at) {
  skip_operator(":");
  expect(TokenKind::kBlockEnd, "'%}'");
  return parse_until(ends, opener, opened_at);
}

Block Parser::parse_function_body(std::string_view end, std::string_view opener, int opened_at) {
  const int outer_loops = loops_;
  loops_ = 0;
  Block body = parse_body({end}, opener, opened_at);
  loops_ = outer_loops;
  take();
  return body;
}

void Parser::parse_statement(Block& out) {
  const Token tag = take();
  const std::string& name = tag.text;
  const int line = tag.line;
  if (name == "if") {
    out.push_back(parse_if(line));
  } else if (name == "for") {
    out.push_back(parse_for(line));
  } else if (name == "set") {
    out.push_back(parse_set(line));
  } else if (name == "macro") {
    out.push_back(parse_macro(line));
  } else if (name == "call") {
    out.push_back(parse_call_block(line));
  } else if (name == "filter") {
    out.push_back(parse_filter_block(line));
  } else if (name == "with") {
    out.push_back(parse_with(line));
  } else if (name == "generation") {
    out.push_back(parse_generation(line));
  } else if (name == "print") {
    while (current().kind != TokenKind::kBlockEnd) {
      Statement print{.kind = StatementKind::kPrint, .line = line};
      print.value = parse_expression();
      out.push_back(std::move(print));
      if (current().kind != TokenKind::kBlockEnd) expect_operator(",");
    }
  } else if (name == "break" || name == "continue") {
    if (loops_ == 0) fail_syntax(line, fmt::format("'{}' outside of a loop", name));
    out.push_back({.kind = name == "break" ? StatementKind::kBreak : StatementKind::kContinue, .line = line});
  } else {
    constexpr std::array<std::string_view, 6> kKnown = {"block",  "extends", "include",
                                                        "import", "from",    "autoescape"};
    if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) {
      refuse_construct(line, fmt::format("the tag '{}'", name));
    }
    fail_syntax(line, fmt::format("unknown tag '{}'", name));
  }
}

Statement Parser::parse_if(int line) {
  Statement out{.kind = StatementKind::kIf, .line = line};
  for (;;) {
    Branch branch;
    branch.condition = parse_tuple(false);
    branch.body = parse_body({"elif", "else", "endif"}, "if", line);
    out.branches.push_back(std::move(branch));
    const Token next = take();
    if (next.text == "elif") continue;
    if (next.text == "else") {
      Branch last;
      last.body = parse_body({"endif"}, "if", line);
      out.branches.push_back(std::move(last));
      take();
    }
    return out;
  }
}

Statement Parser::parse_for(int line) {
  Statement out{.kind = StatementKind::kFor, .line = line};
  out.target = parse_target(false, "in");
  expect_name("in");
  out.value = parse_tuple(false, "recursive");
  if (skip_name("if")) out.condition = parse_expression();
  if (is_name("recursive")) refuse_construct(line, "a recursive loop");
  ++loops_;
  out.body = parse_body({"endfor", "else"}, "for", line);
  --loops_;
  if (take().text == "else") {
    out.otherwise = parse_body({"endfor"}, "for", line);
    take();
  }
  return out;
}

Statement Parser::parse_set(int line) {
  Statement out{.kind = StatementKind::kSet, .line = line};
  out.target = parse_target(true);
  if (skip_operator("=")) {
    out.value = parse_tuple();
    return out;
  }
  out.kind = StatementKind::kSetBlock;
  if (is_operator("|")) out.value = parse_filter_chain(nullptr);
  out.body = parse_body({"endset"}, "set", line);
  take();
  return out;
}

void Parser::parse_parameters(Statement& macro) {
  expect_operator("(");
  while (!is_operator(")")) {
    if (!macro.parameters.empty()) expect_operator(",");
    Parameter parameter;
    parameter.name = expect(TokenKind::kName, "a parameter's name").text;
    if (skip_operator("=")) {
      parameter.fallback = parse_expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
      fail_here("a parameter without a default follows one with a default");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  take();
}

void Parser::parse_macro_body(Statement& macro, std::string_view end, std::string_view opener) {
  MacroUse use;
  macros_.push_back(&use);
  macro.body = parse_function_body(end, opener, macro.line);
  macros_.pop_back();
  const auto is_parameter = [&](std::string_view name) {
    return std::any_of(macro.parameters.begin(), macro.parameters.end(),
                       [&](const auto& p) { return p.name == name; });
  };
  macro.takes_varargs = use.varargs && !is_parameter("varargs");
  macro.takes_kwargs = use.kwargs && !is_parameter("kwargs");
  macro.takes_caller = use.caller && !is_parameter("caller");
}

Statement Parser::parse_macro(int line) {
  Statement out{.kind = StatementKind::kMacro, .line = line};
  out.name = expect(TokenKind::kName, "the macro's name").text;
  parse_parameters(out);
  parse_macro_body(out, "endmacro", "macro");
  return out;
}

Statement Parser::parse_call_block(int line) {
  Statement out{.kind = StatementKind::kCallBlock, .line = line, .name = "caller"};
  if (is_operator("(")) parse_parameters(out);
  out.value = parse_expression();
  if (out.value->kind != ExpressionKind::kCall) fail_syntax(line, "'call' needs a call");
  parse_macro_body(out, "endcall", "call");
  return out;
}

Statement Parser::parse_filter_block(int line) {
  Statement out{.kind = StatementKind::kFilterBlock, .line = line};
  out.value = parse_filter_chain(parse_filter(nullptr));
  out.body = parse_body({"endfilter"}, "filter", line);
  take();
  return out;
}

Statement Parser::parse_with(int line) {
  Statement out{.kind = StatementKind::kWith, .line = line};
  while (current().kind != TokenKind::kBlockEnd) {
    if (!out.assignments.empty()) expect_operator(",");
    ExpressionPtr target = parse_target(false);
    expect_operator("=");
    out.assignments.emplace_back(std::move(target), parse_expression());
  }
  out.body = parse_body({"endwith"}, "with", line);
  take();
  return out;
}

Statement Parser::parse_generation(int line) {
  Statement out{.kind = StatementKind::kScope, .line = line};
  out.body = parse_function_body("endgeneration", "generation", line);
  return out;
}

}  // namespace wring::text::jinja
