#include "engine/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/portable_math.h"

namespace wring::engine {
namespace {

// Queries of one attention task: enough to reuse each loaded key, few enough to share a prompt among threads.
constexpr std::int64_t kTaskQueries = 32;

}  // namespace

Forward::Forward(const model::Model& model, ComputeMode mode, KvCache& cache, ThreadPool& pool,
                 const kernels::KernelTable& table)
    : model_(&model), mode_(mode), cache_(&cache), pool_(&pool), kernels_(&table), input_(table) {
  const model::ModelSpec& spec = model.spec();
  embedding_ = &model.weight(spec.embedding + ".weight");
  require_dequantize(*embedding_);
  if (!spec.positions.empty()) {
    positions_ = &model.weight(spec.positions + ".weight");
    require_dequantize(*positions_);
  }
  std::size_t packed = 0;
  for (const model::LinearUse& use : model::block_linears(spec))
    packed += packed_bytes(model.weight(use.linear->name + ".weight"), mode);
  arena_.reserve(packed + packed_bytes(model.weight(spec.head.name + ".weight"), mode));
  const auto linear = [&](const model::LinearSpec& l, InputForm form = InputForm::kCodes) {
    return Linear(model, l, mode, form, arena_, pool, table);
  };
  int recurrent = 0;
  for (const model::LayerSpec& l : spec.layers) {
    Layer layer;
    layer.spec = &l;
    layer.mixer_norm = make_norm(l.mixer_norm);
    layer.q_norm = make_norm(l.attention.q_norm);
    layer.k_norm = make_norm(l.attention.k_norm);
    layer.mixer_output_norm = make_norm(l.mixer_output_norm);
    layer.mlp_norm = make_norm(l.mlp_norm);
    layer.mlp_output_norm = make_norm(l.mlp_output_norm);
    if (l.delta_net) {
      layer.delta_net = make_delta_net(*l.delta_net);
      layer.delta_net->qkv = linear(l.delta_net->qkv);
      layer.delta_net->b = linear(l.delta_net->b);
      if (!l.delta_net->fused) {
        layer.delta_net->z = linear(l.delta_net->z);
        layer.delta_net->a = linear(l.delta_net->a);
      }
    } else if (l.attention.latent) {
      const model::LatentSpec& latent = *l.attention.latent;
      layer.latent = Latent{};
      if (latent.q_a) layer.latent->q_a = linear(*latent.q_a);
      layer.latent->q_a_norm = make_norm(latent.q_a_norm);
      layer.latent->q_b = linear(latent.q_b);
      layer.latent->kv_a = linear(latent.kv_a);
      layer.latent->kv_a_norm = make_norm(latent.kv_a_norm);
      read_latent_maps(l.attention, *layer.latent);
    } else {
      layer.q = linear(l.attention.q);
      layer.k = linear(l.attention.k);
      // A value's error reaches the residual stream unsmoothed, and the map is small: on the bench model 3 %
      // of the multiply-adds buy two fifths of packed mode's divergence.
      layer.v = linear(l.attention.v, InputForm::kTwoCodes);
      if (!l.attention.sinks.empty()) layer.sinks = read_vector(model.weight(l.attention.sinks), table);
    }
    layer.o = linear(l.delta_net ? l.delta_net->out : l.attention.o);
    const auto mlp = [&](const model::MlpSpec& m) {
      return Mlp{m.gated() ? linear(m.gate) : Linear{}, linear(m.up), linear(m.down)};
    };
    if (!l.moe) {
      layer.mlp = mlp(l.mlp);
    } else {
      layer.router = linear(l.moe->router);
      if (!l.moe->selection_bias.empty())
        layer.selection_bias = read_vector(model.weight(l.moe->selection_bias), table);
      for (const model::MlpSpec& expert : l.moe->experts) layer.experts.push_back(mlp(expert));
      if (l.moe->shared) layer.mlp = mlp(*l.moe->shared);
      if (l.moe->shared_gate) layer.shared_gate = linear(*l.moe->shared_gate);
    }
    recurrent_index_.push_back(recurrent);
    if (l.delta_net) ++recurrent;
    layers_.push_back(std::move(layer));
  }
  final_norm_ = make_norm(spec.final_norm);
  head_ = linear(spec.head);
  rotations_.resize(spec.ropes.size());
  scratch_.resize(z(pool.threads()));
  linear_scratch_.resize(z(pool.threads()));
}

template <class F>
void Forward::for_each_linear(F&& f) const {
  for (const Layer& l : layers_) {
    const auto mlp = [&](const Mlp& m) {
      for (const Linear* part : {&m.gate, &m.up, &m.down}) {
        if (part->exists()) f(*part);
      }
    };
    if (l.delta_net) {
      for (const Linear* m : {&l.delta_net->qkv, &l.delta_net->b}) f(*m);
      if (!l.spec->delta_net->fused) {
        for (const Linear* m : {&l.delta_net->z, &l.delta_net->a}) f(*m);
      }
    } else if (l.latent) {
      if (l.spec->attention.latent->q_a) f(l.latent->q_a);
      for (const Linear* m : {&l.latent->q_b, &l.latent->kv_a}) f(*m);
    } else {
      for (const Linear* m : {&l.q, &l.k, &l.v}) f(*m);
    }
    f(l.o);
    if (l.spec->moe) f(l.router);
    if (l.spec->moe && l.spec->moe->shared_gate) f(l.shared_gate);
    for (const Mlp& expert : l.experts) mlp(expert);
    if (!l.spec->moe || l.spec->moe->shared) mlp(l.mlp);
  }
  f(head_);
}

Forward::Norm Forward::make_norm(const std::optional<model::NormSpec>& spec) const {
  if (!spec) return {};
  Norm norm{
      read_vector(model_->weight(spec->name + ".weight"), *kernels_), {}, spec->weight_offset, spec->eps};
  if (spec->layer_norm) norm.bias = read_vector(model_->weight(spec->name + ".bias"), *kernels_);
  return norm;
}

void Forward::reserve(const RowPlan& plan) {
  const std::size_t rows = plan.ids.size();
  const model::ModelSpec& spec = model_->spec();
  for (RowBuffer* b : {&residual_, &normed_, &update_}) b->reserve(rows, spec.hidden_size);
  std::size_t pages = 0;
  for (const RowSpan& span : plan.spans) pages = std::max(pages, span.table->size());
  for (const model::LayerSpec& l : spec.layers) {
    if (l.delta_net) {
      reserve_delta_net(*l.delta_net, plan);
    } else {
      reserve_attention(l.attention, rows);
    }
    reserve_mlp(l, rows);
  }
  std::size_t widest = 0;
  for_each_linear([&](const Linear& l) { widest = std::max(widest, l.columns()); });
  for (std::size_t i = 0; i < spec.ropes.size(); ++i) {
    const auto half = static_cast<std::int64_t>(spec.ropes[i].inverse_frequencies.size());
    rotations_[i].cosine.reserve(rows, half);
    rotations_[i].sine.reserve(rows, half);
  }
  last_.reserve(plan.wanted_rows.size(), spec.hidden_size);
  logits_.reserve(plan.wanted_rows.size(), spec.vocab_size);
  for (Scratch& s : scratch_) {
    s.k_pages.resize(std::max(s.k_pages.size(), pages));
    s.v_pages.resize(std::max(s.v_pages.size(), pages));
  }
  for_each_linear([&](const Linear& l) {
    input_.reserve(l.input_form(), rows, widest, pool_->threads());
    for (LinearScratch& s : linear_scratch_) l.reserve(s, rows);
  });
  plan_tasks(plan);
}

void Forward::reserve_attention(const model::AttentionSpec& a, std::size_t rows) {
  q_.reserve(rows, std::int64_t{a.num_heads} * a.head_dim);
  attended_.reserve(rows, std::int64_t{a.num_heads} * a.values());
  k_.reserve(rows, std::int64_t{a.num_kv_heads} * a.head_dim);
  v_.reserve(rows, std::int64_t{a.num_kv_heads} * a.values());
  if (a.latent) reserve_latent(a, rows);
  if (a.gated) queries_.reserve(rows, a.q.rows);
  for (Scratch& s : scratch_) {
    s.attention.reserve(kernels::attention_scratch_floats(kTaskQueries, a.num_heads / a.num_kv_heads,
                                                          a.head_dim, a.values()));
  }
}

void Forward::reserve_mlp(const model::LayerSpec& layer, std::size_t rows) {
  const auto mlp = [&](const model::MlpSpec& m) {
    for (RowBuffer* b : {&gate_, &up_}) b->reserve(rows, m.up.rows);
  };
  if (!layer.moe) return mlp(layer.mlp);
  const model::MoeSpec& moe = *layer.moe;
  mlp(moe.experts.front());
  if (moe.shared) mlp(*moe.shared);
  const std::size_t choices = rows * z(moe.per_token);
  router_logits_.reserve(rows, moe.router.rows);
  for (RowBuffer* b : {&gathered_, &expert_output_}) b->reserve(rows, model_->spec().hidden_size);
  chosen_output_.reserve(choices, model_->spec().hidden_size);
  choices_.resize(std::max(choices_.size(), choices));
  of_expert_.reserve(rows);
  for (Scratch& s : scratch_) s.router.reserve(moe);
}

void Forward::plan_tasks(const RowPlan& plan) {
  attention_tasks_.clear();
  store_tasks_.clear();
  if (layers_.empty()) return;
  int kv_heads = 0;  // the same in all layers of attention
  for (const Layer& l : layers_) kv_heads = std::max(kv_heads, l.spec->attention.num_kv_heads);
  for (const RowSpan& span : plan.spans) {
    // The last queries see the most keys: they come first, so that no thread is left with a long task at the
    // end.
    for (std::int64_t end = span.count; end > 0; end -= kTaskQueries) {
      const std::int64_t begin = std::max<std::int64_t>(0, end - kTaskQueries);
      for (int h = 0; h < kv_heads; ++h)
        attention_tasks_.push_back({&span, begin, static_cast<int>(end - begin), h});
    }
    // By pages: threads that wrote to one page would take its lines from each other at every key.
    for (std::int64_t begin = 0; begin < span.count;) {
      const std::int64_t room = kernels::kPageTokens - (span.first_position + begin) % kernels::kPageTokens;
      const std::int64_t count = std::min(room, span.count - begin);
      for (int h = 0; h < kv_heads; ++h) store_tasks_.push_back({&span, begin, static_cast<int>(count), h});
      begin += count;
    }
  }
}

Rows Forward::compute(const RowPlan& plan, ForwardObserver* observer) noexcept {
  const auto rows = static_cast<std::int64_t>(plan.ids.size());
  observer_ = observer;
  const auto show_residual = [&](int layer) {
    if (observer) observer->on_residual(layer, residual_.rows(rows));
  };
  embed(plan);
  fill_rope_tables(plan);
  show_residual(-1);
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    block(i, plan);
    show_residual(i);
  }
  const auto wanted = static_cast<std::int64_t>(plan.wanted_rows.size());
  if (wanted == 0) return {};
  const std::size_t row_bytes = z(model_->spec().hidden_size) * sizeof(float);
  for (std::size_t i = 0; i < z(wanted); ++i)
    std::memcpy(last_.row(i), residual_.row(z(plan.wanted_rows[i])), row_bytes);
  normalize(final_norm_, last_, wanted, last_);
  multiply(last_, wanted, {{&head_, &logits_}});
  if (const float cap = model_->spec().logit_softcap; cap > 0) {
    const std::size_t vocab = z(model_->spec().vocab_size);
    for_rows(wanted, [&](std::size_t r) { kernels_->softcap(logits_.row(r), vocab, cap); });
  }
  return logits_.rows(wanted);
}

void Forward::embed(const RowPlan& plan, float* residual) noexcept {
  embed(plan);
  const std::size_t hidden = z(model_->spec().hidden_size);
  for (std::size_t r = 0; r < plan.ids.size(); ++r)
    std::copy_n(residual_.row(r), hidden, residual + r * hidden);
}

void Forward::compute_block(int index, const RowPlan& plan, float* residual,
                            ForwardObserver* observer) noexcept {
  const std::size_t hidden = z(model_->spec().hidden_size);
  const auto rows = static_cast<std::int64_t>(plan.ids.size());
  fill_rope_tables(plan);
  for_rows(rows, [&](std::size_t r) { std::copy_n(residual + r * hidden, hidden, residual_.row(r)); });
  observer_ = observer;
  block(index, plan);
  for_rows(rows, [&](std::size_t r) { std::copy_n(residual_.row(r), hidden, residual + r * hidden); });
}

void Forward::embed(const RowPlan& plan) {
  const std::size_t hidden = z(model_->spec().hidden_size);
  const float scale = model_->spec().embedding_scale;
  for (std::size_t r = 0; r < plan.ids.size(); ++r) {
    read_row(*embedding_, plan.ids[r], residual_.row(r), *kernels_);
    if (scale != 1.0F) kernels_->scale(residual_.row(r), hidden, scale);
    if (positions_ == nullptr) continue;
    read_row(*positions_, plan.positions[r], normed_.row(r), *kernels_);
    kernels_->add(residual_.row(r), normed_.row(r), hidden);
  }
}

void Forward::fill_rope_tables(const RowPlan& plan) {
  const model::ModelSpec& spec = model_->spec();
  for (const RowSpan& span : plan.spans) {
    for_rows(span.count, [&](std::size_t i) {
      for (std::size_t t = 0; t < spec.ropes.size(); ++t)
        fill_rotation(spec.ropes[t], span.longest, plan, z(span.first_row) + i, rotations_[t]);
    });
  }
}

void Forward::fill_rotation(const model::RopeSpec& rope, std::int64_t longest, const RowPlan& plan,
                            std::size_t row, Rotation& rotation) {
  const bool is_long = !rope.long_inverse_frequencies.empty() && longest > rope.long_from;
  const std::vector<float>& frequencies = is_long ? rope.long_inverse_frequencies : rope.inverse_frequencies;
  float* cosine = rotation.cosine.row(row);
  float* sine = rotation.sine.row(row);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    // The angle is a float32 product, as in the reference implementations.
    const float angle = static_cast<float>(plan.positions[row]) * frequencies[i];
    cosine[i] = static_cast<float>(portable_cos(static_cast<double>(angle))) * rope.magnitude;
    sine[i] = static_cast<float>(portable_sin(static_cast<double>(angle))) * rope.magnitude;
  }
}

void Forward::show_input(model::Site site, const Rows& inputs, int matrix) {
  if (observer_ != nullptr && observer_->wants_inputs()) observer_->on_input(block_, site, matrix, inputs);
}

void Forward::block(int index, const RowPlan& plan) {
  const Layer& l = layers_[z(index)];
  const auto rows = static_cast<std::int64_t>(plan.ids.size());
  block_ = index;

  const RowBuffer& mixer_input = normalized(l.mixer_norm, rows);
  show_input(model::Site::kQkv, mixer_input.rows(rows));
  if (l.delta_net) {
    mix_delta_net(l, recurrent_index_[z(index)], mixer_input, plan);
  } else if (l.latent) {
    project_into_latent(l, mixer_input, rows);
    attend(index, plan);
    project_out_of_latent(l, rows);
  } else {
    project_queries(l, mixer_input, rows);
    attend(index, plan);
    if (l.spec->attention.gated) apply_output_gate(l.spec->attention, rows);
  }
  const RowBuffer& output = l.delta_net ? delta_.z : l.latent ? unpacked_ : attended_;
  show_input(model::Site::kO, output.rows(rows));
  multiply(output, rows, {{&l.o, &update_}});
  normalize(l.mixer_output_norm, update_, rows, update_);
  add_residual(rows);

  const RowBuffer& mlp_input = normalized(l.mlp_norm, rows);
  if (l.spec->moe) {
    mix_experts(l, mlp_input, rows);
  } else {
    show_input(model::Site::kGateUp, mlp_input.rows(rows));
    compute_mlp(l.mlp, l.spec->mlp, mlp_input, rows, update_);
    show_input(model::Site::kDown, gate_.rows(rows));
  }
  normalize(l.mlp_output_norm, update_, rows, update_);
  add_residual(rows);
}

void Forward::compute_mlp(const Mlp& mlp, const model::MlpSpec& spec, const RowBuffer& x, std::int64_t rows,
                          RowBuffer& y) {
  for (RowBuffer* b : {&gate_, &up_}) b->reshape(spec.up.rows);
  if (spec.gated()) {
    multiply(x, rows, {{&mlp.gate, &gate_}, {&mlp.up, &up_}});
  } else {
    multiply(x, rows, {{&mlp.up, &gate_}});
  }
  activate(spec, rows);
  multiply(gate_, rows, {{&mlp.down, &y}});
}

void Forward::activate(const model::MlpSpec& spec, std::int64_t rows) {
  const std::size_t inner = z(spec.up.rows);
  const kernels::KernelTable& k = *kernels_;
  for_rows(rows, [&](std::size_t r) {
    float *gate = gate_.row(r), *up = up_.row(r);
    switch (spec.activation) {
      case model::Activation::kSilu:
        return spec.gated() ? k.silu_mul(gate, up, inner) : k.silu(gate, inner);
      case model::Activation::kGeluTanh:
        return spec.gated() ? k.gelu_tanh_mul(gate, up, inner) : k.gelu_tanh(gate, inner);
      case model::Activation::kClampedSwiglu:
        return k.clamped_swiglu(gate, up, inner, spec.alpha, spec.limit);
    }
  });
}

void Forward::project_queries(const Layer& l, const RowBuffer& x, std::int64_t rows) {
  const model::AttentionSpec& a = l.spec->attention;
  multiply(x, rows, {{&l.q, a.gated ? &queries_ : &q_}, {&l.k, &k_}, {&l.v, &v_}});
  if (a.gated) {
    const std::size_t head_dim = z(a.head_dim);
    for_rows(rows, [&](std::size_t r) {
      for (std::size_t h = 0; h < z(a.num_heads); ++h)
        std::memcpy(q_.row(r) + h * head_dim, queries_.row(r) + 2 * h * head_dim, head_dim * sizeof(float));
    });
  }
  normalize(l.q_norm, q_, rows, q_);
  normalize(l.k_norm, k_, rows, k_);
}

void Forward::apply_output_gate(const model::AttentionSpec& a, std::int64_t rows) {
  const std::size_t head_dim = z(a.head_dim);
  for_rows(rows, [&](std::size_t r) {
    for (std::size_t h = 0; h < z(a.num_heads); ++h)
      kernels_->sigmoid_mul(attended_.row(r) + h * head_dim, queries_.row(r) + (2 * h + 1) * head_dim,
                            head_dim);
  });
}

const RowBuffer& Forward::normalized(const Norm& norm, std::int64_t rows) {
  if (norm.weight.empty()) return residual_;
  normalize(norm, residual_, rows, normed_);
  return normed_;
}

void Forward::attend(int index, const RowPlan& plan) {
  const auto store = [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) store_task(index, store_tasks_[i]);
  };
  if (plan.ids.size() <= kRowsPerPiece) {  // less work than waking the others
    store(0, store_tasks_.size(), 0);
  } else {
    pool_->for_stretches(store_tasks_.size(), store);
  }
  pool_->for_pieces(attention_tasks_.size(), 1, [&](std::size_t begin, std::size_t end, int worker) {
    for (std::size_t i = begin; i < end; ++i) attend_task(index, attention_tasks_[i], scratch_[z(worker)]);
  });
}

void Forward::store_task(int index, const HeadTask& task) {
  const model::AttentionSpec& a = layers_[z(index)].spec->attention;
  const Rotation* rotation = a.rope < 0 ? nullptr : &rotations_[z(a.rope)];
  const std::size_t head_dim = z(a.head_dim), head = z(task.kv_head), begin = z(a.rotary_begin);
  const auto rotate = a.rotary_pairs ? kernels_->rope_pairs : kernels_->rope_half;
  const std::size_t group = z(a.num_heads / a.num_kv_heads);
  const std::int64_t position = task.span->first_position + task.first;
  const PageId page = (*task.span->table)[z(position / kernels::kPageTokens)];
  const int slot = static_cast<int>(position % kernels::kPageTokens);
  void* const keys = cache_->keys(page, index, task.kv_head);
  void* const values = cache_->values(page, index, task.kv_head);
  for (int i = 0; i < task.count; ++i) {
    const std::size_t row = z(task.span->first_row + task.first + i);
    float* k = k_.row(row) + head * head_dim;
    if (rotation != nullptr) {
      const float* cosine = rotation->cosine.row(row);
      const float* sine = rotation->sine.row(row);
      const std::size_t half = z(rotation->cosine.columns());
      for (std::size_t h = head * group; h < (head + 1) * group; ++h)
        rotate(q_.row(row) + h * head_dim + begin, cosine, sine, half);
      rotate(k + begin, cosine, sine, half);
    }
    const float* v = a.latent ? k : v_.row(row) + head * z(a.values());
    kernels_->store_kv(cache_->type(), k, v, a.head_dim, a.values(), slot + i, keys, values);
  }
}

void Forward::attend_task(int index, const HeadTask& task, Scratch& scratch) {
  const model::AttentionSpec& a = layers_[z(index)].spec->attention;
  const std::int64_t first_position = task.span->first_position + task.first;
  const std::int64_t pages = (first_position + task.count + kernels::kPageTokens - 1) / kernels::kPageTokens;
  for (std::int64_t p = 0; p < pages; ++p) {
    const PageId page = (*task.span->table)[z(p)];
    scratch.k_pages[z(p)] = cache_->keys(page, index, task.kv_head);
    scratch.v_pages[z(p)] = cache_->values(page, index, task.kv_head);
  }
  const int group = a.num_heads / a.num_kv_heads;
  const std::size_t row = z(task.span->first_row + task.first);
  const std::size_t first_head = z(task.kv_head) * z(group);
  kernels::AttentionArgs args = {};
  args.q = q_.row(row) + first_head * z(a.head_dim);
  args.q_stride = q_.stride();
  args.queries = task.count;
  args.group = group;
  args.head_dim = a.head_dim;
  args.value_dim = a.values();
  args.first_position = first_position;
  args.order = mode_ == ComputeMode::kExact ? kernels::SumOrder::kSixteen : kernels::SumOrder::kRising;
  args.kv_type = cache_->type();
  args.k_pages = scratch.k_pages.data();
  args.v_pages = scratch.v_pages.data();
  args.scale = a.scale;
  args.softcap = a.softcap;
  args.window = a.window;
  args.sinks = layers_[z(index)].sinks.empty() ? nullptr : layers_[z(index)].sinks.data() + first_head;
  args.out = attended_.row(row) + first_head * z(a.values());
  args.out_stride = attended_.stride();
  args.scratch = scratch.attention.data();
  kernels_->attention(args);
}

void Forward::normalize(const Norm& norm, RowBuffer& x, std::int64_t rows, RowBuffer& y) {
  const std::size_t size = norm.weight.size();
  if (size == 0) return;
  for_rows(rows, [&](std::size_t r) {
    for (std::size_t i = 0; i < z(x.columns()); i += size) {
      if (norm.bias.empty()) {
        kernels_->rms_norm(x.row(r) + i, norm.weight.data(), norm.offset, size, norm.eps, y.row(r) + i);
      } else {
        kernels_->layer_norm(x.row(r) + i, norm.weight.data(), norm.bias.data(), size, norm.eps,
                             y.row(r) + i);
      }
    }
  });
}

void Forward::multiply(const RowBuffer& x, std::int64_t rows, std::initializer_list<Product> products) {
  InputForm forms[3];
  std::size_t pieces = 0, n = 0;
  for (const Product& p : products) {
    forms[n++] = p.map->input_form();
    pieces += p.map->pieces();
  }
  input_.take(x, z(rows), std::span(forms, n), *pool_);
  // One parallel section for all of them: a small matrix alone would leave threads waiting.
  pool_->for_stretches(pieces, [&](std::size_t begin, std::size_t end, int worker) {
    std::size_t before = 0;  // of the products before p
    for (const Product& p : products) {
      const std::size_t first = std::max(begin, before), last = std::min(end, before + p.map->pieces());
      if (first < last) p.map->apply(first - before, last - before, input_, *p.y, linear_scratch_[z(worker)]);
      before += p.map->pieces();
    }
  });
}

void Forward::add_residual(std::int64_t rows) {
  const std::size_t hidden = z(model_->spec().hidden_size);
  for_rows(rows, [&](std::size_t r) { kernels_->add(residual_.row(r), update_.row(r), hidden); });
}

Products Forward::products() const {
  Products best = Products::kFloats;
  for_each_linear([&](const Linear& l) { best = std::max(best, l.products()); });
  return best;
}

std::uint64_t Forward::workspace_bytes() const {
  std::uint64_t n = 0;
  for (const RowBuffer* b : {&residual_,
                             &normed_,
                             &q_,
                             &k_,
                             &v_,
                             &attended_,
                             &gate_,
                             &up_,
                             &update_,
                             &last_,
                             &logits_,
                             &delta_.fused,
                             &delta_.fused_gates,
                             &delta_.mixed,
                             &delta_.z,
                             &delta_.out,
                             &delta_.b,
                             &delta_.a,
                             &delta_.window,
                             &delta_.convolved,
                             &delta_.gates,
                             &compressed_,
                             &queries_,
                             &unpacked_,
                             &router_logits_,
                             &gathered_,
                             &expert_output_,
                             &chosen_output_}) {
    n += b->bytes();
  }
  for (const Rotation& r : rotations_) n += r.cosine.bytes() + r.sine.bytes();
  n += input_.bytes();
  n += choices_.capacity() * sizeof(Choice) + of_expert_.capacity() * sizeof(std::size_t);
  for (const Scratch& s : scratch_) n += s.attention.bytes();
  for (const LinearScratch& s : linear_scratch_) n += s.bytes();
  return n;
}

std::uint64_t Forward::linear_bytes() const {
  std::uint64_t n = 0;
  for_each_linear([&](const Linear& l) { n += l.payload_bytes(); });
  return n;
}

std::uint64_t Forward::streamed_bytes() const {
  std::uint64_t left_out = 0;
  for (const Layer& l : layers_) {
    if (!l.spec->moe) continue;
    std::uint64_t experts = 0;
    for (const Mlp& e : l.experts)
      experts += e.gate.payload_bytes() + e.up.payload_bytes() + e.down.payload_bytes();
    left_out += experts / l.experts.size() * (l.experts.size() - z(l.spec->moe->per_token));
  }
  return linear_bytes() - left_out;
}

std::uint64_t Forward::weights_bytes() const {
  // An embedding that is the head too is read in place, packed or not.
  const bool counted = &head_.weight() == embedding_ && !head_.packed();
  return linear_bytes() + (counted ? 0 : embedding_->bytes());
}

}  // namespace wring::engine
