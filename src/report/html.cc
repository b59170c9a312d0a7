// HTML from a page. Charts are <canvas> elements that assets/report.js finds by id.
#include "report/html.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/assets.h"

namespace wring::report {
namespace {

// JSON inside a <script> element must not hold "</script" or "<!--": every < is escaped.
std::string embeddable(const nlohmann::json& data) {
  std::string out;
  for (const char c : data.dump()) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

// Running text: a percent sign stays with its number.
std::string flowing(std::string_view text) {
  std::string out = escape_html(text);
  for (std::size_t at = out.find(" %"); at != std::string::npos; at = out.find(" %", at)) {
    out.replace(at, 1, "&nbsp;");
  }
  return out;
}

struct Writer {
  std::string out;

  void operator()(const Paragraph& p) { out += "<p>" + flowing(p.text) + "</p>\n"; }
  void operator()(const List& list) {
    out += "<ul>\n";
    for (const std::string& item : list.items) out += "<li>" + flowing(item) + "</li>\n";
    out += "</ul>\n";
  }
  void operator()(const Chart& chart) {
    out += fmt::format(
        "<figure><div class=\"canvas\"><canvas id=\"{}\" role=\"img\" aria-label=\"{}\"></canvas></div>"
        "<figcaption>{}</figcaption></figure>\n",
        escape_html(chart.id), escape_html(chart.caption), flowing(chart.caption));
  }
  void operator()(const TableBlock& block) {
    // Focusable, so that a keyboard can scroll what is wider than the screen.
    out += "<div class=\"scroll\" tabindex=\"0\">\n" + block.table.to_html() + "</div>\n";
    if (!block.note.empty()) out += "<p class=\"note\">" + flowing(block.note) + "</p>\n";
  }
};

}  // namespace

std::string to_html(const Page& page, const nlohmann::json& data) {
  Writer writer;
  for (const Section& section : page.sections) {
    writer.out += "<section>\n<h2>" + escape_html(section.title) + "</h2>\n";
    for (const Block& block : section.blocks) std::visit(writer, block);
    writer.out += "</section>\n";
  }
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n",
      escape_html(page.language), escape_html(page.title));
  html += kReportCss;
  html += fmt::format(
      "</style>\n</head>\n<body>\n<main>\n<header><h1>{}</h1><p class=\"subtitle\">{}</p></header>\n",
      escape_html(page.title), escape_html(page.subtitle));
  html += writer.out;
  html += "</main>\n<script type=\"application/json\" id=\"study\">";
  html += embeddable(data);
  html += "</script>\n<script>\n";
  html += kChartJs;
  html += "\n</script>\n<script>\n";
  html += kReportJs;
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace wring::report
