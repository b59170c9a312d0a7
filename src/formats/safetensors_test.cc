#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "formats/test_files.h"

namespace wring::formats {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing_files::message_of;
using testing_files::raw;
using testing_files::safetensors_bytes;
using testing_files::TempFolder;
using Shape = std::vector<std::uint64_t>;

std::string fault_of_bytes(const std::string& bytes) {
  const TempFolder folder;
  const fs::path path = folder.file("m.safetensors", bytes);
  const std::string message = message_of([&] { SafetensorsReader::open(path); });
  EXPECT_THAT(message, HasSubstr("m.safetensors"));
  return message;
}

// The message for a file whose header holds these entries, with 64 bytes of data.
std::string fault(const std::string& entries) {
  return fault_of_bytes(safetensors_bytes("{" + entries + "}", std::string(64, 'd')));
}

TEST(Safetensors, ReadsASoundFile) {
  const TempFolder folder;
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"empty":{"dtype":"I8","shape":[0,7],"data_offsets":[4,4]}}   )";
  const auto path = folder.file("m.safetensors", safetensors_bytes(header, "0123456789abcdef"));
  const SafetensorsReader r = SafetensorsReader::open(path);
  ASSERT_EQ(r.tensors().size(), 3U);
  EXPECT_EQ(r.tensors()[0].name, "a");  // sorted
  const TensorInfo& b = *r.find("b");
  EXPECT_EQ(b.type, QuantType::kBF16);
  EXPECT_EQ(b.shape, (Shape{2, 3}));
  EXPECT_EQ(static_cast<char>(b.data[0]), '4');
  EXPECT_EQ(b.data.size(), 12U);
  EXPECT_EQ(b.file, "m.safetensors");
  EXPECT_EQ(r.find("empty")->elements(), 0U);
  EXPECT_EQ(r.find("empty")->rows(), 0U);
  EXPECT_EQ(r.find("none"), nullptr);
  EXPECT_EQ(r.file_bytes(), fs::file_size(path));
}

TEST(Safetensors, HeaderLength) {
  EXPECT_THAT(fault_of_bytes(""), HasSubstr("empty"));
  EXPECT_THAT(fault_of_bytes("1234567"), HasSubstr("truncated"));
  for (const std::uint64_t n :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{1} << 63, UINT64_MAX - 3}) {
    EXPECT_THAT(fault_of_bytes(raw(n) + std::string(99, ' ')),
                AllOf(HasSubstr("header length " + std::to_string(n)), HasSubstr("107 bytes")));
  }
}

TEST(Safetensors, HeaderFaults) {
  EXPECT_THAT(fault_of_bytes(safetensors_bytes("[]", "")), HasSubstr("object"));
  EXPECT_THAT(fault_of_bytes(safetensors_bytes("{} x", "")), HasSubstr("column 4"));
  EXPECT_THAT(fault(R"("__metadata__":[])"), HasSubstr("__metadata__"));
  EXPECT_THAT(fault(R"("__metadata__":{"format":1})"), HasSubstr("format = 1"));
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += R"({"a":)";
  EXPECT_THAT(fault(R"("__metadata__":)" + deep), HasSubstr("nested deeper"));
  EXPECT_THAT(fault(R"("t":5)"), HasSubstr("t, found 5"));
  const char* twice =
      R"("t":{"dtype":"U8","shape":[32],"data_offsets":[0,32]},"t":{"dtype":"U8","shape":[32],"data_offsets":[32,64]})";
  EXPECT_THAT(fault(twice), HasSubstr("duplicate key \"t\""));
}

TEST(Safetensors, EntryFaults) {
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return fault(std::string(R"("t":{"dtype":)") + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" +
                 offsets + "}");
  };
  EXPECT_THAT(fault(R"("t":{"shape":[64],"data_offsets":[0,64]})"), HasSubstr("dtype is missing"));
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","data_offsets":[0,64]})"), HasSubstr("shape is missing"));
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","shape":[64]})"), HasSubstr("data_offsets is missing"));
  EXPECT_THAT(entry(R"("F13")", "[64]", "[0,64]"), AllOf(HasSubstr("dtype = \"F13\""), HasSubstr("t")));
  EXPECT_THAT(entry("7", "[64]", "[0,64]"), HasSubstr("dtype = 7"));
  EXPECT_THAT(entry(R"("Q8_0")", "[64]", "[0,64]"), HasSubstr("unknown dtype"));
  EXPECT_THAT(entry(R"("U8")", "[64.0]", "[0,64]"), HasSubstr("shape = [64.0]"));
  EXPECT_THAT(entry(R"("U8")", "[-64]", "[0,64]"), HasSubstr("shape = [-64]"));
  EXPECT_THAT(entry(R"("U8")", "64", "[0,64]"), HasSubstr("shape = 64"));
  EXPECT_THAT(entry(R"("U8")", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,64]", "[0,64]"), HasSubstr("at most 16"));
  EXPECT_THAT(entry(R"("F32")", "[4611686018427387905,16]", "[0,64]"), HasSubstr("too large"));
  EXPECT_THAT(entry(R"("F32")", "[1048576,1048576,4194305,16]", "[0,64]"), HasSubstr("too large"));
  EXPECT_THAT(entry(R"("U8")", "[64]", "[64]"), HasSubstr("data_offsets = [64]"));
  EXPECT_THAT(entry(R"("U8")", "[64]", "[0,64,64]"), HasSubstr("two integers"));
  EXPECT_THAT(entry(R"("U8")", "[64]", "[-1,63]"), HasSubstr("two integers"));
  EXPECT_THAT(entry(R"("U8")", "[64]", "[64,0]"), HasSubstr("begin lies behind end"));
  EXPECT_THAT(entry(R"("F32")", "[64]", "[0,64]"),
              AllOf(HasSubstr("disagree"), HasSubstr("needs 256 bytes")));
}

TEST(Safetensors, TensorsTileTheData) {
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","shape":[65],"data_offsets":[0,65]})"),
              AllOf(HasSubstr("end offset 65"), HasSubstr("64 bytes of data")));
  EXPECT_THAT(
      fault(R"("t":{"dtype":"U8","shape":[2],"data_offsets":[18446744073709551613,18446744073709551615]})"),
      HasSubstr("past the end"));
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","shape":[60],"data_offsets":[0,60]})"), HasSubstr("left over"));
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","shape":[60],"data_offsets":[4,64]})"), HasSubstr("gap before"));
  EXPECT_THAT(
      fault(
          R"("t":{"dtype":"U8","shape":[40],"data_offsets":[0,40]},"u":{"dtype":"U8","shape":[32],"data_offsets":[32,64]})"),
      AllOf(HasSubstr("overlap"), HasSubstr("u"), HasSubstr("t ends at 40")));
  EXPECT_THAT(fault(""), HasSubstr("left over"));
}

class ShardsTest : public testing::Test {
 protected:
  static std::string shard(const std::string& tensor) {
    return safetensors_bytes("{\"" + tensor + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                             tensor.substr(0, 1));
  }
  void index(const std::string& map) const {
    folder_.file("model.safetensors.index.json", "{\"weight_map\":" + map + "}");
  }
  std::string fault() const {
    return message_of([&] { SafetensorsReader::open(folder_.path()); });
  }
  TempFolder folder_;
};

TEST_F(ShardsTest, AreReadTogether) {
  folder_.file("1.safetensors", shard("a"));
  folder_.file("2.safetensors", shard("b"));
  folder_.file("model.safetensors", "not looked at where there is an index");
  index(R"({"a":"1.safetensors","b":"2.safetensors"})");
  const SafetensorsReader r = SafetensorsReader::open(folder_.path());
  EXPECT_EQ(r.tensors().size(), 2U);
  EXPECT_EQ(r.find("b")->file, "2.safetensors");
  EXPECT_TRUE(r.warnings().empty());
}

TEST_F(ShardsTest, MayBeLinksIntoACache) {
  fs::create_directory(folder_.path() / "blobs");
  folder_.file("blobs/x", shard("a"));
  fs::create_symlink("blobs/x", folder_.path() / "1.safetensors");
  index(R"({"a":"1.safetensors"})");
  EXPECT_EQ(SafetensorsReader::open(folder_.path()).tensors().size(), 1U);
}

TEST_F(ShardsTest, BrokenLinksAreNamed) {
  index(R"({"a":"1.safetensors"})");
  EXPECT_THAT(fault(), AllOf(HasSubstr("1.safetensors"), HasSubstr("missing")));
  fs::create_symlink("nowhere", folder_.path() / "1.safetensors");
  EXPECT_THAT(fault(), AllOf(HasSubstr("1.safetensors"), HasSubstr("nowhere")));
  fs::remove(folder_.path() / "1.safetensors");
  fs::create_symlink("1.safetensors", folder_.path() / "1.safetensors");
  EXPECT_THAT(fault(), AllOf(HasSubstr("1.safetensors"), HasSubstr("symbolic")));
}

TEST_F(ShardsTest, IndexFaults) {
  folder_.file("1.safetensors", shard("a"));
  folder_.file("2.safetensors", shard("b"));
  for (const char* bad : {"/etc/passwd", "../1.safetensors", "sub/1.safetensors", "..", ".", ""}) {
    index(std::string(R"({"a":")") + bad + "\"}");
    EXPECT_THAT(fault(), HasSubstr("plain file names")) << bad;
  }
  index(R"({"a":"1.safetensors","b":7})");
  EXPECT_THAT(fault(), AllOf(HasSubstr("weight_map"), HasSubstr("b = 7")));
  index(R"({"a":"1.safetensors","b":"1.safetensors"})");
  EXPECT_THAT(fault(), AllOf(HasSubstr("lacks"), HasSubstr("b in 1.safetensors")));
  index(R"({"a":"2.safetensors","b":"2.safetensors","c":"1.safetensors"})");
  EXPECT_THAT(fault(), HasSubstr("a in 2.safetensors"));
  index("[]");
  EXPECT_THAT(fault(), HasSubstr("weight_map"));
  index("{}");
  EXPECT_THAT(fault(), HasSubstr("weight_map"));
}

TEST_F(ShardsTest, ATensorInTwoShardsIsTakenFromWhereTheIndexSays) {
  folder_.file("1.safetensors", shard("a"));
  folder_.file("2.safetensors", safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                                  R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                                  "xy"));
  index(R"({"a":"1.safetensors","b":"2.safetensors"})");
  const SafetensorsReader r = SafetensorsReader::open(folder_.path());
  EXPECT_EQ(r.find("a")->file, "1.safetensors");
  ASSERT_EQ(r.warnings().size(), 1U);
  EXPECT_THAT(r.warnings()[0], AllOf(HasSubstr("a"), HasSubstr("2.safetensors")));
}

TEST_F(ShardsTest, ATensorThatTheIndexDoesNotListIsKeptWithAWarning) {
  folder_.file("1.safetensors", safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                                  R"("x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                                  "ax"));
  folder_.file("2.safetensors", shard("b"));
  index(R"({"a":"1.safetensors","b":"2.safetensors"})");
  const SafetensorsReader r = SafetensorsReader::open(folder_.path());
  EXPECT_NE(r.find("x"), nullptr);
  EXPECT_EQ(r.warnings().size(), 1U);
  folder_.file("2.safetensors", safetensors_bytes(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                                  R"("x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                                  "bx"));
  EXPECT_THAT(fault(), HasSubstr("x"));
}

TEST(Safetensors, AFolderWithoutWeightsSaysWhatWasLookedFor) {
  const TempFolder folder;
  EXPECT_THAT(message_of([&] { SafetensorsReader::open(folder.path()); }),
              HasSubstr("model.safetensors.index.json"));
}

TEST(SafetensorsWriter, RoundTrip) {
  const TempFolder folder;
  SafetensorsWriter w(folder.path() / "m.safetensors");
  w.set_metadata({{"format", "pt"}});
  w.declare("z", QuantType::kI32, Shape{2, 1});
  w.declare("none", QuantType::kF32, Shape{0, 4});
  w.declare("a", QuantType::kBF16, Shape{3});
  w.begin_data();
  const std::string bytes = "zzzzZZZZaaAAaa";
  w.write(std::as_bytes(std::span(bytes).subspan(0, 3)));
  w.write(std::as_bytes(std::span(bytes).subspan(3, 5)));
  w.write(std::as_bytes(std::span(bytes).subspan(8)));
  EXPECT_FALSE(fs::exists(folder.path() / "m.safetensors"));
  w.commit();
  const std::string file = read_text_file(folder.path() / "m.safetensors", 10000);
  EXPECT_EQ((file.size() - bytes.size()) % 8, 0U);
  EXPECT_TRUE(file.ends_with(bytes));
  const SafetensorsReader r = SafetensorsReader::open(folder.path() / "m.safetensors");
  EXPECT_EQ(r.tensors().size(), 3U);
  EXPECT_EQ(r.find("z")->shape, (Shape{2, 1}));
  EXPECT_EQ(static_cast<char>(r.find("a")->data[0]), 'a');
}

TEST(SafetensorsWriter, TensorsMayBeWrittenByName) {
  const TempFolder folder;
  const fs::path path = folder.path() / "m.safetensors";
  SafetensorsWriter w(path);
  w.declare("wide", QuantType::kF32, Shape{2});
  w.declare("codes", QuantType::kU8, Shape{3});
  w.begin_data();
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  w.write("codes", bytes("ab"));
  w.write("wide", bytes("12345678"));
  EXPECT_THAT(message_of([&] { w.write("codes", bytes("cd")); }, ErrorCode::kInternal),
              HasSubstr("more bytes"));
  EXPECT_THAT(message_of([&] { w.commit(); }, ErrorCode::kInternal), HasSubstr("not complete"));
  w.write("codes", bytes("c"));
  EXPECT_THAT(message_of([&] { w.write("none", bytes("c")); }, ErrorCode::kInternal),
              HasSubstr("not declared"));
  w.commit();
  const SafetensorsReader r = SafetensorsReader::open(path);
  EXPECT_EQ(static_cast<char>(r.find("codes")->data[2]), 'c');
  EXPECT_EQ(static_cast<char>(r.find("wide")->data[7]), '8');
}

TEST(SafetensorsWriter, Misuse) {
  const TempFolder folder;
  {
    SafetensorsWriter w(folder.path() / "m.safetensors");
    const auto bug = [](const std::function<void()>& f) { return message_of(f, ErrorCode::kInternal); };
    EXPECT_THAT(bug([&] { w.declare("q", QuantType::kQ4_K, Shape{256}); }), HasSubstr("Q4_K"));
    w.declare("t", QuantType::kU8, Shape{3});
    EXPECT_THAT(bug([&] { w.declare("t", QuantType::kU8, Shape{3}); }), HasSubstr("twice"));
    EXPECT_THAT(bug([&] { w.declare("f", QuantType::kF32, Shape{3}); }), HasSubstr("wider types first"));
    EXPECT_THAT(bug([&] { w.declare("\xFF", QuantType::kU8, Shape{3}); }), HasSubstr("\\xFF"));
    w.begin_data();
    EXPECT_THAT(bug([&] { w.commit(); }), HasSubstr("not complete"));
    const std::string four = "1234";
    EXPECT_THAT(bug([&] { w.write(std::as_bytes(std::span(four))); }), HasSubstr("more bytes"));
  }
  EXPECT_EQ(folder.entries(), 0U);
}

}  // namespace
}  // namespace wring::formats
