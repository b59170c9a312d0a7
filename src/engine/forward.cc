#include "engine/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/portable_math.h"

namespace wring::engine {
namespace {

// A panel of dequantized rows should stay in a core's second-level cache while all tokens pass over it.
constexpr std::size_t kPanelBytes = 128 << 10;
// Rows that are dequantized before they meet a single token: enough for the kernel's streams.
constexpr std::size_t kStreamedRows = 8;
// Queries of one attention task: enough to reuse each loaded key, few enough to share a prompt among threads.
constexpr std::int64_t kTaskQueries = 32;
// Rows of element-wise work handed to a thread at a time.
constexpr std::size_t kRowsPerPiece = 8;

std::size_t z(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

Forward::Forward(const model::Model& model, KvCache& cache, ThreadPool& pool)
    : model_(&model), cache_(&cache), pool_(&pool), kernels_(&kernels::kernels()) {
  const model::ModelSpec& spec = model.spec();
  embedding_ = &model.weight(spec.embedding + ".weight");
  if (!kernels::has_dequantize(embedding_->type())) make_linear(spec.head);  // says what is missing
  for (const model::LayerSpec& l : spec.layers) {
    Layer layer;
    layer.attention = &l.attention;
    layer.input_norm = make_norm(l.input_norm);
    layer.post_norm = make_norm(l.post_attention_norm);
    layer.q = make_linear(l.attention.q);
    layer.k = make_linear(l.attention.k);
    layer.v = make_linear(l.attention.v);
    layer.o = make_linear(l.attention.o);
    layer.gate = make_linear(l.mlp.gate);
    layer.up = make_linear(l.mlp.up);
    layer.down = make_linear(l.mlp.down);
    layers_.push_back(std::move(layer));
  }
  final_norm_ = make_norm(spec.final_norm);
  head_ = make_linear(spec.head);
  scratch_.resize(z(pool.threads()));
  std::size_t columns = 0, panel = 0;
  const auto widen = [&](const Linear& m) {
    columns = std::max(columns, z(m.weight->columns));
    panel = std::max(panel, kernels::tiled_floats(m.panel_rows, kernels_->tile_height, z(m.weight->columns)));
  };
  for (const Layer& l : layers_) {
    for (const Linear* m : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) widen(*m);
  }
  widen(head_);
  row_stride_ = (columns + 15) / 16 * 16;
  for (Scratch& s : scratch_) {
    s.rows.reserve(std::max(kernels_->tile_height, kStreamedRows) * row_stride_);
    s.panel.reserve(panel);
  }
}

std::vector<float> Forward::read_vector(const std::string& name) {
  const model::Weight& w = model_->weight(name);
  std::vector<float> values(z(w.columns));
  kernels_->dequantize(w.type(), w.tensor->data.data(), values.data(), values.size());
  return values;
}

Forward::Linear Forward::make_linear(const model::LinearSpec& spec) {
  Linear linear;
  linear.weight = &model_->weight(spec.name + ".weight");
  if (!kernels::has_dequantize(linear.weight->type())) {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("type {} cannot be computed with", formats::name_of(linear.weight->type())),
                fmt::format("{}, tensor {}", linear.weight->tensor->file, linear.weight->tensor->name));
  }
  if (spec.bias) {
    linear.bias = read_vector(spec.name + ".bias");
    if (const int head_dim = linear.weight->paired_head_dim; head_dim > 0) {
      const std::vector<float> stored = linear.bias;  // in the order of the weight's stored rows
      for (std::size_t i = 0; i < stored.size(); ++i) {
        linear.bias[i] = stored[z(model::paired_row(static_cast<std::int64_t>(i), head_dim))];
      }
    }
  }
  // As many panels as threads share evenly, all of about one size.
  const std::size_t tile = kernels_->tile_height, threads = z(pool_->threads()), rows = z(spec.rows);
  const std::size_t fit = std::max(kPanelBytes / (sizeof(float) * z(spec.columns)), tile);
  const std::size_t panels = (rows + fit * threads - 1) / (fit * threads) * threads;
  linear.panel_rows = (rows + panels * tile - 1) / (panels * tile) * tile;
  return linear;
}

Forward::Norm Forward::make_norm(const model::NormSpec& spec) {
  return {read_vector(spec.name + ".weight"), spec.weight_offset, spec.eps};
}

void Forward::reserve(const RowPlan& plan) {
  const std::size_t rows = plan.ids.size();
  const model::ModelSpec& spec = model_->spec();
  for (RowBuffer* b : {&residual_, &normed_, &update_}) b->reserve(rows, spec.hidden_size);
  std::size_t pages = 0;
  for (const RowSpan& span : plan.spans) pages = std::max(pages, span.table->size());
  for (const model::LayerSpec& l : spec.layers) {
    const model::AttentionSpec& a = l.attention;
    q_.reserve(rows, a.q.rows);
    attended_.reserve(rows, a.q.rows);
    k_.reserve(rows, a.k.rows);
    v_.reserve(rows, a.v.rows);
    gate_.reserve(rows, l.mlp.gate.rows);
    up_.reserve(rows, l.mlp.up.rows);
    for (Scratch& s : scratch_) {
      s.attention.reserve(kernels::attention_scratch_floats(kTaskQueries, a.num_heads / a.num_kv_heads,
                                                            a.head_dim, a.head_dim));
    }
  }
  for (RowBuffer* b : {&normed_, &attended_, &gate_})
    tiled_.reserve(kernels::tiled_floats(rows, kernels_->tile_width, z(b->columns())));
  const auto half = static_cast<std::int64_t>(spec.rope_inverse_frequencies.size());
  cosine_.reserve(rows, half);
  sine_.reserve(rows, half);
  last_.reserve(plan.wanted_rows.size(), spec.hidden_size);
  logits_.reserve(plan.wanted_rows.size(), spec.vocab_size);
  for (Scratch& s : scratch_) {
    s.k_pages.resize(std::max(s.k_pages.size(), pages));
    s.v_pages.resize(std::max(s.v_pages.size(), pages));
  }
  plan_attention(plan);
}

void Forward::plan_attention(const RowPlan& plan) {
  tasks_.clear();
  if (layers_.empty()) return;
  const int kv_heads = layers_.front().attention->num_kv_heads;
  for (const RowSpan& span : plan.spans) {
    // The last queries see the most keys: they come first, so that no thread is left with a long task at the
    // end.
    for (std::int64_t end = span.count; end > 0; end -= kTaskQueries) {
      const std::int64_t begin = std::max<std::int64_t>(0, end - kTaskQueries);
      for (int h = 0; h < kv_heads; ++h) tasks_.push_back({&span, begin, static_cast<int>(end - begin), h});
    }
  }
}

Rows Forward::compute(const RowPlan& plan, ForwardObserver* observer) noexcept {
  const auto rows = static_cast<std::int64_t>(plan.ids.size());
  const auto show_residual = [&](int layer) {
    if (observer) observer->on_residual(layer, residual_.rows(rows));
  };
  embed(plan);
  fill_rope_tables(plan);
  show_residual(-1);
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    block(i, plan, observer);
    show_residual(i);
  }
  const auto wanted = static_cast<std::int64_t>(plan.wanted_rows.size());
  if (wanted == 0) return {};
  const std::size_t row_bytes = z(model_->spec().hidden_size) * sizeof(float);
  for (std::size_t i = 0; i < z(wanted); ++i)
    std::memcpy(last_.row(i), residual_.row(z(plan.wanted_rows[i])), row_bytes);
  normalize(final_norm_, last_, wanted, last_);
  tile(last_, wanted);
  linear(head_, last_, wanted, logits_);
  return logits_.rows(wanted);
}

template <class F>
void Forward::for_rows(std::int64_t rows, F&& f) {
  pool_->for_pieces(z(rows), kRowsPerPiece, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t r = begin; r < end; ++r) f(r);
  });
}

void Forward::embed(const RowPlan& plan) {
  for (std::size_t r = 0; r < plan.ids.size(); ++r) {
    kernels_->dequantize(embedding_->type(), embedding_->row_data(plan.ids[r]), residual_.row(r),
                         z(model_->spec().hidden_size));
  }
}

void Forward::fill_rope_tables(const RowPlan& plan) {
  const model::ModelSpec& spec = model_->spec();
  const std::vector<float>& frequencies = spec.rope_inverse_frequencies;
  for_rows(static_cast<std::int64_t>(plan.ids.size()), [&](std::size_t r) {
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      // The angle is a float32 product, as in the reference implementations.
      const float angle = static_cast<float>(plan.positions[r]) * frequencies[i];
      cosine_.row(r)[i] = static_cast<float>(portable_cos(static_cast<double>(angle))) * spec.rope_magnitude;
      sine_.row(r)[i] = static_cast<float>(portable_sin(static_cast<double>(angle))) * spec.rope_magnitude;
    }
  });
}

void Forward::block(int index, const RowPlan& plan, ForwardObserver* observer) {
  const Layer& l = layers_[z(index)];
  const auto rows = static_cast<std::int64_t>(plan.ids.size());
  const bool show = observer != nullptr && observer->wants_inputs();
  const auto show_input = [&](model::Site site, const RowBuffer& x) {
    if (show) observer->on_input(index, site, x.rows(rows));
  };

  normalize(l.input_norm, residual_, rows, normed_);
  show_input(model::Site::kQkv, normed_);
  tile(normed_, rows);
  linear(l.q, normed_, rows, q_);
  linear(l.k, normed_, rows, k_);
  linear(l.v, normed_, rows, v_);
  attend(index, plan);
  show_input(model::Site::kO, attended_);
  tile(attended_, rows);
  linear(l.o, attended_, rows, update_);
  add_residual(rows);

  normalize(l.post_norm, residual_, rows, normed_);
  show_input(model::Site::kGateUp, normed_);
  tile(normed_, rows);
  linear(l.gate, normed_, rows, gate_);
  linear(l.up, normed_, rows, up_);
  const std::size_t inner = z(l.gate.weight->rows);
  for_rows(rows, [&](std::size_t r) { kernels_->silu_mul(gate_.row(r), up_.row(r), inner); });
  show_input(model::Site::kDown, gate_);
  tile(gate_, rows);
  linear(l.down, gate_, rows, update_);
  add_residual(rows);
}

void Forward::attend(int index, const RowPlan& plan) {
  const model::AttentionSpec& a = *layers_[z(index)].attention;
  const std::size_t head_dim = z(a.head_dim), half = head_dim / 2;
  for (const RowSpan& span : plan.spans) {
    for_rows(span.count, [&](std::size_t i) {
      const std::size_t row = z(span.first_row) + i;
      const float* cosine = cosine_.row(row);
      const float* sine = sine_.row(row);
      for (int h = 0; h < a.num_heads; ++h)
        kernels_->rope_half(q_.row(row) + z(h) * head_dim, cosine, sine, half);
      const std::int64_t position = span.first_position + static_cast<std::int64_t>(i);
      const PageId page = (*span.table)[z(position / kernels::kPageTokens)];
      const int slot = static_cast<int>(position % kernels::kPageTokens);
      for (int h = 0; h < a.num_kv_heads; ++h) {
        float* k = k_.row(row) + z(h) * head_dim;
        kernels_->rope_half(k, cosine, sine, half);
        kernels_->store_kv(k, v_.row(row) + z(h) * head_dim, a.head_dim, a.head_dim, slot,
                           cache_->keys(page, index, h), cache_->values(page, index, h));
      }
    });
  }
  pool_->for_pieces(tasks_.size(), 1, [&](std::size_t begin, std::size_t end, int worker) {
    for (std::size_t i = begin; i < end; ++i) attend_task(index, tasks_[i], scratch_[z(worker)]);
  });
}

void Forward::attend_task(int index, const AttentionTask& task, Scratch& scratch) {
  const model::AttentionSpec& a = *layers_[z(index)].attention;
  const std::int64_t first_position = task.span->first_position + task.first;
  const std::int64_t pages =
      (first_position + task.queries + kernels::kPageTokens - 1) / kernels::kPageTokens;
  for (std::int64_t p = 0; p < pages; ++p) {
    const PageId page = (*task.span->table)[z(p)];
    scratch.k_pages[z(p)] = cache_->keys(page, index, task.kv_head);
    scratch.v_pages[z(p)] = cache_->values(page, index, task.kv_head);
  }
  const int group = a.num_heads / a.num_kv_heads;
  const std::size_t row = z(task.span->first_row + task.first);
  const std::size_t head = z(task.kv_head) * z(group) * z(a.head_dim);
  kernels::AttentionArgs args = {};
  args.q = q_.row(row) + head;
  args.q_stride = q_.stride();
  args.queries = task.queries;
  args.group = group;
  args.head_dim = args.value_dim = a.head_dim;
  args.first_position = first_position;
  args.k_pages = scratch.k_pages.data();
  args.v_pages = scratch.v_pages.data();
  args.scale = a.scale;
  args.out = attended_.row(row) + head;
  args.out_stride = attended_.stride();
  args.scratch = scratch.attention.data();
  kernels_->attention(args);
}

void Forward::normalize(const Norm& norm, RowBuffer& x, std::int64_t rows, RowBuffer& y) {
  for_rows(rows, [&](std::size_t r) {
    kernels_->rms_norm(x.row(r), norm.weight.data(), norm.offset, norm.weight.size(), norm.eps, y.row(r));
  });
}

void Forward::tile(RowBuffer& x, std::int64_t rows) {
  if (rows == 1) return;
  const std::size_t tile = kernels_->tile_width, k = z(x.columns());
  pool_->for_pieces((z(rows) + tile - 1) / tile, 1, [&](std::size_t begin, std::size_t end, int) {
    const std::size_t first = begin * tile, count = std::min(z(rows), end * tile) - first;
    kernels_->tile_tokens(x.row(first), x.stride(), count, k,
                          tiled_.data() + kernels::tiled_floats(first, tile, k));
  });
}

void Forward::linear(const Linear& linear, RowBuffer& x, std::int64_t rows, RowBuffer& y) {
  pool_->for_pieces(z(linear.weight->rows), linear.panel_rows,
                    [&](std::size_t begin, std::size_t end, int worker) {
                      linear_panel(linear, begin, end, x, z(rows), y, scratch_[z(worker)]);
                    });
}

void Forward::linear_panel(const Linear& linear, std::size_t begin, std::size_t end, RowBuffer& x,
                           std::size_t rows, RowBuffer& y, Scratch& scratch) {
  const model::Weight& w = *linear.weight;
  const std::size_t k = z(w.columns), tile = rows == 1 ? kStreamedRows : kernels_->tile_height;
  for (std::size_t r = begin; r < end; r += tile) {
    const std::size_t count = std::min(tile, end - r);
    for (std::size_t i = 0; i < count; ++i) {
      kernels_->dequantize(w.type(), w.row_data(static_cast<std::int64_t>(r + i)),
                           scratch.rows.data() + i * row_stride_, k);
    }
    if (rows == 1) {
      kernels_->matvec(scratch.rows.data(), row_stride_, count, x.row(0), k, y.row(0) + r);
    } else {
      kernels_->tile_rows(scratch.rows.data(), row_stride_, count, k,
                          scratch.panel.data() + kernels::tiled_floats(r - begin, tile, k));
    }
  }
  if (rows > 1) {
    kernels_->matmul(scratch.panel.data(), end - begin, tiled_.data(), rows, k, y.row(0) + begin, y.stride());
  }
  if (linear.bias.empty()) return;
  for (std::size_t t = 0; t < rows; ++t)
    kernels_->add(y.row(t) + begin, linear.bias.data() + begin, end - begin);
}

void Forward::add_residual(std::int64_t rows) {
  const std::size_t hidden = z(model_->spec().hidden_size);
  for_rows(rows, [&](std::size_t r) { kernels_->add(residual_.row(r), update_.row(r), hidden); });
}

std::uint64_t Forward::workspace_bytes() const {
  std::uint64_t n = 0;
  for (const RowBuffer* b : {&residual_, &normed_, &q_, &k_, &v_, &attended_, &gate_, &up_, &update_,
                             &cosine_, &sine_, &last_, &logits_}) {
    n += b->bytes();
  }
  n += tiled_.bytes();
  for (const Scratch& s : scratch_) n += s.rows.bytes() + s.panel.bytes() + s.attention.bytes();
  return n;
}

}  // namespace wring::engine
