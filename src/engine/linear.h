// A linear map y = W x (+ bias) of a model, ready to be computed in one of the two modes. In packed mode a
// matrix of a type that has integer kernels is moved once into an arena of interleaved rows
// (kernels/packed.h); every other matrix, and all of them in exact mode, stay in the mapped file: a single
// token reads F32, F16 and BF16 where they lie, else rows are dequantized panel by panel. Where
// KernelTable::bf16 is set, packed mode takes BF16 rows as they are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "engine/compute_mode.h"
#include "engine/row_buffer.h"
#include "engine/weight_rows.h"
#include "kernels/kernel_table.h"
#include "model/model.h"

namespace wring::engine {

/// How a linear map wants its input.
enum class InputForm {
  kFloats,
  kCodes,     // packed mode's
  kTwoCodes,  // packed mode's, and what they leave over coded once more
  kBf16,      // packed mode's for BF16 matrices: rounded to BF16
};

/// The rows that linear maps read, in the forms that the maps want, made once for all maps of a site.
class LinearInput {
 public:
  explicit LinearInput(const kernels::KernelTable& table) : table_(&table) {}
  /// Room for `rows` rows of at most `columns` in `form`, taken by `threads` threads.
  void reserve(InputForm form, std::size_t rows, std::size_t columns, int threads);
  /// Brings the first `rows` rows of x into `forms`. x must outlive the use.
  void take(const RowBuffer& x, std::size_t rows, std::span<const InputForm> forms, ThreadPool& pool);

  std::size_t rows() const { return rows_; }
  const float* tiled() const { return tiled_.data(); }  // as KernelTable::matmul wants them; unless rows is 1
  const float* single() const { return single_; }       // the plain row, where rows is 1
  kernels::QuantizedRows codes() const { return codes_; }
  kernels::QuantizedRows left_over() const { return left_over_; }
  const float* tiled_bf16() const { return tiled_bf16_.data(); }  // for Bf16Dots; unless rows is 1
  const std::uint16_t* bf16() const { return bf16_.data(); }      // plain rows, one after the other
  std::size_t bytes() const {
    return tiled_.bytes() + chunks_.bytes() + more_chunks_.bytes() + errors_.bytes() + bf16_.bytes() +
           tiled_bf16_.bytes();
  }

 private:
  void code_twice(const float* row, std::size_t r, float* errors);
  void take_bf16(const RowBuffer& x, ThreadPool& pool);

  const kernels::KernelTable* table_;
  AlignedBuffer<float> tiled_;
  AlignedBuffer<kernels::ActivationChunk> chunks_, more_chunks_;
  RowBuffer errors_;  // a row a thread
  AlignedBuffer<std::uint16_t> bf16_;
  AlignedBuffer<float> tiled_bf16_;
  std::size_t rows_ = 0;
  const float* single_ = nullptr;
  kernels::QuantizedRows codes_ = {}, left_over_ = {};
};

/// What one thread needs for itself.
struct LinearScratch {
  AlignedBuffer<float> rows;    // dequantized: a tile of them; of BF16: a panel brought into order
  AlignedBuffer<float> panel;   // their tiles
  AlignedBuffer<float> second;  // a panel's product with what the codes left over
  std::size_t bytes() const { return rows.bytes() + panel.bytes() + second.bytes(); }
};

/// One piece of memory for all packed matrices of a model: rounded up to whole pages once, not for each.
class PackedArena {
 public:
  void reserve(std::size_t bytes) { data_.reserve(bytes); }
  /// The next `bytes`, of those reserved.
  std::byte* take(std::size_t bytes) {
    std::byte* at = data_.data() + used_;
    used_ += bytes;
    return at;
  }

 private:
  AlignedBuffer<std::byte> data_;
  std::size_t used_ = 0;
};

/// Bytes that the matrix takes in an arena, whole cache lines; 0 where it is not packed.
std::size_t packed_bytes(const model::Weight& weight, ComputeMode mode);

class Linear {
 public:
  Linear() = default;
  /// Where the matrix is packed, moves its rows into `arena` with the pool's threads and takes its input in
  /// `form`, kCodes or kTwoCodes; any other takes the form that its type asks for. `model`, `arena` and
  /// `table` must outlive this. Errors: kNotSupported for a type that cannot be computed with.
  Linear(const model::Model& model, const model::LinearSpec& spec, ComputeMode mode, InputForm form,
         PackedArena& arena, ThreadPool& pool, const kernels::KernelTable& table);

  bool exists() const { return weight_ != nullptr; }  // false: made without a weight
  std::size_t rows() const { return static_cast<std::size_t>(weight_->rows); }
  std::size_t columns() const { return static_cast<std::size_t>(weight_->columns); }
  const model::Weight& weight() const { return *weight_; }
  bool packed() const { return arena_ != nullptr; }
  InputForm input_form() const { return form_; }
  Products products() const;
  /// Of the matrix as it is read: in the arena, or in the file.
  std::size_t payload_bytes() const;

  void reserve(LinearScratch& scratch, std::size_t input_rows) const;
  /// The work of one product in pieces that threads take: each computes some rows of W for all rows of `x`,
  /// which must hold input_form(). apply: first ≤ piece < last.
  std::size_t pieces() const { return (rows() + panel_rows_ - 1) / panel_rows_; }
  void apply(std::size_t first, std::size_t last, const LinearInput& x, RowBuffer& y,
             LinearScratch& scratch) const;

 private:
  void pack(ThreadPool& pool);
  void packed_rows(const LinearInput& x, std::size_t begin, std::size_t end, RowBuffer& y,
                   LinearScratch& scratch) const;
  void panel_of(const LinearInput& x, std::size_t begin, std::size_t end, RowBuffer& y,
                LinearScratch& scratch) const;
  void panel_of_bf16(const LinearInput& x, std::size_t begin, std::size_t end, RowBuffer& y,
                     LinearScratch& scratch) const;

  const kernels::KernelTable* table_ = nullptr;
  const model::Weight* weight_ = nullptr;
  std::vector<float> bias_;  // empty: none
  InputForm form_ = InputForm::kFloats;
  std::byte* arena_ = nullptr;  // the packed rows; null: not packed
  std::size_t panel_rows_ = 0;  // of a piece
};

}  // namespace wring::engine
