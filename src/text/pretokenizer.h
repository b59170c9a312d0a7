// Pre-tokenization: cuts text into the words within which a model may join characters. Rules are those of
// Hugging Face's pre_tokenizers (Split, Digits, WhitespaceSplit, Metaspace, ByteLevel, Sequence), reduced to
// three steps: split by a regex, put a blank in front, and write blanks as another character. They are taken
// from tokenizer.json or, for a GGUF, from the published definition that its `tokenizer.ggml.pre` names.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex.h"

namespace wring::text {

/// What becomes of the matches of a Split; names as in tokenizer.json.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Before which pieces a Metaspace writes its character (names as in tokenizer.json): all, the one that
/// begins the text, or none.
enum class PrependScheme { kAlways, kFirst, kNever };

class PreTokenizer {
 public:
  void add_split(std::string_view pattern, SplitBehavior behavior, bool invert, std::string_view where);
  /// A blank before each piece that does not start with one (add_prefix_space).
  void add_prefix_space();
  /// Writes blanks as `replacement`, also in front of pieces that do not begin with it, as `scheme` says.
  void add_metaspace(std::string replacement, PrependScheme scheme);

  using Emit = std::function<void(std::string_view)>;
  /// Calls `emit` for the words of `text` (valid UTF-8) in order, never with an empty one. A view is valid
  /// during the call only. `begins_text`: nothing stands before `text`. Errors: kBadInput from a regex that
  /// needs too many steps.
  void split(std::string_view text, bool begins_text, RegexSearch& search, const Emit& emit) const;

  /// The rules as text, equal for equal rules.
  std::string definition() const;

 private:
  struct Split {
    Regex regex;
    SplitBehavior behavior;
    bool invert;
  };
  struct PrefixSpace {};
  struct Metaspace {
    std::string replacement;
    PrependScheme scheme;
  };
  struct Piece {
    std::string_view text;
    bool begins_text;
  };
  void apply(std::size_t rule, Piece piece, RegexSearch& search, const Emit& emit) const;

  std::vector<std::variant<Split, PrefixSpace, Metaspace>> rules_;
};

/// The pattern of ByteLevel's own splitting (GPT-2's).
extern const std::string_view kGpt2Pattern;

/// The scheme of a Metaspace, a pre-tokenizer or decoder of tokenizer.json. Errors: kNotSupported naming it.
PrependScheme prepend_scheme(const nlohmann::json& metaspace, std::string_view where);

/// From the "pre_tokenizer" of a tokenizer.json. One for a byte-level vocabulary must end in ByteLevel, which
/// another may not have. Errors: kNotSupported naming the type.
PreTokenizer parse_pretokenizer(const nlohmann::json& definition, bool byte_level, std::string_view where);

}  // namespace wring::text
