// What the room's tests share: a scratch folder and a scorer whose distributions are known in closed form.
#pragma once

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "evaluate/scorer.h"

namespace wring::evaluate::testing {

/// A folder of its own, removed at the end.
class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::temp_directory_path() / ("wring-evaluate-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path put(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A model of `vocab` tokens in which the token after id t has the logit `sharpness` if it is (t + 1) mod
/// vocab and 0 else. Requests are delivered in reverse order, two at a time interleaved, as the contract
/// allows.
class KnownScorer : public Scorer {
 public:
  KnownScorer(std::int32_t vocab, float sharpness) : vocab_(vocab), sharpness_(sharpness) {}

  std::int32_t vocab_size() const override { return vocab_; }
  std::string compute_mode() const override { return "exact"; }

  std::vector<float> row_after(TokenId id) const {
    std::vector<float> row(static_cast<std::size_t>(vocab_), 0.0F);
    row[static_cast<std::size_t>((id + 1) % vocab_)] = sharpness_;
    return row;
  }
  double normalizer() const { return std::log(std::exp(static_cast<double>(sharpness_)) + vocab_ - 1); }
  double log_prob(TokenId before, TokenId after) const {
    return (after == (before + 1) % vocab_ ? static_cast<double>(sharpness_) : 0.0) - normalizer();
  }

  void score(std::span<const ScoreRequest> requests, ScoreSink& sink, ProgressSink& progress,
             std::string_view task) override {
    for (std::size_t i = requests.size(); i-- > 0;) {
      const ScoreRequest& r = requests[i];
      for (std::size_t k = 0; k < r.logits_at.size(); k += 2) {
        std::vector<std::vector<float>> rows;
        for (std::size_t j = k; j < std::min(k + 2, r.logits_at.size()); ++j) {
          rows.push_back(row_after(r.ids[static_cast<std::size_t>(r.logits_at[j])]));
        }
        const std::vector<std::span<const float>> views(rows.begin(), rows.end());
        sink.on_logits(i, k, views);
      }
      Scores s;
      for (std::size_t at = static_cast<std::size_t>(r.first_scored); at < r.ids.size(); ++at) {
        s.log_probs.push_back(log_prob(r.ids[at - 1], r.ids[at]));
        s.top1.push_back((r.ids[at - 1] + 1) % vocab_);
      }
      sink.on_scores(i, std::move(s));
      progress.update(task, requests.size() - i, requests.size(), "requests");
    }
  }

  std::vector<std::vector<TokenId>> generate(std::span<const GenerateRequest> requests,
                                             ProgressSink&) override {
    return std::vector<std::vector<TokenId>>(requests.size());
  }

 private:
  std::int32_t vocab_;
  float sharpness_;
};

}  // namespace wring::evaluate::testing
