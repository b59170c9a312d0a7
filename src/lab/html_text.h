// HTML pages as texts to measure a model on: what a reader sees, in paragraphs. A state machine over the
// bytes after the WHATWG tokenizer's outline (text, tag, comment, raw text); it builds no tree, fetches
// nothing, and takes any input in linear time.
#pragma once

#include <string>
#include <string_view>

namespace wring::lab {

/// The visible text of `html` (UTF-8). Tags and comments go; so does all that is inside script, style, head,
/// template, noscript, svg, and the page's furniture: nav, header, aside, footer, button. Block elements
/// begin a paragraph (a blank line between two), <br>, <li>, <tr> and <dd> a line; runs of blanks become one
/// except inside <pre>. Common named entities and all numeric ones are decoded, others stay as they are. Ends
/// with one newline unless empty.
std::string html_to_text(std::string_view html);

}  // namespace wring::lab
