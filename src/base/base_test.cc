#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/cpu.h"
#include "base/error.h"
#include "base/floats.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/progress.h"
#include "base/utf8.h"

namespace wring {
namespace {

TEST(Error, IsOneLineWithWhatWhereTodo) {
  Error e(ErrorCode::kBadInput, "bad\nvalue", "field x", "fix it");
  e.add_context("m.gguf");
  EXPECT_STREQ(e.what(), "bad\\nvalue — m.gguf, field x — fix it");
  EXPECT_EQ(exit_code(e.code()), 3);
}

TEST(Error, ContextIsAddedOnTheWayUp) {
  try {
    with_context("outer", [] { throw Error(ErrorCode::kIo, "w", "inner"); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where(), "outer, inner");
  }
}

TEST(Utf8, FindsTheFirstFault) {
  EXPECT_TRUE(is_valid_utf8("héllo 한국어 😀"));
  EXPECT_EQ(valid_utf8_prefix("ab\xFF"), 2U);
  EXPECT_FALSE(is_valid_utf8("\xC0\x80"));          // overlong
  EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(is_valid_utf8("\xF4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_EQ(printable("a\x01\xFE"), "a\\x01\\xFE");
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82z"), "a\xEF\xBF\xBDz");
}

TEST(Floats, EveryF16RoundTrips) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float f = f16_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(f)) continue;
    EXPECT_EQ(float_to_f16(f), bits);
  }
}

TEST(Floats, F16RoundsToNearestEven) {
  EXPECT_EQ(float_to_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(float_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_f16(1.0F + 0x1p-11F), 0x3C00);      // tie to even
  EXPECT_EQ(float_to_f16(1.0F + 3 * 0x1p-11F), 0x3C02);  // tie to even, upwards
  EXPECT_EQ(float_to_f16(0x1p-25F), 0x0000);             // tie to even at the smallest subnormal
  EXPECT_EQ(float_to_f16(0x1.000002p-25F), 0x0001);
  EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Floats, Bf16RoundsToNearestEven) {
  EXPECT_EQ(float_to_bf16(1.0F + 0x1p-8F), 0x3F80);
  EXPECT_EQ(float_to_bf16(1.0F + 3 * 0x1p-8F), 0x3F82);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Floats, EveryE4m3AndE2m1RoundTrips) {
  for (int code = 0; code < 256; ++code) {
    const auto c = static_cast<std::uint8_t>(code);
    EXPECT_EQ(float_to_e4m3(e4m3_to_float(c)), c);
    if (code < 16) {
      EXPECT_EQ(float_to_e2m1(e2m1_to_float(c)), c);
    }
  }
  EXPECT_EQ(e4m3_to_float(0x7E), 448.0F);
  EXPECT_EQ(e4m3_to_float(0x01), 0x1p-9F);
  EXPECT_EQ(e2m1_to_float(0xF), -6.0F);
}

TEST(Floats, E4m3AndE2m1RoundToTheNearestAndTiesToTheEvenCode) {
  for (std::uint8_t code = 0; code < 0x7E; ++code) {
    const float low = e4m3_to_float(code), high = e4m3_to_float(static_cast<std::uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    EXPECT_EQ(float_to_e4m3(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(float_to_e4m3(std::nextafter(middle, low)), code);
    EXPECT_EQ(float_to_e4m3(-std::nextafter(middle, high)), 0x80 | (code + 1));
  }
  for (std::uint8_t code = 0; code < 7; ++code) {
    const float low = e2m1_to_float(code), high = e2m1_to_float(static_cast<std::uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    EXPECT_EQ(float_to_e2m1(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(float_to_e2m1(std::nextafter(middle, low)), code);
    EXPECT_EQ(float_to_e2m1(-std::nextafter(middle, high)), 8 | (code + 1));
  }
  EXPECT_EQ(float_to_e4m3(1e30F), 0x7E);
  EXPECT_EQ(float_to_e2m1(-1e30F), 0xF);
}

TEST(Hash, KnownDigests) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(xxh3_128_hex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Cpu, NamesAreStable) {
  EXPECT_EQ(isa_name(Isa::kAvx2), "avx2");
  EXPECT_GE(default_threads(), 1);
  EXPECT_EQ(threads_or_default(3), 3);
  EXPECT_EQ(threads_or_default(0), default_threads());
}

TEST(MappedFile, RefusesFoldersAndMissingFiles) {
  EXPECT_THROW(MappedFile("/"), Error);
  EXPECT_THROW(MappedFile("/no/such/file"), Error);
}

TEST(MappedFileDeathTest, ACutFileEndsWithAnErrorLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = testing::TempDir() + "wring_cut_file";
  const auto cut_and_read = [&] {
    {
      FILE* f = std::fopen(path.c_str(), "wb");
      std::fwrite(std::string(100000, 'x').data(), 1, 100000, f);
      std::fclose(f);
    }
    MappedFile file(path);
    std::filesystem::resize_file(path, 0);
    volatile char c = static_cast<char>(file.bytes()[50000]);
    (void)c;
  };
  EXPECT_EXIT(cut_and_read(), testing::ExitedWithCode(5), "error: a file was cut.*wring_cut_file");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace wring
