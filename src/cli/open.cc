#include "cli/open.h"

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

}  // namespace wring::cli
