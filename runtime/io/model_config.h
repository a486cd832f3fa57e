//===- model_config.h - The sizes that come with weights --------*- C++ -*-===//
//
// `config.json` lies beside weights that Hugging Face's libraries wrote: an object whose members
// say how large a model is, {"hidden_size": 768, "rope_parameters": {"rope_theta": 10000.0}, ...}.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_MODEL_CONFIG_H
#define SHEAF_RUNTIME_IO_MODEL_CONFIG_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sheaf::io {

class ModelConfig {
public:
  /// Throws UserError for what is no JSON object.
  static ModelConfig parse(std::string_view text, const std::string &name);
  /// The config.json beside a file of weights, or in a directory of them; nothing where none is.
  static std::optional<ModelConfig> beside(const std::string &weights);

  const std::string &name() const { return name_; }
  /// A member, or of an object in it `outer.inner`: a number, or how many entries an object or
  /// array has. Nothing where it is absent or null. Throws UserError that names file and member for
  /// what is no whole number from 1.
  std::optional<int64_t> size(const std::string &member) const;

private:
  std::string name_;
  std::map<std::string, std::string> members_; ///< as messages call their values, or whole numbers
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_MODEL_CONFIG_H
