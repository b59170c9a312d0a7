// Everything that llama.cpp wants to know about a model before it reads tensors, under its keys
// ("llama.block_count" ...).
#pragma once

#include <string>
#include <vector>

#include "formats/gguf.h"
#include "formats/imatrix.h"
#include "model/model.h"
#include "quantize/plan.h"

namespace wring::quantize {

/// Metadata cannot say everything that a config.json can, since llama.cpp fixes some of it in its code.
/// Errors: kNotSupported where what a GGUF says would be another computation than the model's.
void refuse_another_computation(const model::ModelConfig& config);

/// Adds general.*, the architecture's keys and the tokenizer's to a file of this plan. Of a GGUF source,
/// names, licence and tokenizer are copied. `imatrix`: null, or what guided the rounding. Errors:
/// kNotSupported for a tokenizer that GGUF cannot hold (gguf_tokenizer.h). Returns a warning about it, if
/// any.
void add_gguf_metadata(formats::GgufWriter& writer, const model::Model& model, const QuantPlan& plan,
                       const formats::Imatrix* imatrix, std::vector<std::string>& warnings);

/// GGUF's rope_freqs.weight: the divisors of the rotary frequencies; empty where metadata says it
/// all (plain and linear).
std::vector<float> gguf_rope_divisors(const model::ModelConfig& config);

/// A vector of divisors of rotary frequencies, one a rotated pair.
struct RopeVector {
  std::string name;  // "rope_freqs.weight"
  std::vector<float> divisors;
};

/// Those that a GGUF has: the above, and longrope's two.
std::vector<RopeVector> gguf_rope_vectors(const model::ModelConfig& config);

}  // namespace wring::quantize
