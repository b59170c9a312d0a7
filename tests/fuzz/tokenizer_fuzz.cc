// A tokenizer.json, and a text through what it defines.
#include "fuzz.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wring;
  fuzz::write("tokenizer.json", data, size);
  return fuzz::expect_result_or_error([&] {
    const auto tokenizer = text::Tokenizer::from_hf(fuzz::folder());
    const auto ids =
        tokenizer.encode("The cat's  mat,\n\t2024 naïve 한국어 \xF0\x9F\x99\x82 <|im_end|> \xFF", text::Specials::kParse);
    tokenizer.decode(ids);
  });
}
