// One table, three forms.
#include "report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "report/numbers.h"
#include "report/page.h"

namespace wring::report {
namespace {

using ::testing::HasSubstr;

Table small() {
  Table t({{"model", Align::kLeft}, {"NLL", Align::kRight}});
  t.add_row({"q4_k", "1.25"});
  t.add_row({"한국어", "12.5"});
  return t;
}

TEST(Table, AlignsByTerminalCells) {
  EXPECT_EQ(small().to_text(),
            "model    NLL\n"
            "────────────\n"
            "q4_k    1.25\n"
            "한국어  12.5\n");
}

TEST(Table, MarkdownHasItsAlignmentRowAndEscapes) {
  Table t = small();
  t.add_row({"a|b*<i>", "_1_"});
  EXPECT_EQ(t.to_markdown(),
            "| model | NLL |\n"
            "| :-- | --: |\n"
            "| q4\\_k | 1.25 |\n"
            "| 한국어 | 12.5 |\n"
            "| a\\|b\\*\\<i\\> | \\_1\\_ |\n");
}

TEST(Table, HtmlEscapesWhatComesFromDocuments) {
  Table t = small();
  t.add_row({"<script>alert('x')</script>", "\"&\""});
  const std::string html = t.to_html();
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
  EXPECT_THAT(html, HasSubstr("&quot;&amp;&quot;"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\" class=\"left\">q4_k</th><td>1.25</td>"));
  EXPECT_THAT(html, ::testing::Not(HasSubstr("<script>")));
}

TEST(Table, RowsHaveOneCellAColumn) {
  Table t = small();
  EXPECT_THROW(t.add_row({"one"}), Error);
}

TEST(DisplayWidth, CountsCells) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("한국"), 4U);
  EXPECT_EQ(display_width("ΔNLL"), 4U);
  EXPECT_EQ(display_width("e\xCC\x81"), 1U);  // a combining accent takes none
}

TEST(Numbers, ShowSignsGroupsAndExactZero) {
  EXPECT_EQ(fixed(1.25, 4), "1.2500");
  EXPECT_EQ(fixed(0, 4), "0");
  EXPECT_EQ(signed_fixed(0.00001, 4), "+0.0000");  // rounded, not exact
  EXPECT_EQ(signed_fixed(-0.5, 2), "-0.50");
  EXPECT_EQ(with_interval({0.023, 0.0207, 0.0252, 0.001}), "+0.0230 [+0.0207, +0.0252]");
  EXPECT_EQ(significant(0.028563), "0.0286");
  EXPECT_EQ(grouped(130944), "130,944");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(megabytes(3299000000ULL), "3299.0");
}

TEST(Markdown, PagesKeepTheirOrderAndLeaveChartsOut) {
  Page page{"Title",
            "Sub",
            "en",
            {{"One", {Paragraph{"p"}, Chart{"c", "caption"}, List{{"a", "b"}}}},
             {"Two", {TableBlock{small(), "note"}}}}};
  EXPECT_EQ(to_markdown(page),
            "# Title\n\nSub\n\n## One\n\np\n\n* a\n* b\n\n## Two\n\n" + small().to_markdown() + "\nnote\n");
}

}  // namespace
}  // namespace wring::report
