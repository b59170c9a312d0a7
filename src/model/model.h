// A model opened from disk: hyper-parameters, spec, and weights that stay mapped. The one loader behind every
// command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "model/config.h"
#include "model/spec.h"
#include "model/weights.h"

namespace wring::model {

class Model {
 public:
  /// Opens a Hugging Face folder or a .gguf file. Every tensor is accounted for: a missing one, one that the
  /// architecture does not know, or a wrong shape or type is kBadInput naming tensor, expected and found.
  /// Weights are not read yet.
  static Model open(const std::filesystem::path& path);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  const std::filesystem::path& path() const;
  const ModelConfig& config() const;
  const ModelSpec& spec() const;

  /// By Hugging Face name ("model.norm.weight"); kInternal for a name that the spec does not have.
  const Weight& weight(std::string_view name) const;
  /// All weights, in the order of computation (embedding, blocks, final norm, head).
  const std::vector<Weight>& weights() const;

  /// Calibration block by block: from here on the matrix has these values, (rows, columns) in our order.
  /// Engines in exact mode read them at their next step; what is not a matrix of its own product (latent
  /// attention's kv_b, convolutions) they read when they are made.
  void replace(std::string_view name, std::vector<float> values);
  /// Its stored values again.
  void restore(std::string_view name);

  /// The GGUF file that the model came from; null for a folder.
  const formats::GgufReader* gguf() const;
  /// The folder's tensors beside the text model (vision, further tokens' prediction).
  const std::vector<const formats::TensorInfo*>& left_out() const;
  /// Things worth one warning line each.
  const std::vector<std::string>& warnings() const;

  std::uint64_t parameters() const;     // number of weights
  std::uint64_t payload_bytes() const;  // bytes of all tensors
  std::uint64_t file_bytes() const;     // weight files as they lie on disk
  /// True if any matrix is stored in a block-quantized type: a source that comparisons must name.
  bool is_quantized() const;
  /// The hub-cache revision (folder name below "snapshots"), else empty.
  std::string revision() const;
  /// SHA-256 over names, types, shapes and bytes of all weights, and the configuration. Reads the whole model
  /// once.
  std::string content_hash() const;

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace wring::model
