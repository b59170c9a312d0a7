// The one exception type of the project. A fault is thrown where it is found, gains context on its way up
// ("reading blk.3.attn_q.weight of m.gguf") and is caught at three boundaries only: command, request, trial.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace wring {

enum class ErrorCode {
  kUsage,         // the command line or request is wrong
  kBadInput,      // a file's content is wrong
  kNotSupported,  // valid, but nothing here can do it
  kIo,            // the operating system refused: missing permission, disk full
  kCancelled,
  kInternal,  // a bug of ours
};

/// The process exit code of an error (docs/CLI.md lists them).
int exit_code(ErrorCode code);

class Error : public std::exception {
 public:
  /// `what`: the fault; `where`: file, field, value and limit; `todo`: what the user can do. The last two may
  /// be empty.
  Error(ErrorCode code, std::string what, std::string where = {}, std::string todo = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& todo() const { return todo_; }

  /// Puts an outer place before the inner one: add_context("m.gguf") makes "m.gguf, blk.0.attn_q.weight".
  void add_context(std::string_view outer);

  /// "<what> — <where> — <todo>", always one line of valid UTF-8.
  const char* what() const noexcept override { return line_.c_str(); }

 private:
  void compose();

  ErrorCode code_;
  std::string message_, where_, todo_, line_;
};

/// Runs `f`; an Error that leaves it gains `where` as its outer place.
template <class F>
decltype(auto) with_context(std::string_view where, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (Error& e) {
    e.add_context(where);
    throw;
  }
}

/// Throws Error{kIo} with the text of `errno_value` ("No such file or directory"); a missing file or a link
/// loop is kBadInput.
[[noreturn]] void throw_errno(int errno_value, std::string_view doing, std::string_view path);

}  // namespace wring
