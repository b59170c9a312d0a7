// What both halves of the parser share: the token cursor, the nesting guard, and the one class whose methods
// are in parser.cc (statements) and parser_expression.cc (expressions).
#pragma once

#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace wring::text::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Block parse();

 private:
  /// Counts the levels that are open; the parser recurses only under a guard.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  /// What the macro that is being parsed names of its implicit arguments.
  struct MacroUse {
    bool varargs = false, kwargs = false, caller = false;
  };

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& look_ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool is_operator(std::string_view op) const { return is(TokenKind::kOperator, op); }
  bool is_name(std::string_view name) const { return is(TokenKind::kName, name); }
  bool is(TokenKind kind, std::string_view text) const {
    return current().kind == kind && current().text == text;
  }
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_operator(std::string_view op);
  void expect_name(std::string_view name);
  Token expect(TokenKind kind, std::string_view what);
  [[noreturn]] void fail_here(std::string_view message) const;

  // Statements.
  Block parse_until(std::initializer_list<std::string_view> ends, std::string_view opener, int opened_at);
  Block parse_body(std::initializer_list<std::string_view> ends, std::string_view opener, int opened_at);
  /// A body that Python runs as a function of its own: a loop around it cannot be left from inside.
  Block parse_function_body(std::string_view end, std::string_view opener, int opened_at);
  void parse_statement(Block& out);
  Statement parse_if(int line);
  Statement parse_for(int line);
  Statement parse_set(int line);
  Statement parse_macro(int line);
  Statement parse_call_block(int line);
  Statement parse_with(int line);
  Statement parse_filter_block(int line);
  Statement parse_generation(int line);
  void parse_parameters(Statement& macro);
  void parse_macro_body(Statement& macro, std::string_view end, std::string_view opener);

  // Expressions.
  ExpressionPtr parse_expression(bool with_condition = true);
  /// One expression, or a tuple without parentheses. `end_word` also ends it ("recursive", "in").
  ExpressionPtr parse_tuple(bool with_condition = true, std::string_view end_word = {},
                            bool in_parentheses = false);
  ExpressionPtr parse_target(bool with_namespace, std::string_view end_word = {});
  ExpressionPtr parse_target_part(bool with_namespace);
  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr base);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr base);
  ExpressionPtr parse_dot(ExpressionPtr base);
  ExpressionPtr parse_subscript(ExpressionPtr base);
  ExpressionPtr parse_filter(ExpressionPtr base);
  ExpressionPtr parse_filter_chain(ExpressionPtr base);
  ExpressionPtr parse_test(ExpressionPtr base);
  void parse_arguments(Expression& call);
  bool at_tuple_end(std::string_view end_word) const;

  ExpressionPtr make(ExpressionKind kind, int line) const;
  /// Sets the depth from the parts. Errors: kBadInput above kMaxNesting.
  ExpressionPtr finished(ExpressionPtr e) const;
  ExpressionPtr binary(std::string op, ExpressionPtr left, ExpressionPtr right, int line) const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // that a break here could leave
  std::vector<MacroUse*> macros_;
};

}  // namespace wring::text::jinja
