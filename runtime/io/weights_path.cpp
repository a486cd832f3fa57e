#include "runtime/io/weights_path.h"

#include "runtime/io/weights.h"
#include "runtime/model/error.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace sheaf::io {

namespace fs = std::filesystem;

static bool isThere(const std::string &path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

std::string weightsFile(const std::string &path) {
  std::error_code failed;
  if (path.empty() || !fs::is_directory(path, failed))
    return path;
  std::string directory = path;
  while (directory.size() > 1 && directory.back() == '/')
    directory.pop_back();
  std::string best = directory + "/best.safetensors";
  if (isThere(best))
    return best;
  std::vector<std::string> others;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, failed))
    if (entry.path().extension() == ".safetensors")
      others.push_back(entry.path().filename().string());
  std::sort(others.begin(), others.end());
  throw UserError(fmt::format(
      "{}: a directory without best.safetensors, the weights of a training that were best{}", path,
      others.empty() ? "" : "; there are " + firstOf(others)));
}

std::string vocabularyBeside(const std::string &weights, const std::string &name) {
  constexpr std::string_view extension = ".safetensors";
  std::string stem = weights;
  if (stem.ends_with(extension))
    stem.resize(stem.size() - extension.size());
  return stem + (name.empty() ? "" : "." + name) + ".vocab.txt";
}

std::string vocabularyOf(const std::string &weights, const std::string &name) {
  if (weights.empty())
    return "";
  std::string beside = vocabularyBeside(weights, name);
  if (!isThere(beside) && fs::path(weights).filename().string().starts_with("checkpoint-"))
    beside = vocabularyBeside(fs::path(weights).replace_filename("last.safetensors"), name);
  return isThere(beside) ? beside : "";
}

} // namespace sheaf::io
