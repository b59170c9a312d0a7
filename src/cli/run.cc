// wring run: answers one prompt, or chats.
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/open.h"
#include "engine/chat.h"
#include "engine/scheduler.h"

namespace wring::cli {
namespace {

using Clock = std::chrono::steady_clock;
using engine::TokenId;

struct RunOptions {
  Common common;
  engine::ComputeMode compute = engine::ComputeMode::kPacked;
  std::string model, prompt, ids;
  std::int64_t tokens = 256;
  bool raw = false, ignore_eos = false;
  engine::SamplingParams sampling;
};

struct Reply {
  std::vector<TokenId> ids;
  std::string text;
  engine::FinishReason reason = engine::FinishReason::kLength;
  double prefill_seconds = 0, decode_seconds = 0;
};

class Session {
 public:
  Session(const RunOptions& o, const engine::ModelFiles& files)
      : options_(o),
        files_(files),
        engine_(files.model, {.compute = o.compute, .threads = o.common.threads}) {}

  /// Generates a reply to `prompt`; `on_text` gets its text piece by piece.
  Reply reply(std::vector<TokenId> prompt, const std::function<void(std::string_view)>& on_text) {
    Reply reply;
    std::optional<text::StreamingDetokenizer> detokenizer;
    if (files_.tokenizer) detokenizer.emplace(*files_.tokenizer);
    const auto emit = [&](const std::string& piece) {
      reply.text += piece;
      on_text(piece);
    };
    const std::vector<TokenId> stop_ids = options_.ignore_eos ? std::vector<TokenId>() : files_.stop_ids();
    Clock::time_point first, last = Clock::now();
    const Clock::time_point start = last;
    engine::Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = options_.tokens;
    request.sampling = options_.sampling;
    request.stop_ids = stop_ids;
    request.on_token = [&](TokenId id) {
      last = Clock::now();
      if (reply.ids.empty()) first = last;
      reply.ids.push_back(id);
      const bool stop = std::ranges::find(stop_ids, id) != stop_ids.end();
      if (detokenizer && !stop) emit(detokenizer->push(id));
      return true;
    };
    request.on_finish = [&](engine::FinishReason reason) { reply.reason = reason; };
    engine::Scheduler scheduler(engine_, {});
    scheduler.submit(std::move(request));
    scheduler.run(terminal_progress());
    if (detokenizer) emit(detokenizer->finish());
    reply.prefill_seconds = std::chrono::duration<double>(first - start).count();
    reply.decode_seconds = std::chrono::duration<double>(last - first).count();
    return reply;
  }

 private:
  const RunOptions& options_;
  const engine::ModelFiles& files_;
  engine::Engine engine_;
};

double rate(double count, double seconds) {
  return seconds > 0 ? count / seconds : 0;
}

// The ids of a conversation, up to where the model's reply begins.
std::vector<TokenId> encode_turns(const engine::Chat& chat, const text::Tokenizer& tokenizer,
                                  const nlohmann::ordered_json& messages) {
  const std::string text = chat.render(messages, true);
  if (messages.size() == 1 && engine::brings_bos(tokenizer, text)) {  // once a conversation
    warn(fmt::format("the chat template writes {}, which the tokenizer is set to add too; it is given once",
                     tokenizer.bytes_of(*tokenizer.bos())));
  }
  return engine::encode_prompt(tokenizer, text);
}

std::vector<TokenId> make_prompt(const RunOptions& o, const engine::ModelFiles& files) {
  if (!o.ids.empty()) return parse_ids(o.ids);
  const text::Tokenizer& tokenizer = files.require_tokenizer();
  if (o.raw || !files.chat_template_source) return engine::encode_document(tokenizer, o.prompt);
  const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", o.prompt}}};
  return encode_turns(engine::Chat(files), tokenizer, messages);
}

void answer(const RunOptions& o, const engine::ModelFiles& files) {
  std::vector<TokenId> prompt = make_prompt(o, files);
  const std::size_t prompt_size = prompt.size();
  Session session(o, files);
  const bool stream = !o.common.json && files.tokenizer.has_value();
  const Reply r = session.reply(std::move(prompt), [&](std::string_view piece) {
    if (stream) print(piece);
  });
  const double prefill = rate(static_cast<double>(prompt_size), r.prefill_seconds);
  const double decode = rate(static_cast<double>(r.ids.size()) - 1, r.decode_seconds);
  if (o.common.json) {
    nlohmann::ordered_json out;
    out["text"] = files.tokenizer ? nlohmann::ordered_json(r.text) : nlohmann::ordered_json(nullptr);
    out["ids"] = r.ids;
    out["finish_reason"] = engine::finish_reason_name(r.reason);
    out["prompt_tokens"] = prompt_size;
    out["compute"] = compute_mode_name(o.compute);
    out["prefill_tokens_per_s"] = prefill;
    out["decode_tokens_per_s"] = decode;
    print_json(out);
    return;
  }
  if (!files.tokenizer) print(fmt::format("{}", fmt::join(r.ids, ",")));
  print("\n");
  note(fmt::format("[{} tokens in, {} out; prefill {:.1f} tokens/s, decode {:.1f} tokens/s, {} mode]\n",
                   prompt_size, r.ids.size(), prefill, decode, compute_mode_name(o.compute)));
}

void chat(const RunOptions& o, const engine::ModelFiles& files) {
  const text::Tokenizer& tokenizer = files.require_tokenizer();
  const engine::Chat chat(files);
  Session session(o, files);
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  note(fmt::format("Chatting with {}; an empty line or Ctrl-D ends it.\n", o.model));
  for (std::string line;;) {
    note("> ");
    const bool read = static_cast<bool>(std::getline(std::cin, line));
    terminal_progress().throw_if_cancelled();  // a signal ends the read, and the chat with it
    if (!read || line.empty()) return;
    messages.push_back({{"role", "user"}, {"content", line}});
    const Reply r =
        session.reply(encode_turns(chat, tokenizer, messages), [](std::string_view piece) { print(piece); });
    print("\n");
    messages.push_back({{"role", "assistant"}, {"content", r.text}});
  }
}

void run(const RunOptions& o, bool has_prompt) {
  if (has_prompt && !o.ids.empty()) throw Error(ErrorCode::kUsage, "give either --prompt or --ids");
  const bool chats = !has_prompt && o.ids.empty();
  if (chats && o.common.json)
    throw Error(ErrorCode::kUsage, "a chat has no --json", "", "give a prompt with --prompt or --ids");
  const engine::ModelFiles files = open_model_files(o.model);
  if (chats) {
    chat(o, files);
  } else {
    answer(o, files);
  }
}

}  // namespace

void add_run(CLI::App& app) {
  auto o = std::make_shared<RunOptions>();
  auto prompt = std::make_shared<CLI::Option*>();
  CLI::App* c = add_command(app, "run", "answers a prompt, or chats if none is given",
                            "wring run sample/hf -p \"Why is the sky blue?\"", o->common,
                            [o, prompt] { run(*o, (*prompt)->count() > 0); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  *prompt = c->add_option("-p,--prompt", o->prompt,
                          "the prompt; goes through the chat template if the model has one");
  c->add_option("--ids", o->ids, "the prompt as token ids, as 1,2,3");
  c->add_option("-n,--tokens", o->tokens, "tokens to generate at most")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  c->add_flag("--raw", o->raw, "do not use the chat template");
  c->add_flag("--ignore-eos", o->ignore_eos, "go on after end-of-reply tokens");
  add_compute(*c, o->compute);
  c->add_option("--temperature", o->sampling.temperature, "0 is greedy")->capture_default_str();
  c->add_option("--top-k", o->sampling.top_k, "sample from the k most likely tokens; 0: all")
      ->capture_default_str();
  c->add_option("--top-p", o->sampling.top_p, "sample from the most likely tokens that hold this share")
      ->capture_default_str();
  c->add_option("--min-p", o->sampling.min_p, "drop tokens less likely than this share of the best")
      ->capture_default_str();
  c->add_option("--seed", o->sampling.seed, "seed of the sampling")->capture_default_str();
}

}  // namespace wring::cli
