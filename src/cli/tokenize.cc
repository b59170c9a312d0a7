// wring tokenize: ids of texts, for checking a tokenizer against another.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "engine/model_files.h"

namespace wring::cli {
namespace {

using nlohmann::ordered_json;

struct TokenizeOptions {
  Common common;
  std::string model, text, file;
  bool add_special = false;
};

ordered_json tokenize(const text::Tokenizer& tokenizer, std::string_view text, bool add_special) {
  std::vector<text::TokenId> ids = tokenizer.encode(text, text::Specials::kParse);
  if (add_special && tokenizer.adds_bos() && tokenizer.bos()) ids.insert(ids.begin(), *tokenizer.bos());
  return {{"ids", ids}, {"decoded", replace_invalid_utf8(tokenizer.decode(ids))}};
}

// Unlike other commands, a folder that holds a tokenizer and no model will do.
text::Tokenizer open_tokenizer(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) && !std::filesystem::exists(path / "config.json", ignored))
    return text::Tokenizer::from_hf(path);
  engine::ModelFiles files = open_model_files(path.string());
  files.require_tokenizer();
  return std::move(*files.tokenizer);
}

void run(const TokenizeOptions& o, bool has_text) {
  if (has_text == !o.file.empty()) throw Error(ErrorCode::kUsage, "give either TEXT or --file", "tokenize");
  const text::Tokenizer tokenizer = open_tokenizer(o.model);
  if (has_text) {
    const ordered_json row = tokenize(tokenizer, o.text, o.add_special);
    if (o.common.json) {
      print_json(row);
    } else {
      print(fmt::format("{}\n", fmt::join(row["ids"].get<std::vector<int>>(), " ")));
    }
    return;
  }
  for_each_json_line(o.file, [&](const nlohmann::json& line, const std::string& where) {
    if (!line.contains("text") || !line["text"].is_string()) {
      throw Error(ErrorCode::kBadInput, "a string \"text\" is expected", where);
    }
    print_json(tokenize(tokenizer, line["text"].get_ref<const std::string&>(), o.add_special));
  });
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto o = std::make_shared<TokenizeOptions>();
  auto text = std::make_shared<CLI::Option*>();
  CLI::App* c = add_command(app, "tokenize", "token ids of a text, or of the lines of a JSONL file",
                            "wring tokenize sample/hf \"Hello world\"", o->common,
                            [o, text] { run(*o, (*text)->count() > 0); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  *text = c->add_option("TEXT", o->text, "the text; special tokens in it are recognised");
  c->add_option("--file", o->file, "JSONL with {\"text\"} lines; gives {\"ids\",\"decoded\"} lines");
  c->add_flag("--add-special", o->add_special, "put BOS in front if the model's definition has it");
}

}  // namespace wring::cli
