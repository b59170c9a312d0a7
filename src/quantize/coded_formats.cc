// Sources: compressed-tensors 0.20.1, quantization/utils/helpers.py (scales), lifecycle/forward.py (codes)
// and compressors (layouts).
#include "quantize/coded_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/floats.h"
#include "quantize/lanes.h"

namespace wring::quantize {
namespace {

using formats::QuantType;

// What stands for a scale of zero: the library's smallest step from 1 in the scale's type.
constexpr float kBf16Epsilon = 0x1p-7F, kE4m3Epsilon = 0x1p-3F;

constexpr float kLargestE4m3 = 448, kLargestE2m1 = 6, kNvfp4Range = kLargestE4m3 * kLargestE2m1;

float to_bf16(float x) {
  return bf16_to_float(float_to_bf16(x));
}

std::uint64_t u64(std::int64_t n) {
  return static_cast<std::uint64_t>(n);
}

std::vector<Level> make_levels(CodeKind kind) {
  std::vector<Level> all;
  for (int code = 0; code < (kind == CodeKind::kFp8 ? 256 : 16); ++code) {
    const float value = level_of(kind, static_cast<std::uint8_t>(code));
    if (std::isfinite(value) && !(value == 0 && std::signbit(value)))
      all.push_back({value, static_cast<std::uint8_t>(code)});
  }
  std::ranges::sort(all, {}, &Level::value);
  return all;
}

/// As the library computes it of BF16 weights: a reciprocal and a product, each rounded to BF16.
float nvfp4_divisor(float largest) {
  const float divisor = to_bf16(to_bf16(1.0F / largest) * kNvfp4Range);
  return std::isfinite(divisor) ? divisor : 1.0F;
}

float scale_of_group(const CodedFormat& format, float largest, float divisor) {
  float scale = 0;
  switch (format.kind) {
    case CodeKind::kInt4:
      scale = to_bf16(largest / 7.5F);
      return scale == 0 ? kBf16Epsilon : scale;
    case CodeKind::kFp8:
      scale = to_bf16(largest / kLargestE4m3);
      return scale == 0 ? kBf16Epsilon : scale;
    case CodeKind::kNvfp4:
      scale = e4m3_to_float(float_to_e4m3(divisor * to_bf16(largest / kLargestE2m1)));
      return scale == 0 ? kE4m3Epsilon : scale;
  }
  return 1;
}

template <class Value, class Of>
std::vector<std::byte> bytes_of_values(std::size_t n, Of of) {
  std::vector<std::byte> out(n * sizeof(Value));
  for (std::size_t i = 0; i < n; ++i) {
    const Value value = of(i);
    std::memcpy(out.data() + i * sizeof(Value), &value, sizeof(Value));
  }
  return out;
}

/// Two codes a byte, the even column in the low half; int32 words lowest bits first are the same bytes.
std::vector<std::byte> pack_nibbles(std::span<const std::uint8_t> codes) {
  std::vector<std::byte> out(codes.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::byte>(codes[2 * i] | codes[2 * i + 1] << 4);
  return out;
}

}  // namespace

std::string CodedFormat::name() const {
  switch (kind) {
    case CodeKind::kInt4:
      return fmt::format("INT4 g{}", group);
    case CodeKind::kFp8:
      return "FP8 channel";
    case CodeKind::kNvfp4:
      return "NVFP4";
  }
  return {};
}

std::uint64_t CodedPart::bytes() const {
  std::uint64_t n = formats::info_of(type).block_bytes;
  for (const std::uint64_t d : shape) n *= d;
  return n;
}

std::vector<CodedPart> parts_of(const CodedFormat& format, std::int64_t rows, std::int64_t columns) {
  if (!format.fits(columns))
    throw Error(ErrorCode::kInternal, fmt::format("{} columns in {}", columns, format.name()));
  const std::uint64_t r = u64(rows), c = u64(columns), groups = c / u64(format.columns_per_scale(columns));
  switch (format.kind) {
    case CodeKind::kInt4:
      return {{"weight_packed", QuantType::kI32, {r, c / 8}},
              {"weight_scale", QuantType::kBF16, {r, groups}},
              {"weight_shape", QuantType::kI64, {2}}};
    case CodeKind::kFp8:
      return {{"weight", QuantType::kF8_E4M3, {r, c}}, {"weight_scale", QuantType::kBF16, {r, 1}}};
    case CodeKind::kNvfp4:
      break;
  }
  std::vector<CodedPart> parts = {{"weight_packed", QuantType::kU8, {r, c / 2}},
                                  {"weight_scale", QuantType::kF8_E4M3, {r, groups}},
                                  {"weight_global_scale", QuantType::kF32, {1}}};
  if (format.coded_inputs) parts.push_back({"input_global_scale", QuantType::kF32, {1}});
  return parts;
}

float level_of(CodeKind kind, std::uint8_t code) {
  switch (kind) {
    case CodeKind::kInt4:
      return static_cast<float>(static_cast<int>(code) - 8);
    case CodeKind::kFp8:
      return e4m3_to_float(code);
    case CodeKind::kNvfp4:
      return e2m1_to_float(code);
  }
  return 0;
}

std::span<const Level> levels(CodeKind kind) {
  static const std::vector<Level> kInt4 = make_levels(CodeKind::kInt4), kFp8 = make_levels(CodeKind::kFp8),
                                  kNvfp4 = make_levels(CodeKind::kNvfp4);
  return kind == CodeKind::kInt4 ? kInt4 : kind == CodeKind::kFp8 ? kFp8 : kNvfp4;
}

std::uint8_t nearest_code(CodeKind kind, float x) {
  switch (kind) {
    case CodeKind::kInt4:
      return static_cast<std::uint8_t>(std::nearbyint(std::clamp(x, -8.0F, 7.0F)) + 8.0F);
    case CodeKind::kFp8:
      return float_to_e4m3(x);
    case CodeKind::kNvfp4:
      return float_to_e2m1(x);
  }
  return 0;
}

float nvfp4_global(float largest) {
  const float global = kNvfp4Range / largest;
  return std::isfinite(global) ? global : 1.0F;
}

CodedScales fit_scales(const CodedFormat& format, std::span<const float> weights, std::int64_t columns,
                       float largest, ThreadPool& pool) {
  CodedScales scales;
  scales.columns_per_scale = format.columns_per_scale(columns);
  scales.groups = columns / scales.columns_per_scale;
  if (format.kind == CodeKind::kNvfp4) scales.divisor = nvfp4_divisor(largest);
  const auto n = static_cast<std::size_t>(scales.columns_per_scale);
  scales.stored.resize(weights.size() / n);
  pool.for_pieces(scales.stored.size(), 256, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t g = begin; g < end; ++g) {
      float most = 0;
      for (const float w : weights.subspan(g * n, n)) most = std::max(most, std::abs(w));
      scales.stored[g] = scale_of_group(format, most, scales.divisor);
    }
  });
  return scales;
}

CodedScales search_int4_scales(const CodedFormat& format, std::span<const float> weights,
                               std::int64_t columns, std::span<const float> importance, ThreadPool& pool) {
  CodedScales scales = fit_scales(format, weights, columns, 0, pool);
  const auto n = static_cast<std::size_t>(scales.columns_per_scale),
             groups = static_cast<std::size_t>(scales.groups);
  const auto loss = [&](std::size_t g, float scale) {
    const float* w = weights.data() + g * n;
    const float* weight = importance.data() + g % groups * n;
    float sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float level = round_to_even(std::clamp(w[i] / scale, -8.0F, 7.0F)), error = w[i] - level * scale;
      sum += weight[i] * error * error;
    }
    return sum;
  };
  pool.for_pieces(scales.stored.size(), 16, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t g = begin; g < end; ++g) {
      const float plain = scales.stored[g];
      float least = loss(g, plain);
      for (int percent = 40; percent <= 110; percent += 2) {
        const float scale = to_bf16(plain * static_cast<float>(percent) / 100);
        if (!(scale > 0)) continue;
        if (const float found = loss(g, scale); found < least) {
          least = found;
          scales.stored[g] = scale;
        }
      }
    }
  });
  return scales;
}

std::vector<std::uint8_t> round_to_nearest(const CodedFormat& format, std::span<const float> weights,
                                           std::int64_t columns, const CodedScales& scales,
                                           ThreadPool& pool) {
  const auto n = static_cast<std::size_t>(scales.columns_per_scale);
  const std::size_t groups = static_cast<std::size_t>(columns) / n;
  const bool bf16 = format.kind != CodeKind::kNvfp4;
  std::vector<std::uint8_t> codes(weights.size());
  pool.for_pieces(weights.size() / n, 256, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t g = begin; g < end; ++g) {
      const float scale =
          scales.of(static_cast<std::int64_t>(g / groups), static_cast<std::int64_t>(g % groups * n));
      for (std::size_t i = g * n; i < (g + 1) * n; ++i) {
        const float quotient = weights[i] / scale;
        codes[i] = nearest_code(format.kind, bf16 ? to_bf16(quotient) : quotient);
      }
    }
  });
  return codes;
}

std::vector<std::vector<std::byte>> pack(const CodedFormat& format, std::span<const std::uint8_t> codes,
                                         std::int64_t columns, const CodedScales& scales,
                                         float input_global) {
  const std::size_t n = scales.stored.size();
  const auto bf16_scale = [&](std::size_t i) { return float_to_bf16(scales.stored[i]); };
  const auto e4m3_scale = [&](std::size_t i) { return float_to_e4m3(scales.stored[i]); };
  const auto number = [](float value) {
    return bytes_of_values<float>(1, [&](std::size_t) { return value; });
  };
  const std::int64_t shape[] = {static_cast<std::int64_t>(codes.size()) / columns, columns};
  switch (format.kind) {
    case CodeKind::kInt4:
      return {pack_nibbles(codes), bytes_of_values<std::uint16_t>(n, bf16_scale),
              bytes_of_values<std::int64_t>(2, [&](std::size_t i) { return shape[i]; })};
    case CodeKind::kFp8:
      return {bytes_of_values<std::uint8_t>(codes.size(), [&](std::size_t i) { return codes[i]; }),
              bytes_of_values<std::uint16_t>(n, bf16_scale)};
    case CodeKind::kNvfp4:
      break;
  }
  std::vector<std::vector<std::byte>> parts = {
      pack_nibbles(codes), bytes_of_values<std::uint8_t>(n, e4m3_scale), number(scales.divisor)};
  if (format.coded_inputs) parts.push_back(number(input_global));
  return parts;
}

}  // namespace wring::quantize
