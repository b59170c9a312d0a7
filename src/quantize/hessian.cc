#include "quantize/hessian.h"

#include <algorithm>

#include "kernels/kernel_table.h"

namespace wring::quantize {
namespace {

constexpr std::size_t kPanel = 64;  // columns of H that a thread computes at a time, about

/// Sites whose maps recipes leave alone.
bool is_hidden(model::Site site) {
  return site == model::Site::kKept || site == model::Site::kLatentKeys || site == model::Site::kLatentValues;
}

}  // namespace

void HessianCollector::on_input(int layer, model::Site site, int matrix, const engine::Rows& inputs) {
  if (layer != layer_ || inputs.count == 0 || is_hidden(site)) return;
  add(sums_[{site, matrix}], inputs);
}

const Hessian* HessianCollector::find(model::Site site, int matrix) const {
  const auto found = sums_.find({site, matrix});
  return found == sums_.end() ? nullptr : &found->second;
}

void HessianCollector::add(Hessian& h, const engine::Rows& inputs) {
  const kernels::KernelTable& table = kernels::kernels();
  const auto n = static_cast<std::size_t>(inputs.columns), count = static_cast<std::size_t>(inputs.count);
  if (h.size == 0) {
    h.size = n;
    h.lower.assign(n * n, 0.0);
  }
  transposed_.resize(n * count);
  pool_->for_pieces(n, kPanel, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t r = 0; r < count; ++r) {
      const float* row = inputs.data + r * inputs.stride;
      for (std::size_t c = begin; c < end; ++c) transposed_[c * count + r] = row[c];
    }
  });
  const std::size_t tile = table.tile_width;
  rows_.reserve(kernels::tiled_floats(n, table.tile_height, count));
  columns_.reserve(kernels::tiled_floats(n, tile, count));
  table.tile_rows(transposed_.data(), count, n, count, rows_.data());
  table.tile_tokens(transposed_.data(), count, n, count, columns_.data());
  const std::size_t panel = (kPanel + tile - 1) / tile * tile, panels = (n + panel - 1) / panel;
  products_.resize(static_cast<std::size_t>(pool_->threads()));
  pool_->for_pieces(panels, 1, [&](std::size_t p, std::size_t, int worker) {
    const std::size_t begin = p * panel, end = std::min(n, begin + panel);
    AlignedBuffer<float>& product = products_[static_cast<std::size_t>(worker)];
    product.reserve(panel * n);
    table.matmul(rows_.data(), end, columns_.data() + kernels::tiled_floats(begin, tile, count), end - begin,
                 count, product.data(), n);
    for (std::size_t i = begin; i < end; ++i) {
      const float* row = product.data() + (i - begin) * n;
      for (std::size_t j = 0; j <= i; ++j) h.lower[i * n + j] += static_cast<double>(row[j]);
    }
  });
  h.tokens += count;
}

}  // namespace wring::quantize
