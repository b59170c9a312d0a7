// wring: the program. Parses the command line, runs one command, and turns whatever goes wrong into one error
// line and an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <new>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/version.h"

namespace wring::cli {
namespace {

int fail(std::string_view line, int code) {
  clear_progress();
  note(fmt::format("error: {}\n", line));
  return code;
}

// A standard stream that the caller has closed would give its number to the next file opened, and what is
// printed would land in that file. Writing to standard output still fails then, as it should.
void hold_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    if (::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

int run(int argc, char** argv) {
  hold_standard_streams();
  ::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of the write, with its line and exit code
  CLI::App app("Wring quantizes a language model, measures what each smaller file costs, and proves it.",
               "wring");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer("Run 'wring COMMAND --help' for a command's flags and an example.");
  for (auto* add : {add_info, add_doctor, add_tokenize, add_chat_template, add_logits, add_run, add_convert,
                    add_corpus, add_imatrix, add_quantize, add_eval, add_bench, add_study, add_report}) {
    add(app);
  }
  terminal_progress();  // from here on Ctrl-C is ours to answer
  try {
    app.parse(argc, argv);
    clear_progress();
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help, --version
      app.exit(e);
      if (std::cout.flush()) return 0;
      return fail("cannot write to standard output", exit_code(ErrorCode::kIo));
    }
    return fail(fmt::format("{} — command line — see wring --help", printable(e.what())),
                exit_code(ErrorCode::kUsage));
  } catch (const Error& e) {
    return fail(e.what(), exit_code(e.code()));
  } catch (const std::bad_alloc&) {
    return fail("out of memory — use a smaller model, context or batch", exit_code(ErrorCode::kIo));
  } catch (const std::exception& e) {
    return fail(fmt::format("internal fault: {} — please report it", printable(e.what())),
                exit_code(ErrorCode::kInternal));
  }
}

}  // namespace
}  // namespace wring::cli

int main(int argc, char** argv) {
  return wring::cli::run(argc, argv);
}
