// The reference's record: one byte format for memory and file, so that both are checked by the same code.
#include "evaluate/reference.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "formats/json.h"

namespace wring::evaluate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the file is written as it lies in memory");

constexpr std::string_view kMagic = "WRINGREF";
constexpr int kVersion = 1;
constexpr std::size_t kMaxHeader = std::size_t{64} << 20;

json key_json(const ReferenceKey& key) {
  return {{"version", kVersion},
          {"model", key.model_hash},
          {"documents", key.documents_hash},
          {"compute_mode", key.compute_mode},
          {"kl_positions", kl_positions_name(key.positions)}};
}

template <class T>
std::string_view as_text(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string_view as_text(const std::uint64_t& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Takes pieces off the front of the file's bytes, never past their end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(&name) {}

  std::string_view take(std::size_t size) {
    if (size > bytes_.size() - at_) fail(fmt::format("ends at byte {}, more were expected", bytes_.size()));
    const std::string_view piece(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return piece;
  }
  std::uint64_t take_u64() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::size_t at() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }
  void check(std::string_view piece, std::uint64_t checksum) const {
    if (xxh3_64(piece) != checksum) fail("checksum does not fit");
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kBadInput, "damaged reference cache: " + what,
                fmt::format("{}, byte {}", *name_, at_), "delete the file, it is computed again");
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string* name_;
  std::size_t at_ = 0;
};

}  // namespace

std::string ReferenceKey::hash() const {
  return sha256_hex(key_json(*this).dump()).substr(0, 32);
}

std::string tokenized_hash(std::span<const Document> documents) {
  Sha256 hash;
  for (const Document& d : documents) {
    hash.update(as_text(static_cast<std::uint64_t>(d.ids.size())));
    hash.update(as_text(d.ids));
  }
  return hash.finish_hex();
}

fs::path reference_path(const fs::path& folder, const ReferenceKey& key) {
  return folder / (key.hash() + ".wring-reference");
}

std::optional<Reference> Reference::open(const fs::path& folder, const ReferenceKey& key) {
  const fs::path path = reference_path(folder, key);
  std::error_code fault;
  if (!fs::exists(path, fault)) return std::nullopt;
  Reference reference;
  reference.file_.emplace(path);
  reference.name_ = path.string();
  reference.parse(key);
  return reference;
}

std::span<const std::byte> Reference::bytes() const {
  return file_ ? file_->bytes() : std::span<const std::byte>(memory_);
}

void Reference::parse(const ReferenceKey& key) {
  Cursor cursor(bytes(), name_);
  if (cursor.take(kMagic.size()) != kMagic) cursor.fail("does not begin with WRINGREF");
  const std::uint64_t header_size = cursor.take_u64();
  if (header_size > kMaxHeader) cursor.fail("header too long");
  const std::string_view header_text = cursor.take(header_size);
  cursor.check(header_text, cursor.take_u64());
  const json header = formats::parse_json(header_text, name_);
  if (!header.is_object() || !header.contains("documents") || header.value("key", json()) != key_json(key))
    cursor.fail("it belongs to other inputs");
  vocab_size_ = formats::json_int(header, "vocab_size", 1, INT32_MAX, name_);
  for (const json& entry : header.at("documents")) {
    Part part;
    const auto scored = static_cast<std::size_t>(formats::json_int(entry, "scored", 1, INT32_MAX, name_));
    part.rows = static_cast<std::size_t>(formats::json_int(entry, "rows", 0, INT32_MAX, name_));
    part.rows_at = cursor.at();
    cursor.take(part.rows * static_cast<std::size_t>(vocab_size_) * sizeof(float));
    part.checksums_at = cursor.at();
    cursor.take(part.rows * sizeof(std::uint64_t));
    part.scores.log_probs.resize(scored);
    part.scores.top1.resize(scored);
    const std::string_view scores = cursor.take(scored * (sizeof(double) + sizeof(TokenId)));
    cursor.check(scores, cursor.take_u64());
    std::memcpy(part.scores.log_probs.data(), scores.data(), scored * sizeof(double));
    std::memcpy(part.scores.top1.data(), scores.data() + scored * sizeof(double), scored * sizeof(TokenId));
    documents_.push_back(std::move(part));
  }
  if (!cursor.at_end()) cursor.fail("more bytes than expected");
}

std::span<const float> Reference::row(std::size_t document, std::size_t i) const {
  const Part& part = documents_[document];
  const std::size_t columns = static_cast<std::size_t>(vocab_size_), size = columns * sizeof(float);
  const std::byte* data = bytes().data() + part.rows_at + i * size;
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, bytes().data() + part.checksums_at + i * sizeof checksum, sizeof checksum);
  if (xxh3_64({reinterpret_cast<const char*>(data), size}) != checksum) {
    throw Error(ErrorCode::kBadInput, "damaged reference cache: checksum does not fit",
                fmt::format("{}, document {}, row {}", name_, document, i),
                "delete the file, it is computed again");
  }
  return {reinterpret_cast<const float*>(data), columns};
}

void Reference::check_rows() const {
  for (std::size_t d = 0; d < documents_.size(); ++d) {
    for (std::size_t i = 0; i < documents_[d].rows; ++i) row(d, i);
  }
}

/// Documents may overlap in time but are written in order: those behind the one being written wait in memory.
class ReferenceRecorder : public ScoreSink {
 public:
  ReferenceRecorder(std::int64_t vocab_size, const ReferenceKey& key, const fs::path& folder,
                    std::span<const ScoreRequest> requests)
      : key_(key), folder_(folder) {
    if (!folder.empty()) {
      std::error_code fault;
      fs::create_directories(folder, fault);
      if (fault) throw_errno(fault.value(), "making the folder of the reference cache", folder.string());
      file_.emplace(reference_path(folder, key));
    }
    json header = {{"key", key_json(key)}, {"vocab_size", vocab_size}, {"documents", json::array()}};
    for (const ScoreRequest& r : requests) {
      header["documents"].push_back({{"scored", static_cast<std::int64_t>(r.ids.size()) - r.first_scored},
                                     {"rows", r.logits_at.size()}});
    }
    std::string text = header.dump();
    text.resize((text.size() + 3) / 4 * 4, ' ');  // keeps the rows that follow at multiples of 4
    write(kMagic);
    write(as_text(static_cast<std::uint64_t>(text.size())));
    write(text);
    write(as_text(xxh3_64(text)));
  }

  void on_logits(std::size_t request, std::size_t, std::span<const std::span<const float>> rows) override {
    Waiting& w = waiting_[request];
    for (const std::span<const float> row : rows) {
      const std::string_view text(reinterpret_cast<const char*>(row.data()), row.size_bytes());
      w.checksums.push_back(xxh3_64(text));
      if (request == next_) {
        write(text);
      } else {
        w.rows.append(text);
      }
    }
  }

  void on_scores(std::size_t request, Scores scores) override {
    waiting_[request].scores = std::move(scores);
    while (!waiting_.empty() && waiting_.begin()->first == next_ && waiting_.begin()->second.scores) {
      const Waiting& w = waiting_.begin()->second;
      write(as_text(w.checksums));
      const std::string text =
          std::string(as_text(w.scores->log_probs)) + std::string(as_text(w.scores->top1));
      write(text);
      write(as_text(xxh3_64(text)));
      waiting_.erase(waiting_.begin());
      ++next_;
      // What the next document has gathered so far may go out now; the rest follows directly.
      if (const auto following = waiting_.find(next_); following != waiting_.end()) {
        write(following->second.rows);
        following->second.rows.clear();
      }
    }
  }

  Reference finish() {
    if (!file_) {
      Reference reference;
      reference.name_ = "reference in memory";
      reference.memory_ = std::move(memory_);
      reference.parse(key_);
      return reference;
    }
    file_->commit();
    std::optional<Reference> reference = Reference::open(folder_, key_);
    if (!reference) throw Error(ErrorCode::kIo, "the reference cache vanished", folder_.string());
    return std::move(*reference);
  }

 private:
  struct Waiting {
    std::string rows;
    std::vector<std::uint64_t> checksums;
    std::optional<Scores> scores;
  };

  void write(std::string_view text) {
    if (file_) {
      file_->write(text);
    } else {
      const auto* begin = reinterpret_cast<const std::byte*>(text.data());
      memory_.insert(memory_.end(), begin, begin + text.size());
    }
  }

  ReferenceKey key_;
  fs::path folder_;
  std::optional<AtomicFile> file_;
  std::vector<std::byte> memory_;
  std::map<std::size_t, Waiting> waiting_;
  std::size_t next_ = 0;  // the document being written
};

Reference record_reference(Scorer& scorer, std::span<const Document> documents, const ReferenceKey& key,
                           const fs::path& folder, ProgressSink& progress, std::string_view task) {
  std::vector<ScoreRequest> requests;
  for (const Document& d : documents) {
    requests.push_back({d.ids, 1, kl_positions(static_cast<std::int64_t>(d.ids.size()), key.positions)});
  }
  ReferenceRecorder recorder(scorer.vocab_size(), key, folder, requests);
  scorer.score(requests, recorder, progress, task);
  return recorder.finish();
}

}  // namespace wring::evaluate
