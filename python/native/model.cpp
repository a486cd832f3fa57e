#include "python/native/model.h"
#include "python/native/waiting.h"

#include "runtime/artefact/artefact.h"
#include "runtime/artefact/signature.h"
#include "runtime/model/members.h"

#include <set>

namespace sheaf::python {

using rt::TypeKind;

namespace {

const char *kindName(TypeKind kind) {
  static constexpr const char *names[] = {"int",    "float", "bool",  "token",
                                          "tensor", "list",  "tuple", "data"};
  return names[static_cast<size_t>(kind)];
}

nb::object extentOf(int64_t extent) {
  return extent < 0 ? nb::none() : nb::object(nb::int_(extent));
}

nb::dict describeType(const Model &model, uint32_t number) {
  const rt::TypeDesc &type = model.type(number);
  nb::dict out;
  out["kind"] = kindName(type.kind);
  out["text"] = model.loaded().text(number);
  if (type.kind == TypeKind::Tensor) {
    out["dtype"] = std::string(rt::dtypeName(type.dtype));
    nb::list shape, names;
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      shape.append(extentOf(type.shape[axis]));
      names.append(type.dimNames[axis]);
    }
    out["shape"] = nb::tuple(shape);
    out["names"] = nb::tuple(names);
  }
  if (type.kind == TypeKind::Token || (type.kind == TypeKind::Tensor && type.isToken))
    out["vocabulary"] = type.vocab;
  if (type.kind == TypeKind::List && type.length)
    out["length"] = extentOf(*type.length);
  nb::list children;
  for (uint32_t child : type.children)
    children.append(child);
  out["children"] = nb::tuple(children);
  if (type.kind == TypeKind::Data)
    out["data"] = type.data;
  return out;
}

void saveTo(const Model &model, const std::string &path) {
  try {
    Unlocked unlocked;
    model.loaded().artefact().save(path);
  } catch (const UserError &error) {
    raise(PyExc_OSError, error.what());
  }
}

} // namespace

Model::Model(sheaf_model *model) : handle_(model), classes_(*model->model) {
  for (const artefact::VocabularyDesc &desc : loaded().artefact().description().vocabularies)
    vocabularies_[desc.name].size = desc.size;
  for (uint32_t number = 0; number < loaded().types().types.size(); ++number) {
    const rt::TypeDesc &desc = type(number);
    bool tokens = desc.kind == TypeKind::Token || (desc.kind == TypeKind::Tensor && desc.isToken);
    words_.push_back(tokens ? &vocabularies_[desc.vocab] : nullptr);
    if (tokens)
      words_.back()->size = loaded().tokens(number);
  }
  signature_ = artefact::signature(loaded().artefact().description());
}

int64_t Model::token(uint32_t type, PyObject *word) {
  Words &words = *words_[type];
  const std::string &name = this->type(type).vocab;
  if (!words.numbers.size()) {
    const io::Vocabulary *known = loaded().words(name);
    if (known && known->hasWords()) {
      nb::dict numbers; // other threads see all of it or nothing
      for (int64_t i = 0; i < known->size(); ++i)
        numbers[nb::str(known->word(i).data(), known->word(i).size())] = i;
      words.numbers = std::move(numbers);
    }
    words.has = words.numbers.size() > 0;
  }
  if (!words.has)
    throw Refusal(PyExc_TypeError, "the vocabulary of '" + io::tokenTypeName(name) +
                                       "' has no words: give numbers, not str");
  PyObject *found = PyDict_GetItemWithError(words.numbers.ptr(), word);
  if (found)
    return PyLong_AsLongLong(found);
  if (PyErr_Occurred())
    throw nb::python_error();
  if (!PyUnicode_AsUTF8AndSize(word, nullptr)) {
    PyErr_Clear();
    throw Refusal(PyExc_ValueError, "'" + textOf(word) + "' holds a lone surrogate: it is no text");
  }
  return 0; // <unk>
}

nb::dict describe(const Model &model) {
  const api::LoadedModel &loaded = model.loaded();
  const rt::Model &m = loaded.model();
  nb::dict out;
  out["name"] = m.name;
  out["entry"] = m.entry.name;
  out["cpu"] = loaded.artefact().description().target().cpu;
  out["training"] = m.training;
  out["input_gradients"] = m.inputGradients;
  nb::list arguments;
  for (size_t i = 0; i < m.entry.argTypes.size(); ++i)
    arguments.append(nb::make_tuple(m.entry.argNames[i], m.entry.argTypes[i]));
  out["arguments"] = nb::tuple(arguments);
  out["result"] = loaded.resultType();
  out["emits"] = m.entry.emits ? nb::object(nb::int_(*m.entry.emits)) : nb::none();
  nb::list types;
  for (uint32_t type = 0; type < loaded.types().types.size(); ++type)
    types.append(describeType(model, type));
  out["types"] = types;
  nb::list data;
  for (const rt::DataDesc &desc : loaded.types().data) {
    nb::list constructors;
    for (const rt::CtorDesc &ctor : desc.ctors) {
      nb::list fields;
      for (size_t i = 0; i < ctor.fieldTypes.size(); ++i)
        fields.append(nb::make_tuple(ctor.fieldNames[i], ctor.fieldTypes[i]));
      constructors.append(nb::make_tuple(ctor.name, nb::tuple(fields)));
    }
    data.append(nb::make_tuple(desc.name, nb::tuple(constructors)));
  }
  out["data"] = data;
  nb::dict dims, vocabularies;
  for (const auto &[name, value] : m.dims)
    dims[name.c_str()] = value;
  out["dims"] = dims;
  for (const artefact::VocabularyDesc &desc : loaded.artefact().description().vocabularies)
    vocabularies[desc.name.c_str()] = nb::make_tuple(desc.size, desc.hash);
  out["vocabularies"] = vocabularies;
  nb::dict params;
  for (const rt::ParamDesc &param : m.params)
    if (!param.synthetic) {
      nb::list shape;
      for (int64_t extent : param.shape)
        shape.append(extent);
      params[param.name.c_str()] =
          nb::make_tuple(std::string(rt::dtypeName(param.dtype)), nb::tuple(shape));
    }
  out["parameters"] = params;
  return out;
}

void bindModel(nb::module_ &module) {
  nb::class_<Model>(module, "Model")
      .def_static(
          "load",
          [](const std::string &path, const std::string &sha256, bool checkWeights) {
            sheaf_load_options options{sizeof options, sha256.empty() ? nullptr : sha256.c_str(),
                                       !checkWeights, nullptr};
            sheaf_model *model = nullptr;
            sheaf_status status;
            {
              Unlocked unlocked;
              status = sheaf_model_load(path.c_str(), &options, &model);
            }
            check(status);
            return new Model(model);
          },
          nb::arg("path"), nb::arg("sha256") = "", nb::arg("check_weights") = true)
      .def("describe", describe)
      .def("signature", [](const Model &model) { return model.signature(); })
      .def("save", saveTo)
      .def("bind",
           [](Model &model, const std::string &constructor, nb::object type, bool strict) {
             try {
               model.classes().bind(constructor, std::move(type), strict);
             } catch (const Refusal &refusal) {
               raise(refusal.type, refusal.what());
             }
           })
      .def("bind_optional",
           [](Model &model, const std::string &constructor) {
             try {
               model.classes().bindOptional(constructor);
             } catch (const Refusal &refusal) {
               raise(refusal.type, refusal.what());
             }
           })
      .def("token",
           [](const Model &model, const std::string &vocabulary, const std::string &word) {
             return sheaf_vocabulary_token(model.handle(), vocabulary.c_str(), word.c_str());
           })
      .def("words", [](const Model &model, const std::string &vocabulary) -> nb::object {
        const io::Vocabulary *words = model.loaded().words(vocabulary);
        if (!words || !words->hasWords())
          return nb::none();
        nb::list all;
        for (int64_t i = 0; i < words->size(); ++i)
          all.append(nb::str(words->word(i).data(), words->word(i).size()));
        return all;
      });
  module.def("is_artefact", [](const std::string &path) { return artefact::isArtefact(path); });
}

} // namespace sheaf::python
