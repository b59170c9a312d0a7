#include "base/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/utf8.h"

namespace wring {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kBadInput:
      return 3;
    case ErrorCode::kNotSupported:
      return 4;
    case ErrorCode::kIo:
      return 5;
    case ErrorCode::kCancelled:
      return 130;
    case ErrorCode::kInternal:
      break;
  }
  return 70;
}

Error::Error(ErrorCode code, std::string what, std::string where, std::string todo)
    : code_(code), message_(std::move(what)), where_(std::move(where)), todo_(std::move(todo)) {
  compose();
}

void Error::add_context(std::string_view outer) {
  where_ = where_.empty() ? std::string(outer) : fmt::format("{}, {}", outer, where_);
  compose();
}

void Error::compose() {
  line_ = message_;
  for (const std::string& part : {where_, todo_}) {
    if (!part.empty()) line_ += " — " + part;
  }
  line_ = printable(line_);
}

void throw_errno(int errno_value, std::string_view doing, std::string_view path) {
  const bool users_path =
      errno_value == ENOENT || errno_value == ELOOP || errno_value == ENOTDIR || errno_value == EISDIR;
  throw Error(users_path ? ErrorCode::kBadInput : ErrorCode::kIo,
              fmt::format("{}: {}", doing, std::strerror(errno_value)), std::string(path));
}

}  // namespace wring
