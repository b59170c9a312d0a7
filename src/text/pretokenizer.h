// Pre-tokenization: cuts text into the words within which BPE may merge. Rules are those of Hugging Face's
// pre_tokenizers (Split, Digits, ByteLevel, Sequence), reduced to two steps: split by a regex, and put a
// blank in front. They are taken from tokenizer.json or, for a GGUF, from the published definition that its
// `tokenizer.ggml.pre` names.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace wring::text {

/// What becomes of the matches of a Split; names as in tokenizer.json.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

class PreTokenizer {
 public:
  void add_split(std::string_view pattern, SplitBehavior behavior, bool invert, std::string_view where);
  /// A blank before each piece that does not start with one (add_prefix_space).
  void add_prefix_space();

  using Emit = std::function<void(std::string_view)>;
  /// Calls `emit` for the words of `text` (valid UTF-8) in order, never with an empty one. A view is valid
  /// during the call only. Errors: kBadInput from a regex that needs too many steps.
  void split(std::string_view text, RegexSearch& search, const Emit& emit) const;

  /// The rules as text, equal for equal rules.
  std::string definition() const;

 private:
  struct Rule {
    std::vector<Regex> regex;  // one, or none for the blank in front
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;
  };
  void apply(std::size_t rule, std::string_view piece, RegexSearch& search, const Emit& emit) const;

  std::vector<Rule> rules_;
};

/// The pattern of ByteLevel's own splitting (GPT-2's).
extern const std::string_view kGpt2Pattern;

/// From the "pre_tokenizer" of a tokenizer.json, which must end in ByteLevel. Errors: kNotSupported naming
/// the type.
PreTokenizer parse_pretokenizer(const nlohmann::json& definition, std::string_view where);

}  // namespace wring::text
