// The files behind a corpus: found, checked, hashed and turned into plain text.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lab/corpus.h"

namespace wring::lab {

struct FoundFile {
  CorpusFile record;
  std::filesystem::path path;
  bool named = false;  // by the user, not found in a folder: its faults are errors
};

/// All files of the inputs, by domain and name; one that repeats another byte for byte is marked dropped.
/// Errors: kBadInput for a missing path and for a folder without text files.
std::vector<FoundFile> find_files(std::span<const CorpusInput> inputs, ProgressSink& progress);

/// The file's text, valid UTF-8 with \n line ends; empty with `file.record.dropped` set where it cannot be
/// used. `cut_bytes` is what lay beyond the longest text taken. Errors: kBadInput where the user named the
/// file.
std::string read_corpus_text(FoundFile& file, std::uint64_t& cut_bytes);

}  // namespace wring::lab
