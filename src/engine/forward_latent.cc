// Multi-head latent attention (model/spec.h, LatentSpec) around the attention of forward.cc: queries are
// brought into the latent space before it, outputs out of it after. In exact terms q · (K c) = (Kᵀ q) · c.
#include <cstring>

#include "engine/forward.h"

namespace wring::engine {
namespace {

/// Columns first … first + columns − 1 of the rows.
Rows part_of(const RowBuffer& buffer, std::int64_t rows, std::size_t first, std::size_t columns) {
  return {buffer.row(0) + first, rows, static_cast<std::int64_t>(columns), buffer.stride()};
}

}  // namespace

void Forward::read_latent_maps(const model::AttentionSpec& a, Latent& latent) const {
  const model::LatentSpec& spec = *a.latent;
  const auto weight = [&](const model::LinearSpec& l) -> const model::Weight& {
    return model_->weight(l.name + ".weight");
  };
  if (spec.kv_b.name.empty()) {
    latent.into = read_matrix(weight(spec.k_b), *kernels_);
    latent.out_of = read_matrix(weight(spec.v_b), *kernels_);
    return;
  }
  // A head's rows of kv_b are [nope_dim of keys | value_dim of values]; those of keys are transposed.
  const std::vector<float> both = read_matrix(weight(spec.kv_b), *kernels_);
  const std::size_t heads = z(a.num_heads), rank = z(a.values()), nope = z(spec.nope_dim),
                    values = z(spec.value_dim);
  latent.into.resize(heads * rank * nope);
  latent.out_of.resize(heads * values * rank);
  for (std::size_t h = 0; h < heads; ++h) {
    const float* keys = both.data() + h * (nope + values) * rank;
    float* into = latent.into.data() + h * rank * nope;
    for (std::size_t n = 0; n < nope; ++n) {
      for (std::size_t r = 0; r < rank; ++r) into[r * nope + n] = keys[n * rank + r];
    }
    std::memcpy(latent.out_of.data() + h * values * rank, keys + nope * rank, values * rank * sizeof(float));
  }
}

void Forward::reserve_latent(const model::AttentionSpec& a, std::size_t rows) {
  const model::LatentSpec& spec = *a.latent;
  if (spec.q_a) compressed_.reserve(rows, spec.q_a->rows);
  queries_.reserve(rows, spec.q_b.rows);
  unpacked_.reserve(rows, std::int64_t{a.num_heads} * spec.value_dim);
}

void Forward::project_into_latent(const Layer& l, const RowBuffer& x, std::int64_t rows) {
  const model::AttentionSpec& a = l.spec->attention;
  const Latent& latent = *l.latent;
  if (a.latent->q_a) {
    multiply(x, rows, {{&latent.q_a, &compressed_}, {&latent.kv_a, &k_}});
    normalize(latent.q_a_norm, compressed_, rows, compressed_);
    show_input(model::Site::kLatent, compressed_.rows(rows));
    multiply(compressed_, rows, {{&latent.q_b, &queries_}});
  } else {
    multiply(x, rows, {{&latent.q_b, &queries_}, {&latent.kv_a, &k_}});
  }
  const std::size_t rank = z(a.values()), nope = z(a.latent->nope_dim), rotary = z(a.head_dim) - rank;
  for (int h = 0; h < a.num_heads; ++h)
    show_input(model::Site::kLatentKeys, part_of(queries_, rows, z(h) * (nope + rotary), nope), h);
  const Norm& norm = latent.kv_a_norm;
  for_rows(rows, [&](std::size_t r) {
    kernels_->rms_norm(k_.row(r), norm.weight.data(), norm.offset, rank, norm.eps, k_.row(r));
    for (std::size_t h = 0; h < z(a.num_heads); ++h) {
      const float* query = queries_.row(r) + h * (nope + rotary);
      float* out = q_.row(r) + h * (rank + rotary);
      kernels_->matvec(formats::QuantType::kF32, latent.into.data() + h * rank * nope, nope * sizeof(float),
                       rank, query, nope, out);
      std::memcpy(out + rank, query + nope, rotary * sizeof(float));
    }
  });
}

void Forward::project_out_of_latent(const Layer& l, std::int64_t rows) {
  const model::AttentionSpec& a = l.spec->attention;
  const std::size_t rank = z(a.values()), values = z(a.latent->value_dim);
  for (int h = 0; h < a.num_heads; ++h)
    show_input(model::Site::kLatentValues, part_of(attended_, rows, z(h) * rank, rank), h);
  for_rows(rows, [&](std::size_t r) {
    for (std::size_t h = 0; h < z(a.num_heads); ++h) {
      kernels_->matvec(formats::QuantType::kF32, l.latent->out_of.data() + h * values * rank,
                       rank * sizeof(float), values, attended_.row(r) + h * rank, rank,
                       unpacked_.row(r) + h * values);
    }
  });
}

}  // namespace wring::engine
