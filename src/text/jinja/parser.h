// From tokens to a tree, by recursive descent after the grammar in Jinja's documentation. What chat templates
// do not use is refused here by name and line, before anything is rendered.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace wring::text::jinja {

/// Nesting of expressions and blocks in one another. Python's own recursion limit stops Jinja's parser
/// earlier.
inline constexpr int kMaxNesting = 200;

/// Errors: kBadInput for a syntax error, kNotSupported for a construct that is not implemented; `where` is
/// "line N".
Block parse_template(std::string_view source);

}  // namespace wring::text::jinja
