// A linear map y = W x (+ bias) of a model, ready to be computed in one of the two modes. In packed mode a
// matrix of a type that has integer kernels is moved once into an arena of interleaved rows
// (kernels/packed.h); every other matrix, and all of them in exact mode, stay in the mapped file and are read
// panel by panel as float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "engine/compute_mode.h"
#include "engine/row_buffer.h"
#include "kernels/kernel_table.h"
#include "model/model.h"

namespace wring::engine {

/// The rows that linear maps read, in the forms that the maps want, made once for all maps of a site.
class LinearInput {
 public:
  /// Room for `rows` rows of `columns`.
  void reserve(std::size_t rows, std::size_t columns);
  /// Brings the first `rows` rows of x into the forms asked for. x must outlive the use.
  void take(const RowBuffer& x, std::size_t rows, bool floats, bool codes, ThreadPool& pool);

  std::size_t rows() const { return rows_; }
  const float* tiled() const { return tiled_.data(); }  // as KernelTable::matmul wants them; unless rows is 1
  const float* single() const { return single_; }       // the plain row, where rows is 1
  kernels::QuantizedRows codes() const { return codes_; }
  std::size_t bytes() const { return tiled_.bytes() + chunks_.bytes(); }

 private:
  AlignedBuffer<float> tiled_;
  AlignedBuffer<kernels::ActivationChunk> chunks_;
  std::size_t rows_ = 0;
  const float* single_ = nullptr;
  kernels::QuantizedRows codes_ = {};
};

/// What one thread needs to compute with a matrix that is not packed.
struct LinearScratch {
  AlignedBuffer<float> rows;   // dequantized: a tile of them
  AlignedBuffer<float> panel;  // their tiles
  std::size_t bytes() const { return rows.bytes() + panel.bytes(); }
};

class Linear {
 public:
  Linear() = default;
  /// Builds the arena, if any, with the pool's threads. Errors: kNotSupported for a type that cannot be
  /// computed with. `model` must outlive this.
  Linear(const model::Model& model, const model::LinearSpec& spec, ComputeMode mode, ThreadPool& pool);

  std::size_t rows() const { return static_cast<std::size_t>(weight_->rows); }
  std::size_t columns() const { return static_cast<std::size_t>(weight_->columns); }
  const model::Weight& weight() const { return *weight_; }
  bool packed() const { return packed_; }
  std::size_t arena_bytes() const { return arena_.bytes(); }

  void reserve(LinearScratch& scratch) const;
  /// The work of one product in pieces that threads take: each computes some rows of W for all rows of `x`,
  /// which must hold the form that packed() tells.
  std::size_t pieces() const { return (rows() + panel_rows_ - 1) / panel_rows_; }
  void apply(std::size_t piece, const LinearInput& x, RowBuffer& y, LinearScratch& scratch) const;

 private:
  void pack(ThreadPool& pool);
  void panel_of(const LinearInput& x, std::size_t begin, std::size_t end, RowBuffer& y,
                LinearScratch& scratch) const;

  const model::Weight* weight_ = nullptr;
  std::vector<float> bias_;  // empty: none
  bool packed_ = false;
  AlignedBuffer<std::byte> arena_;
  std::size_t panel_rows_ = 0;  // rows that a thread takes at a time
};

}  // namespace wring::engine
