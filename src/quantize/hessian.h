// Calibration for error feedback: H = Σ x xᵀ over the inputs of the maps of one block, half of the Hessian of
// their squared output error (Frantar et al. 2022, "GPTQ"). Products are the engine's own, in exact mode's
// order of summation, and added up in float64: the sums depend on the documents and how they were cut into
// steps, not on threads or CPU.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "engine/observer.h"

namespace wring::quantize {

struct Hessian {
  std::size_t size = 0;       // columns of the matrix
  std::vector<double> lower;  // (size, size), entries [i][j] with j ≤ i
  std::uint64_t tokens = 0;

  double at(std::size_t i, std::size_t j) const { return i < j ? lower[j * size + i] : lower[i * size + j]; }
};

class HessianCollector final : public engine::ForwardObserver {
 public:
  /// Sums of block `layer`; `pool` is the engine's.
  HessianCollector(int layer, ThreadPool& pool) : layer_(layer), pool_(&pool) {}

  void on_input(int layer, model::Site site, int matrix, const engine::Rows& inputs) override;
  /// Of a site's matrix (an expert's number, or 0); null: it saw no input.
  const Hessian* find(model::Site site, int matrix) const;

 private:
  void add(Hessian& hessian, const engine::Rows& inputs);
  int layer_;
  ThreadPool* pool_;
  std::map<std::pair<model::Site, int>, Hessian> sums_;
  std::vector<float> transposed_;
  AlignedBuffer<float> rows_, columns_;         // tiled
  std::vector<AlignedBuffer<float>> products_;  // by worker
};

}  // namespace wring::quantize
