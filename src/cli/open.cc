#include "cli/open.h"

#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/command.h"

namespace wring::cli {

engine::ModelFiles open_model_files(const std::string& path) {
  engine::ModelFiles files = engine::ModelFiles::open(path);
  for (const std::string& w : files.model.warnings()) warn(w);
  return files;
}

model::Model open_model(const std::string& path) {
  model::Model model = model::Model::open(path);
  for (const std::string& w : model.warnings()) warn(w);
  return model;
}

void refuse_onto_input(const std::string& out, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return;
  for (const std::string& input : inputs) {
    if (fs::equivalent(out, input, ignored) || (fs::is_directory(input, ignored) && is_within(out, input))) {
      throw Error(ErrorCode::kUsage, "the output would replace an input", out, "choose another name");
    }
  }
}

}  // namespace wring::cli
