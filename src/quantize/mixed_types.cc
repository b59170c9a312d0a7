// Source: the type choice of llama.cpp's quantization tool, as its files show it.
#include "quantize/mixed_types.h"

#include <string_view>

#include "model/names.h"

namespace wring::quantize {
namespace {

bool is_among(std::int64_t i, std::int64_t n) {
  const std::int64_t eighth = n / 8;
  return i < eighth || i >= 7 * n / 8 || (i - eighth) % 3 == 2;
}

bool holds_values(std::string_view gguf_name) {
  return gguf_name.ends_with(".attn_v.weight") || gguf_name.ends_with(".attn_qkv.weight");
}

}  // namespace

std::vector<bool> wants_more_bits(const model::ModelSpec& spec, std::span<const PlannedTensor> tensors) {
  std::vector<std::string> names;
  std::int64_t value_maps = 0;
  for (const PlannedTensor& t : tensors) {
    names.push_back(model::gguf_name(spec.model_type, t.name).value_or(t.name));
    if (holds_values(names.back())) ++value_maps;
  }
  std::vector<bool> more(tensors.size(), false);
  std::int64_t value_map = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (holds_values(names[i])) more[i] = is_among(value_map++, value_maps);
    const model::Site site = tensors[i].site;
    if (site == model::Site::kDown || site == model::Site::kExpertDown)
      more[i] = is_among(tensors[i].layer, static_cast<std::int64_t>(spec.layers.size()));
  }
  return more;
}

}  // namespace wring::quantize
