// Python's str on UTF-8: chat templates count, cut and fold text by code points as Python does, so each
// operation that their interpreter needs is here once. All arguments are valid UTF-8 (checked where text
// enters), and so are all results. Definitions: the Python 3 library reference, "Text Sequence Type — str".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wring::text::jinja {

/// The code point that begins at byte `at`; moves `at` behind it.
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_utf8(std::string& out, char32_t code_point);

bool is_space(char32_t code_point);  // str.isspace
bool is_printable(char32_t code_point);

/// Number of code points.
std::size_t length(std::string_view text);
/// Bytes before code point `index`; text.size() from the end on.
std::size_t byte_offset(std::string_view text, std::size_t index);
/// Its code points, each as text.
std::vector<std::string> characters(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
/// Without `chars`, whitespace; else any of the code points in it.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> chars = std::nullopt);

/// str.split and str.rsplit: by `separator` (not empty), or at runs of whitespace. `limit` < 0: no limit.
std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               std::int64_t limit, bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
std::string replace(std::string_view text, std::string_view old_text, std::string_view new_text,
                    std::int64_t limit);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
/// str.title: capital after every character that is not a letter.
std::string title(std::string_view text);
/// Jinja's title filter: capital at the start and after whitespace or one of -({[<.
std::string title_words(std::string_view text);

enum class CharClass { kAlpha, kDigit, kAlnum, kSpace };
/// str.isalpha and its like: not empty, and every character is of the class.
bool all_of_class(std::string_view text, CharClass wanted);
/// str.islower (`lower`) or str.isupper: some cased character, and none of another case.
bool has_only_case(std::string_view text, bool lower);

}  // namespace wring::text::jinja
