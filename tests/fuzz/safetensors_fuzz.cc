// A safetensors file.
#include "formats/safetensors.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wring;
  const auto path = fuzz::write("model.safetensors", data, size);
  return fuzz::expect_result_or_error([&] { formats::SafetensorsReader::open(path); });
}
