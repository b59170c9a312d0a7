// From a spec to the weights that it names: each is looked for in the forms in which checkpoints store it
// (alone, with others in one tensor, transposed, stacked by expert, as codes with scales), and checked.
#pragma once

#include <vector>

#include "model/spec.h"
#include "model/tensor_book.h"
#include "model/weights.h"

namespace wring::model {

/// All weights, in the order of computation (embedding, blocks, final norm, head). Errors: kBadInput naming a
/// tensor that is missing, or its type or shape.
std::vector<Weight> load_weights(const ModelSpec& spec, const ModelConfig& config, TensorBook& book);

}  // namespace wring::model
