//===- model_config.h - What comes with weights -----------------*- C++ -*-===//
//
// `config.json` lies beside weights that Hugging Face's libraries wrote: an object whose members
// say how large a model is and what it computes, {"hidden_size": 768, "hidden_act": "gelu",
// "rope_parameters": {"rope_theta": 10000.0}, ...}.
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
  struct Member {
    enum class Kind { Null, Bool, Number, String, Object, Array };
    Kind kind = Kind::Null;
    std::string text;    ///< of a string itself, of a number its characters
    bool truth = false;  ///< of a bool
    double number = 0;   ///< of a number
    int64_t entries = 0; ///< of an object or array
    /// As messages call it: "the string 'relu'", 0.5, "an object".
    std::string describe() const;
    /// A whole number, or how many entries an object or array has; nothing of others.
    std::optional<int64_t> whole() const;
  };

  /// Throws UserError for what is no JSON object, and for a member that is there twice.
  static ModelConfig parse(std::string_view text, const std::string &name);
  /// The config.json beside a file of weights, or in a directory of them; nothing where none is.
  static std::optional<ModelConfig> beside(const std::string &weights);

  /// Another file of members, from the directory of this one; nothing where it is not there.
  std::optional<ModelConfig> other(const std::string &file) const;

  const std::string &name() const { return name_; }
  /// A member, or of an object in it `outer.inner`. Null where it is absent or null.
  const Member *find(const std::string &member) const;

private:
  std::string name_;
  std::map<std::string, Member> members_;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_MODEL_CONFIG_H
