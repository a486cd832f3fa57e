//===- handles.h - What stands behind the C interface -----------*- C++ -*-===//
//
// include/sheaf/sheaf.h is the contract; this is private to runtime/api.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_API_HANDLES_H
#define SHEAF_RUNTIME_API_HANDLES_H

#include "sheaf/sheaf.h"

#include "runtime/artefact/artefact.h"
#include "runtime/io/dataset.h"
#include "runtime/io/extents.h"
#include "runtime/model/error.h"
#include "runtime/session/kept_value.h"
#include "runtime/session/session.h"

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace sheaf::api {

struct ModelOrigin;

/// What a user gave is wrong, at a place if one is known.
class Misgiven : public std::runtime_error {
public:
  explicit Misgiven(const std::string &text) : std::runtime_error(text), message_(text) {}
  Misgiven(const std::string &text, ErrorPlace place, std::string message)
      : std::runtime_error(text), place_(std::move(place)), message_(std::move(message)) {}

  /// Without a file: none is known.
  const ErrorPlace &place() const { return place_; }
  /// what() without the place.
  const std::string &message() const { return message_; }

private:
  ErrorPlace place_;
  std::string message_;
};

/// An argument that the caller may not give.
class Invalid : public Misgiven {
public:
  using Misgiven::Misgiven;
};

/// There is no compiler's library, or not of this build.
class NoCompiler : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A source has errors: the first of them.
class NotCompiled : public Misgiven {
public:
  using Misgiven::Misgiven;
};

/// What was asked for was given up.
class Stopped : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Notes the message of what is being thrown for sheaf_error_message(). Inside of a handler only.
sheaf_status statusOfException() noexcept;

/// Runs a function of the interface: no exception leaves it.
template <typename F> sheaf_status guarded(F f) noexcept {
  try {
    f();
    return SHEAF_OK;
  } catch (...) {
    return statusOfException();
  }
}

/// Throws Invalid; the many that ask given() would otherwise each have the code for it.
[[noreturn]] void refuseNull(const char *what);

/// Throws Invalid for a null pointer.
template <typename T> T &given(T *pointer, const char *what) {
  if (!pointer)
    refuseNull(what);
  return *pointer;
}

/// An open artefact with what the interface looks up again and again. Immutable.
class LoadedModel {
public:
  explicit LoadedModel(std::unique_ptr<artefact::Artefact> artefact,
                       std::shared_ptr<const ModelOrigin> origin = nullptr);

  /// What it was compiled from, and with which options; null for an artefact.
  const ModelOrigin *origin() const { return origin_.get(); }

  const artefact::Artefact &artefact() const { return *artefact_; }
  const rt::Model &model() const { return artefact_->model(); }
  const rt::TypeTable &types() const { return model().types; }

  /// Null when there is no such type.
  const rt::TypeDesc *type(sheaf_type type) const;
  const rt::CtorDesc *constructor(sheaf_type type, size_t number) const;
  /// Throws Invalid when there is no such type, or it is of another kind.
  const rt::TypeDesc &typeOf(sheaf_type type, rt::TypeKind kind) const;
  const std::string &text(sheaf_type type) const { return texts_[type]; }
  int64_t slots(sheaf_type type) const { return slots_[type]; }
  /// Of the fields of a constructor of this type of data.
  int64_t fieldSlots(const rt::TypeDesc &type, size_t constructor) const {
    return fieldSlots_[type.data][constructor];
  }
  /// How many tokens a type of tokens, or of tensors of tokens, has.
  int64_t tokens(sheaf_type type) const { return tokens_[type]; }
  /// Of a model that emits where that stands; else nothing.
  std::optional<rt::EmittingOutcome> emitting() const {
    return model().entry.emits
               ? std::optional<rt::EmittingOutcome>(std::in_place, types(), model().entry)
               : std::nullopt;
  }
  sheaf_type resultType() const { return model().entry.ownResult(types()); }
  /// The parameters that are the source's, by number.
  const std::vector<size_t> &weights() const { return weights_; }
  /// Of the parameter that is called so. Throws Invalid.
  size_t weight(const char *name) const;
  /// Those whose names match, `*` being any characters. Throws Invalid when there are none.
  std::vector<size_t> weightsNamed(const char *pattern) const;

  /// Whether values of this type have extents that must agree with others of the same instance.
  bool bindsExtents(sheaf_type type) const { return bindsExtents_[type]; }
  /// Whether an instance has such.
  bool bindsExtents() const { return anyBindsExtents_; }
  const artefact::VocabularyDesc *vocabulary(const std::string &name) const;
  /// The words; made when they are first asked for. Null when there is no such vocabulary.
  const io::Vocabulary *words(const std::string &name) const { return vocabularies().find(name); }
  /// All of them, made when they are first asked for.
  const io::Vocabularies &vocabularies() const;

private:
  std::unique_ptr<artefact::Artefact> artefact_;
  std::shared_ptr<const ModelOrigin> origin_;
  std::vector<std::string> texts_;               ///< by type
  std::vector<int64_t> slots_;                   ///< by type
  std::vector<std::vector<int64_t>> fieldSlots_; ///< by data and constructor
  std::vector<int64_t> tokens_;                  ///< by type
  std::vector<size_t> weights_;
  std::vector<bool> bindsExtents_; ///< by type
  bool anyBindsExtents_ = false;
  mutable std::once_flag wordsMade_;
  mutable io::Vocabularies words_;
};

/// Instances that a file gave, and what was read over.
struct ReadFile {
  explicit ReadFile(io::Dataset read) : dataset(std::move(read)) {}

  io::Dataset dataset;
  /// The file, what it held (io::contentHash(); empty: read for no training), and how it was read.
  std::string path, hash, format = "auto";
  bool strict = false, strictWords = false, limited = false;
  int64_t skipBad = 0;
  int64_t words = 0, unknown = 0; ///< looked up in vocabularies; not there
  mutable std::once_flag placesMade;
  mutable std::vector<std::string> places; ///< by instance
};

/// Values, and instances made of them. Whoever shares it changes it no more.
struct ValueStore {
  /// Values of one type, one after the other.
  struct Column {
    sheaf_type type;
    uint64_t first; ///< the number of its first value
    uint64_t count;
    const rt::Slot *slots;
  };

  explicit ValueStore(std::shared_ptr<const LoadedModel> of);
  ~ValueStore();
  ValueStore(ValueStore &&) = default;
  ValueStore &operator=(ValueStore &&) = default;

  /// Makes the values of `other` live as long as these.
  void keep(const std::shared_ptr<const ValueStore> &other);
  /// Throws Invalid where an argument is what an engine keeps: no one else can read it.
  void requireNoneKept() const {
    if (!kept.empty())
      throw Invalid("the batch has values that an engine keeps: only that engine runs it");
  }

  std::shared_ptr<const LoadedModel> model;
  uint32_t serial; ///< values know which store they are of
  io::SlotHeap heap;
  std::vector<Column> columns; ///< in the order of their numbers
  std::vector<rt::Instance> instances;
  std::vector<std::shared_ptr<const ValueStore>> others; ///< whose values stand in these
  /// What engines keep, in the order of the instances whose arguments it is.
  std::vector<std::pair<size_t, rt::KeptArgument>> kept;
  std::shared_ptr<ReadFile> file; ///< null: no file gave them
};

struct RunOf;

/// A session of one model. Whoever uses it holds the mutex of the sessions that it is one of.
struct RunningModel : std::enable_shared_from_this<RunningModel> {
  /// The session before its model, which it refers to, in the order of being destroyed.
  std::shared_ptr<const LoadedModel> model;
  std::unique_ptr<rt::Session> session;
  uint64_t runs = 0;         ///< so far
  uint64_t backs = 0;        ///< how often it went back
  std::weak_ptr<RunOf> last; ///< of a model made for training: the last run, while it is held
};

/// What a sheaf_session is: shared by all that came of it.
struct Running {
  std::mutex mutex;
  sheaf_session_options options{};
  std::shared_ptr<rt::Workers> workers; ///< of `options`, which may be released
  std::vector<std::shared_ptr<RunningModel>> models;
};

/// A run of a model made for training, from which the session can go back: the last one, or one
/// that was put aside because it was still held when the next began.
struct RunOf {
  std::shared_ptr<Running> running;
  std::shared_ptr<RunningModel> origin;
  uint64_t number; ///< of the runs of `origin`
  /// Where arguments without tensors are, of a model with gradients of inputs; else null.
  std::shared_ptr<const ValueStore> values = nullptr;
  std::unique_ptr<rt::Run> aside = nullptr;

  ~RunOf() {
    std::lock_guard lock(running->mutex);
    aside.reset();
  }
  /// The mutex is held.
  bool isThere() const { return aside || origin->runs == number; }
  const rt::Slot *arguments(size_t instance) const {
    return aside ? aside->arguments(instance) : origin->session->arguments(instance);
  }
};

/// The session of a model, made when it is not there yet. The mutex is held.
RunningModel &runningFor(Running &running, const std::shared_ptr<const LoadedModel> &model);

/// A tensor of a result: row-major, dense, as DLPack has its elements.
struct ResultTensor {
  DLDataType dtype;
  std::vector<int64_t> shape;
  const uint8_t *data = nullptr;
  rt::AlignedBytes own = {}; ///< unless it is a part of a stack
};

/// The tensors that all results have in one place, where their extents are always the same: one
/// after the other, by instance.
struct ResultStack {
  int64_t slot; ///< of a result, where each stands
  DLDataType dtype;
  std::vector<int64_t> shape; ///< of one
  size_t bytes;               ///< of one
  rt::AlignedBytes all;
};

/// How DLPack says a type of elements.
DLDataType dlpackType(rt::DType dtype);

/// Which instance failed, and where in the program.
struct FailedAt {
  int64_t instance = -1; ///< its id
  std::string file = {}; ///< empty: no place is to blame
  int64_t line = 0, column = 0;
  size_t message = 0; ///< where it begins in the text
};

/// Values of a result follow runtime/model/layout.h, but for a tensor: the address of its
/// ResultTensor.
struct ResultData {
  std::shared_ptr<const LoadedModel> model;
  io::SlotHeap heap;
  std::deque<ResultTensor> tensors;
  std::vector<ResultStack> stacks; ///< in the order of their slots
  struct Item {
    const rt::Slot *slots = nullptr; ///< null: failed, or kept alone
    std::string error;
    sheaf_cause cause = SHEAF_ENDED;
    FailedAt at = {};
    bool hasEnded() const { return cause == SHEAF_ENDED; }
  };
  std::vector<Item> items;
  sheaf_type type = SHEAF_NO_TYPE; ///< of each value; SHEAF_NO_TYPE: the model's results

  sheaf_type ownType() const { return type == SHEAF_NO_TYPE ? model->resultType() : type; }
};

/// Options that a caller may leave out. Throws Invalid.
sheaf_session_options checked(const sheaf_session_options *options);
/// Null: there are none.
std::shared_ptr<rt::Workers> workersOf(const sheaf_session_options &given);
/// But for the workers.
rt::SessionOptions sessionOptions(const sheaf_session_options &given, const rt::Model &model);
/// Of a stop that may be null. It is a share: the stop may be released.
std::stop_token tokenOf(const sheaf_stop *stop);

} // namespace sheaf::api

struct sheaf_model {
  std::shared_ptr<const sheaf::api::LoadedModel> model;
};

/// What is made value by value beside the columns of others.
struct sheaf_batch {
  struct Value {
    sheaf_type type;
    size_t first; ///< of its slots, in `slots`
    /// It stands for this. Its tensors are no inputs.
    sheaf::rt::KeptValue kept = {};
  };
  explicit sheaf_batch(std::shared_ptr<const sheaf::api::LoadedModel> of)
      : store(std::make_shared<sheaf::api::ValueStore>(std::move(of))) {}

  /// Forgets all instances and values; what comes goes into `fresh`. Locked.
  void begin(std::shared_ptr<sheaf::api::ValueStore> fresh) noexcept {
    values.clear();
    slots.clear();
    store = std::move(fresh);
  }

  std::mutex mutex;
  /// Others may read what was there when they began to share it.
  std::shared_ptr<sheaf::api::ValueStore> store;
  std::vector<Value> values;
  std::vector<sheaf::rt::Slot> slots;
};

struct sheaf_values {
  std::shared_ptr<const sheaf::api::ValueStore> store;
};

struct sheaf_value_builder {
  explicit sheaf_value_builder(std::shared_ptr<const sheaf::api::LoadedModel> of)
      : store(std::move(of)) {}

  std::mutex mutex;
  sheaf::api::ValueStore store;
};

struct sheaf_session {
  std::shared_ptr<sheaf::api::Running> running = std::make_shared<sheaf::api::Running>();
};

struct sheaf_stop {
  std::stop_source source;
};

struct sheaf_workers {
  std::shared_ptr<sheaf::rt::Workers> workers;
};

struct sheaf_result {
  std::shared_ptr<const sheaf::api::ResultData> data;
  /// Null: there is nowhere to go back from. Tensors that are handed out do not hold it.
  std::shared_ptr<sheaf::api::RunOf> run = nullptr;
  /// Of an engine's, which has one instance. Tensors that are handed out do not hold it.
  sheaf::rt::KeptValue kept = {};
};

struct sheaf_kept {
  std::shared_ptr<const sheaf::api::LoadedModel> model;
  sheaf::rt::KeptValue value;
};

#endif // SHEAF_RUNTIME_API_HANDLES_H
