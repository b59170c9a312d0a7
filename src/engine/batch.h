// What one step of the engine is asked to do and what it gives back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wring::engine {

using TokenId = std::int32_t;
using SequenceId = std::int32_t;

enum class Logits : std::uint8_t {
  kNone,
  kLast,  // of the last position only
  kAll,   // of every position
};

/// Some consecutive positions of one sequence. One form serves prefill, decode, verification of drafts and
/// evaluation.
struct BatchItem {
  SequenceId sequence = -1;
  std::int64_t first_position = 0;  // must be the sequence's committed length
  std::span<const TokenId> ids;
  Logits logits = Logits::kNone;
  /// How many of the ids will be committed for sure. Recurrent layers keep what rolling back the others
  /// needs; none of the certain ones may be rolled back.
  std::int64_t certain = 0;
};

/// A sequence may occur once.
struct Batch {
  std::vector<BatchItem> items;
};

/// Rows of float32, row i at data + i * stride.
struct Rows {
  const float* data = nullptr;
  std::int64_t count = 0;
  std::int64_t columns = 0;
  std::size_t stride = 0;  // floats

  std::span<const float> row(std::int64_t i) const {
    return {data + static_cast<std::size_t>(i) * stride, static_cast<std::size_t>(columns)};
  }
};

/// The logits that were asked for: items in batch order, positions in rising order. Valid until the next
/// step.
struct StepResult {
  Rows logits;                          // (rows wanted, vocab_size)
  std::vector<std::int64_t> first_row;  // by item: its first row in `logits`; −1 if it wanted none
};

}  // namespace wring::engine
