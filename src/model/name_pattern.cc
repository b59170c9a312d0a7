#define PCRE2_CODE_UNIT_WIDTH 8
#include "model/name_pattern.h"

#include <fmt/format.h>
#include <pcre2.h>

#include "base/error.h"
#include "base/utf8.h"

namespace wring::model {

struct NamePattern::Expression {
  pcre2_code* code = nullptr;
  Expression() = default;
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression() { pcre2_code_free(code); }
};

NamePattern::NamePattern(std::string text, const std::string& where) : text_(std::move(text)) {
  if (!text_.starts_with("re:")) return;
  const std::string_view pattern = std::string_view(text_).substr(3);
  int error = 0;
  PCRE2_SIZE at = 0;
  auto expression = std::make_shared<Expression>();
  expression->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_ANCHORED, &error, &at, nullptr);
  if (expression->code == nullptr) {
    PCRE2_UCHAR message[128] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    throw Error(ErrorCode::kBadInput,
                fmt::format("the pattern {} is not a regular expression: {} at {}",
                            printable(text_.substr(0, 80)), reinterpret_cast<const char*>(message), at),
                where);
  }
  expression_ = std::move(expression);
}

bool NamePattern::matches(std::string_view module) const {
  if (!expression_) return kind() == Kind::kClass || text_ == module;
  pcre2_match_data* match = pcre2_match_data_create_from_pattern(expression_->code, nullptr);
  const int found = pcre2_match(expression_->code, reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(),
                                0, 0, match, nullptr);
  pcre2_match_data_free(match);
  return found >= 0;  // beyond PCRE2's limits: no match
}

}  // namespace wring::model
