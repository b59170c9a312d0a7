// Decoders work on a list of token texts; what is supported here are those that treat each token alone, up to
// a Fuse that joins them, and one blank taken off the joined text. Source: Hugging Face tokenizers,
// decoders/.
#include "text/decoder_hf.h"

#include "text/hf_json.h"
#include "text/pretokenizer.h"

namespace wring::text {

namespace {

class DecoderReader {
 public:
  explicit DecoderReader(std::string_view where) : where_(where) {}

  void read(const nlohmann::json& step) {
    const std::string type = type_of(step, where_);
    if (type == "Sequence") {
      for (const nlohmann::json& part : parts_of(step, "decoders", where_)) read(part);
    } else if (type == "ByteLevel") {
      expect(!any_, type);
      out_.coding.byte_level = true;
    } else if (type == "Metaspace") {
      expect(!any_, type);
      out_.coding.replacements.emplace_back(formats::json_string_or(step, "replacement", kBlankMark, where_),
                                            " ");
      out_.strips_leading_blank = prepend_scheme(step, where_) != PrependScheme::kNever;
      fused_ = true;
    } else if (type == "Replace") {
      const HfPattern pattern = read_pattern(step, where_);
      expect(!fused_ && !out_.coding.byte_level && !out_.coding.byte_tokens && !pattern.is_regex, type);
      check_rules(out_.coding.replacements.size(), where_);
      out_.coding.replacements.emplace_back(pattern.text,
                                            formats::json_string_or(step, "content", "", where_));
    } else if (type == "ByteFallback") {
      expect(!fused_ && !out_.coding.byte_level, type);
      out_.coding.byte_tokens = true;
    } else if (type == "Fuse") {
      expect(!out_.coding.byte_level, type);
      fused_ = true;
    } else if (type == "Strip") {
      read_strip(step, type);
    } else {
      throw Error(ErrorCode::kNotSupported, fmt::format("the decoder type '{}' is not supported", type),
                  std::string(where_),
                  "supported: ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip, Sequence");
    }
    any_ = true;
  }

  Decoder take() { return std::move(out_); }

 private:
  void read_strip(const nlohmann::json& step, const std::string& type) {
    const bool one_blank_in_front = formats::json_string_or(step, "content", "", where_) == " " &&
                                    formats::json_int_or(step, "start", 0, 0, 1, where_) == 1 &&
                                    formats::json_int_or(step, "stop", 0, 0, 1, where_) == 0;
    expect(fused_ && !out_.strips_leading_blank && one_blank_in_front, type);
    out_.strips_leading_blank = true;
  }

  void expect(bool supported, const std::string& type) const {
    if (supported) return;
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("the decoder {} is not supported with these settings or in this place", type),
        std::string(where_),
        "supported: ByteLevel; Metaspace; [Replace of strings, ByteFallback, Fuse, Strip of a blank in "
        "front]");
  }

  std::string_view where_;
  Decoder out_;
  bool any_ = false, fused_ = false;
};

}  // namespace

Decoder parse_decoder(const nlohmann::json& definition, std::string_view where) {
  if (definition.is_null()) {
    throw Error(ErrorCode::kNotSupported, "there is no decoder: how tokens become text is not defined",
                std::string(where));
  }
  DecoderReader reader(where);
  reader.read(definition);
  return reader.take();
}

}  // namespace wring::text
