// The three forms of a table.
#include "report/table.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "base/error.h"

namespace wring::report {
namespace {

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string room(width - std::min(width, display_width(text)), ' ');
  return align == Align::kLeft ? text + room : room + text;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(at, left, &character);
    if (n <= 0) return width + static_cast<std::size_t>(left);
    width += static_cast<std::size_t>(std::max(0, utf8proc_charwidth(character)));
    at += n;
    left -= n;
  }
  return width;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == '\t') {
      out += ' ';
      continue;
    }
    if (std::string_view("\\`*_[]<>|#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("a table of {} columns was given {} cells", columns_.size(), cells.size()));
  }
  rows_.push_back(std::move(cells));
}

std::string Table::to_text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(display_width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  const auto line = [&](const auto& cell_of) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      text += (c == 0 ? "" : "  ") + padded(cell_of(c), widths[c], columns_[c].align);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string out = line([&](std::size_t c) { return columns_[c].title; });
  std::size_t total = 2 * (columns_.size() - 1);
  for (const std::size_t w : widths) total += w;
  for (std::size_t i = 0; i < total; ++i) out += "─";
  out += "\n";
  for (const auto& row : rows_) out += line([&](std::size_t c) { return row[c]; });
  return out;
}

std::string Table::to_markdown() const {
  const auto line = [&](const auto& cell_of) {
    std::string text = "|";
    for (std::size_t c = 0; c < columns_.size(); ++c) text += " " + cell_of(c) + " |";
    return text + "\n";
  };
  std::string out = line([&](std::size_t c) { return escape_markdown(columns_[c].title); });
  out += line([&](std::size_t c) { return std::string(columns_[c].align == Align::kLeft ? ":--" : "--:"); });
  for (const auto& row : rows_) out += line([&](std::size_t c) { return escape_markdown(row[c]); });
  return out;
}

std::string Table::to_html() const {
  const auto kind = [&](std::size_t c) { return columns_[c].align == Align::kLeft ? " class=\"left\"" : ""; };
  std::string out = "<table>\n<thead><tr>";
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", kind(c), escape_html(columns_[c].title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows_) {
    out += "<tr>";
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const char* tag = c == 0 ? "th" : "td";
      out += fmt::format("<{}{}{}>{}</{}>", tag, c == 0 ? " scope=\"row\"" : "", kind(c), escape_html(row[c]),
                         tag);
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n";
}

}  // namespace wring::report
