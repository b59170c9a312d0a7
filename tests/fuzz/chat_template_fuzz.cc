// A chat template, rendered with a short conversation. The step limit bounds what it may take; here a step
// takes up to three hundred times as long as in a release build.
#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wring;
  static const auto context = nlohmann::ordered_json::parse(R"({
      "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <b>"},
                   {"role": "assistant", "content": "Hello!", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5}}}]}],
      "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
      "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})");
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  return fuzz::expect_result_or_error([&] {
    text::ChatTemplate::parse(source, "template").render(context, 0, text::ChatTemplate::kMaxSteps / 100);
  });
}
