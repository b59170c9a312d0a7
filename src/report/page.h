// A report before it takes a form: titles, paragraphs, lists, tables and the places of its charts. Markdown
// and HTML are written from the same page, so they say the same.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "report/table.h"

namespace wring::report {

struct Paragraph {
  std::string text;
};

struct List {
  std::vector<std::string> items;
};

/// Drawn by the page's script from the study's numbers; the tables hold the same numbers for other forms.
struct Chart {
  std::string id;       // "delta-nll", "size-kl"
  std::string caption;  // what is shown and how to read it
};

struct TableBlock {
  Table table;
  std::string note;  // below it; may be empty
};

using Block = std::variant<Paragraph, List, Chart, TableBlock>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
};

struct Page {
  std::string title;
  std::string subtitle;
  std::string language;  // "en"
  std::vector<Section> sections;
};

std::string to_markdown(const Page& page);

}  // namespace wring::report
