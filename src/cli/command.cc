#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "base/utf8.h"
#include "engine/engine.h"

namespace wring::cli {
namespace {

// Output that cannot be written (a full disk behind a redirection) must not look like success.
void write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::kIo, "cannot write to standard output");
  }
}

// A script's unset variable must not look like a flag that was left out. Texts alone may be empty.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (name == "--prompt" || name == "TEXT") continue;
    const CLI::results_t& values = option->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    throw Error(ErrorCode::kUsage, "an empty value", name, "give it a value, or leave it out");
  }
}

// More threads than cores wait for each other while they spin: a hundred times slower, not faster.
void limit_threads(Common& common) {
  const int most = default_threads();
  if (common.threads <= most) return;
  warn(fmt::format("--threads {}: this machine gives {}, more would only wait for each other; {} used",
                   common.threads, most, most));
  common.threads = most;
}

}  // namespace

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help,
                      const std::string& example, Common& common, std::function<void()> run) {
  CLI::App* command = app.add_subcommand(name, help);
  command->footer("Example:\n  " + example);
  command->add_flag("--json", common.json, "print one JSON object instead of text");
  command->add_option("--threads", common.threads, "threads to use, at most what the machine gives (default)")
      ->check(CLI::Range(1, 1 << 20));
  command->callback([command, &common, run = std::move(run)] {
    refuse_empty_values(*command);
    limit_threads(common);
    run();
  });
  return command;
}

// A path may hold bytes that are not UTF-8; JSON may not.
void print_json(const nlohmann::json& value) {
  write_stdout(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}
void print_json(const nlohmann::ordered_json& value) {
  write_stdout(value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print(std::string_view text) {
  clear_progress();
  write_stdout(text);
}

void warn(std::string_view text) {
  clear_progress();
  note(fmt::format("warning: {}\n", printable(text)));
}

void note(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::vector<std::int32_t> parse_ids(const std::string& text) {
  std::vector<std::int32_t> ids;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::string_view part = std::string_view(text).substr(at, comma - at);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    std::int32_t id = 0;
    const auto [end, fault] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (fault != std::errc() || end != part.data() + part.size() || part.empty()) {
      throw Error(ErrorCode::kUsage, fmt::format("'{}' is not a token id", part), "--ids",
                  "give ids as 1,2,3");
    }
    ids.push_back(id);
    at = comma + 1;
  }
  return ids;
}

CLI::Option* add_compute(CLI::App& command, engine::ComputeMode& mode) {
  const std::map<std::string, engine::ComputeMode> names = {{"exact", engine::ComputeMode::kExact},
                                                            {"packed", engine::ComputeMode::kPacked}};
  return command
      .add_option("--compute", mode,
                  "exact: what the format loses; packed: what a user gets, activations in 8 bits")
      ->transform(CLI::CheckedTransformer(names).description("exact|packed"))
      ->default_str(std::string(engine::compute_mode_name(mode)));
}

std::string human_bytes(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.3f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  if (bytes >= 1e3) return fmt::format("{:.1f} kB", bytes / 1e3);
  return fmt::format("{:.0f} bytes", bytes);
}

}  // namespace wring::cli
