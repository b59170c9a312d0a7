// What the readers of this room say of a bad file. For the room's sources only.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace wring::formats {

[[noreturn]] inline void refuse(std::string what, std::string where, std::string todo = {}) {
  throw Error(ErrorCode::kBadInput, std::move(what), std::move(where), std::move(todo));
}

}  // namespace wring::formats
