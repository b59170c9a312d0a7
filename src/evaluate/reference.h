// What the reference model said, kept so that any number of candidates can be compared with it: every scored
// token's log-probability, and whole rows of float32 logits at the KL positions. In memory or in a file that
// is named after a hash of its inputs: it can be deleted at any time and is then computed again.
//
// The file: "WRINGREF", u64 length of the header, the header (JSON), u64 XXH3 of the header; then for each
// document its rows (rows × vocabulary float32), a u64 XXH3 a row, T − 1 float64 log-probabilities, T − 1
// int32 most likely ids, u64 XXH3 of those two. Little endian, no padding; rows begin at multiples of 4.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "evaluate/documents.h"
#include "evaluate/kl.h"
#include "evaluate/scorer.h"

namespace wring::evaluate {

/// What a reference depends on. Equal keys: equal content.
struct ReferenceKey {
  std::string model_hash;
  std::string documents_hash;  // tokenized_hash()
  std::string compute_mode;
  KlPositions positions = KlPositions::kThirtyTwo;

  /// 32 hex digits; also the file's name (with ".wring-reference").
  std::string hash() const;
};

/// SHA-256 over the ids of the documents in order.
std::string tokenized_hash(std::span<const Document> documents);

std::filesystem::path reference_path(const std::filesystem::path& folder, const ReferenceKey& key);

class Reference {
 public:
  /// Opens the file of `key` in `folder`; none if it does not exist. Errors: kBadInput naming the file where
  /// it is damaged or holds something else (header and scores are checked here, a row when it is read).
  static std::optional<Reference> open(const std::filesystem::path& folder, const ReferenceKey& key);

  std::size_t documents() const { return documents_.size(); }
  std::int64_t vocab_size() const { return vocab_size_; }
  const Scores& scores(std::size_t document) const { return documents_[document].scores; }
  std::size_t rows(std::size_t document) const { return documents_[document].rows; }
  /// The logits at the document's i-th KL position. Thread-safe. Errors: kBadInput where the file is damaged.
  std::span<const float> row(std::size_t document, std::size_t i) const;
  /// Reads every row once, so that damage is known before work rests on the file. Errors: as row()'s.
  void check_rows() const;

 private:
  friend class ReferenceRecorder;
  struct Part {
    std::size_t rows = 0;
    std::size_t rows_at = 0, checksums_at = 0;  // byte offsets
    Scores scores;
  };
  Reference() = default;
  void parse(const ReferenceKey& key);
  std::span<const std::byte> bytes() const;

  std::string name_;  // for errors
  std::vector<std::byte> memory_;
  std::optional<MappedFile> file_;
  std::int64_t vocab_size_ = 0;
  std::vector<Part> documents_;
};

/// Runs the reference over all documents and keeps what it says: in folder/<key>.wring-reference, or in
/// memory where `folder` is empty. Errors: the scorer's; kIo.
Reference record_reference(Scorer& scorer, std::span<const Document> documents, const ReferenceKey& key,
                           const std::filesystem::path& folder, ProgressSink& progress,
                           std::string_view task = "reference");

}  // namespace wring::evaluate
