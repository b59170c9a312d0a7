#include "formats/imatrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "formats/gguf.h"
#include "formats/test_files.h"

namespace wring::formats {
namespace {

using testing::HasSubstr;
using testing_files::message_of;
using testing_files::TempFolder;
using Shape = std::vector<std::uint64_t>;

Imatrix sample() {
  Imatrix m;
  m.entries["blk.0.attn_q.weight"] = {{1.0F, 0.5F, 0.0F, 7.0F}, {12.0F}};
  m.entries["blk.0.ffn_up_exps.weight"] = {{1, 2, 3, 4, 5, 6}, {3.0F, 0.0F}};
  m.datasets = {"calibration.txt"};
  m.chunk_count = 16;
  m.chunk_size = 512;
  return m;
}

TEST(Imatrix, RoundTrip) {
  const TempFolder folder;
  const auto path = folder.path() / "i.gguf";
  write_imatrix(sample(), path);
  const Imatrix read = read_imatrix(path);
  EXPECT_EQ(read.datasets, sample().datasets);
  EXPECT_EQ(read.chunk_count, 16U);
  EXPECT_EQ(read.chunk_size, 512U);
  ASSERT_EQ(read.entries.size(), 2U);
  for (const auto& [name, entry] : sample().entries) {
    EXPECT_EQ(read.entries.at(name).sum_squares, entry.sum_squares);
    EXPECT_EQ(read.entries.at(name).counts, entry.counts);
  }
}

TEST(Imatrix, LiesOnDiskAsLlamaCppHasIt) {
  const TempFolder folder;
  const auto path = folder.path() / "i.gguf";
  write_imatrix(sample(), path);
  const GgufReader r = GgufReader::open(path);
  EXPECT_EQ(r.string("general.type"), "imatrix");
  EXPECT_EQ(r.strings("imatrix.datasets"), std::vector<std::string>{"calibration.txt"});
  EXPECT_EQ(r.metadata().find("imatrix.chunk_count")->second.kind, GgufKind::kU32);
  EXPECT_EQ(r.metadata().find("imatrix.chunk_size")->second.kind, GgufKind::kU32);
  EXPECT_EQ(r.find("blk.0.attn_q.weight.in_sum2")->shape, Shape{4});
  EXPECT_EQ(r.find("blk.0.attn_q.weight.counts")->shape, Shape{1});
  EXPECT_EQ(r.find("blk.0.ffn_up_exps.weight.in_sum2")->shape, (Shape{2, 3}));
  EXPECT_EQ(r.find("blk.0.ffn_up_exps.weight.counts")->shape, (Shape{2, 1}));
}

struct Tensor {
  std::string name;
  std::vector<float> values;
  Shape shape;
  QuantType type = QuantType::kF32;
};

std::string fault(const std::vector<Tensor>& tensors, const std::string& type = "imatrix") {
  const TempFolder folder;
  GgufWriter w(folder.path() / "i.gguf");
  w.add_string("general.type", type);
  for (const Tensor& t : tensors) w.declare(t.name, t.type, t.shape);
  w.begin_data();
  for (const Tensor& t : tensors) w.write(std::as_bytes(std::span(t.values)));
  w.commit();
  const std::string message = message_of([&] { read_imatrix(folder.path() / "i.gguf"); });
  EXPECT_THAT(message, HasSubstr("i.gguf"));
  return message;
}

TEST(Imatrix, Refusals) {
  const Tensor sums{"a.in_sum2", {1, 2}, {2}}, count{"a.counts", {1}, {1}};
  EXPECT_THAT(fault({sums, count}, "model"), HasSubstr("general.type = \"model\""));
  EXPECT_THAT(fault({sums}), HasSubstr("a.counts is missing"));
  EXPECT_THAT(fault({count}), HasSubstr("a.in_sum2 is missing"));
  EXPECT_THAT(fault({sums, count, {"a.weight", {1}, {1}}}), HasSubstr("a.weight"));
  EXPECT_THAT(fault({sums, {"a.counts", {1, 2}, {2, 1}}}), HasSubstr("1 rows of sums, but 2 counts"));
  EXPECT_THAT(fault({{"a.in_sum2", {1}, {2}, QuantType::kBF16}, count}), HasSubstr("must be F32, not BF16"));
  for (const float bad :
       {-1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(fault({{"a.in_sum2", {1, bad}, {2}}, count}), HasSubstr("at 1"));
    EXPECT_THAT(fault({sums, {"a.counts", {bad}, {1}}}), HasSubstr("a.counts"));
  }
  const Imatrix uneven{{{"a", {{1, 2, 3}, {1, 1}}}}, {}, 0, 0};
  const TempFolder folder;
  EXPECT_THAT(message_of([&] { write_imatrix(uneven, folder.path() / "i.gguf"); }, ErrorCode::kInternal),
              HasSubstr("disagree"));
  EXPECT_EQ(folder.entries(), 0U);
}

}  // namespace
}  // namespace wring::formats
