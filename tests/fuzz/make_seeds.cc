// Inputs to start fuzzing from, of the kinds that tests/data holds no file of.
//   make_seeds DATA OUT: reads the definitions in DATA (tests/data), writes OUT/TARGET/NAME
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "formats/imatrix.h"
#include "formats/safetensors.h"

namespace wring::fuzz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path place(const fs::path& out, const std::string& target, const std::string& name) {
  fs::create_directories(out / target);
  return out / target / name;
}

// A whole tokenizer.json for each set of SentencePiece-style rules.
void write_tokenizers(const json& sentencepiece, const fs::path& out) {
  for (json c : sentencepiece.at("cases")) {
    json model = sentencepiece.at("models").at(c.at("model"));
    model.update(c.at("changes"));
    c["model"] = std::move(model);
    c.erase("texts");
    std::ofstream(place(out, "tokenizer", c.at("name").get<std::string>() + ".json")) << c;
  }
}

// A llama of one block, as small as it gets, over a vocabulary of `tokens`; `tokenizer` adds its keys.
void write_model(const fs::path& path, const std::vector<std::string>& tokens,
                 const std::function<void(formats::GgufWriter&)>& tokenizer) {
  using formats::QuantType;
  formats::GgufWriter writer(path);
  writer.add_string("general.architecture", "llama");
  for (const char* key : {"embedding_length", "feed_forward_length"})
    writer.add_u32(fmt::format("llama.{}", key), 32);
  for (const char* key : {"block_count", "attention.head_count"})
    writer.add_u32(fmt::format("llama.{}", key), 1);
  writer.add_u32("llama.context_length", 128);
  writer.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  tokenizer(writer);

  constexpr std::uint64_t kVector[] = {32}, kMatrix[] = {32, 32};
  const std::uint64_t embedding[] = {tokens.size(), 32};
  std::vector<std::size_t> sizes;
  const auto declare = [&](const std::string& name, QuantType type, std::span<const std::uint64_t> shape) {
    writer.declare(name + ".weight", type, shape);
    sizes.push_back(formats::bytes_of(type, shape.size() == 2 ? shape[0] : 1, 32));
  };
  declare("token_embd", QuantType::kQ4_0, embedding);
  for (const char* name : {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"})
    declare(name, QuantType::kF32, kVector);
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
    declare(fmt::format("blk.0.{}", name), QuantType::kIQ4_NL, kMatrix);
  writer.begin_data();
  for (const std::size_t size : sizes) writer.write(std::vector<std::byte>(size));
  writer.commit();
}

// SentencePiece's pieces as GGUF holds them: texts, scores and types.
void write_scored_models(const json& sentencepiece, const fs::path& out) {
  int count = 0;
  for (const json& entry : sentencepiece.at("gguf")) {
    std::vector<std::string> tokens;
    std::vector<float> scores;
    std::vector<std::int32_t> types;
    for (const json& token : entry.at("tokens")) {
      tokens.push_back(token.at(0));
      scores.push_back(token.at(1));
      types.push_back(token.at(2));
    }
    write_model(place(out, "gguf", fmt::format("scores{}.gguf", ++count)), tokens, [&](auto& writer) {
      writer.add_string("tokenizer.ggml.model", entry.at("model").template get<std::string>());
      writer.add_f32s("tokenizer.ggml.scores", scores);
      writer.add_i32s("tokenizer.ggml.token_type", types);
      writer.add_bool("tokenizer.ggml.add_space_prefix", entry.at("add_space_prefix"));
    });
  }
}

// Byte-level BPE.
void write_merging_model(const fs::path& tokenizer, const fs::path& out) {
  std::ifstream in(tokenizer);
  const json model = json::parse(in).at("model");
  std::vector<std::string> tokens(model.at("vocab").size());
  for (const auto& [text, id] : model.at("vocab").items()) tokens.at(id) = text;
  std::vector<std::string> merges;
  for (const json& merge : model.at("merges")) {
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : fmt::format("{} {}", merge[0].get<std::string>(), merge[1].get<std::string>()));
  }
  write_model(place(out, "gguf", "merges.gguf"), tokens, [&](auto& writer) {
    writer.add_string("tokenizer.ggml.model", "gpt2");
    writer.add_string("tokenizer.ggml.pre", "llama-bpe");
    writer.add_strings("tokenizer.ggml.merges", merges);
  });
}

// One tensor of two rows of each type that GGUF has.
void write_block_types(const fs::path& out) {
  using formats::QuantType;
  constexpr std::uint64_t kShape[] = {2, 256};
  std::vector<QuantType> types;
  for (std::uint32_t id = 0; id < 64; ++id) {
    if (const auto type = formats::quant_type_from_gguf_id(id)) types.push_back(*type);
  }
  formats::GgufWriter writer(place(out, "gguf", "types.gguf"));
  for (const QuantType type : types) writer.declare(formats::name_of(type), type, kShape);
  writer.begin_data();
  for (const QuantType type : types) {
    writer.write(std::vector<std::byte>(formats::bytes_of(type, kShape[0], kShape[1])));
  }
  writer.commit();
}

void write_safetensors(const fs::path& out) {
  using formats::QuantType;
  formats::SafetensorsWriter writer(place(out, "safetensors", "two.safetensors"));
  writer.set_metadata({{"format", "pt"}});
  constexpr std::uint64_t kMatrix[] = {2, 3}, kVector[] = {4};
  writer.declare("model.norm.weight", QuantType::kF32, kVector);
  writer.declare("model.embed_tokens.weight", QuantType::kBF16, kMatrix);
  writer.begin_data();
  for (const std::size_t size : {16, 12}) writer.write(std::vector<std::byte>(size));
  writer.commit();
}

void write_imatrices(const fs::path& out) {
  formats::Imatrix imatrix;
  imatrix.datasets = {"calibration.txt"};
  imatrix.chunk_count = 2;
  imatrix.chunk_size = 512;
  imatrix.entries["blk.0.attn_q.weight"] = {.sum_squares = {1, 2, 3, 4}, .counts = {1024}};
  imatrix.entries["blk.0.ffn_up_exps.weight"] = {.sum_squares = {1, 2, 3, 4, 0, 0}, .counts = {700, 324, 0}};
  formats::write_imatrix(imatrix, place(out, "imatrix", "imatrix.gguf"));
}

void write_templates(const fs::path& data, const fs::path& out) {
  int count = 0;
  for (const char* name : {"jinja_golden.jsonl", "chat/chat_gemma3.jsonl", "chat/chat_smollm2.jsonl"}) {
    std::ifstream in(data / name);
    for (std::string line; std::getline(in, line);) {
      const json row = json::parse(line);
      if (!row.contains("template")) continue;
      std::ofstream(place(out, "chat_template", fmt::format("{}.jinja", ++count)))
          << row.at("template").get<std::string>();
    }
  }
}

int make_seeds(const fs::path& data, const fs::path& out) {
  std::ifstream in(data / "tokenizer/sentencepiece.json");
  const json sentencepiece = json::parse(in);
  write_tokenizers(sentencepiece, out);
  write_scored_models(sentencepiece, out);
  write_merging_model(data / "tokenizer/tok_llama/tokenizer.json", out);
  write_block_types(out);
  write_imatrices(out);
  write_safetensors(out);
  write_templates(data, out);
  return 0;
}

}  // namespace
}  // namespace wring::fuzz

int main(int argc, char** argv) {
  if (argc == 3) return wring::fuzz::make_seeds(argv[1], argv[2]);
  fmt::print(stderr, "usage: make_seeds DATA OUT\n");
  return 2;
}
