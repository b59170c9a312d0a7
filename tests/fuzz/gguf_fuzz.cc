// A GGUF file: its structure, then all that is read of one before weights are.
#include "formats/gguf.h"
#include "fuzz.h"
#include "model/config.h"
#include "model/model.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wring;
  const auto path = fuzz::write("m.gguf", data, size);
  fuzz::expect_result_or_error([&] {
    const auto file = formats::GgufReader::open(path);
    for (const auto& [key, entry] : file.metadata()) formats::to_text(entry);
    fuzz::expect_result_or_error([&] { model::read_gguf_config(file); });
    fuzz::expect_result_or_error(
        [&] { text::Tokenizer::from_gguf(file).encode("Zwei 2 naïve 한국어 words\n", text::Specials::kParse); });
  });
  return fuzz::expect_result_or_error([&] { model::Model::open(path); });
}
