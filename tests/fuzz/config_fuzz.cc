// A config.json, and the architecture made of it.
#include "fuzz.h"
#include "model/config.h"
#include "model/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wring;
  fuzz::write("config.json", data, size);
  return fuzz::expect_result_or_error([&] { model::make_spec(model::read_hf_config(fuzz::folder())); });
}
