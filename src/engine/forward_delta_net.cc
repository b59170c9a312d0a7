// Gated DeltaNet layers (model/spec.h, DeltaNetSpec): a span's new positions follow those that are replayed,
// in one pass over the state; time is the inner loop, value heads are divided among the threads.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/portable_math.h"
#include "engine/forward.h"

namespace wring::engine {
namespace {

double softplus(double x) {
  return x > 20 ? x : portable_log(1 + portable_exp(x));
}

/// x / √(Σ x² + 1e-6) · factor, in place.
void to_unit_length(float* x, std::size_t n, float factor) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum = std::fma(x[i], x[i], sum);
  const float scale = factor / std::sqrt(sum + 1e-6F);
  for (std::size_t i = 0; i < n; ++i) x[i] *= scale;
}

}  // namespace

Forward::DeltaNet Forward::make_delta_net(const model::DeltaNetSpec& d) const {
  DeltaNet net;
  net.norm = make_norm(d.norm);
  net.rates = read_vector(model_->weight(d.a_log), *kernels_);
  for (float& rate : net.rates)
    rate = d.in_gguf_form ? -rate : static_cast<float>(portable_exp(static_cast<double>(rate)));
  net.dt_bias = read_vector(model_->weight(d.dt_bias), *kernels_);
  const std::size_t channels = z(d.conv.rows), width = z(d.conv.columns);
  const std::vector<float> conv = read_matrix(model_->weight(d.conv.name + ".weight"), *kernels_);
  net.conv.resize(channels * width);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t j = 0; j < width; ++j) net.conv[j * channels + c] = conv[c * width + j];
  }
  return net;
}

/// qwen3_next's rows of one key head after the other: [q, k, v · r, z · r] and [b · r, a · r].
void Forward::unfuse_delta_net(const model::DeltaNetSpec& d, std::int64_t rows) {
  const std::size_t heads = z(d.key_heads), keys = z(d.key_dim), r = z(d.value_heads / d.key_heads),
                    values = r * z(d.value_dim);
  for_rows(rows, [&](std::size_t row) {
    float* mixed = delta_.mixed.row(row);
    for (std::size_t h = 0; h < heads; ++h) {
      const float* from = delta_.fused.row(row) + h * 2 * (keys + values);
      std::copy_n(from, keys, mixed + h * keys);
      std::copy_n(from + keys, keys, mixed + (heads + h) * keys);
      std::copy_n(from + 2 * keys, values, mixed + 2 * heads * keys + h * values);
      std::copy_n(from + 2 * keys + values, values, delta_.z.row(row) + h * values);
      const float* gates = delta_.fused_gates.row(row) + h * 2 * r;
      std::copy_n(gates, r, delta_.b.row(row) + h * r);
      std::copy_n(gates + r, r, delta_.a.row(row) + h * r);
    }
  });
}

void Forward::reserve_delta_net(const model::DeltaNetSpec& d, const RowPlan& plan) {
  const std::size_t rows = plan.ids.size();
  std::int64_t longest = 0;  // of a span, replayed positions and the convolution's tail included
  for (const RowSpan& span : plan.spans)
    longest = std::max(longest, span.count + span.first_position - span.recurrent->position);
  if (d.fused) {
    delta_.fused.reserve(rows, d.qkv.rows);
    delta_.fused_gates.reserve(rows, d.b.rows);
  }
  delta_.mixed.reserve(rows, d.conv.rows);
  delta_.z.reserve(rows, d.out.columns);
  delta_.out.reserve(rows, d.out.columns);
  for (RowBuffer* b : {&delta_.b, &delta_.a}) b->reserve(rows, d.value_heads);
  delta_.window.reserve(z(longest + d.conv.columns - 1), d.conv.rows);
  delta_.convolved.reserve(z(longest), d.conv.rows);
  delta_.gates.reserve(z(longest), 2 * d.value_heads);
  for (Scratch& s : scratch_) s.state.reserve(z(d.key_dim) * z(d.value_dim));
}

void Forward::mix_delta_net(const Layer& l, int recurrent_index, const RowBuffer& x, const RowPlan& plan) {
  const model::DeltaNetSpec& d = *l.spec->delta_net;
  const DeltaNet& net = *l.delta_net;
  const auto rows = static_cast<std::int64_t>(plan.ids.size());
  if (d.fused) {
    multiply(x, rows, {{&net.qkv, &delta_.fused}, {&net.b, &delta_.fused_gates}});
    unfuse_delta_net(d, rows);
  } else {
    multiply(x, rows, {{&net.qkv, &delta_.mixed}, {&net.z, &delta_.z}});
    multiply(x, rows, {{&net.b, &delta_.b}, {&net.a, &delta_.a}});
  }
  for (const RowSpan& span : plan.spans) run_delta_net(l, span, span.recurrent->layers[z(recurrent_index)]);
  const std::size_t heads = z(d.value_heads), values = z(d.value_dim);
  for_rows(rows, [&](std::size_t r) {
    for (std::size_t h = 0; h < heads; ++h) {
      float* out = delta_.out.row(r) + h * values;
      kernels_->rms_norm(out, net.norm.weight.data(), net.norm.offset, values, net.norm.eps, out);
    }
    kernels_->silu_mul(delta_.z.row(r), delta_.out.row(r), heads * values);
  });
}

void Forward::run_delta_net(const Layer& l, const RowSpan& span, RecurrentState::Layer& state) {
  const model::DeltaNetSpec& d = *l.spec->delta_net;
  const std::size_t replayed = z(span.first_position - span.recurrent->position), count = z(span.count),
                    steps = replayed + count;
  gather_inputs(l, span, state, replayed);
  convolve(l, steps);
  const std::size_t heads = z(d.value_heads);
  pool_->for_pieces(heads, 1, [&](std::size_t begin, std::size_t end, int worker) {
    for (std::size_t h = begin; h < end; ++h)
      run_value_head(d, h, span, state, replayed, scratch_[z(worker)]);
  });
  keep_inputs(d, span, state, replayed);
}

void Forward::gather_inputs(const Layer& l, const RowSpan& span, const RecurrentState::Layer& state,
                            std::size_t replayed) {
  const model::DeltaNetSpec& d = *l.spec->delta_net;
  const std::size_t channels = z(d.conv.rows), before = z(d.conv.columns - 1), heads = z(d.value_heads);
  for (std::size_t i = 0; i < before; ++i)
    std::copy_n(state.tail.data() + i * channels, channels, delta_.window.row(i));
  for (std::size_t i = 0; i < replayed; ++i) {
    std::copy_n(state.inputs.data() + i * channels, channels, delta_.window.row(before + i));
    std::copy_n(state.gates.data() + i * 2 * heads, 2 * heads, delta_.gates.row(i));
  }
  for_rows(span.count, [&](std::size_t i) {
    const std::size_t row = z(span.first_row) + i;
    std::copy_n(delta_.mixed.row(row), channels, delta_.window.row(before + replayed + i));
    float* gates = delta_.gates.row(replayed + i);
    for (std::size_t h = 0; h < heads; ++h) {
      const double a =
          static_cast<double>(delta_.a.row(row)[h]) + static_cast<double>(l.delta_net->dt_bias[h]);
      const auto rate = static_cast<double>(l.delta_net->rates[h]);
      gates[h] = static_cast<float>(portable_exp(-rate * softplus(a)));
      gates[heads + h] =
          static_cast<float>(1 / (1 + portable_exp(-static_cast<double>(delta_.b.row(row)[h]))));
    }
  });
}

void Forward::convolve(const Layer& l, std::size_t steps) {
  const model::DeltaNetSpec& d = *l.spec->delta_net;
  const std::size_t channels = z(d.conv.rows), width = z(d.conv.columns), keys = z(d.key_dim),
                    key_heads = z(d.key_heads);
  const float* weight = l.delta_net->conv.data();  // (width, channels)
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d.key_dim)));
  for_rows(static_cast<std::int64_t>(steps), [&](std::size_t t) {
    float* out = delta_.convolved.row(t);
    for (std::size_t c = 0; c < channels; ++c) out[c] = 0;
    for (std::size_t j = 0; j < width; ++j) {
      const float* in = delta_.window.row(t + j);
      for (std::size_t c = 0; c < channels; ++c) out[c] = std::fma(weight[j * channels + c], in[c], out[c]);
    }
    kernels_->silu(out, channels);
    for (std::size_t h = 0; h < key_heads; ++h) {
      to_unit_length(out + h * keys, keys, scale);
      to_unit_length(out + (key_heads + h) * keys, keys, 1.0F);
    }
  });
}

void Forward::run_value_head(const model::DeltaNetSpec& d, std::size_t head, const RowSpan& span,
                             RecurrentState::Layer& state, std::size_t replayed, Scratch& scratch) {
  const std::size_t keys = z(d.key_dim), values = z(d.value_dim), heads = z(d.value_heads),
                    key_head = d.in_gguf_form ? head % z(d.key_heads) : head / (heads / z(d.key_heads)),
                    key_values = z(d.key_heads) * keys;
  const auto run = [&](std::size_t from, std::size_t steps, float* s, bool outputs) {
    if (steps == 0) return;
    const float* mixed = delta_.convolved.row(from);
    float* out = outputs ? delta_.out.row(z(span.first_row) + from - replayed) + head * values : nullptr;
    kernels_->delta_rule({.q = mixed + key_head * keys,
                          .k = mixed + key_values + key_head * keys,
                          .v = mixed + 2 * key_values + head * values,
                          .q_stride = delta_.convolved.stride(),
                          .k_stride = delta_.convolved.stride(),
                          .v_stride = delta_.convolved.stride(),
                          .decay = delta_.gates.row(from) + head,
                          .beta = delta_.gates.row(from) + heads + head,
                          .gate_stride = delta_.gates.stride(),
                          .key_dim = keys,
                          .value_dim = values,
                          .steps = steps,
                          .state = s,
                          .out = out,
                          .out_stride = delta_.out.stride()});
  };
  float* const kept = state.state.data() + head * keys * values;
  const std::size_t certain = z(span.certain);
  run(0, replayed, kept, false);
  run(replayed, certain, kept, true);
  if (z(span.count) == certain) return;
  std::copy_n(kept, keys * values, scratch.state.data());
  run(replayed + certain, z(span.count) - certain, scratch.state.data(), true);
}

void Forward::keep_inputs(const model::DeltaNetSpec& d, const RowSpan& span, RecurrentState::Layer& state,
                          std::size_t replayed) {
  const std::size_t channels = z(d.conv.rows), before = z(d.conv.columns - 1), heads = z(d.value_heads),
                    seen = replayed + z(span.certain);
  for (std::size_t i = 0; i < before; ++i)
    std::copy_n(delta_.window.row(seen + i), channels, state.tail.data() + i * channels);
  for (std::size_t i = 0; i < z(span.count - span.certain); ++i) {
    std::copy_n(delta_.window.row(before + seen + i), channels, state.inputs.data() + i * channels);
    std::copy_n(delta_.gates.row(seen + i), 2 * heads, state.gates.data() + i * 2 * heads);
  }
}

}  // namespace wring::engine
