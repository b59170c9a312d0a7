// The page as Markdown: charts are left out, their numbers stand in the tables.
#include <fmt/format.h>

#include "report/page.h"

namespace wring::report {
namespace {

struct MarkdownWriter {
  std::string out;

  void operator()(const Paragraph& p) { out += escape_markdown(p.text) + "\n\n"; }
  void operator()(const List& list) {
    for (const std::string& item : list.items) out += "* " + escape_markdown(item) + "\n";
    out += "\n";
  }
  void operator()(const Chart&) {}
  void operator()(const TableBlock& block) {
    out += block.table.to_markdown() + "\n";
    if (!block.note.empty()) out += escape_markdown(block.note) + "\n\n";
  }
};

}  // namespace

std::string to_markdown(const Page& page) {
  MarkdownWriter writer;
  writer.out = fmt::format("# {}\n\n{}\n\n", escape_markdown(page.title), escape_markdown(page.subtitle));
  for (const Section& section : page.sections) {
    writer.out += "## " + escape_markdown(section.title) + "\n\n";
    for (const Block& block : section.blocks) std::visit(writer, block);
  }
  while (writer.out.ends_with("\n\n")) writer.out.pop_back();
  return writer.out;
}

}  // namespace wring::report
