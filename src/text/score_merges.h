// SentencePiece's BPE keeps no list of merges: any two neighbours whose joined text is a piece may join, the
// piece with the highest score first, the leftmost of equals. Here that becomes such a list, so that one BPE
// serves both. Source: SentencePiece's bpe_model.cc; tokenizer.ggml.scores of GGUF.
#pragma once

#include <span>
#include <vector>

#include "text/bpe.h"
#include "text/vocabulary.h"

namespace wring::text {

/// Every way to join two tokens to a normal one, by falling score; of one score the longest left part first.
/// `scores` by id, finite; tokens as check_scored_lengths() wants them.
std::vector<Merge> merges_from_scores(const Vocabulary& vocabulary, std::span<const double> scores);

}  // namespace wring::text
