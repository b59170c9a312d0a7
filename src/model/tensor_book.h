// The tensors of a model's files under Hugging Face's names, and which of them were used: every tensor is
// accounted for, so that a file of another model does not pass for this one.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "model/config.h"

namespace wring::model {

class TensorBook {
 public:
  /// One of the readers is null. All must outlive this.
  TensorBook(const ModelConfig& config, std::filesystem::path path, const formats::GgufReader* gguf,
             const formats::SafetensorsReader* safetensors);

  bool is_gguf() const { return gguf_ != nullptr; }
  const std::filesystem::path& path() const { return path_; }

  /// Null: there is no such tensor.
  const formats::TensorInfo* find(const std::string& name) const;
  /// The name as the checkpoint has it: nested in a larger model, or without a prefix.
  std::string stored_name(const std::string& name) const;

  /// Errors: kBadInput naming the tensor, where there is none.
  const formats::TensorInfo& require(const std::string& name) const;
  /// A tensor of this shape, marked as used. Errors: kBadInput naming the tensor where it is missing or has
  /// another shape.
  const formats::TensorInfo& take(const std::string& name, std::span<const std::uint64_t> shape);
  /// The same of a tensor that find() has found.
  void take(const formats::TensorInfo& tensor, std::span<const std::uint64_t> shape);

  /// What nobody took is known to be superfluous. Errors: kBadInput naming a tensor that is not.
  void account_for_all();

  /// Things worth one warning line each.
  std::vector<std::string> warnings;
  /// Those beside the text model (vision, further tokens' prediction), after account_for_all().
  std::vector<const formats::TensorInfo*> left_out;

 private:
  const std::vector<formats::TensorInfo>& tensors() const;
  bool is_left_out(std::string_view name) const;
  bool is_derived(const formats::TensorInfo& tensor) const;

  const ModelConfig* config_;
  std::filesystem::path path_;
  const formats::GgufReader* gguf_;
  const formats::SafetensorsReader* safetensors_;
  std::unordered_set<const formats::TensorInfo*> used_;
};

/// Part `index` of a tensor's bytes cut into `count` equal ones: an expert's.
std::span<const std::byte> part_of(const formats::TensorInfo& tensor, std::int64_t index, std::int64_t count);

/// "file, tensor name", for messages.
std::string place_of(const formats::TensorInfo& tensor);

/// Errors: kBadInput naming the tensor where its type is not F32, F16 or BF16.
void require_plain_float(const formats::TensorInfo& tensor);

}  // namespace wring::model
