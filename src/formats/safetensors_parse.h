// One safetensors file: 8 bytes of header length, a JSON header, the tensors' bytes. SafetensorsReader puts
// shards together.
#pragma once

#include <vector>

#include "base/mapped_file.h"
#include "formats/tensor_info.h"

namespace wring::formats {

/// The tensors of a file, sorted by name; data points into the mapping. Errors: kBadInput naming path,
/// tensor, value and limit.
std::vector<TensorInfo> parse_safetensors(const MappedFile& file);

}  // namespace wring::formats
