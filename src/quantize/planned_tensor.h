// The tensors of a file to be written, and the rows of the model's weights that each is made of. Hugging Face
// folders hold maps as published, experts singly. GGUF stacks experts, keeps the halves of latent attention's
// kv_b apart, and has rotary rows and value heads in orders of its own (docs/FORMATS.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/quant_type.h"
#include "model/spec.h"
#include "quantize/coded_formats.h"

namespace wring::quantize {

enum class FileForm : std::uint8_t { kHf, kGguf };

/// kKept: small maps (routers, gates, convolutions) that recipes leave alone.
enum class TensorRole : std::uint8_t { kEmbedding, kHead, kBlockMatrix, kKept, kVector };

struct PlannedTensor {
  std::string name;  // Hugging Face's, with ".weight" or ".bias"; of stacked experts without their number
  TensorRole role = TensorRole::kVector;
  std::int64_t rows = 1, columns = 0;  // of all matrices of a stack together
  std::int64_t stacked = 0;            // > 0: three dimensions, this many matrices of rows / stacked rows
  bool vectors = false;                // a vector for each expert: two dimensions, even of one
  int layer = -1;                      // of a block's matrix, with the place of its input
  model::Site site = model::Site::kKept;
  int expert = -1;  // of an expert's own matrix

  // Where row r of the tensor comes from: row row_order[r] of the weights below each other, of it value
  // column_order[c] at column c (empty: the same).
  std::vector<std::string> weights;
  std::vector<std::int64_t> row_order, column_order;
  int side_by_side = 1;               // of vectors: how many of them make a row
  std::int64_t transposed_rows = 0;   // > 0: matrix m is the transpose of `columns` weight rows (in
                                      // row_order), from row m · transposed_rows on
  float added = 0;                    // to each value, of norms that multiply by 1 + w
  bool negative_exponential = false;  // each value x becomes −e^x
  int rotary_head_dim = 0;            // of a vector, > 0: GGUF sources have its elements in pairs order
  bool full_precision = false;        // a vector that is F32 in any file: it decides choices or decays
  bool narrow = false;                // a kept map that is F32 in no file of a narrower type

  formats::QuantType asked = formats::QuantType::kF32;
  formats::QuantType used = formats::QuantType::kF32;
  std::optional<CodedFormat> asked_codes, codes;  // instead of these types, in folders
  float largest = 0;                              // magnitude of the weights, once the plan is settled
  std::string reason;  // why used is not asked, or why asked is not the recipe's type; else empty

  std::int64_t matrices() const { return stacked > 0 ? stacked : 1; }
  std::uint64_t elements() const {
    return static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(columns);
  }
  std::vector<std::uint64_t> shape() const;  // outermost first
  std::uint64_t bytes() const;
  std::string asked_name() const;  // "Q4_K", "INT4 g128"
  std::string used_name() const;
  bool substituted() const { return asked != used || asked_codes != codes; }
};

/// Every tensor of a file of the model, types not chosen yet, in the order of computation.
std::vector<PlannedTensor> planned_tensors(const model::ModelSpec& spec, FileForm form);

/// The tensor's name in GGUF. Errors: kNotSupported where GGUF has none.
std::string gguf_name_of(std::string_view model_type, const PlannedTensor& tensor);

}  // namespace wring::quantize
