// Unicode normalization form C, for the definitions that ask for it (Qwen). Works run by run, so that memory
// and time stay proportional to the text whatever marks it piles up. Source: Unicode Standard Annex #15;
// tables from utf8proc.
#pragma once

#include <string>
#include <string_view>

namespace wring::text {

/// NFC of `text`; bytes that are not UTF-8 pass unchanged and separate what is left and right of them.
std::string to_nfc(std::string_view text);

}  // namespace wring::text
