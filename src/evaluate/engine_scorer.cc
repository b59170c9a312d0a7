// Scoring and sampling through engine::Scheduler.
#include "evaluate/engine_scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/scheduler.h"
#include "kernels/kernel_table.h"

namespace wring::evaluate {
namespace {

struct RowScore {
  double log_prob = 0;
  TokenId top1 = 0;
};

// One request while it runs.
class Running {
 public:
  Running(const ScoreRequest& request, std::size_t index, ThreadPool& pool, ScoreSink& sink)
      : request_(&request), index_(index), pool_(&pool), sink_(&sink) {
    const std::size_t scored = request.ids.size() - static_cast<std::size_t>(request.first_scored);
    scores_.log_probs.reserve(scored);
    scores_.top1.reserve(scored);
  }

  void take(std::int64_t first_position, const engine::Rows& rows) {
    // Row i predicts ids[first_position + i + 1]; the prompt's last row predicts nothing that is known.
    const auto size = static_cast<std::int64_t>(request_->ids.size());
    const std::int64_t begin = std::max<std::int64_t>(0, request_->first_scored - 1 - first_position);
    const std::int64_t end = std::min(rows.count, size - 1 - first_position);
    if (begin < end) {
      row_scores_.resize(static_cast<std::size_t>(end - begin));
      pool_->for_pieces(row_scores_.size(), 1, [&](std::size_t from, std::size_t to, int) {
        for (std::size_t i = from; i < to; ++i) {
          const std::int64_t row = begin + static_cast<std::int64_t>(i);
          const TokenId next = request_->ids[static_cast<std::size_t>(first_position + row + 1)];
          row_scores_[i] = score_row(rows.row(row), next);
        }
      });
      for (const RowScore& s : row_scores_) {
        scores_.log_probs.push_back(s.log_prob);
        scores_.top1.push_back(s.top1);
      }
    }
    wanted_.clear();
    const std::size_t first = next_logits_;
    for (; next_logits_ < request_->logits_at.size(); ++next_logits_) {
      const std::int64_t position = request_->logits_at[next_logits_];
      if (position >= first_position + rows.count) break;
      wanted_.push_back(rows.row(position - first_position));
    }
    if (!wanted_.empty()) sink_->on_logits(index_, first, wanted_);
  }

  void finish() {
    for (const double log_prob : scores_.log_probs) {
      if (std::isfinite(log_prob)) continue;
      throw Error(ErrorCode::kBadInput,
                  fmt::format("the model gave a token the log-probability {}", log_prob),
                  fmt::format("request {}", index_), "its weights hold NaN, infinite or extreme values");
    }
    sink_->on_scores(index_, std::move(scores_));
  }

 private:
  static RowScore score_row(std::span<const float> logits, TokenId next) {
    const double normalizer = kernels::kernels().log_sum_exp(logits.data(), logits.size());
    return {static_cast<double>(logits[static_cast<std::size_t>(next)]) - normalizer, engine::argmax(logits)};
  }

  const ScoreRequest* request_;
  std::size_t index_;
  ThreadPool* pool_;
  ScoreSink* sink_;
  Scores scores_;
  std::vector<RowScore> row_scores_;
  std::vector<std::span<const float>> wanted_;
  std::size_t next_logits_ = 0;
};

void check(const ScoreRequest& request, std::size_t index, std::int32_t vocab_size) {
  const auto size = static_cast<std::int64_t>(request.ids.size());
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kBadInput, what, fmt::format("scoring request {}", index));
  };
  if (size < 2) fail(fmt::format("{} tokens, at least 2 are needed", size));
  if (request.first_scored < 1 || request.first_scored >= size) {
    fail(fmt::format("first scored position {} is outside [1, {})", request.first_scored, size));
  }
  for (const TokenId id : request.ids) {
    if (id < 0 || id >= vocab_size) fail(fmt::format("token id {} is outside [0, {})", id, vocab_size));
  }
  std::int64_t before = -1;
  for (const std::int64_t position : request.logits_at) {
    if (position <= before || position >= size) fail("positions of logits must rise and lie in the text");
    before = position;
  }
}

}  // namespace

std::int32_t EngineScorer::vocab_size() const {
  return static_cast<std::int32_t>(engine_->model().spec().vocab_size);
}

std::string EngineScorer::compute_mode() const {
  return std::string(engine::compute_mode_name(engine_->compute_mode()));
}

void EngineScorer::score(std::span<const ScoreRequest> requests, ScoreSink& sink, ProgressSink& progress,
                         std::string_view task) {
  std::uint64_t total = 0, done = 0;
  std::vector<Running> running;
  running.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    check(requests[i], i, vocab_size());
    total += requests[i].ids.size();
    running.emplace_back(requests[i], i, engine_->pool(), sink);
  }
  engine::Scheduler scheduler(*engine_, {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    engine::Request request;
    request.prompt = requests[i].ids;
    request.prompt_logits = true;
    request.on_prompt_logits = [&, i](std::int64_t first_position, const engine::Rows& rows) {
      running[i].take(first_position, rows);
      done += static_cast<std::uint64_t>(rows.count);
      progress.update(task, done, total, "tokens");
    };
    request.on_finish = [&, i](engine::FinishReason) { running[i].finish(); };
    scheduler.submit(std::move(request));
  }
  scheduler.run(progress);
}

std::vector<std::vector<TokenId>> EngineScorer::generate(std::span<const GenerateRequest> requests,
                                                         ProgressSink& progress) {
  std::vector<std::vector<TokenId>> replies(requests.size());
  std::uint64_t finished = 0;
  engine::Scheduler scheduler(*engine_, {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    engine::Request request;
    request.prompt = requests[i].prompt;
    request.max_tokens = requests[i].max_tokens;
    request.sampling = requests[i].sampling;
    request.stop_ids = requests[i].stop_ids;
    request.on_token = [&, i](TokenId id) {
      replies[i].push_back(id);
      return true;
    };
    request.on_finish = [&](engine::FinishReason) {
      progress.update("generating", ++finished, requests.size(), "replies");
    };
    scheduler.submit(std::move(request));
  }
  scheduler.run(progress);
  return replies;
}

}  // namespace wring::evaluate
