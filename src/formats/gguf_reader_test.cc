#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "formats/test_files.h"

namespace wring::formats {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_files::GgufBytes;
using testing_files::message_of;
using testing_files::raw;
using testing_files::raw_string;
using testing_files::TempFolder;

constexpr std::uint32_t kF32 = 0, kQ8_0 = 8, kArray = 9;

// Two F32 tensors, (2, 8) at 0 and (4) at 64.
GgufBytes sound() {
  GgufBytes b;
  b.text("general.architecture", "llama").u32("llama.block_count", 2);
  b.tensor("a", {8, 2}, kF32, 0).tensor("b", {4}, kF32, 64);
  for (int i = 0; i < 20; ++i) b.data += raw(static_cast<float>(i));
  return b;
}

std::string fault(const GgufBytes& b, ErrorCode code = ErrorCode::kBadInput) {
  const TempFolder folder;
  const auto path = folder.file("m.gguf", b.bytes());
  const std::string message = message_of([&] { GgufReader::open(path); }, code);
  EXPECT_THAT(message, HasSubstr("m.gguf"));
  return message;
}

GgufReader read(const TempFolder& folder, const GgufBytes& b) {
  return GgufReader::open(folder.file("m.gguf", b.bytes()));
}

TEST(GgufReader, ReadsASoundFile) {
  const TempFolder folder;
  const GgufReader r = read(folder, sound());
  ASSERT_EQ(r.tensors().size(), 2U);
  const TensorInfo& a = *r.find("a");
  EXPECT_EQ(a.shape, (std::vector<std::uint64_t>{2, 8}));  // outermost first
  EXPECT_EQ(a.rows(), 2U);
  EXPECT_EQ(a.columns(), 8U);
  EXPECT_EQ(a.file, "m.gguf");
  float first_of_b = 0;
  std::memcpy(&first_of_b, r.find("b")->data.data(), 4);
  EXPECT_EQ(first_of_b, 16.0F);
  EXPECT_EQ(r.find("c"), nullptr);
  EXPECT_EQ(r.string("general.architecture"), "llama");
  EXPECT_EQ(r.file(), "m.gguf");
  EXPECT_EQ(r.file_bytes(), sound().bytes().size());
}

TEST(GgufReader, Version2IsRead) {
  GgufBytes b = sound();
  b.version = 2;
  const TempFolder folder;
  EXPECT_EQ(read(folder, b).tensors().size(), 2U);
}

TEST(GgufReader, EveryKindOfValue) {
  GgufBytes b;
  b.pair("u8", raw<std::uint32_t>(0) + raw<std::uint8_t>(200))
      .pair("i8", raw<std::uint32_t>(1) + raw<std::int8_t>(-3));
  b.pair("u16", raw<std::uint32_t>(2) + raw<std::uint16_t>(60000))
      .pair("i16", raw<std::uint32_t>(3) + raw<std::int16_t>(-4));
  b.u32("u32", 4000000000U).pair("i32", raw<std::uint32_t>(5) + raw<std::int32_t>(-5));
  b.pair("f32", raw<std::uint32_t>(6) + raw(0.1F)).pair("bool", raw<std::uint32_t>(7) + raw<std::uint8_t>(1));
  b.pair("u64", raw<std::uint32_t>(10) + raw<std::uint64_t>(UINT64_MAX))
      .pair("i64", raw<std::uint32_t>(11) + raw<std::int64_t>(-6));
  b.pair("f64", raw<std::uint32_t>(12) + raw(0.1));
  b.pair("types", raw(kArray) + raw<std::uint32_t>(5) + raw<std::uint64_t>(2) + raw<std::int32_t>(1) +
                      raw<std::int32_t>(-1));
  b.pair("flags", raw(kArray) + raw<std::uint32_t>(7) + raw<std::uint64_t>(2) + std::string("\1\0", 2));
  b.pair("scores", raw(kArray) + raw<std::uint32_t>(6) + raw<std::uint64_t>(1) + raw(-0.5F));
  b.pair("tokens",
         raw(kArray) + raw<std::uint32_t>(8) + raw<std::uint64_t>(2) + raw_string("a") + raw_string("\xFF"));
  b.pair("none", raw(kArray) + raw<std::uint32_t>(8) + raw<std::uint64_t>(0));
  const TempFolder folder;
  const GgufReader r = read(folder, b);
  EXPECT_EQ(r.integer("u8", 0, 255), 200);
  EXPECT_EQ(r.integer("i8", -128, 127), -3);
  EXPECT_EQ(r.integer("u16", 0, 65535), 60000);
  EXPECT_EQ(r.integer("i16", -9, 9), -4);
  EXPECT_EQ(r.integer("u32", 0, UINT32_MAX), 4000000000);
  EXPECT_EQ(r.integer("i32", -9, 9), -5);
  EXPECT_EQ(r.integer("i64", -9, 9), -6);
  EXPECT_EQ(r.number("f32"), static_cast<double>(0.1F));
  EXPECT_EQ(r.number("f64"), 0.1);
  EXPECT_EQ(r.number("i8"), -3.0);
  EXPECT_TRUE(r.boolean_or("bool", false));
  EXPECT_EQ(r.integers("types"), (std::vector<std::int64_t>{1, -1}));
  EXPECT_EQ(std::get<std::vector<double>>(r.metadata().find("scores")->second.value),
            std::vector<double>{-0.5});
  EXPECT_EQ(r.strings("tokens"), (std::vector<std::string>{"a", "\xFF"}));  // a vocabulary may hold any bytes
  EXPECT_TRUE(r.strings("none").empty());
  EXPECT_EQ(std::get<std::vector<bool>>(r.metadata().find("flags")->second.value),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(r.metadata().find("types")->second.kind, GgufKind::kI32);
  EXPECT_THAT(message_of([&] { r.integer("u64", 0, INT64_MAX); }), HasSubstr("18446744073709551615"));
  EXPECT_EQ(to_text(r.metadata().find("tokens")->second), R"(["a", "\xFF"])");
  EXPECT_EQ(to_text(r.metadata().find("f32")->second),
            "0.1");  // as a float32 prints, not as the double that holds it
  EXPECT_EQ(to_text(r.metadata().find("f64")->second), "0.1");
}

TEST(GgufReader, TypedAccessNamesFileKeyValueAndLimit) {
  const TempFolder folder;
  GgufBytes b = sound();
  b.pair("nan", raw<std::uint32_t>(6) + raw(std::numeric_limits<float>::quiet_NaN()));
  const GgufReader r = read(folder, b);
  EXPECT_THAT(message_of([&] { r.integer("llama.block_count", 3, 9); }),
              AllOf(HasSubstr("m.gguf"), HasSubstr("llama.block_count = 2"), HasSubstr("from 3 to 9")));
  EXPECT_THAT(message_of([&] { r.integer("absent", 3, 9); }), HasSubstr("absent is missing"));
  EXPECT_THAT(message_of([&] { r.integer_or("general.architecture", 1, 0, 9); }), HasSubstr("\"llama\""));
  EXPECT_THAT(message_of([&] { r.string("llama.block_count"); }), HasSubstr("a string"));
  EXPECT_THAT(message_of([&] { r.strings("general.architecture"); }), HasSubstr("array of strings"));
  EXPECT_THAT(message_of([&] { r.integers("llama.block_count"); }), HasSubstr("array of integers"));
  EXPECT_THAT(message_of([&] { r.boolean_or("llama.block_count", true); }), HasSubstr("a boolean"));
  EXPECT_THAT(message_of([&] { r.number("nan"); }), HasSubstr("finite"));
  EXPECT_EQ(r.integer_or("absent", 7, 0, 9), 7);
  EXPECT_EQ(r.number_or("absent", 0.5), 0.5);
  EXPECT_EQ(r.string_or("absent", "x"), "x");
  EXPECT_TRUE(r.boolean_or("absent", true));
}

TEST(GgufReader, StartOfTheFile) {
  GgufBytes b = sound();
  b.magic = "GGML";
  EXPECT_THAT(fault(b), AllOf(HasSubstr("magic"), HasSubstr("GGML")));
  b = sound();
  b.version = 4;
  EXPECT_THAT(fault(b), HasSubstr("version 4"));
  b.version = 1;
  EXPECT_THAT(fault(b, ErrorCode::kNotSupported), HasSubstr("version 1"));
  b.version = 0x03000000;
  EXPECT_THAT(fault(b, ErrorCode::kNotSupported), HasSubstr("big-endian"));
  const TempFolder folder;
  const auto empty = folder.file("m.gguf", "");
  EXPECT_THAT(message_of([&] { GgufReader::open(empty); }), HasSubstr("empty"));
}

TEST(GgufReader, CutAnywhereItIsRefused) {
  const testing_files::MemoryFile file;
  const std::string bytes = sound().bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const std::string path = file.with(bytes.substr(0, n));
    EXPECT_THAT(message_of([&] { GgufReader::open(path); }), testing::MatchesRegex(".*(truncated|empty).*"))
        << n;
  }
}

TEST(GgufReader, CountsAreHeldAgainstTheFile) {
  EXPECT_THAT(fault(sound().counts(2, UINT64_MAX)), HasSubstr("18446744073709551615 metadata keys"));
  EXPECT_THAT(fault(sound().counts(UINT64_MAX, 2)), HasSubstr("18446744073709551615 tensors"));
  EXPECT_THAT(fault(sound().counts(UINT64_MAX / 25 + 1, 2)), HasSubstr("tensors"));
  GgufBytes b;
  b.pair("k", raw(kArray) + raw<std::uint32_t>(4) + raw<std::uint64_t>(UINT64_MAX / 4 + 2));
  EXPECT_THAT(fault(b), AllOf(HasSubstr("k"), HasSubstr("truncated")));
  GgufBytes c;
  c.pair("k", raw<std::uint32_t>(8) + raw<std::uint64_t>(UINT64_MAX - 3) + "abc");
  EXPECT_THAT(fault(c), HasSubstr("truncated"));
  GgufBytes d;  // an array that the file does hold, but that no model needs
  d.pair("k", raw(kArray) + raw<std::uint32_t>(0) + raw<std::uint64_t>((1 << 24) + 1) +
                  std::string((1 << 24) + 1, 'x'));
  EXPECT_THAT(fault(d), AllOf(HasSubstr("too long"), HasSubstr("16777216")));
}

TEST(GgufReader, MetadataFaults) {
  EXPECT_THAT(fault(sound().u32("llama.block_count", 1)),
              AllOf(HasSubstr("duplicate"), HasSubstr("llama.block_count")));
  EXPECT_THAT(fault(sound().u32("\xFF\xFE", 1)), AllOf(HasSubstr("UTF-8"), HasSubstr("\\xFF\\xFE")));
  EXPECT_THAT(fault(sound().u32("", 1)), HasSubstr("key"));
  EXPECT_THAT(fault(sound().text("general.name", "\xC0\x80")),
              AllOf(HasSubstr("UTF-8"), HasSubstr("general.name")));
  EXPECT_THAT(fault(sound().pair("k", raw<std::uint32_t>(7) + raw<std::uint8_t>(7))),
              AllOf(HasSubstr("boolean"), HasSubstr("value 7")));
  EXPECT_THAT(fault(sound().pair("k", raw<std::uint32_t>(13) + raw<std::uint64_t>(0))), HasSubstr("kind 13"));
  EXPECT_THAT(fault(sound().pair("k", raw(kArray) + raw<std::uint32_t>(99) + raw<std::uint64_t>(0))),
              HasSubstr("kind 99"));
  std::string nested;
  for (int i = 0; i < 60000; ++i) nested += raw(kArray);
  EXPECT_THAT(fault(sound().pair("k", nested)), HasSubstr("nested"));
}

TEST(GgufReader, AlignmentIsAPowerOfTwo) {
  for (const std::uint32_t bad : {0U, 3U, 4U, 48U, 131072U, 0x80000000U}) {
    EXPECT_THAT(fault(sound().u32("general.alignment", bad)),
                HasSubstr("general.alignment = " + std::to_string(bad)));
  }
  EXPECT_THAT(fault(sound().text("general.alignment", "32")), HasSubstr("general.alignment = \"32\""));
  GgufBytes b = sound();
  b.alignment = 64;
  const TempFolder folder;
  EXPECT_EQ(read(folder, b.u32("general.alignment", 64)).tensors().size(), 2U);
}

TEST(GgufReader, TensorTableFaults) {
  const auto with = [](const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset) {
    GgufBytes b = sound();
    b.data.resize(4096);
    b.tensor("c", dims, type, offset);
    return fault(b);
  };
  EXPECT_THAT(with({4}, 4, 96), AllOf(HasSubstr("c, type id 4"), HasSubstr("no longer supported")));
  EXPECT_THAT(with({4}, 77, 96), HasSubstr("unknown tensor type"));
  EXPECT_THAT(with({4}, 1000, 96), HasSubstr("unknown tensor type"));  // a safetensors dtype's number
  EXPECT_THAT(with({64, (std::uint64_t{1} << 58) + 1}, kF32, 96), HasSubstr("too large"));
  EXPECT_THAT(with({std::uint64_t{1} << 40, std::uint64_t{1} << 23, 2}, kF32, 96), HasSubstr("too large"));
  EXPECT_THAT(with({std::uint64_t{1} << 63}, kF32, 96), HasSubstr("too large"));
  EXPECT_THAT(with({4, 0}, kF32, 96), HasSubstr("dimension of zero"));
  EXPECT_THAT(with({1, 1, 1, 1, 1}, kF32, 96), HasSubstr("too many dimensions"));
  EXPECT_THAT(with({48}, kQ8_0, 96), AllOf(HasSubstr("48 columns"), HasSubstr("blocks of 32")));
  EXPECT_THAT(with({4}, kF32, 100), AllOf(HasSubstr("offset 100"), HasSubstr("alignment 32")));
  EXPECT_THAT(with({4}, kF32, 4096), HasSubstr("past the end"));
  EXPECT_THAT(with({1024}, kF32, 96), AllOf(HasSubstr("c"), HasSubstr("past the end")));
  EXPECT_THAT(with({4}, kF32, UINT64_MAX - 31), HasSubstr("past the end"));
  EXPECT_THAT(with({4}, kF32, 64), AllOf(HasSubstr("overlap"), HasSubstr("b"), HasSubstr("c")));
  EXPECT_THAT(with({4}, kF32, 32), AllOf(HasSubstr("overlap"), HasSubstr("smaller")));
  GgufBytes twice = sound();
  twice.data.resize(4096);
  EXPECT_THAT(fault(twice.tensor("a", {4}, kF32, 96)), HasSubstr("duplicate tensor"));
  GgufBytes bad_name = sound();
  bad_name.data.resize(4096);
  EXPECT_THAT(fault(bad_name.tensor("\xFF", {4}, kF32, 96)), HasSubstr("\\xFF"));
}

TEST(GgufReader, PaddingBetweenTensorsIsNoFault) {
  GgufBytes b = sound();
  b.data.resize(4096);
  const TempFolder folder;
  EXPECT_EQ(read(folder, b.tensor("c", {4}, kF32, 1024)).tensors().size(), 3U);
}

class GgufParts : public testing::Test {
 protected:
  GgufBytes part(std::uint16_t number, std::uint16_t count, const std::string& tensor,
                 std::int32_t total) const {
    GgufBytes b;
    if (number == 0) b.text("general.architecture", "llama");
    b.pair("split.no", raw<std::uint32_t>(2) + raw(number))
        .pair("split.count", raw<std::uint32_t>(2) + raw(count));
    b.pair("split.tensors.count", raw<std::uint32_t>(5) + raw(total));
    b.tensor(tensor, {4}, kF32, 0);
    b.data.assign(16, static_cast<char>(number));
    return b;
  }
  void write(int number, const GgufBytes& b) const {
    folder_.file("m-0000" + std::to_string(number) + "-of-00003.gguf", b.bytes());
  }
  std::string fault() const {
    return message_of([&] { GgufReader::open(folder_.path() / "m-00001-of-00003.gguf"); });
  }
  TempFolder folder_;
};

TEST_F(GgufParts, OpenThroughAnyPart) {
  for (std::uint16_t i = 0; i < 3; ++i) write(i + 1, part(i, 3, "t" + std::to_string(i), 3));
  for (int i = 1; i <= 3; ++i) {
    const GgufReader r = GgufReader::open(folder_.path() / ("m-0000" + std::to_string(i) + "-of-00003.gguf"));
    ASSERT_EQ(r.tensors().size(), 3U);
    EXPECT_EQ(r.tensors()[2].name, "t2");
    EXPECT_EQ(r.find("t1")->data[0], std::byte{1});
    EXPECT_EQ(r.find("t1")->file, "m-00002-of-00003.gguf");
    EXPECT_EQ(r.string("general.architecture"), "llama");
  }
}

TEST_F(GgufParts, MissingPartsAreNamed) {
  write(1, part(0, 3, "t0", 3));
  EXPECT_THAT(fault(),
              AllOf(HasSubstr("m-00002-of-00003.gguf, m-00003-of-00003.gguf"), HasSubstr("split.count = 3")));
  const auto renamed = folder_.file("x.gguf", part(0, 3, "t0", 3).bytes());
  EXPECT_THAT(message_of([&] { GgufReader::open(renamed); }), HasSubstr("x-00002-of-00003.gguf"));
}

TEST_F(GgufParts, PartsThatDisagree) {
  for (std::uint16_t i = 0; i < 3; ++i) write(i + 1, part(i, 3, "t" + std::to_string(i), 4));
  EXPECT_THAT(fault(), AllOf(HasSubstr("split.tensors.count = 4"), HasSubstr("found 3")));
  for (std::uint16_t i = 0; i < 3; ++i) write(i + 1, part(i, 3, "t0", 3));
  EXPECT_THAT(fault(), HasSubstr("duplicate tensor"));
  for (std::uint16_t i = 0; i < 3; ++i) write(i + 1, part(i, 3, "t" + std::to_string(i), 3));
  write(2, part(2, 3, "t1", 3));
  EXPECT_THAT(fault(), AllOf(HasSubstr("m-00002-of-00003.gguf"), HasSubstr("split.no = 2")));
  write(2, part(1, 2, "t1", 3));
  EXPECT_THAT(fault(), HasSubstr("split.count = 2"));
  write(1, part(9, 3, "t0", 3));
  EXPECT_THAT(fault(), HasSubstr("split.no = 9"));
}

}  // namespace
}  // namespace wring::formats
