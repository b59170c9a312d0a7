// One GGUF file, read out of its mapping with every number checked against the file before it is used.
// GgufReader puts the parts of a split model together.
#pragma once

#include "base/mapped_file.h"
#include "formats/gguf.h"

namespace wring::formats {

struct GgufPart {
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;  // in file order; data points into the mapping
};

/// Errors: kBadInput naming path, key or tensor, value and limit; kNotSupported for version 1.
GgufPart parse_gguf(const MappedFile& file);

}  // namespace wring::formats
