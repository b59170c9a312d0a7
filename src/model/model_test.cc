#include "model/model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "model/names.h"
#include "model/rope.h"

namespace wring::model {
namespace {

namespace fs = std::filesystem;

fs::path data(const std::string& name) {
  return fs::path(WRING_SOURCE_DIR) / "tests" / "data" / name;
}

TEST(Names, EveryWeightOfASpecGoesToGgufAndBack) {
  for (const char* name : {"llama3_rope", "qwen2", "gemma2", "gemma3", "olmo2", "exaone4", "qwen3_5"}) {
    const Model m = Model::open(data("arch") / name);
    const std::string& type = m.config().model_type;
    std::set<std::string> seen;
    for (const Weight& w : m.weights()) {
      const auto there = gguf_name(type, w.name);
      ASSERT_TRUE(there) << w.name;
      EXPECT_TRUE(seen.insert(*there).second) << *there;
      EXPECT_EQ(hf_name(type, *there), w.name);
    }
  }
}

TEST(Names, UnknownNamesAreNotGuessed) {
  for (const char* name : {"model.layers.0.mlp.router.weight", "model.layers..mlp.down_proj.weight",
                           "model.layers.x.mlp.down_proj.weight", "model.norm", "blk.0.attn_q.weight",
                           "model.layers.0.mlp.down_proj.scale"}) {
    EXPECT_FALSE(gguf_name("llama", name)) << name;
  }
}

TEST(PairedRow, IsAPermutationThatPutsPairsSideBySide) {
  std::set<std::int64_t> rows;
  for (std::int64_t r = 0; r < 64; ++r) rows.insert(paired_row(r, 32));
  EXPECT_EQ(rows.size(), 64U);
  EXPECT_EQ(*rows.rbegin(), 63);
  EXPECT_EQ(paired_row(0, 32), 0);
  EXPECT_EQ(paired_row(16, 32), 1);   // the partner of row 0
  EXPECT_EQ(paired_row(33, 32), 34);  // second head
}

TEST(Rope, YarnKeepsFastPairsAndStretchesSlowOnes) {
  RopeParameters rope;
  const std::vector<float> plain = rope_inverse_frequencies(rope, 64);
  rope.rope_type = "yarn";
  rope.factor = 4;
  rope.original_max_position_embeddings = 128;
  const std::vector<float> yarn = rope_inverse_frequencies(rope, 64);
  // A pair that turns n times in 128 positions is number 64 · ln(128 / 2πn) / (2 ln 10000): 32 turns give
  // −1.6, one turn 10.5; rounded outwards and kept in range the ramp goes from 0 to 11.
  for (std::size_t i = 0; i < 32; ++i) {
    const double ramp = std::min(1.0, static_cast<double>(i) / 11);
    const double want = static_cast<double>(plain[i]) * (ramp / 4 + 1 - ramp);
    EXPECT_NEAR(yarn[i] / want, 1.0, 1e-6) << i;
  }
}

TEST(Rope, DefaultAndLinearFrequencies) {
  RopeParameters rope;
  const std::vector<float> plain = rope_inverse_frequencies(rope, 8);
  ASSERT_EQ(plain.size(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(plain[i], static_cast<float>(std::pow(10000.0, -i / 4.0)));
  rope.rope_type = "linear";
  rope.factor = 4;
  for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(rope_inverse_frequencies(rope, 8)[i], plain[i] / 4);
}

TEST(Rope, Llama3StretchesLongWavelengthsOnly) {
  RopeParameters rope;
  rope.rope_theta = 500000;
  const std::vector<float> plain = rope_inverse_frequencies(rope, 128);
  rope.rope_type = "llama3";
  rope.factor = 8;
  rope.low_freq_factor = 1;
  rope.high_freq_factor = 4;
  rope.original_max_position_embeddings = 8192;
  const std::vector<float> scaled = rope_inverse_frequencies(rope, 128);
  int kept = 0, divided = 0, between = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = 2 * std::acos(-1.0) / plain[i];
    if (wavelength < 8192.0 / 4) {
      EXPECT_EQ(scaled[i], plain[i]);
      ++kept;
    } else if (wavelength > 8192.0) {
      EXPECT_FLOAT_EQ(scaled[i], plain[i] / 8);
      ++divided;
    } else {
      EXPECT_LT(scaled[i], plain[i]);
      EXPECT_GT(scaled[i], plain[i] / 8);
      ++between;
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
  EXPECT_GT(between, 0);
}

TEST(Model, OlderConfigurationsSayTheSame) {
  for (const char* name : {"llama", "llama3_rope", "llama_linear_rope"}) {
    const fs::path folder = fs::path(testing::TempDir()) / ("wring_legacy_" + std::to_string(::getpid()));
    fs::create_directory(folder);
    fs::copy_file(data(std::string("arch/") + name) / "config_legacy.json", folder / "config.json",
                  fs::copy_options::overwrite_existing);
    const ModelConfig older = read_hf_config(folder),
                      today = read_hf_config(data(std::string("arch/") + name));
    EXPECT_EQ(older.rope.rope_type, today.rope.rope_type);
    EXPECT_EQ(older.rope.rope_theta, today.rope.rope_theta);
    EXPECT_EQ(older.rope.factor, today.rope.factor);
    EXPECT_EQ(older.attention_bias, today.attention_bias);
    fs::remove_all(folder);
  }
}

TEST(Model, GgufAndFolderAgree) {
  const Model hf = Model::open(data("arch/llama")), gguf = Model::open(data("gguf/llama.gguf"));
  EXPECT_EQ(hf.parameters(), gguf.parameters());
  EXPECT_EQ(hf.config().head_dim, gguf.config().head_dim);
  ASSERT_EQ(hf.weights().size(), gguf.weights().size());
  for (std::size_t i = 0; i < hf.weights().size(); ++i) {
    const Weight &a = hf.weights()[i], &b = gguf.weights()[i];
    ASSERT_EQ(a.name, b.name);
    ASSERT_EQ(a.row_bytes(), b.row_bytes());
    for (std::int64_t r = 0; r < a.rows; ++r)
      EXPECT_EQ(std::memcmp(a.row_data(r), b.row_data(r), a.row_bytes()), 0) << a.name << " row " << r;
  }
  EXPECT_FALSE(hf.is_quantized());
}

TEST(Model, ContentHashSeesEveryByte) {
  const Model m = Model::open(data("arch/llama"));
  EXPECT_EQ(m.content_hash(), Model::open(data("arch/llama")).content_hash());
  EXPECT_NE(m.content_hash(), Model::open(data("arch/llama_linear_rope")).content_hash());
}

// Heads of a gpt2 that do not fill the hidden size, or share keys and values.
TEST(GgufConfig, Gpt2sHeadsAreWhole) {
  const auto says = [](std::uint32_t kv_heads, std::uint32_t head_dim) {
    const fs::path path =
        fs::path(testing::TempDir()) / ("wring_gpt2_" + std::to_string(::getpid()) + ".gguf");
    formats::GgufWriter writer(path);
    writer.add_string("general.architecture", "gpt2");
    for (const auto& [key, value] :
         std::map<std::string, std::uint32_t>{{"embedding_length", 32},
                                              {"feed_forward_length", 64},
                                              {"block_count", 1},
                                              {"context_length", 16},
                                              {"attention.head_count", 4},
                                              {"attention.head_count_kv", kv_heads},
                                              {"attention.key_length", head_dim},
                                              {"attention.value_length", head_dim}}) {
      writer.add_u32("gpt2." + key, value);
    }
    writer.add_f32("gpt2.attention.layer_norm_epsilon", 1e-5F);
    const std::array<std::uint64_t, 2> shape = {8, 32};
    writer.declare("token_embd.weight", formats::QuantType::kF32, shape);
    writer.begin_data();
    writer.write(std::vector<std::byte>(8 * 32 * 4));
    writer.commit({});
    std::string said = "nothing";
    try {
      const auto file = formats::GgufReader::open(path);
      EXPECT_EQ(read_gguf_config(file).head_dim, 8);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kBadInput);
      said = e.what();
    }
    fs::remove(path);
    return said;
  };
  EXPECT_EQ(says(4, 8), "nothing");
  EXPECT_NE(says(4, 2).find("gpt2.attention.key_length"), std::string::npos);
  EXPECT_NE(says(1, 8).find("gpt2.attention.head_count_kv"), std::string::npos);
}

// A folder whose config.json is that of `llama` after an edit.
class BadConfig : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("wring_bad_config_" + std::to_string(::getpid()));
    fs::create_directory(folder_);
    fs::copy_file(data("arch/llama/model.safetensors"), folder_ / "model.safetensors",
                  fs::copy_options::overwrite_existing);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Error open_with(const std::function<void(nlohmann::json&)>& edit) {
    nlohmann::json config = nlohmann::json::parse(std::ifstream(data("arch/llama/config.json")));
    edit(config);
    std::ofstream(folder_ / "config.json") << config;
    try {
      Model::open(folder_);
    } catch (const Error& e) {
      return e;
    }
    return Error(ErrorCode::kInternal, "accepted");
  }

  fs::path folder_;
};

TEST_F(BadConfig, FieldsOutOfRangeAreNamed) {
  using nlohmann::json;
  const std::vector<std::pair<const char*, json>> edits = {
      {"num_attention_heads", 0},  {"num_hidden_layers", -2},
      {"hidden_size", "64"},       {"hidden_size", 64.5},
      {"rms_norm_eps", -1},        {"max_position_embeddings", 0},
      {"num_key_value_heads", 3},  {"vocab_size", 0},
      {"hidden_act", "swizzle"},   {"head_dim", 31},
      {"eos_token_id", 320},       {"tie_word_embeddings", "no"},
      {"model_type", "unheard_of"}};
  for (const auto& [field, value] : edits) {
    const Error e = open_with([&field = field, &value = value](json& c) { c[field] = value; });
    EXPECT_NE(e.code(), ErrorCode::kInternal) << field;
    EXPECT_NE(std::string(e.what()).find(field), std::string::npos) << e.what();
  }
}

TEST(Config, WhatATypeNeedsMayNotBeLeftOut) {
  const fs::path folder = fs::temp_directory_path() / ("wring_config_" + std::to_string(::getpid()));
  fs::create_directory(folder);
  const std::vector<std::pair<const char*, std::vector<const char*>>> cases = {
      {"qwen2", {"num_key_value_heads", "rms_norm_eps", "max_position_embeddings"}},
      {"gemma2", {"head_dim", "query_pre_attn_scalar"}},
      {"exaone_moe", {"norm_topk_prob", "routed_scaling_factor", "num_shared_experts", "n_group"}},
      {"deepseek_v3", {"kv_lora_rank", "topk_group", "n_shared_experts"}},
      {"qwen3_5", {"linear_num_key_heads", "rms_norm_eps"}}};
  for (const auto& [name, fields] : cases) {
    const nlohmann::json whole = nlohmann::json::parse(std::ifstream(data("arch") / name / "config.json"));
    for (const char* field : fields) {
      for (const bool null : {true, false}) {
        nlohmann::json config = whole;
        if (null) {
          config[field] = nullptr;
        } else {
          config.erase(field);
        }
        std::ofstream(folder / "config.json") << config;
        try {
          read_hf_config(folder);
          ADD_FAILURE() << name << ' ' << field << (null ? " null" : " missing") << " accepted";
        } catch (const Error& e) {
          EXPECT_NE(std::string(e.what()).find(field), std::string::npos) << e.what();
        }
      }
    }
  }
  fs::remove_all(folder);
}

TEST_F(BadConfig, RopeFieldsAreChecked) {
  using nlohmann::json;
  for (const json& rope :
       {json{{"rope_type", "llama3"},
             {"factor", 8},
             {"high_freq_factor", 4},
             {"original_max_position_embeddings", 32}},
        json{{"rope_type", "linear"}, {"factor", 0}}, json{{"rope_type", "dynamic"}, {"factor", 2}},
        json{{"rope_type", "default"}, {"rope_theta", 0}},
        json{{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}}) {
    const Error e = open_with([&](json& c) { c["rope_parameters"] = rope; });
    EXPECT_NE(e.code(), ErrorCode::kInternal) << rope;
  }
}

TEST_F(BadConfig, TensorsMustFitTheConfiguration) {
  using nlohmann::json;
  const auto says = [&](const char* field, const json& value) {
    return std::string(open_with([&](json& c) { c[field] = value; }).what());
  };
  EXPECT_NE(says("intermediate_size", 100).find("gate_proj"), std::string::npos);
  EXPECT_NE(says("num_hidden_layers", 3).find("model.layers.2.input_layernorm.weight is missing"),
            std::string::npos);
  EXPECT_NE(says("num_hidden_layers", 1).find("layers.1."),
            std::string::npos);  // never silently drop a layer
  EXPECT_NE(says("vocab_size", 100).find("[320, 64] found, [100, 64] expected"), std::string::npos);
  EXPECT_NE(says("tie_word_embeddings", true).find("lm_head"), std::string::npos);
  EXPECT_NE(says("quantization_config", json::object()).find("quantization_config"), std::string::npos);
}

}  // namespace
}  // namespace wring::model
