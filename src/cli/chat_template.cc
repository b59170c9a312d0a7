// wring chat-template: conversations in, the text that the model would be given out.
#include "text/chat_template.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "engine/chat.h"

namespace wring::cli {
namespace {

struct ChatTemplateOptions {
  Common common;
  std::string model, file;
};

void run(const ChatTemplateOptions& o) {
  const engine::ModelFiles files = open_model_files(o.model);
  const engine::Chat chat(files);
  for_each_json_line(o.file, [&](const nlohmann::json& line, const std::string& where) {
    if (!line.contains("messages")) throw Error(ErrorCode::kBadInput, "\"messages\" is missing", where);
    const std::string text = with_context(where, [&] {
      return chat.render(nlohmann::ordered_json::parse(line["messages"].dump()),
                         line.value("add_generation_prompt", false));
    });
    print_json(nlohmann::ordered_json{{"text", text}});
  });
}

}  // namespace

void add_chat_template(CLI::App& app) {
  auto o = std::make_shared<ChatTemplateOptions>();
  CLI::App* c =
      add_command(app, "chat-template", "renders conversations through the model's chat template",
                  "wring chat-template sample/hf --file conversations.jsonl", o->common, [o] { run(*o); });
  c->add_option("MODEL", o->model, "Hugging Face folder or .gguf file")->required();
  c->add_option("--file", o->file,
                "JSONL with {\"messages\",\"add_generation_prompt\"} lines; gives {\"text\"} lines")
      ->required();
}

}  // namespace wring::cli
