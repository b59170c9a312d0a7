// Translates a regular expression as tokenizer.json writes it (Oniguruma's dialect, which Hugging Face's
// tokenizers use) into PCRE2's. Most of the two agree; this file knows where they do not (\s and U+180E, \w,
// \p{Han} as a script,
// {,n}, possessive {n,m}+), and refuses by name whatever could silently mean something else. Sources:
// Oniguruma's doc/RE, pcre2pattern(3).
#pragma once

#include <string>
#include <string_view>

namespace wring::text {

/// `pattern` for PCRE2 with UTF, UCP and MULTILINE. Errors: kNotSupported naming the construct and the
/// pattern.
std::string to_pcre2(std::string_view pattern, std::string_view where);

}  // namespace wring::text
