#include "engine/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/mapped_file.h"

namespace wring::engine {
namespace {

// A panel of rows, dequantized or of BF16, should stay in a core's second-level cache while all tokens pass
// over it.
constexpr std::size_t kPanelBytes = 128 << 10;
// Rows that are dequantized before they meet a single token: enough for the kernel's streams.
constexpr std::size_t kStreamedRows = 8;
// Bytes of an arena in a piece, the unit in which work is handed out: enough to make that cheap, few enough
// to share a small matrix evenly.
constexpr std::size_t kPackedPiece = 64 << 10;

std::size_t whole_lines(std::size_t floats) {
  return (floats + 15) / 16 * 16;
}

// `rows` in pieces of about `fit` rows, multiples of `unit`: as many as threads share evenly, all of about
// one size.
std::size_t even_piece(std::size_t rows, std::size_t fit, std::size_t unit, std::size_t threads) {
  const std::size_t pieces = (rows + fit * threads - 1) / (fit * threads) * threads;
  return (rows + pieces * unit - 1) / (pieces * unit) * unit;
}

// What matvec reads where it lies.
bool is_stored_float(const model::Weight& weight) {
  using formats::QuantType;
  const QuantType type = weight.type();
  const bool is_float = type == QuantType::kF32 || type == QuantType::kF16 || type == QuantType::kBF16;
  return is_float && !weight.coded && weight.paired_head_dim == 0;
}

}  // namespace

void LinearInput::reserve(InputForm form, std::size_t rows, std::size_t columns, int threads) {
  if (form == InputForm::kFloats) {
    tiled_.reserve(kernels::tiled_floats(rows, table_->tile_width, columns));
    return;
  }
  if (form == InputForm::kBf16) {
    bf16_.reserve(rows * columns);
    tiled_bf16_.reserve(kernels::tiled_floats(rows, table_->bf16->tile_width, (columns + 1) / 2));
    return;
  }
  chunks_.reserve(rows * kernels::chunks_of(columns));
  if (form == InputForm::kCodes) return;
  more_chunks_.reserve(rows * kernels::chunks_of(columns));
  errors_.reserve(static_cast<std::size_t>(threads), static_cast<std::int64_t>(columns));
}

void LinearInput::take(const RowBuffer& x, std::size_t rows, std::span<const InputForm> forms,
                       ThreadPool& pool) {
  const auto k = static_cast<std::size_t>(x.columns());
  rows_ = rows;
  single_ = x.row(0);
  codes_ = {chunks_.data(), rows, k};
  left_over_ = {more_chunks_.data(), rows, k};
  const auto asked = [&](InputForm form) { return std::ranges::find(forms, form) != forms.end(); };
  const bool twice = asked(InputForm::kTwoCodes), once = asked(InputForm::kCodes) || twice;
  const bool floats = asked(InputForm::kFloats) && rows > 1;
  if (asked(InputForm::kBf16)) take_bf16(x, pool);
  if (!once && !floats) return;
  const std::size_t tile = table_->tile_width;
  pool.for_pieces((rows + tile - 1) / tile, 1, [&](std::size_t begin, std::size_t end, int worker) {
    const std::size_t first = begin * tile, last = std::min(rows, end * tile);
    for (std::size_t r = first; once && r < last; ++r) table_->quantize_row(x.row(r), codes_, r);
    for (std::size_t r = first; twice && r < last; ++r)
      code_twice(x.row(r), r, errors_.row(static_cast<std::size_t>(worker)));
    if (floats) {
      table_->tile_tokens(x.row(first), x.stride(), last - first, k,
                          tiled_.data() + kernels::tiled_floats(first, tile, k));
    }
  });
}

void LinearInput::take_bf16(const RowBuffer& x, ThreadPool& pool) {
  const kernels::Bf16Dots& dots = *table_->bf16;
  const auto k = static_cast<std::size_t>(x.columns());
  const std::size_t tile = dots.tile_width;
  pool.for_pieces((rows_ + tile - 1) / tile, 1, [&](std::size_t begin, std::size_t end, int) {
    const std::size_t first = begin * tile, last = std::min(rows_, end * tile);
    for (std::size_t r = first; r < last; ++r) dots.round(x.row(r), k, bf16_.data() + r * k);
    if (rows_ > 1) {
      dots.tile_tokens(bf16_.data() + first * k, k * sizeof(std::uint16_t), last - first, k,
                       tiled_bf16_.data() + kernels::tiled_floats(first, tile, k / 2));
    }
  });
}

void LinearInput::code_twice(const float* row, std::size_t r, float* errors) {
  for (std::size_t block = 0; block < codes_.columns; block += 32) {
    const kernels::ActivationChunk& chunk = *codes_.at(block / kernels::kChunkColumns, r);
    const std::size_t at = block % kernels::kChunkColumns;
    const float scale = chunk.scales[at / 32];
    for (std::size_t i = 0; i < 32; ++i)
      errors[block + i] = row[block + i] - scale * static_cast<float>(chunk.codes[at + i]);
  }
  table_->quantize_row(errors, left_over_, r);
}

std::size_t packed_bytes(const model::Weight& weight, ComputeMode mode) {
  if (mode != ComputeMode::kPacked || weight.coded || !kernels::has_packed(weight.type())) return 0;
  const std::size_t groups =
      (static_cast<std::size_t>(weight.rows) + kernels::kGroupRows - 1) / kernels::kGroupRows;
  const std::size_t bytes =
      groups * kernels::packed_group_bytes(weight.type(), static_cast<std::size_t>(weight.columns));
  return (bytes + 63) / 64 * 64;
}

Linear::Linear(const model::Model& model, const model::LinearSpec& spec, ComputeMode mode, InputForm form,
               PackedArena& arena, ThreadPool& pool, const kernels::KernelTable& table)
    : table_(&table), weight_(&model.weight(spec.name + ".weight")) {
  if (const std::size_t bytes = packed_bytes(*weight_, mode); bytes > 0) {
    form_ = form;
    arena_ = arena.take(bytes);
  } else if (mode == ComputeMode::kPacked && weight_->type() == formats::QuantType::kBF16 &&
             !weight_->coded && table.bf16 != nullptr && columns() % 2 == 0) {
    form_ = InputForm::kBf16;
  }
  if (!packed()) require_dequantize(*weight_);
  if (spec.bias) {
    bias_ = read_vector(model.weight(spec.name + ".bias"), table);
    if (const int head_dim = weight_->paired_head_dim; head_dim > 0) {
      const std::vector<float> stored = bias_;  // in the order of the weight's stored rows
      for (std::size_t i = 0; i < stored.size(); ++i) {
        bias_[i] =
            stored[static_cast<std::size_t>(model::paired_row(static_cast<std::int64_t>(i), head_dim))];
      }
    }
  }
  const auto threads = static_cast<std::size_t>(pool.threads());
  if (packed()) {
    const std::size_t row_bytes = weight_->row_bytes();
    constexpr std::size_t kTwoGroups = 2 * kernels::kGroupRows;  // AVX-512 takes them side by side
    panel_rows_ = even_piece(rows(), std::max(kPackedPiece / row_bytes, kTwoGroups), kTwoGroups, threads);
    pack(pool);
    release_mapped_pages(weight_->data);  // they lie in the arena now
  } else {
    const bool bf16 = form_ == InputForm::kBf16;
    const std::size_t tile = bf16 ? table.bf16->tile_height : table.tile_height;
    const std::size_t value_bytes = bf16 ? sizeof(std::uint16_t) : sizeof(float);
    panel_rows_ = even_piece(rows(), std::max(kPanelBytes / (value_bytes * columns()), tile), tile, threads);
  }
}

void Linear::pack(ThreadPool& pool) {
  const std::size_t groups = (rows() + kernels::kGroupRows - 1) / kernels::kGroupRows;
  const std::size_t group_bytes = kernels::packed_group_bytes(weight_->type(), columns());
  pool.for_pieces(groups, 4, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t g = begin; g < end; ++g) {
      const std::byte* from[kernels::kGroupRows] = {};
      for (std::size_t i = 0; i < kernels::kGroupRows; ++i) {
        const std::size_t row = g * kernels::kGroupRows + i;
        if (row < rows()) from[i] = weight_->row_data(static_cast<std::int64_t>(row));
      }
      kernels::pack_group(weight_->type(), from, columns(), arena_ + g * group_bytes);
    }
  });
}

Products Linear::products() const {
  if (packed()) return Products::kBytes;
  return form_ == InputForm::kBf16 ? Products::kBf16 : Products::kFloats;
}

std::size_t Linear::payload_bytes() const {
  return packed() ? packed_bytes(*weight_, ComputeMode::kPacked) : weight_->bytes();
}

void Linear::reserve(LinearScratch& scratch, std::size_t input_rows) const {
  if (form_ == InputForm::kTwoCodes) scratch.second.reserve(input_rows * panel_rows_);
  if (packed()) return;
  if (form_ == InputForm::kBf16) {
    if (weight_->paired_head_dim > 0) scratch.rows.reserve(panel_rows_ * columns() / 2);
    scratch.panel.reserve(kernels::tiled_floats(panel_rows_, table_->bf16->tile_height, columns() / 2));
    return;
  }
  const std::size_t tile = table_->tile_height;
  scratch.rows.reserve(std::max(tile, kStreamedRows) * whole_lines(columns()));
  scratch.panel.reserve(kernels::tiled_floats(panel_rows_, tile, columns()));
}

void Linear::apply(std::size_t first, std::size_t last, const LinearInput& x, RowBuffer& y,
                   LinearScratch& scratch) const {
  const std::size_t end = std::min(rows(), last * panel_rows_);
  // Scratch holds one piece; without it rows need not be cut.
  const std::size_t rows_at_once = form_ == InputForm::kCodes ? end : panel_rows_;
  for (std::size_t r = first * panel_rows_; r < end; r += rows_at_once) {
    const std::size_t piece_end = std::min(end, r + rows_at_once);
    if (packed()) {
      packed_rows(x, r, piece_end, y, scratch);
    } else if (form_ == InputForm::kBf16) {
      panel_of_bf16(x, r, piece_end, y, scratch);
    } else {
      panel_of(x, r, piece_end, y, scratch);
    }
    if (bias_.empty()) continue;
    for (std::size_t t = 0; t < x.rows(); ++t) table_->add(y.row(t) + r, bias_.data() + r, piece_end - r);
  }
}

void Linear::packed_rows(const LinearInput& x, std::size_t begin, std::size_t end, RowBuffer& y,
                         LinearScratch& scratch) const {
  const kernels::KernelTable& table = *table_;
  const std::byte* groups =
      arena_ + begin / kernels::kGroupRows * kernels::packed_group_bytes(weight_->type(), columns());
  table.packed_matmul(weight_->type(), groups, end - begin, x.codes(), x.rows(), y.row(0) + begin,
                      y.stride());
  if (form_ != InputForm::kTwoCodes) return;
  float* second = scratch.second.data();
  table.packed_matmul(weight_->type(), groups, end - begin, x.left_over(), x.rows(), second, panel_rows_);
  for (std::size_t t = 0; t < x.rows(); ++t)
    table.add(y.row(t) + begin, second + t * panel_rows_, end - begin);
}

void Linear::panel_of(const LinearInput& x, std::size_t begin, std::size_t end, RowBuffer& y,
                      LinearScratch& scratch) const {
  const kernels::KernelTable& table = *table_;
  const bool single = x.rows() == 1;
  const std::size_t k = columns(), stride = whole_lines(k), tile = single ? kStreamedRows : table.tile_height;
  if (single && is_stored_float(*weight_)) {
    return table.matvec(weight_->type(), weight_->row_data(static_cast<std::int64_t>(begin)),
                        weight_->row_bytes(), end - begin, x.single(), k, y.row(0) + begin);
  }
  for (std::size_t r = begin; r < end; r += tile) {
    const std::size_t count = std::min(tile, end - r);
    read_rows(*weight_, static_cast<std::int64_t>(r), static_cast<std::int64_t>(count), scratch.rows.data(),
              stride, table);
    if (single) {
      table.matvec(formats::QuantType::kF32, scratch.rows.data(), stride * sizeof(float), count, x.single(),
                   k, y.row(0) + r);
    } else {
      table.tile_rows(scratch.rows.data(), stride, count, k,
                      scratch.panel.data() + kernels::tiled_floats(r - begin, tile, k));
    }
  }
  if (!single) {
    table.matmul(scratch.panel.data(), end - begin, x.tiled(), x.rows(), k, y.row(0) + begin, y.stride());
  }
}

void Linear::panel_of_bf16(const LinearInput& x, std::size_t begin, std::size_t end, RowBuffer& y,
                           LinearScratch& scratch) const {
  const kernels::Bf16Dots& dots = *table_->bf16;
  const std::size_t k = columns(), row_bytes = weight_->row_bytes(), count = end - begin;
  const std::byte* rows = weight_->row_data(static_cast<std::int64_t>(begin));
  if (weight_->paired_head_dim > 0) {  // they lie in another order
    auto* ordered = reinterpret_cast<std::byte*>(scratch.rows.data());
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(ordered + i * row_bytes, weight_->row_data(static_cast<std::int64_t>(begin + i)),
                  row_bytes);
    }
    rows = ordered;
  }
  if (x.rows() == 1) return dots.matvec(rows, row_bytes, count, x.bf16(), k, y.row(0) + begin);
  dots.tile_rows(rows, row_bytes, count, k, scratch.panel.data());
  dots.matmul(scratch.panel.data(), count, x.tiled_bf16(), x.rows(), k, y.row(0) + begin, y.stride());
}

}  // namespace wring::engine
