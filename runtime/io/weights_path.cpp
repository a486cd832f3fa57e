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
  for (const char *name : {"best.safetensors", "model.safetensors", "model.safetensors.index.json"})
    if (std::string file = directory + "/" + name; isThere(file))
      return file;
  std::vector<std::string> others, pickles;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, failed)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors"))
      others.push_back(name);
    else if (name.starts_with("pytorch_model") || name.ends_with(".pth"))
      pickles.push_back(name);
  }
  std::sort(others.begin(), others.end());
  std::sort(pickles.begin(), pickles.end());
  std::string hint;
  if (!others.empty())
    hint = "; there are " + firstOf(others);
  else if (!pickles.empty())
    hint = "; " + firstOf(pickles) +
           ", a Python pickle, is not read: save_pretrained of the "
           "library transformers writes safetensors";
  throw PlacedError(
      {path},
      fmt::format(
          "a directory without best.safetensors, the weights of a training that were best, and "
          "without model.safetensors or model.safetensors.index.json{}",
          hint));
}

std::string fileBeside(const std::string &path, const std::string &name) {
  std::error_code failed;
  fs::path directory =
      fs::is_directory(path, failed) ? fs::path(path) : fs::path(path).parent_path();
  return (directory / name).string();
}

bool isFile(const std::string &path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed);
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
