#include "engine/model_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/chat.h"
#include "engine/testing.h"

namespace wring::engine {
namespace {

namespace fs = std::filesystem;

// A complete little model folder: the llama fixture with the tiny tokenizer and a template of our own.
class ModelFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("wring_model_files_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    for (const char* name : {"config.json", "model.safetensors"}) copy(testing::data("arch/llama") / name);
    copy(testing::data("tokenizer/tok_llama/tokenizer.json"));
    write_tokenizer_config(
        {{"bos_token", "<s>"},
         {"eos_token", "</s>"},
         {"add_bos_token", true},
         {"chat_template",
          "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
          "{% if add_generation_prompt %}[assistant]{% endif %}"}});
  }
  void TearDown() override { fs::remove_all(folder_); }

  void copy(const fs::path& file) {
    fs::copy_file(file, folder_ / file.filename(), fs::copy_options::overwrite_existing);
  }
  void write_tokenizer_config(const nlohmann::json& config) {
    std::ofstream(folder_ / "tokenizer_config.json") << config;
  }

  fs::path folder_;
};

TEST_F(ModelFilesTest, RendersConversationsWithOneBos) {
  const ModelFiles files = ModelFiles::open(folder_);
  const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", "hello"}}};
  const std::string text = Chat(files).render(messages, true);
  EXPECT_EQ(text, "<s>[user] hello\n[assistant]");
  const std::vector<TokenId> ids = encode_prompt(*files.tokenizer, text);
  ASSERT_GE(ids.size(), 2U);
  EXPECT_EQ(ids[0], *files.tokenizer->bos());
  EXPECT_NE(ids[1], *files.tokenizer->bos());
  EXPECT_EQ(encode_prompt(*files.tokenizer, "hello")[0], *files.tokenizer->bos());
  EXPECT_TRUE(brings_bos(*files.tokenizer, text));
  EXPECT_FALSE(brings_bos(*files.tokenizer, "hello"));
}

TEST_F(ModelFilesTest, ABosThatOnlyTheTemplateWritesIsNoneTooMany) {
  write_tokenizer_config({{"bos_token", "<s>"}, {"add_bos_token", false}});
  EXPECT_FALSE(brings_bos(*ModelFiles::open(folder_).tokenizer, "<s>hello"));
}

TEST_F(ModelFilesTest, DocumentsArePlainText) {
  const ModelFiles files = ModelFiles::open(folder_);
  const std::vector<TokenId> ids = encode_document(*files.tokenizer, "</s>");
  EXPECT_EQ(ids[0], *files.tokenizer->bos());
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *files.tokenizer->eos()), 0);
  EXPECT_EQ(files.tokenizer->decode(std::span(ids).subspan(1)), "</s>");
}

TEST_F(ModelFilesTest, RepliesEndAtTheModelsAndTheTokenizersEos) {
  EXPECT_EQ(ModelFiles::open(folder_).stop_ids(), (std::vector<TokenId>{2}));
}

TEST_F(ModelFilesTest, WithoutTokenizerOrTemplateItSaysSo) {
  write_tokenizer_config({{"bos_token", "<s>"}});
  EXPECT_THROW(Chat(ModelFiles::open(folder_)), Error);
  fs::remove(folder_ / "tokenizer.json");
  const ModelFiles files = ModelFiles::open(folder_);
  EXPECT_FALSE(files.tokenizer);
  EXPECT_THROW(files.require_tokenizer(), Error);
}

TEST_F(ModelFilesTest, ATokenizerWithMoreIdsThanRowsIsRefused) {
  std::ifstream in(folder_ / "tokenizer.json");
  nlohmann::json tokenizer = nlohmann::json::parse(in);
  tokenizer["model"]["vocab"]["one more"] = 320;
  std::ofstream(folder_ / "tokenizer.json") << tokenizer;
  try {
    ModelFiles::open(folder_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("ids up to 320, the embedding only 320 rows"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace wring::engine
