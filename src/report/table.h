// A table of ready-made cells, written the same into a terminal, Markdown and HTML: a number is formatted
// once, so the three can never disagree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wring::report {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell a column (kInternal otherwise); valid UTF-8.
  void add_row(std::vector<std::string> cells);

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

  /// Columns aligned by the width that characters take in a terminal (Hangul takes two cells).
  std::string to_text() const;
  std::string to_markdown() const;
  /// <table>…</table> whose first column heads its row.
  std::string to_html() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Cells of a terminal that `text` takes.
std::size_t display_width(std::string_view text);

/// Text safe inside HTML elements and quoted attributes.
std::string escape_html(std::string_view text);

/// Text that Markdown shows as it is, on one line, also in a table.
std::string escape_markdown(std::string_view text);

}  // namespace wring::report
