// What all commands share: one file a command adds its flags to the program and leaves a function to run.
// Results go to stdout, everything else to stderr; --json replaces the text by one JSON object with stable
// keys (docs/CLI.md).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/progress.h"
#include "engine/compute_mode.h"

namespace wring::cli {

/// Flags that every command takes.
struct Common {
  bool json = false;
  int threads = 0;  // 0: what the machine gives; never more than that
};

/// Adds `name` with the common flags. `run` is called once the command line is parsed and found to name no
/// file, list or model by an empty string (kUsage).
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help,
                      const std::string& example, Common& common, std::function<void()> run);

/// Prints a JSON object and a newline to stdout.
void print_json(const nlohmann::json& value);
void print_json(const nlohmann::ordered_json& value);
/// Prints text to stdout as it is.
void print(std::string_view text);
/// "warning: …" on stderr, one line.
void warn(std::string_view text);
/// Writes to stderr; an stderr that cannot be written to must not decide how a command ends.
void note(std::string_view text);

/// Draws progress on stderr if that is a terminal; cancelled after SIGINT or SIGTERM.
ProgressSink& terminal_progress();
/// Ends a half-drawn progress line.
void clear_progress();

/// "1,2,3" → ids. Errors: kUsage naming the part that is not a number.
std::vector<std::int32_t> parse_ids(const std::string& text);

/// The flag --compute of a command that computes with a model.
CLI::Option* add_compute(CLI::App& command, engine::ComputeMode& mode);

/// 1234567 → "1.2 MB"; GB are 10⁹ bytes.
std::string human_bytes(double bytes);

// One function a command; each is called once by main().
void add_info(CLI::App& app);
void add_doctor(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_chat_template(CLI::App& app);
void add_logits(CLI::App& app);
void add_run(CLI::App& app);
void add_convert(CLI::App& app);
void add_corpus(CLI::App& app);
void add_imatrix(CLI::App& app);
void add_quantize(CLI::App& app);
void add_eval(CLI::App& app);
void add_bench(CLI::App& app);
void add_study(CLI::App& app);
void add_report(CLI::App& app);

}  // namespace wring::cli
