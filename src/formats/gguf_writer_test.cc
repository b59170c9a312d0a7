#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/mapped_file.h"
#include "formats/gguf.h"
#include "formats/test_files.h"

namespace wring::formats {
namespace {

using testing::HasSubstr;
using testing_files::message_of;
using testing_files::raw;
using testing_files::raw_string;
using testing_files::TempFolder;
using Shape = std::vector<std::uint64_t>;

std::vector<std::byte> counted(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(GgufWriter, WritesTheSpecifiedBytes) {
  const TempFolder folder;
  GgufWriter w(folder.path() / "m.gguf");
  w.add_u32("k", 5);
  w.declare("t", QuantType::kF32, Shape{2, 3});
  w.begin_data();
  w.write(counted(24));
  w.commit();
  std::string expected = "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(1) + raw<std::uint64_t>(1) +
                         raw_string("k") + raw<std::uint32_t>(4) + raw<std::uint32_t>(5) + raw_string("t") +
                         raw<std::uint32_t>(2) + raw<std::uint64_t>(3) + raw<std::uint64_t>(2) +
                         raw<std::uint32_t>(0) + raw<std::uint64_t>(0);
  expected.resize(96);
  for (const std::byte b : counted(24)) expected += static_cast<char>(b);
  expected.resize(128);
  EXPECT_EQ(read_text_file(folder.path() / "m.gguf", 1000), expected);
}

TEST(GgufWriter, RoundTrip) {
  const TempFolder folder;
  GgufWriter w(folder.path() / "m.gguf");
  w.add_string("s", "héllo");
  w.add_u32("u", 4000000000U);
  w.add_entry("v", {GgufKind::kU64, UINT64_MAX});
  w.add_f32("f", 0.1F);
  w.add_bool("b", true);
  w.add_strings("tokens", std::vector<std::string>{"a", "", "\xFF"});
  w.add_i32s("types", std::vector<std::int32_t>{1, -3});
  w.add_entry("scores", {GgufKind::kF32, std::vector<double>{-0.5}});
  w.declare("q", QuantType::kQ4_K, Shape{3, 512});
  w.declare("x", QuantType::kBF16, Shape{5});
  w.begin_data();
  const auto q = counted(3 * 2 * 144), x = counted(10);
  for (std::size_t at = 0; at < q.size(); at += 100) {
    w.write(std::span(q).subspan(at, std::min<std::size_t>(100, q.size() - at)));
  }
  w.write(x);
  bool checked = false;
  w.commit([&](const GgufReader& r) { checked = r.find("q") != nullptr; });
  EXPECT_TRUE(checked);

  const GgufReader r = GgufReader::open(folder.path() / "m.gguf");
  EXPECT_EQ(r.string("s"), "héllo");
  EXPECT_EQ(r.integer("u", 0, UINT32_MAX), 4000000000);
  EXPECT_EQ(std::get<std::uint64_t>(r.metadata().find("v")->second.value), UINT64_MAX);
  EXPECT_EQ(r.number("f"), static_cast<double>(0.1F));
  EXPECT_TRUE(r.boolean_or("b", false));
  EXPECT_EQ(r.strings("tokens"), (std::vector<std::string>{"a", "", "\xFF"}));
  EXPECT_EQ(r.integers("types"), (std::vector<std::int64_t>{1, -3}));
  EXPECT_EQ(std::get<std::vector<double>>(r.metadata().find("scores")->second.value),
            std::vector<double>{-0.5});
  EXPECT_EQ(r.find("q")->shape, (Shape{3, 512}));
  EXPECT_TRUE(std::ranges::equal(r.find("q")->data, q));
  EXPECT_TRUE(std::ranges::equal(r.find("x")->data, x));
}

TEST(GgufWriter, EntriesAreCopiedAsTheyWereStored) {
  const TempFolder folder;
  testing_files::GgufBytes b;
  const std::vector<std::pair<std::uint32_t, std::string>> stored = {{0, raw<std::uint8_t>(1)},
                                                                     {1, raw<std::int8_t>(-1)},
                                                                     {2, raw<std::uint16_t>(2)},
                                                                     {3, raw<std::int16_t>(-2)},
                                                                     {4, raw<std::uint32_t>(3)},
                                                                     {5, raw<std::int32_t>(-3)},
                                                                     {6, raw(0.1F)},
                                                                     {7, raw<std::uint8_t>(1)},
                                                                     {8, raw_string("s")},
                                                                     {10, raw<std::uint64_t>(4)},
                                                                     {11, raw<std::int64_t>(-4)},
                                                                     {12, raw(0.1)}};
  for (const auto& [kind, bytes] : stored) {
    b.pair("one." + std::to_string(kind + 10), raw(kind) + bytes);
    b.pair("two." + std::to_string(kind + 10),
           raw<std::uint32_t>(9) + raw(kind) + raw<std::uint64_t>(2) + bytes + bytes);
  }
  b.u32("general.alignment", 64);
  b.alignment = 64;
  const GgufReader from = GgufReader::open(folder.file("from.gguf", b.bytes()));
  GgufWriter w(folder.path() / "to.gguf");
  for (const auto& [key, entry] : from.metadata()) w.add_entry(key, entry);
  w.begin_data();
  w.commit();
  const GgufReader to = GgufReader::open(folder.path() / "to.gguf");
  EXPECT_FALSE(to.has("general.alignment"));  // the source's layout, not the copy's
  ASSERT_EQ(to.metadata().size(), 2 * stored.size());
  for (const auto& [key, entry] : to.metadata()) {
    EXPECT_EQ(entry.kind, from.metadata().find(key)->second.kind) << key;
    EXPECT_EQ(entry.value, from.metadata().find(key)->second.value) << key;
  }
}

TEST(GgufWriter, NothingAppearsBeforeCommit) {
  const TempFolder folder;
  {
    GgufWriter w(folder.path() / "m.gguf");
    w.declare("t", QuantType::kF32, Shape{4});
    w.begin_data();
    w.write(counted(12));
    EXPECT_THAT(message_of([&] { w.commit(); }, ErrorCode::kInternal), HasSubstr("not complete"));
  }
  EXPECT_EQ(folder.entries(), 0U);
  {
    GgufWriter w(folder.path() / "m.gguf");
    w.begin_data();
    EXPECT_THROW(w.commit([](const GgufReader&) { throw Error(ErrorCode::kInternal, "no"); }), Error);
  }
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(GgufWriter, Misuse) {
  const TempFolder folder;
  GgufWriter w(folder.path() / "m.gguf");
  const auto bug = [](const std::function<void()>& f) { return message_of(f, ErrorCode::kInternal); };
  w.add_u32("k", 1);
  EXPECT_THAT(bug([&] { w.add_bool("k", true); }), HasSubstr("given twice"));
  EXPECT_THAT(bug([&] { w.add_string("s", "\xFF"); }), HasSubstr("UTF-8"));
  EXPECT_THAT(bug([&] { w.add_entry("e", {GgufKind::kF32, std::uint64_t{1}}); }), HasSubstr("do not belong"));
  w.declare("t", QuantType::kF32, Shape{4});
  EXPECT_THAT(bug([&] { w.declare("t", QuantType::kF32, Shape{4}); }), HasSubstr("declared twice"));
  EXPECT_THAT(bug([&] { w.declare("q", QuantType::kQ4_K, Shape{2, 128}); }), HasSubstr("2 x 128"));
  EXPECT_THAT(bug([&] { w.declare("q", QuantType::kU8, Shape{2}); }), HasSubstr("U8"));
  EXPECT_THAT(bug([&] { w.declare("q", QuantType::kF32, Shape{0, 4}); }), HasSubstr("zero"));
  EXPECT_THAT(message_of([&] { w.declare(std::string(64, 'n'), QuantType::kF32, Shape{4}); },
                         ErrorCode::kNotSupported),
              HasSubstr("at most 63"));
  EXPECT_THAT(bug([&] { w.write(counted(4)); }), HasSubstr("before begin_data"));
  w.begin_data();
  EXPECT_THAT(bug([&] { w.add_u32("late", 1); }), HasSubstr("after begin_data"));
  EXPECT_THAT(bug([&] { w.write(counted(17)); }), HasSubstr("more bytes"));
  w.write(counted(16));
  EXPECT_THAT(bug([&] { w.write(counted(1)); }), HasSubstr("after the last"));
}

}  // namespace
}  // namespace wring::formats
