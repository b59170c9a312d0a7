// Names of modules as compressed-tensors' targets write them: a class of modules ("Linear"), a whole name, or
// "re:" and a regular expression that the name begins with.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace wring::model {

class NamePattern {
 public:
  /// Errors: kBadInput showing the pattern, where its expression cannot be read.
  NamePattern(std::string text, const std::string& where);
  bool matches(std::string_view module) const;
  enum class Kind { kName, kExpression, kClass };
  Kind kind() const {
    return expression_ ? Kind::kExpression : text_ == "Linear" ? Kind::kClass : Kind::kName;
  }

 private:
  struct Expression;
  std::string text_;
  std::shared_ptr<const Expression> expression_;  // null: a class or a name
};

}  // namespace wring::model
