// What a reader sees stays, all else goes, and no input makes the state machine lose its way.
#include "lab/html_text.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/utf8.h"

namespace wring::lab {
namespace {

TEST(HtmlToText, TagsGoAndBlocksBecomeParagraphs) {
  EXPECT_EQ(html_to_text("<p>One <b>two</b>\n   three.</p><p class='x'>Four</p>"),
            "One two three.\n\nFour\n");
  EXPECT_EQ(html_to_text("a<br>b<br/>c"), "a\nb\nc\n");
  EXPECT_EQ(html_to_text("<ul><li>a</li><li>b</li></ul>"), "a\nb\n");
  EXPECT_EQ(html_to_text("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"), "a b\nc\n");
  EXPECT_EQ(html_to_text("  <div>  <div> deep </div></div>  "), "deep\n");
  EXPECT_EQ(html_to_text(""), "");
  EXPECT_EQ(html_to_text("<p> </p>"), "");
}

TEST(HtmlToText, InvisibleElementsAreLeftOutWhole) {
  EXPECT_EQ(html_to_text("<head><title>t</title></head><body>x</body>"), "x\n");
  EXPECT_EQ(html_to_text("a<SCRIPT>if (1 < 2) { s = '<p>no</p>'; }</ScRiPt>b"), "ab\n");
  EXPECT_EQ(html_to_text("a<style>p > q { }</style>b"), "ab\n");
  EXPECT_EQ(html_to_text("a<!-- <p>no</p> -- > -->b"), "ab\n");
  EXPECT_EQ(html_to_text("<nav>x<nav>y</nav>z</nav>kept"), "kept\n");
  EXPECT_EQ(html_to_text("<!DOCTYPE html><?xml version='1'?>kept"), "kept\n");
  EXPECT_EQ(html_to_text("<head><title>t</title><body>no closing head"), "no closing head\n");
  EXPECT_EQ(html_to_text("<header>menu</header>kept<footer>legal</footer>"), "kept\n");
}

TEST(HtmlToText, EntitiesAreDecodedOnce) {
  EXPECT_EQ(html_to_text("a &lt;b&gt; &amp;amp; &quot;c&quot;&nbsp;d"), "a <b> &amp; \"c\" d\n");
  EXPECT_EQ(html_to_text("&#65;&#x42;&#X43; &#54620;&#xAE00;"), "ABC 한글\n");
  EXPECT_EQ(html_to_text("&unknown; & &#0; &#xD800; &#1114112; &#12x;"),
            "&unknown; & &#0; &#xD800; &#1114112; &#12x;\n");
  EXPECT_EQ(html_to_text("AT&T &"), "AT&T &\n");
  EXPECT_EQ(html_to_text("<p>a</p><p>\xC2\xA0&#160;&nbsp;</p>b\xC2\xA0\xC2\xA0&nbsp;c"), "a\n\nb c\n");
}

TEST(HtmlToText, PreformattedTextKeepsItsBlanks) {
  EXPECT_EQ(html_to_text("<p>x</p><pre>def f():\n    return 1\n\n\n\nf()</pre>y"),
            "x\n\ndef f():\n    return 1\n\nf()\n\ny\n");
}

TEST(HtmlToText, AttributesMayHoldAngleBrackets) {
  EXPECT_EQ(html_to_text("<a title=\"x > y\" href='<z>'>link</a>"), "link\n");
  EXPECT_EQ(html_to_text("1 < 2 and 3 > 2, a <3 b"), "1 < 2 and 3 > 2, a <3 b\n");
}

TEST(HtmlToText, CutInputEndsQuietly) {
  const std::string whole =
      "<head><title>t</title></head><p>a<!-- c -->&amp;<a href=\"x\">b</a><script>s</script><pre>q\n r</pre>";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    EXPECT_TRUE(is_valid_utf8(html_to_text(std::string_view(whole).substr(0, n)))) << n;
  }
}

TEST(HtmlToText, TimeIsLinear) {
  const auto start = std::chrono::steady_clock::now();
  for (const char* piece : {"<", "<!--", "&", "<script>", "</", "<p a=\"", "<div>", "&#"}) {
    std::string big;
    while (big.size() < 2'000'000) big += piece;
    html_to_text(big);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace wring::lab
