// wring report: a study's report written again from its rows.
#include "cli/command.h"
#include "cli/show_report.h"

namespace wring::cli {
namespace {

struct ReportOptions {
  Common common;
  std::string folder;
};

void run(const ReportOptions& o) {
  show_report(lab::collect_results(o.folder), o.folder, o.common.json);
}

}  // namespace

void add_report(CLI::App& app) {
  auto o = std::make_shared<ReportOptions>();
  CLI::App* c =
      add_command(app, "report", "writes a study's report again from its rows: HTML, Markdown, JSON",
                  "wring report study", o->common, [o] { run(*o); });
  c->add_option("DIR", o->folder, "a study's folder")->required();
}

}  // namespace wring::cli
