#include "lab/corpus_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "lab/html_text.h"

namespace wring::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestText = std::size_t{64} << 20;
constexpr std::array<std::string_view, 6> kExtensions = {".htm", ".html", ".md", ".py", ".rst", ".txt"};

bool is_text_name(const fs::path& path) {
  return std::find(kExtensions.begin(), kExtensions.end(), path.extension().string()) != kExtensions.end();
}

void add_file(const std::string& domain, const fs::path& path, const std::string& name, bool named,
              std::vector<FoundFile>& files) {
  FoundFile f;
  f.record.domain = domain;
  f.record.name = replace_invalid_utf8(name);
  f.path = path;
  f.named = named;
  files.push_back(std::move(f));
}

void walk(const CorpusInput& input, std::vector<FoundFile>& files) {
  const std::size_t before = files.size();
  std::error_code fault;
  for (fs::recursive_directory_iterator it(input.path, fault), end; !fault && it != end;
       it.increment(fault)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored) || !is_text_name(it->path())) continue;
    add_file(input.domain, it->path(), it->path().lexically_relative(input.path).generic_string(), false,
             files);
  }
  if (fault) throw_errno(fault.value(), "cannot walk the folder", input.path.string());
  if (files.size() == before) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("no text file in the folder; read are {}", fmt::join(kExtensions, " ")),
                input.path.string());
  }
}

void drop(FoundFile& file, const std::string& why) {
  if (file.named)
    throw Error(ErrorCode::kBadInput, why, file.path.string(), "leave the file out, or convert it");
  file.record.dropped = why;
}

void unify_line_ends(std::string& text) {
  std::size_t to = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    text[to++] = text[i];
  }
  text.resize(to);
}

}  // namespace

std::vector<FoundFile> find_files(std::span<const CorpusInput> inputs, ProgressSink& progress) {
  std::vector<FoundFile> files;
  for (const CorpusInput& input : inputs) {
    std::error_code fault;
    if (fs::is_directory(input.path, fault)) {
      walk(input, files);
    } else {
      add_file(input.domain, input.path, input.path.filename().generic_string(), true, files);
    }
  }
  std::sort(files.begin(), files.end(), [](const FoundFile& a, const FoundFile& b) {
    return std::tie(a.record.domain, a.record.name, a.path) <
           std::tie(b.record.domain, b.record.name, b.path);
  });
  std::map<std::string, const FoundFile*> known;
  for (std::size_t i = 0; i < files.size(); ++i) {
    progress.throw_if_cancelled();
    progress.update("hashing", i, files.size(), "files");
    FoundFile& f = files[i];
    const MappedFile mapped(f.path);
    f.record.bytes = mapped.size();
    Sha256 hash;
    hash.update(mapped.bytes());
    f.record.sha256 = hash.finish_hex();
    // Not an error even for a named file: the same text twice is harmless once it is left out.
    if (!known.emplace(f.record.sha256, &f).second) f.record.dropped = "repeats another file";
  }
  return files;
}

std::string read_corpus_text(FoundFile& file, std::uint64_t& cut_bytes) {
  const MappedFile mapped(file.path);
  std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.size());
  cut_bytes = 0;
  if (bytes.size() > kLongestText) {
    const std::size_t newline = bytes.rfind('\n', kLongestText - 1);
    const std::size_t end = newline == std::string_view::npos ? kLongestText : newline + 1;
    cut_bytes = bytes.size() - end;
    bytes = bytes.substr(0, end);
  }
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  const std::size_t valid = valid_utf8_prefix(bytes);
  // A cut without a line end may fall inside a character.
  if (cut_bytes > 0 && valid + 4 > bytes.size()) bytes = bytes.substr(0, valid);
  std::string text;
  if (bytes.empty()) {
    drop(file, "empty file");
  } else if (const std::size_t nul = bytes.find('\0'); nul != std::string_view::npos) {
    drop(file, file.named ? fmt::format("binary file: NUL byte at offset {}", nul) : "binary file");
  } else if (valid < bytes.size()) {
    drop(file, file.named ? fmt::format("not UTF-8: byte 0x{:02X} at offset {}",
                                        static_cast<unsigned char>(bytes[valid]), valid)
                          : "not UTF-8");
  } else {
    const std::string extension = file.path.extension().string();
    text = extension == ".html" || extension == ".htm" ? html_to_text(bytes) : std::string(bytes);
    unify_line_ends(text);
  }
  return text;
}

}  // namespace wring::lab
