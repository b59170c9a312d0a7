// A parsed template. Two kinds of node, expressions and statements; each kind's parts are written beside its
// name.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace wring::text::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Block = std::vector<Statement>;

enum class ExpressionKind {
  kConstant,       // constant
  kName,           // name
  kNamespaceName,  // name.attribute, as a target of set
  kList,           // parts
  kTuple,          // parts
  kDict,           // parts: key, value, key, value …
  kAttribute,      // parts[0].name
  kItem,           // parts[0][parts[1]]
  kSlice,          // parts[0][parts[1]:parts[2]:parts[3]], the last three may be null
  kCall,           // parts[0](parts[1…], named…, *star, **star_star)
  kFilter,  // parts[0] | name(parts[1…], …); parts[0] is null for the block that a filter block pipes in
  kTest,    // parts[0] is name(parts[1…], …)
  kNot,     // parts[0]
  kMinus,
  kPlus,
  kAnd,      // parts, two or more
  kOr,       //
  kConcat,   // parts joined by ~
  kBinary,   // parts[0] name parts[1]; name is + - * / // % **
  kCompare,  // parts[0] operators[0] parts[1] operators[1] parts[2] …
  kIfElse,   // parts[0] if parts[1] else parts[2], which may be null
};

struct Expression {
  ExpressionKind kind;
  int line;
  int depth = 1;  // of the tree below; the parser bounds it, so evaluation and destruction may recurse
  std::string name, attribute;
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star, star_star;
  std::vector<std::string> operators;  // == != < <= > >= in, not in
};

enum class StatementKind {
  kText,         // text
  kPrint,        // value
  kIf,           // branches; the last one's condition is null for else
  kFor,          // for target in value if condition: body, else otherwise
  kSet,          // target = value
  kSetBlock,     // target = body, through value (a filter chain) if it is not null
  kMacro,        // name(parameters): body
  kCallBlock,    // call(parameters) value: body, which value reaches as caller()
  kFilterBlock,  // body through value
  kWith,         // assignments; body
  kScope,        // body, in a scope of its own (generation)
  kBreak,
  kContinue,
};

struct Branch {
  ExpressionPtr condition;
  Block body;
};

struct Parameter {
  std::string name;
  ExpressionPtr fallback;  // null: none
};

struct Statement {
  StatementKind kind;
  int line;
  std::string text, name;
  ExpressionPtr target, value, condition;
  std::vector<Branch> branches;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> assignments;  // target, value
  std::vector<Parameter> parameters;
  Block body, otherwise;
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;  // the macro's body names them
};

}  // namespace wring::text::jinja
