#include "model/weights.h"

namespace wring::model {

std::int64_t paired_row(std::int64_t row, int head_dim) {
  const std::int64_t head = row / head_dim, within = row % head_dim, half = head_dim / 2;
  return head * head_dim + (within < half ? 2 * within : 2 * (within - half) + 1);
}

std::string Weight::type_name() const {
  return scheme.empty() ? std::string(formats::name_of(type())) : scheme;
}

std::vector<std::uint64_t> Weight::shape() const {
  const auto n = static_cast<std::uint64_t>(columns);
  if (vector) return {n};
  return {static_cast<std::uint64_t>(rows), n};
}

std::int64_t Weight::stored_row(std::int64_t row) const {
  return paired_head_dim > 0 ? paired_row(row, paired_head_dim) : row;
}

}  // namespace wring::model
