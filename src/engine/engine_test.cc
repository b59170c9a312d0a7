#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/scheduler.h"
#include "engine/testing.h"
#include "engine/weight_rows.h"

namespace wring::engine {
namespace {

using testing::data;
using testing::read;
using testing::read_ids;

double deviation(const std::vector<float>& v) {
  double sum = 0, squares = 0;
  for (const float x : v) sum += x, squares += double{x} * x;
  const double mean = sum / static_cast<double>(v.size());
  return std::sqrt(squares / static_cast<double>(v.size()) - mean * mean);
}

double worst(std::span<const float> a, std::span<const float> b) {
  double w = 0;
  for (std::size_t i = 0; i < a.size(); ++i) w = std::max(w, std::abs(double{a[i]} - double{b[i]}));
  return w;
}

std::vector<float> flat(const Rows& rows) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < rows.count; ++i) out.insert(out.end(), rows.row(i).begin(), rows.row(i).end());
  return out;
}

std::vector<float> all_logits(Engine& engine, std::span<const TokenId> ids,
                              const std::vector<std::size_t>& chunks) {
  const SequenceId s = engine.add_sequence();
  std::vector<float> out;
  for (std::size_t at = 0, i = 0; at < ids.size(); ++i) {
    const std::size_t n = std::min(chunks[i % chunks.size()], ids.size() - at);
    const StepResult r =
        engine.step({{{s, static_cast<std::int64_t>(at), ids.subspan(at, n), Logits::kAll}}});
    const std::vector<float> rows = flat(r.logits);
    out.insert(out.end(), rows.begin(), rows.end());
    engine.commit(s, static_cast<std::int64_t>(n));
    at += n;
  }
  engine.remove_sequence(s);
  return out;
}

struct Residuals final : ForwardObserver {
  bool wants_inputs() const override { return false; }
  void on_residual(int, const Rows& rows) override {
    const std::vector<float> v = flat(rows);
    values.insert(values.end(), v.begin(), v.end());
  }
  std::vector<float> values;
};

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, LogitsAndHiddenStatesAreTheReferences) {
  const auto golden =
      formats::SafetensorsReader::open(data(std::string("arch/") + GetParam()) / "golden.safetensors");
  const model::Model m = model::Model::open(data(std::string("arch/") + GetParam()));
  Engine engine(m, {});
  const std::vector<TokenId> ids = read_ids(golden, "input_ids");
  const SequenceId s = engine.add_sequence();
  Residuals residuals;
  const StepResult r = engine.step({{{s, 0, ids, Logits::kAll}}}, &residuals);
  const std::vector<float> want = read<float>(golden, "logits"), hidden = read<float>(golden, "hidden");
  ASSERT_EQ(want.size(), static_cast<std::size_t>(r.logits.count * r.logits.columns));
  EXPECT_LT(worst(flat(r.logits), want), 1e-4 * deviation(want));
  ASSERT_EQ(hidden.size(), residuals.values.size());
  EXPECT_LT(worst(residuals.values, hidden), 1e-4 * deviation(hidden));
}

TEST_P(Golden, GreedyRepliesAreTheReferences) {
  const auto golden =
      formats::SafetensorsReader::open(data(std::string("arch/") + GetParam()) / "golden.safetensors");
  const model::Model m = model::Model::open(data(std::string("arch/") + GetParam()));
  Engine engine(m, {});
  const std::vector<TokenId> ids = read_ids(golden, "greedy_ids");
  std::vector<TokenId> got;
  Scheduler scheduler(engine, {});
  Request request;
  request.prompt.assign(ids.begin(), ids.begin() + 16);
  request.max_tokens = 16;
  request.on_token = [&](TokenId id) {
    got.push_back(id);
    return true;
  };
  scheduler.submit(std::move(request));
  scheduler.run(silent_progress());
  EXPECT_EQ(got, std::vector<TokenId>(ids.begin() + 16, ids.end()));
}

TEST_P(Golden, TheOlderConfigurationSaysTheSame) {
  const std::filesystem::path folder = data(std::string("arch/") + GetParam());
  std::string name = (std::filesystem::temp_directory_path() / "wring_older_XXXXXX").string();
  const std::filesystem::path older = mkdtemp(name.data());
  std::filesystem::copy_file(folder / "config_legacy.json", older / "config.json");
  EXPECT_EQ(model::describe(model::make_spec(model::read_hf_config(older))),
            model::describe(model::make_spec(model::read_hf_config(folder))));
  std::filesystem::remove_all(older);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Golden,
                         ::testing::Values("llama", "llama3_rope", "llama_linear_rope", "qwen2", "gemma2",
                                           "gemma3", "olmo2", "exaone4", "phi3", "exaone_moe", "deepseek_v3",
                                           "gpt2", "gpt_oss"));

// Block by block, two documents at a time, gives what a step gives; a replaced matrix counts until it is
// restored.
TEST_P(Golden, BlocksOneByOneAreTheStep) {
  model::Model m = model::Model::open(data(std::string("arch/") + GetParam()));
  Engine engine(m, {});
  const std::vector<TokenId> a = {5, 9, 200, 17, 3, 319, 0, 44}, b = {7, 7, 31};
  const std::vector<std::span<const TokenId>> documents = {a, b};
  const auto hidden = static_cast<std::size_t>(m.spec().hidden_size);
  const auto last_block = [&] {
    std::vector<float> residual(11 * hidden);
    engine.embed(documents, residual);
    for (std::size_t layer = 0; layer < m.spec().layers.size(); ++layer)
      engine.forward_block(static_cast<int>(layer), documents, residual);
    return residual;
  };
  Residuals whole;
  const SequenceId x = engine.add_sequence(), y = engine.add_sequence();
  engine.step({{{x, 0, a}, {y, 0, b}}}, &whole);
  const std::vector<float> want(whole.values.end() - static_cast<std::ptrdiff_t>(11 * hidden),
                                whole.values.end());
  EXPECT_EQ(last_block(), want);

  const std::string name = m.spec().layers[0].attention.o.name + ".weight";
  std::vector<float> values = read_matrix(m.weight(name), kernels::kernels());
  for (float& v : values) v *= 0.5F;
  m.replace(name, values);
  EXPECT_NE(last_block(), want);
  m.restore(name);
  EXPECT_EQ(last_block(), want);
}

TEST(Engine, ExpertsStoredAsMxfp4GiveTheReferencesLogits) {
  const auto golden = formats::SafetensorsReader::open(data("arch/gpt_oss_mxfp4/golden.safetensors"));
  const model::Model m = model::Model::open(data("arch/gpt_oss_mxfp4"));
  EXPECT_EQ(m.weight("model.layers.0.mlp.experts.3.up_proj.weight").type_name(), "MXFP4");
  Engine engine(m, {});
  const std::vector<float> want = read<float>(golden, "logits");
  const std::vector<float> got = all_logits(engine, read_ids(golden, "input_ids"), {48});
  ASSERT_EQ(want.size(), got.size());
  EXPECT_LT(worst(got, want), 1e-4 * deviation(want));
}

TEST(Engine, AGgufCopyComputesTheSameBits) {
  for (const std::string name : {"llama", "exaone_moe", "deepseek_v3"}) {
    const model::Model hf = model::Model::open(data("arch/" + name)),
                       gguf = model::Model::open(data("gguf/" + name + ".gguf"));
    Engine a(hf, {}), b(gguf, {});
    const std::vector<TokenId> ids = {5, 9, 200, 17, 3, 319, 0, 44};
    EXPECT_EQ(all_logits(a, ids, {8}), all_logits(b, ids, {8})) << name;
  }
}

// Value heads lie in another order there, so sums over them have another.
TEST(Engine, AGgufCopyWithItsHeadsReorderedComputesTheSameToRounding) {
  const model::Model hf = model::Model::open(data("arch/qwen3_5")),
                     gguf = model::Model::open(data("gguf/qwen3_5.gguf"));
  Engine a(hf, {}), b(gguf, {});
  const std::vector<TokenId> ids = {5, 9, 200, 17, 3, 319, 0, 44};
  const std::vector<float> want = all_logits(a, ids, {8});
  EXPECT_LT(worst(all_logits(b, ids, {8}), want), 1e-4 * deviation(want));
}

// A copy of a model with other fields in its config.json.
class Edited {
 public:
  Edited(const std::string& model, const nlohmann::json& changes) {
    std::string name = (std::filesystem::temp_directory_path() / "wring_edited_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    nlohmann::json config = nlohmann::json::parse(std::ifstream(data(model) / "config.json"));
    config.update(changes);
    std::ofstream(folder_ / "config.json") << config;
    std::filesystem::create_symlink(data(model) / "model.safetensors", folder_ / "model.safetensors");
  }
  ~Edited() { std::filesystem::remove_all(folder_); }
  Edited(const Edited&) = delete;
  Edited& operator=(const Edited&) = delete;
  model::Model open() const { return model::Model::open(folder_); }

 private:
  std::filesystem::path folder_;
};

TEST(Engine, LongropeIsChosenOnceForASequence) {
  const std::vector<double> ones(12, 1.0), stretched(12, 3.0);
  const auto rope = [](const nlohmann::json& shorts, const nlohmann::json& longs) {
    return nlohmann::json{{"original_max_position_embeddings", 32},
                          {"rope_parameters",
                           {{"rope_type", "longrope"},
                            {"rope_theta", 10000.0},
                            {"short_factor", shorts},
                            {"long_factor", longs},
                            {"attention_factor", 1.25}}}};
  };
  const model::Model both = Edited("arch/phi3", rope(ones, stretched)).open(),
                     shorts = Edited("arch/phi3", rope(ones, ones)).open(),
                     longs = Edited("arch/phi3", rope(stretched, stretched)).open();
  std::vector<TokenId> all;
  for (int i = 0; i < 40; ++i) all.push_back(i * 7 % 320);
  const auto logits = [&](const model::Model& m, std::int64_t longest, std::size_t count, std::size_t chunk) {
    Engine engine(m, {});
    const SequenceId s = engine.add_sequence(longest);
    std::vector<float> out;
    for (std::size_t at = 0; at < count; at += chunk) {
      const auto part = std::span(all).subspan(at, std::min(chunk, count - at));
      const std::vector<float> rows =
          flat(engine.step({{{s, static_cast<std::int64_t>(at), part, Logits::kAll}}}).logits);
      out.insert(out.end(), rows.begin(), rows.end());
      engine.commit(s, static_cast<std::int64_t>(part.size()));
    }
    return out;
  };
  EXPECT_EQ(logits(both, 32, 32, 32), logits(shorts, 32, 32, 32));
  EXPECT_EQ(logits(both, 0, 32, 32), logits(shorts, 32, 32, 32));
  EXPECT_EQ(logits(both, 40, 40, 40), logits(longs, 40, 40, 40));
  EXPECT_EQ(logits(both, 40, 40, 7), logits(longs, 40, 40, 40));
  EXPECT_NE(logits(shorts, 40, 40, 40), logits(longs, 40, 40, 40));
  EXPECT_THROW(logits(both, 0, 33, 33), Error);  // frequencies of short sequences were chosen

  // A reply that grows past the short context goes on as if all of it had been long.
  std::vector<TokenId> want(all.begin(), all.begin() + 28);
  for (int i = 0; i < 10; ++i) {
    Engine engine(want.size() > 32 ? longs : shorts, {});
    const SequenceId s = engine.add_sequence(40);
    want.push_back(argmax(engine.step({{{s, 0, want, Logits::kLast}}}).logits.row(0)));
  }
  for (const std::int64_t most : {10, 200}) {
    Engine engine(both, {});
    Scheduler scheduler(engine, {});
    std::vector<TokenId> got(all.begin(), all.begin() + 28);
    Request q;
    q.prompt = got;
    q.max_tokens = most;
    q.on_token = [&](TokenId id) {
      got.push_back(id);
      return got.size() < want.size();
    };
    scheduler.submit(std::move(q));
    scheduler.run(silent_progress());
    EXPECT_EQ(got, want) << most;
  }
}

TEST(Engine, AStepOfOnePositionReadsTheExpertsItIsSentTo) {
  const model::Model m = model::Model::open(data("arch/exaone_moe"));
  const Engine engine(m, {});
  std::uint64_t read = 0, all = 0;
  for (const model::LinearUse& use : model::block_linears(m.spec())) {
    const std::uint64_t bytes = m.weight(use.linear->name + ".weight").data.size();
    all += bytes;
    read += use.linear->expert < 0 ? bytes : bytes * 3 / 8;
  }
  const std::uint64_t head = m.weight("lm_head.weight").data.size();
  EXPECT_EQ(engine.memory().streamed_bytes, read + head);
  EXPECT_EQ(engine.memory().weights_bytes, all + head + m.weight("model.embed_tokens.weight").data.size());
}

// Windows, soft caps, layers without positions and norms of every kind in chunks of every size.
TEST_P(Golden, ChunksAndThreadsDoNotMatter) {
  const model::Model m = model::Model::open(data(std::string("arch/") + GetParam()));
  std::vector<TokenId> ids;
  const auto count = std::min<std::int64_t>(150, m.config().max_position_embeddings);
  for (int i = 0; i < count; ++i) ids.push_back((i * 7919 + i * i) % 320);
  Engine engine(m, {.threads = 2}), one(m, {.threads = 1});
  const std::vector<float> whole = all_logits(engine, ids, {512});
  for (const std::vector<std::size_t>& chunks : {std::vector<std::size_t>{1}, {7}, {64}, {3, 130, 1}}) {
    EXPECT_EQ(all_logits(one, ids, chunks), whole) << chunks[0];
  }
}

class Invariance : public ::testing::Test {
 protected:
  Invariance() : model_(model::Model::open(data("arch/llama3_rope"))) {
    for (int i = 0; i < 300; ++i) ids_.push_back((i * 7919 + i * i) % 320);
  }
  model::Model model_;
  std::vector<TokenId> ids_;
};

TEST_F(Invariance, ChunksOfThePromptDoNotMatter) {
  Engine engine(model_, {});
  const std::vector<float> whole = all_logits(engine, ids_, {512});
  for (const std::vector<std::size_t>& chunks : {std::vector<std::size_t>{1}, {7}, {64}, {3, 130, 1}}) {
    EXPECT_EQ(all_logits(engine, ids_, chunks), whole) << chunks[0];
  }
}

TEST_F(Invariance, ThreadsDoNotMatter) {
  Engine one(model_, {.threads = 1}), three(model_, {.threads = 3});
  EXPECT_EQ(all_logits(one, ids_, {50}), all_logits(three, ids_, {50}));
}

TEST_F(Invariance, BatchMatesDoNotMatter) {
  Engine engine(model_, {});
  const std::span<const TokenId> ids(ids_);
  const std::vector<float> alone = all_logits(engine, ids.first(40), {40});
  const SequenceId a = engine.add_sequence(), b = engine.add_sequence(), c = engine.add_sequence();
  const StepResult r = engine.step({{{a, 0, ids.subspan(100, 77), Logits::kLast},
                                     {b, 0, ids.first(40), Logits::kAll},
                                     {c, 0, ids.subspan(3, 1), Logits::kNone}}});
  EXPECT_EQ(r.first_row, (std::vector<std::int64_t>{0, 1, -1}));
  const std::vector<float> rows = flat(r.logits);
  EXPECT_EQ(std::vector<float>(rows.begin() + 320, rows.end()), alone);
}

TEST_F(Invariance, UncommittedPositionsLeaveNoTrace) {
  Engine engine(model_, {});
  const std::span<const TokenId> ids(ids_);
  const std::vector<float> plain = all_logits(engine, ids.first(90), {60, 30});
  const SequenceId s = engine.add_sequence();
  engine.step({{{s, 0, ids.first(60), Logits::kNone}}});
  engine.commit(s, 60);
  engine.step({{{s, 60, ids.subspan(200, 20), Logits::kAll}}});  // a draft of which nothing is accepted
  engine.commit(s, 0);
  EXPECT_EQ(engine.length(s), 60);
  const StepResult r = engine.step({{{s, 60, ids.subspan(60, 30), Logits::kAll}}});
  EXPECT_EQ(flat(r.logits), std::vector<float>(plain.begin() + 60 * 320, plain.end()));
}

// A recurrent state is not kept a position: what is rolled back is replayed by the next step.
TEST(Recurrent, DraftsLeaveNoTraceHoweverManyAreAccepted) {
  for (const char* name : {"qwen3_5", "qwen3_next"}) {
    const model::Model m = model::Model::open(data(std::string("arch/") + name));
    std::vector<TokenId> ids;
    for (int i = 0; i < 60; ++i) ids.push_back((i * 7919 + i * i) % 320);
    Engine engine(m, {.threads = 2});
    const std::span<const TokenId> all(ids);
    const std::vector<float> plain = all_logits(engine, all, {60});
    for (int accepted = 0; accepted <= 5; ++accepted) {
      const SequenceId s = engine.add_sequence();
      engine.step({{{s, 0, all.first(20), Logits::kNone, 20}}});
      engine.commit(s, 20);
      std::int64_t at = 20;
      while (at + 6 <= 60) {
        // One certain position and five drafted ones, of which the first `accepted` are right.
        std::vector<TokenId> rows(ids.begin() + at, ids.begin() + at + 6);
        for (std::size_t i = static_cast<std::size_t>(accepted) + 1; i < rows.size(); ++i)
          rows[i] = (rows[i] + 1) % 320;
        const std::vector<float> got = flat(engine.step({{{s, at, rows, Logits::kAll, 1}}}).logits);
        const auto right = static_cast<std::ptrdiff_t>(320 * (1 + accepted));
        EXPECT_TRUE(std::equal(got.begin(), got.begin() + right, plain.begin() + at * 320))
            << name << ' ' << at;
        EXPECT_THROW(engine.commit(s, 0), Error);  // one was certain
        engine.commit(s, 1 + accepted);
        at += 1 + accepted;
      }
      engine.remove_sequence(s);
    }
  }
}

TEST_F(Invariance, ScheduledBatchesGiveTheRepliesOfSingleRequests) {
  Engine engine(model_, {});
  const auto reply = [&](int n_together, int sequences, int rows) {
    std::vector<std::vector<TokenId>> replies(static_cast<std::size_t>(n_together));
    Scheduler scheduler(engine, {.max_sequences = sequences, .max_step_rows = rows});
    for (int i = 0; i < n_together; ++i) {
      Request q;
      q.prompt.assign(ids_.begin() + i, ids_.begin() + i + 20 + 3 * i);
      q.max_tokens = 12;
      q.sampling = {.temperature = i % 2 ? 0.9 : 0.0, .top_p = 0.95, .seed = 11};
      q.on_token = [&replies, i](TokenId id) {
        replies[static_cast<std::size_t>(i)].push_back(id);
        return true;
      };
      scheduler.submit(std::move(q));
    }
    scheduler.run(silent_progress());
    return replies;
  };
  const auto serial = reply(6, 1, 512);
  EXPECT_EQ(reply(6, 6, 512), serial);
  EXPECT_EQ(reply(6, 3, 5), serial);
}

TEST_F(Invariance, PromptLogitsArriveOnceInOrderWhateverTheChunks) {
  Engine engine(model_, {});
  const std::vector<float> whole = all_logits(engine, ids_, {512});
  std::vector<float> got;
  Scheduler scheduler(engine, {.max_logits_bytes = 10 * 320 * sizeof(float)});
  Request q;
  q.prompt = ids_;
  q.prompt_logits = true;
  q.on_prompt_logits = [&](std::int64_t first, const Rows& rows) {
    EXPECT_EQ(static_cast<std::size_t>(first) * 320, got.size());
    const std::vector<float> v = flat(rows);
    got.insert(got.end(), v.begin(), v.end());
  };
  scheduler.submit(std::move(q));
  scheduler.run(silent_progress());
  EXPECT_EQ(got, whole);
}

TEST_F(Invariance, BrokenBatchesAreRefusedAndChangeNothing) {
  Engine engine(model_, {});
  const SequenceId s = engine.add_sequence();
  const std::vector<TokenId> outside = {320}, fine = {1, 2};
  EXPECT_THROW(engine.step({{{s, 0, outside, Logits::kAll}}}), Error);
  EXPECT_THROW(engine.step({{{s, 5, fine, Logits::kAll}}}), Error);
  EXPECT_THROW(engine.step({{{s + 1, 0, fine, Logits::kAll}}}), Error);
  EXPECT_THROW(engine.step({{{s, 0, fine, Logits::kAll}, {s, 0, fine, Logits::kAll}}}), Error);
  EXPECT_THROW(engine.step({{{s, 0, std::vector<TokenId>(513, 1), Logits::kNone}}}),
               Error);  // the context is 512
  EXPECT_THROW(engine.commit(s, 1), Error);
  engine.step({{{s, 0, fine, Logits::kAll}}});
  EXPECT_THROW(engine.commit(s, 3), Error);
  engine.commit(s, 2);
  EXPECT_EQ(engine.length(s), 2);
}

TEST_F(Invariance, TheCacheKeepsToItsLimitAndGetsPagesBack) {
  const std::uint64_t page =
      2 * 2 * 2 * 32 * 64 * sizeof(float);  // layers × heads × (k, v) × head_dim × positions
  Engine engine(model_, {.kv_bytes = 2 * page});
  const SequenceId a = engine.add_sequence(), b = engine.add_sequence();
  engine.step({{{a, 0, std::span(ids_).first(128), Logits::kNone}}});
  EXPECT_EQ(engine.memory().kv_bytes, 2 * page);
  EXPECT_THROW(engine.step({{{b, 0, std::span(ids_).first(1), Logits::kNone}}}), Error);
  engine.remove_sequence(a);
  engine.step({{{b, 0, std::span(ids_).first(1), Logits::kNone}}});
  EXPECT_EQ(engine.memory().kv_bytes, page);
}

}  // namespace
}  // namespace wring::engine
