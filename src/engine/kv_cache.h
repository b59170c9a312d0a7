// Keys and values in pages of 64 positions, aligned absolutely. A page holds its positions of all layers; a
// sequence owns a list of pages (its block table). Pages are taken from a free list and go back to it; their
// content is never cleared, so kernels look only at positions that were written.
#pragma once

#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"
#include "model/spec.h"

namespace wring::engine {

using PageId = std::int32_t;

/// The pages of one sequence: entry i holds positions 64 i … 64 i + 63.
using BlockTable = std::vector<PageId>;

class KvCache {
 public:
  /// `type`: of keys and values, F32, F16 or BF16. `limit_bytes` 0: no limit.
  KvCache(const model::ModelSpec& spec, formats::QuantType type, std::uint64_t limit_bytes);

  formats::QuantType type() const { return type_; }

  /// Grows `table` to cover `positions`. Errors: kIo if that would pass the limit; `table` is unchanged then.
  void grow(BlockTable& table, std::int64_t positions);
  /// Gives all pages back.
  void release(BlockTable& table);

  /// The keys of one head in one page, transposed: (head_dim, 64).
  void* keys(PageId page, int layer, int head) { return at(page, layer, head, 0); }
  /// The values: (64, value_dim).
  void* values(PageId page, int layer, int head) {
    return at(
        page, layer, head,
        static_cast<std::size_t>(layers_[static_cast<std::size_t>(layer)].head_dim) * kernels::kPageTokens);
  }

  std::uint64_t used_bytes() const { return page_bytes() * (pages_.size() - free_.size()); }
  std::uint64_t page_bytes() const { return page_values_ * value_bytes_; }

 private:
  struct Layer {
    std::size_t offset;       // values from the page's start
    std::size_t head_values;  // keys and values of one head
    int head_dim;
  };

  void* at(PageId page, int layer, int head, std::size_t inner) {
    const Layer& l = layers_[static_cast<std::size_t>(layer)];
    return pages_[static_cast<std::size_t>(page)].data() +
           (l.offset + static_cast<std::size_t>(head) * l.head_values + inner) * value_bytes_;
  }

  formats::QuantType type_;
  std::size_t value_bytes_;
  std::vector<Layer> layers_;
  std::size_t page_values_ = 0;
  std::uint64_t limit_bytes_;
  std::vector<AlignedBuffer<std::byte>> pages_;
  std::vector<PageId> free_;
};

}  // namespace wring::engine
