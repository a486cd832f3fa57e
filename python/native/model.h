//===- model.h - A model, and what Python has to do with it -----*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_MODEL_H
#define SHEAF_PYTHON_NATIVE_MODEL_H

#include "python/native/classes.h"
#include "python/native/raise.h"

#include "runtime/api/handles.h"

#include <map>
#include <memory>
#include <string>

namespace sheaf::python {

/// The words of a vocabulary as Python has them.
struct Words {
  int64_t size = 0;
  bool has = false; ///< else its tokens are numbers alone
  nb::dict numbers; ///< by word; made when a text is first looked up
};

/// Used with the GIL held, but for what is immutable (`loaded`).
class Model {
public:
  /// Takes the handle.
  explicit Model(sheaf_model *model);

  sheaf_model *handle() const { return handle_.get(); }
  const std::shared_ptr<const api::LoadedModel> &shared() const { return handle_->model; }
  const api::LoadedModel &loaded() const { return *handle_->model; }
  const rt::TypeDesc &type(uint32_t type) const { return loaded().types().types[type]; }
  Classes &classes() { return classes_; }
  /// What the types of the arguments are, and all that values of them may hold, in one text: models
  /// of one signature take each other's encoded values.
  const std::string &signature() const { return signature_; }

  /// The vocabulary of a type of tokens, or of tensors of tokens.
  Words &words(uint32_t type) { return *words_[type]; }
  /// The number of a word. Throws Refusal: a vocabulary without words, a text that is none.
  int64_t token(uint32_t type, PyObject *word);

private:
  struct Release {
    void operator()(sheaf_model *model) const { sheaf_model_release(model); }
  };
  std::unique_ptr<sheaf_model, Release> handle_;
  Classes classes_;
  std::map<std::string, Words> vocabularies_;
  std::vector<Words *> words_; ///< by type; null for others
  std::string signature_;
};

/// What a model is made of, for Python to look at: lists of the type table, see sheaf/model.py.
nb::dict describe(const Model &model);

void bindModel(nb::module_ &module);
void bindSession(nb::module_ &module);
void bindCompile(nb::module_ &module);

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_MODEL_H
