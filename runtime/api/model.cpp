// Errors, models, types and vocabularies.
#include "runtime/api/handles.h"
#include "runtime/api/options.h"

#include "runtime/io/checksum.h"
#include "runtime/io/name_pattern.h"
#include "runtime/io/types.h"
#include "runtime/model/growth.h"
#include "runtime/model/members.h"
#include "runtime/session/invalid_argument.h"

#include <cstring>

namespace sheaf::api {

namespace {

struct LastError {
  sheaf_status status = SHEAF_OK;
  std::string text, message;
  ErrorPlace place;
};
thread_local LastError lastError;

sheaf_status fail(sheaf_status status, const char *text, const ErrorPlace &place = {},
                  const char *message = nullptr) noexcept {
  try {
    lastError = {status, text, message ? message : text, place};
  } catch (const std::bad_alloc &) {
    lastError = {};
    lastError.status = status;
  }
  return status;
}

/// A Misgiven or a PlacedError.
template <typename Error> sheaf_status fail(sheaf_status status, const Error &error) noexcept {
  return fail(status, error.what(), error.place(), error.message().c_str());
}

sheaf_status statusOf(artefact::Refusal why) {
  switch (why) {
  case artefact::Refusal::NotReadable:
    return SHEAF_NOT_READABLE;
  case artefact::Refusal::NotAnArtefact:
    return SHEAF_NOT_AN_ARTEFACT;
  case artefact::Refusal::Damaged:
    return SHEAF_DAMAGED;
  case artefact::Refusal::Older:
  case artefact::Refusal::Newer:
    return SHEAF_NEWER;
  case artefact::Refusal::OtherMachine:
    return SHEAF_OTHER_MACHINE;
  case artefact::Refusal::Digest:
    break;
  }
  return SHEAF_DIGEST;
}

} // namespace

void refuseNull(const char *what) { throw Invalid(std::string(what) + " is null"); }

sheaf_status statusOfException() noexcept {
  try {
    throw;
  } catch (const Invalid &error) {
    return fail(SHEAF_INVALID, error);
  } catch (const rt::InvalidArgument &error) {
    return fail(SHEAF_INVALID, error.what());
  } catch (const NoCompiler &error) {
    return fail(SHEAF_NO_COMPILER, error.what());
  } catch (const NotCompiled &error) {
    return fail(SHEAF_NOT_COMPILED, error);
  } catch (const Stopped &error) {
    return fail(SHEAF_STOPPED, error.what());
  } catch (const io::CheckStopped &error) {
    return fail(SHEAF_STOPPED, error.what());
  } catch (const artefact::ArtefactError &error) {
    return fail(statusOf(error.why), error);
  } catch (const NotReadable &error) {
    return fail(SHEAF_NOT_READABLE, error);
  } catch (const UserError &error) {
    // Of what is not a file, sessions ask the user for nothing but memory.
    return fail(SHEAF_NO_MEMORY, error.what());
  } catch (const std::bad_alloc &) {
    return fail(SHEAF_NO_MEMORY, "the machine has no more memory");
  } catch (const std::exception &error) {
    return fail(SHEAF_INTERNAL, error.what());
  } catch (...) {
    return fail(SHEAF_INTERNAL, "internal error: of no known kind");
  }
}

LoadedModel::LoadedModel(std::unique_ptr<artefact::Artefact> artefact,
                         std::shared_ptr<const ModelOrigin> origin)
    : artefact_(std::move(artefact)), origin_(std::move(origin)) {
  for (uint32_t i = 0; i < types().types.size(); ++i) {
    texts_.push_back(io::typeName(types(), i));
    slots_.push_back(types().slots(i));
    const rt::TypeDesc &type = types().types[i];
    const artefact::VocabularyDesc *words =
        type.kind == rt::TypeKind::Token || type.isToken ? vocabulary(type.vocab) : nullptr;
    tokens_.push_back(words ? words->size : 0);
    bool binds = type.length == -1;
    for (size_t axis = 0; axis < type.shape.size(); ++axis)
      binds |= type.kind == rt::TypeKind::Tensor && type.shape[axis] < 0 &&
               !io::isFreeDim(type.dimNames[axis]);
    bindsExtents_.push_back(binds);
  }
  for (const rt::DataDesc &data : types().data) {
    std::vector<int64_t> &slots = fieldSlots_.emplace_back();
    for (const rt::CtorDesc &ctor : data.ctors) {
      slots.push_back(0);
      for (uint32_t field : ctor.fieldTypes)
        slots.back() += slots_[field];
    }
  }
  for (size_t i = 0; i < model().params.size(); ++i)
    if (!model().params[i].synthetic)
      weights_.push_back(i);
  rt::spreadToWholes(types(), bindsExtents_);
  for (uint32_t type : model().entry.argTypes)
    anyBindsExtents_ = anyBindsExtents_ || bindsExtents_[type];
}

const rt::TypeDesc *LoadedModel::type(sheaf_type type) const {
  return type < types().types.size() ? &types().types[type] : nullptr;
}

const rt::CtorDesc *LoadedModel::constructor(sheaf_type number, size_t ctor) const {
  const rt::TypeDesc *desc = type(number);
  if (!desc || desc->kind != rt::TypeKind::Data || ctor >= types().data[desc->data].ctors.size())
    return nullptr;
  return &types().data[desc->data].ctors[ctor];
}

const rt::TypeDesc &LoadedModel::typeOf(sheaf_type number, rt::TypeKind kind) const {
  static constexpr const char *names[] = {"an int",   "a float", "a bool",  "a token",
                                          "a tensor", "a list",  "a tuple", "data"};
  const rt::TypeDesc *desc = type(number);
  if (number == SHEAF_NO_TYPE)
    throw Invalid("SHEAF_NO_TYPE: the model has no such type, argument, field or element");
  if (!desc)
    throw Invalid("the model has no type " + std::to_string(number));
  if (desc->kind != kind)
    throw Invalid("'" + texts_[number] + "' is not the type of " +
                  names[static_cast<size_t>(kind)]);
  return *desc;
}

size_t LoadedModel::weight(const char *name) const {
  given(name, "the weight's name");
  for (size_t i : weights_)
    if (model().params[i].name == name)
      return i;
  throw Invalid(std::string("the model has no weight '") + name + "'");
}

std::vector<size_t> LoadedModel::weightsNamed(const char *pattern) const {
  std::vector<size_t> found;
  for (size_t i : weights_)
    if (io::matches(model().params[i].name, pattern))
      found.push_back(i);
  if (found.empty())
    throw Invalid(std::string("no weight of the model is called '") + pattern + "'");
  return found;
}

const artefact::VocabularyDesc *LoadedModel::vocabulary(const std::string &name) const {
  for (const artefact::VocabularyDesc &desc : artefact_->description().vocabularies)
    if (desc.name == name)
      return &desc;
  return nullptr;
}

const io::Vocabularies &LoadedModel::vocabularies() const {
  std::call_once(wordsMade_, [&] { words_ = artefact_->vocabularies(); });
  return words_;
}

DLDataType dlpackType(rt::DType dtype) {
  const rt::DTypeInfo &info = rt::infoOf(dtype);
  return {info.dlpackCode, info.dlpackBits, 1};
}

namespace {

const rt::TypeDesc *ofKind(const sheaf_model *model, sheaf_type type, rt::TypeKind kind) {
  const rt::TypeDesc *desc = model ? model->model->type(type) : nullptr;
  return desc && desc->kind == kind ? desc : nullptr;
}

/// Types that stand in arguments and results.
bool isVisible(const LoadedModel &model, sheaf_type wanted) {
  const rt::Model &m = model.model();
  std::vector<uint32_t> types = m.entry.argTypes;
  types.push_back(model.resultType());
  if (auto both = model.emitting())
    types.push_back(both->list);
  return wanted < m.types.types.size() && rt::reachableTypes(m.types, std::move(types))[wanted];
}

} // namespace

} // namespace sheaf::api

using namespace sheaf;
using namespace sheaf::api;

const char *sheaf_error_message(void) { return lastError.text.c_str(); }

sheaf_status sheaf_error_last(sheaf_error *error) {
  sheaf_error told{};
  const ErrorPlace &place = lastError.place;
  told.status = lastError.status;
  told.text = lastError.text.c_str();
  told.message = lastError.message.c_str();
  told.file = place.file.empty() ? nullptr : place.file.c_str();
  told.line = place.line;
  told.column = place.column;
  told.instance = place.instance;
  told.field = place.field.empty() ? nullptr : place.field.c_str();
  return guarded([&] { tell(told, given(error, "error"), "error"); });
}
const char *sheaf_version(void) { return SHEAF_VERSION; }

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

sheaf_status sheaf_model_load(const char *path, const sheaf_load_options *options,
                              sheaf_model **model) {
  return guarded([&] {
    given(path, "path");
    given(model, "model");
    artefact::OpenOptions open;
    sheaf_load_options asked = known(options, "sheaf_load_options");
    if (asked.sha256) {
      open.sha256 = asked.sha256;
      if (!io::isSha256(open.sha256))
        throw Invalid("options.sha256 is not 64 hexadecimal digits");
    }
    open.checkWeights = !asked.skip_weight_checksums;
    open.stop = tokenOf(asked.stop);
    *model = new sheaf_model{std::make_shared<LoadedModel>(artefact::Artefact::open(path, open))};
  });
}

void sheaf_model_release(sheaf_model *model) { delete model; }

const char *sheaf_model_name(const sheaf_model *model) {
  return model ? model->model->model().name.c_str() : nullptr;
}
const char *sheaf_model_entry(const sheaf_model *model) {
  return model ? model->model->model().entry.name.c_str() : nullptr;
}
const char *sheaf_model_cpu(const sheaf_model *model) {
  return model ? model->model->artefact().description().target().cpu.c_str() : nullptr;
}
int64_t sheaf_model_dim(const sheaf_model *model, const char *name) {
  if (!model || !name)
    return -1;
  const auto &dims = model->model->model().dims;
  auto found = dims.find(name);
  return found == dims.end() ? -1 : found->second;
}

size_t sheaf_model_argument_count(const sheaf_model *model) {
  return model ? model->model->model().entry.argTypes.size() : 0;
}
const char *sheaf_model_argument_name(const sheaf_model *model, size_t argument) {
  return argument < sheaf_model_argument_count(model)
             ? model->model->model().entry.argNames[argument].c_str()
             : nullptr;
}
sheaf_type sheaf_model_argument_type(const sheaf_model *model, size_t argument) {
  return argument < sheaf_model_argument_count(model)
             ? model->model->model().entry.argTypes[argument]
             : SHEAF_NO_TYPE;
}
sheaf_type sheaf_model_result_type(const sheaf_model *model) {
  return model ? model->model->resultType() : SHEAF_NO_TYPE;
}
sheaf_type sheaf_model_emitted_type(const sheaf_model *model) {
  return model ? model->model->model().entry.emits.value_or(SHEAF_NO_TYPE) : SHEAF_NO_TYPE;
}
sheaf_type sheaf_model_find_type(const sheaf_model *model, const char *text) {
  if (!model || !text)
    return SHEAF_NO_TYPE;
  for (sheaf_type type = 0; model->model->type(type); ++type)
    if (model->model->text(type) == text && isVisible(*model->model, type))
      return type;
  return SHEAF_NO_TYPE;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

sheaf_kind sheaf_type_kind(const sheaf_model *model, sheaf_type type) {
  const rt::TypeDesc *desc = model ? model->model->type(type) : nullptr;
  return desc ? static_cast<sheaf_kind>(desc->kind) : SHEAF_INT;
}
const char *sheaf_type_text(const sheaf_model *model, sheaf_type type) {
  return model && model->model->type(type) ? model->model->text(type).c_str() : nullptr;
}
size_t sheaf_type_child_count(const sheaf_model *model, sheaf_type type) {
  const rt::TypeDesc *desc = model ? model->model->type(type) : nullptr;
  return desc ? desc->children.size() : 0;
}
sheaf_type sheaf_type_child(const sheaf_model *model, sheaf_type type, size_t child) {
  return child < sheaf_type_child_count(model, type) ? model->model->type(type)->children[child]
                                                     : SHEAF_NO_TYPE;
}
size_t sheaf_type_constructor_count(const sheaf_model *model, sheaf_type type) {
  const rt::TypeDesc *desc = ofKind(model, type, rt::TypeKind::Data);
  return desc ? model->model->types().data[desc->data].ctors.size() : 0;
}
const char *sheaf_type_constructor_name(const sheaf_model *model, sheaf_type type,
                                        size_t constructor) {
  const rt::CtorDesc *ctor = model ? model->model->constructor(type, constructor) : nullptr;
  return ctor ? ctor->name.c_str() : nullptr;
}
int sheaf_type_find_constructor(const sheaf_model *model, sheaf_type type, const char *name) {
  for (size_t i = 0; name && i < sheaf_type_constructor_count(model, type); ++i)
    if (model->model->constructor(type, i)->name == name)
      return static_cast<int>(i);
  return -1;
}
size_t sheaf_type_field_count(const sheaf_model *model, sheaf_type type, size_t constructor) {
  const rt::CtorDesc *ctor = model ? model->model->constructor(type, constructor) : nullptr;
  return ctor ? ctor->fieldTypes.size() : 0;
}
const char *sheaf_type_field_name(const sheaf_model *model, sheaf_type type, size_t constructor,
                                  size_t field) {
  return field < sheaf_type_field_count(model, type, constructor)
             ? model->model->constructor(type, constructor)->fieldNames[field].c_str()
             : nullptr;
}
sheaf_type sheaf_type_field_type(const sheaf_model *model, sheaf_type type, size_t constructor,
                                 size_t field) {
  return field < sheaf_type_field_count(model, type, constructor)
             ? model->model->constructor(type, constructor)->fieldTypes[field]
             : SHEAF_NO_TYPE;
}
size_t sheaf_type_rank(const sheaf_model *model, sheaf_type type) {
  const rt::TypeDesc *desc = ofKind(model, type, rt::TypeKind::Tensor);
  return desc ? desc->shape.size() : 0;
}
int64_t sheaf_type_extent(const sheaf_model *model, sheaf_type type, size_t axis) {
  return axis < sheaf_type_rank(model, type) ? model->model->type(type)->shape[axis] : -1;
}
const char *sheaf_type_extent_name(const sheaf_model *model, sheaf_type type, size_t axis) {
  return axis < sheaf_type_rank(model, type) ? model->model->type(type)->dimNames[axis].c_str()
                                             : nullptr;
}
int64_t sheaf_type_growth(const sheaf_model *model, sheaf_type type) {
  if (!model || !model->model->type(type))
    return -1;
  return rt::growthBytes(model->model->types(), type).value_or(-1);
}
DLDataType sheaf_type_dtype(const sheaf_model *model, sheaf_type type) {
  const rt::TypeDesc *desc = ofKind(model, type, rt::TypeKind::Tensor);
  return desc ? dlpackType(desc->dtype) : DLDataType{0, 0, 0};
}
const char *sheaf_type_vocabulary(const sheaf_model *model, sheaf_type type) {
  const rt::TypeDesc *desc = model ? model->model->type(type) : nullptr;
  bool token = desc && (desc->kind == rt::TypeKind::Token ||
                        (desc->kind == rt::TypeKind::Tensor && desc->isToken));
  return token ? desc->vocab.c_str() : nullptr;
}

//===----------------------------------------------------------------------===//
// Vocabularies
//===----------------------------------------------------------------------===//

int64_t sheaf_vocabulary_size(const sheaf_model *model, const char *name) {
  const artefact::VocabularyDesc *desc = model && name ? model->model->vocabulary(name) : nullptr;
  return desc ? desc->size : -1;
}

namespace {
/// Null also when there is no memory for the words.
const io::Vocabulary *wordsOf(const sheaf_model *model, const char *name) {
  const io::Vocabulary *words = nullptr;
  if (model && name)
    guarded([&] { words = model->model->words(name); });
  return words;
}
} // namespace

int64_t sheaf_vocabulary_token(const sheaf_model *model, const char *name, const char *word) {
  const io::Vocabulary *words = wordsOf(model, name);
  return words && word ? words->id(word) : -1;
}
const char *sheaf_vocabulary_word(const sheaf_model *model, const char *name, int64_t token) {
  const io::Vocabulary *words = wordsOf(model, name);
  return words ? words->word(token).data() : nullptr; // of a std::string, or null
}
const char *sheaf_vocabulary_hash(const sheaf_model *model, const char *name) {
  const artefact::VocabularyDesc *desc = model && name ? model->model->vocabulary(name) : nullptr;
  return desc ? desc->hash.c_str() : nullptr;
}
