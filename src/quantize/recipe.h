// What a user asks for by one name: the type of the quantized matrices, or a mixture of types, whether
// calibration's importance guides their rounding, and whether errors are fed back. Names are those of
// docs/CLI.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/quant_type.h"
#include "quantize/coded_formats.h"

namespace wring::quantize {

struct Recipe {
  std::string name;  // "q4_k+imatrix"
  formats::QuantType type = formats::QuantType::kBF16;
  bool importance = false;
  bool feedback = false;             // "+gptq": errors are taken up by the columns that follow
  bool search = false;               // with error feedback in codes: scales are searched, columns ordered
  bool mixed = false;                // q4_k_m: some matrices in Q6_K, as mixed_types.h says
  std::optional<CodedFormat> codes;  // instead of the type: the recipe writes a folder
};

/// Errors: kNotSupported for a name that is not a recipe here, naming those that are; kUsage for "+imatrix"
/// on a type that it would not change.
Recipe parse_recipe(std::string_view name);

/// Every recipe's name, in the order of docs/CLI.md.
std::vector<std::string> recipe_names();

}  // namespace wring::quantize
