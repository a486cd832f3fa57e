//===- sheaf.hpp - The C interface for C++ ----------------------*- C++ -*-===//
//
// A thin header over sheaf.h for C++17: handles that release themselves, errors as exceptions, and
// conversions of the structs that `sheaf build --emit-header` writes. What the functions mean is
// said in sheaf.h. Handles are cheap to copy and share what they stand for.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_SHEAF_HPP
#define SHEAF_SHEAF_HPP

#include "sheaf/sheaf.h"

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace sheaf {

/// What a call that fails throws. what() is the whole text.
class Error : public std::runtime_error {
public:
  /// Where something is wrong. What is not known is empty, 0, or -1.
  struct Place {
    std::string file;
    std::int64_t line = 0, column = 0;
    std::int64_t instance = -1; ///< of data that are read
    std::string field;          ///< in it, as `$.words[2]`
  };

  Error(sheaf_status status, const std::string &text)
      : std::runtime_error(text), status_(status), message_(text) {}
  Error(sheaf_status status, const std::string &text, std::string message, Place place)
      : std::runtime_error(text), status_(status), message_(std::move(message)),
        place_(std::move(place)) {}

  sheaf_status status() const { return status_; }
  /// Without the place.
  const std::string &message() const { return message_; }
  const Place &place() const { return place_; }

private:
  sheaf_status status_;
  std::string message_;
  Place place_;
};

inline void check(sheaf_status status) {
  if (status == SHEAF_OK)
    return;
  sheaf_error error{};
  error.size = sizeof error;
  if (sheaf_error_last(&error) != SHEAF_OK)
    throw Error(status, sheaf_error_message());
  throw Error(status, error.text, error.message,
              {error.file ? error.file : "", error.line, error.column, error.instance,
               error.field ? error.field : ""});
}

/// Why an instance has no value, and where in the program. What is not known is empty, 0, or -1.
struct Failure {
  sheaf_cause cause = SHEAF_ENDED;
  std::int64_t instance = -1; ///< its id
  std::string text;           ///< as people are told
  std::string message;        ///< without the place
  std::string file;
  std::int64_t line = 0, column = 0;
  std::string place; ///< where it was read
};

namespace detail {

inline Failure failureOf(const sheaf_failure &from) {
  auto text = [](const char *text) { return std::string(text ? text : ""); };
  return {static_cast<sheaf_cause>(from.cause),
          from.instance,
          text(from.text),
          text(from.message),
          text(from.file),
          from.line,
          from.column,
          text(from.place)};
}

} // namespace detail

using Type = sheaf_type;
using Value = sheaf_value;

class Model {
public:
  explicit Model(const std::string &path, const std::string &sha256 = "") {
    sheaf_load_options options{};
    options.sha256 = sha256.empty() ? nullptr : sha256.c_str();
    load(path, options);
  }
  Model(const std::string &path, sheaf_load_options options) { load(path, options); }
  /// Releases it at the end.
  explicit Model(sheaf_model *model) : model_(model, sheaf_model_release) {}
  sheaf_model *get() const { return model_.get(); }

  std::string name() const { return sheaf_model_name(get()); }
  std::string entry() const { return sheaf_model_entry(get()); }
  std::int64_t dim(const std::string &name) const { return sheaf_model_dim(get(), name.c_str()); }
  std::size_t arguments() const { return sheaf_model_argument_count(get()); }
  Type argumentType(std::size_t argument) const {
    return sheaf_model_argument_type(get(), argument);
  }
  Type resultType() const { return sheaf_model_result_type(get()); }
  /// SHEAF_NO_TYPE when instances emit nothing.
  Type emittedType() const { return sheaf_model_emitted_type(get()); }
  /// Throws Error when there is none that the source writes so.
  Type findType(const std::string &text) const {
    Type type = sheaf_model_find_type(get(), text.c_str());
    if (type == SHEAF_NO_TYPE)
      throw Error(SHEAF_INVALID, "the model has no type '" + text + "'");
    return type;
  }
  std::string text(Type type) const {
    const char *text = sheaf_type_text(get(), type);
    return text ? text : "";
  }
  /// Bytes for a row more of each tensor in it that grows; -1 where the type does not say.
  std::int64_t growth(Type type) const { return sheaf_type_growth(get(), type); }
  /// The number of a word; 0 when the vocabulary lacks it.
  std::int64_t token(const std::string &word, const std::string &vocabulary = "") const {
    return sheaf_vocabulary_token(get(), vocabulary.c_str(), word.c_str());
  }
  std::string word(std::int64_t token, const std::string &vocabulary = "") const {
    const char *word = sheaf_vocabulary_word(get(), vocabulary.c_str(), token);
    return word ? word : "";
  }

private:
  void load(const std::string &path, sheaf_load_options &options) {
    options.size = sizeof options;
    sheaf_model *model = nullptr;
    check(sheaf_model_load(path.c_str(), &options, &model));
    model_.reset(model, sheaf_model_release);
  }

  std::shared_ptr<sheaf_model> model_;
};

/// A vocabulary of no model. Copies share it.
class Words {
public:
  explicit Words(sheaf_words *words) : words_(words, sheaf_words_release) {}
  /// The first is "<unk>".
  explicit Words(const std::vector<std::string> &words) {
    std::vector<const char *> texts;
    for (const std::string &word : words)
      texts.push_back(word.c_str());
    sheaf_words *made = nullptr;
    check(sheaf_words_make(texts.data(), static_cast<std::int64_t>(texts.size()), &made));
    words_.reset(made, sheaf_words_release);
  }
  static Words load(const std::string &path) {
    sheaf_words *loaded = nullptr;
    check(sheaf_words_load(path.c_str(), &loaded));
    return Words(loaded);
  }
  /// Of a data file.
  static Words count(const std::string &path, sheaf_count_options options = {}) {
    options.size = sizeof options;
    sheaf_words *counted = nullptr;
    check(sheaf_words_count(path.c_str(), &options, &counted));
    return Words(counted);
  }
  static Words ofModel(const Model &model, const std::string &name = "") {
    sheaf_words *words = nullptr;
    check(sheaf_words_of_model(model.get(), name.c_str(), &words));
    return Words(words);
  }
  sheaf_words *get() const { return words_.get(); }

  std::int64_t size() const { return sheaf_words_size(get()); }
  /// The number of a word; 0 when it is not there.
  std::int64_t token(const std::string &word) const {
    return sheaf_words_token(get(), word.c_str());
  }
  std::string word(std::int64_t token) const {
    const char *word = sheaf_words_word(get(), token);
    return word ? word : "";
  }
  std::string hash() const { return sheaf_words_hash(get()); }
  void save(const std::string &path) const { check(sheaf_words_save(get(), path.c_str())); }

private:
  std::shared_ptr<sheaf_words> words_;
};

/// A tensor of a result. Shares its memory.
class Tensor {
public:
  explicit Tensor(DLManagedTensor *tensor)
      : tensor_(tensor, [](DLManagedTensor *t) { t->deleter(t); }) {}
  const DLTensor &get() const { return tensor_->dl_tensor; }

  std::vector<std::int64_t> shape() const {
    return std::vector<std::int64_t>(get().shape, get().shape + get().ndim);
  }
  std::size_t size() const {
    std::size_t n = 1;
    for (int axis = 0; axis < get().ndim; ++axis)
      n *= static_cast<std::size_t>(get().shape[axis]);
    return n;
  }
  /// The elements, row-major. Throws Error when they are not as large as a T.
  template <typename T> const T *data() const {
    if (get().dtype.bits != 8 * sizeof(T))
      throw Error(SHEAF_INVALID, "a tensor's elements are of another type");
    return static_cast<const T *>(get().data);
  }

private:
  std::shared_ptr<DLManagedTensor> tensor_;
};

/// A value of a result.
class View {
public:
  View(std::shared_ptr<sheaf_result> result, sheaf_view view)
      : result_(std::move(result)), view_(view) {}
  /// Of a result that someone else holds meanwhile.
  static View lent(const sheaf_result *result, sheaf_view view) {
    return View({const_cast<sheaf_result *>(result), [](sheaf_result *) {}}, view);
  }

  Type type() const { return view_.type; }
  std::int64_t toInt() const {
    std::int64_t number = 0;
    check(sheaf_view_int(result_.get(), view_, &number));
    return number;
  }
  double toFloat() const {
    double number = 0;
    check(sheaf_view_float(result_.get(), view_, &number));
    return number;
  }
  std::size_t constructor() const {
    std::size_t number = 0;
    check(sheaf_view_constructor(result_.get(), view_, &number));
    return number;
  }
  std::size_t size() const {
    std::size_t count = 0;
    check(sheaf_view_count(result_.get(), view_, &count));
    return count;
  }
  View operator[](std::size_t child) const {
    sheaf_view part;
    check(sheaf_view_child(result_.get(), view_, child, &part));
    return View(result_, part);
  }
  Tensor tensor() const {
    DLManagedTensor *tensor = nullptr;
    check(sheaf_view_tensor(result_.get(), view_, &tensor));
    return Tensor(tensor);
  }

private:
  std::shared_ptr<sheaf_result> result_;
  sheaf_view view_;
};

/// What an engine keeps, or a part of it. Copies share it.
class Kept {
public:
  explicit Kept(sheaf_kept *kept) : kept_(kept, sheaf_kept_release) {}
  sheaf_kept *get() const { return kept_.get(); }

  Type type() const { return sheaf_kept_type(get()); }
  std::uint64_t bytes() const { return sheaf_kept_bytes(get()); }
  bool isThere() const { return sheaf_kept_is_there(get()) != 0; }
  /// Of a tuple.
  Kept operator[](std::size_t part) const {
    sheaf_kept *handle = nullptr;
    check(sheaf_kept_part(get(), part, &handle));
    return Kept(handle);
  }

private:
  std::shared_ptr<sheaf_kept> kept_;
};

class Result {
public:
  explicit Result(sheaf_result *result) : result_(result, sheaf_result_release) {}
  const sheaf_result *get() const { return result_.get(); }
  std::size_t size() const { return sheaf_result_size(result_.get()); }
  /// Why an instance has no value; empty when it has one.
  std::string error(std::size_t instance) const {
    const char *message = sheaf_result_error(result_.get(), instance);
    return message ? message : "";
  }
  sheaf_cause cause(std::size_t instance) const {
    return sheaf_result_cause(result_.get(), instance);
  }
  /// All of it.
  Failure failure(std::size_t instance) const {
    sheaf_failure failure{};
    failure.size = sizeof failure;
    check(sheaf_result_failure(result_.get(), instance, &failure));
    return detail::failureOf(failure);
  }
  /// Throws Error when the instance failed.
  View operator[](std::size_t instance) const {
    sheaf_view view;
    check(sheaf_result_value(result_.get(), instance, &view));
    return View(result_, view);
  }
  /// The list of what it emitted. Throws Error when it failed, or the model emits nothing.
  View emitted(std::size_t instance) const {
    sheaf_view view;
    check(sheaf_result_emitted(result_.get(), instance, &view));
    return View(result_, view);
  }

  /// The value in its engine. Throws Error when the request did not ask for it, or it failed.
  Kept kept(std::size_t instance = 0) const {
    sheaf_kept *kept = nullptr;
    check(sheaf_result_kept(result_.get(), instance, &kept));
    return Kept(kept);
  }

  /// A part of all results as one tensor.
  Tensor stack(const std::vector<std::size_t> &path = {}) const { return stack(nullptr, 0, path); }
  Tensor stack(const std::vector<std::size_t> &path,
               const std::vector<std::size_t> &instances) const {
    std::size_t none = 0;
    return stack(instances.empty() ? &none : instances.data(), instances.size(), path);
  }

private:
  Tensor stack(const std::size_t *instances, std::size_t count,
               const std::vector<std::size_t> &path) const {
    DLManagedTensor *tensor = nullptr;
    check(sheaf_result_stack(result_.get(), instances, count, path.data(), path.size(), &tensor));
    return Tensor(tensor);
  }

  std::shared_ptr<sheaf_result> result_;
};

/// Values that belong to no batch. Copies share them.
class Values {
public:
  explicit Values(sheaf_values *values) : values_(values, sheaf_values_release) {}
  sheaf_values *get() const { return values_.get(); }
  /// Of instances.
  std::size_t size() const { return sheaf_values_size(get()); }
  std::size_t bytes() const { return sheaf_values_bytes(get()); }

private:
  std::shared_ptr<sheaf_values> values_;
};

/// What Builder::preorder() takes.
struct Preorder {
  std::vector<std::uint32_t> heads;
  std::vector<std::int64_t> numbers;
  std::vector<double> floats;
  std::vector<const DLTensor *> tensors;
};

/// A handle of what makes values of a model.
template <typename Handle> class MakesValues {
public:
  Handle *get() const { return handle_.get(); }
  const Model &model() const { return model_; }

protected:
  MakesValues(const Model &model, sheaf_status (*create)(sheaf_model *, Handle **),
              void (*release)(Handle *))
      : model_(model) {
    Handle *handle = nullptr;
    check(create(model.get(), &handle));
    handle_.reset(handle, release);
  }
  template <typename Function, typename... Arguments>
  Value make(Function *function, Type type, Arguments... arguments) {
    Value value{};
    check(function(get(), type, arguments..., &value));
    return value;
  }

private:
  Model model_;
  std::shared_ptr<Handle> handle_;
};

/// Makes values many at a time. Functions return the first; `first + i` is `at(first, i)`.
class Builder : public MakesValues<sheaf_value_builder> {
public:
  explicit Builder(const Model &model)
      : MakesValues(model, sheaf_builder_create, sheaf_builder_release) {}
  static Value at(Value first, std::size_t i) { return Value{first.id + i}; }

  Value numbers(Type type, const DLTensor &numbers) {
    return make(sheaf_builder_numbers, type, &numbers);
  }
  /// Elements of any width: ints, floats, or `unsigned char` for truth values.
  template <typename T> Value numbers(Type type, const std::vector<T> &elements) {
    std::int64_t count = static_cast<std::int64_t>(elements.size());
    DLTensor tensor{};
    tensor.data = const_cast<T *>(elements.data());
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = {static_cast<std::uint8_t>(sheaf_type_kind(model().get(), type) == SHEAF_BOOL
                                                  ? kDLBool
                                              : std::is_floating_point<T>::value ? kDLFloat
                                              : std::is_signed<T>::value         ? kDLInt
                                                                                 : kDLUInt),
                    8 * sizeof(T), 1};
    tensor.shape = &count;
    return numbers(type, tensor);
  }
  Value tensors(Type type, const std::vector<const DLTensor *> &tensors) {
    return make(sheaf_builder_tensors, type, tensors.data(), tensors.size());
  }
  Value unstack(Type type, const DLTensor &stack) {
    return make(sheaf_builder_unstack, type, &stack);
  }
  /// `offsets`: one more than there are lists.
  Value lists(Type type, Value elements, const std::vector<std::uint64_t> &offsets) {
    if (offsets.empty())
      throw Error(SHEAF_INVALID, "offsets are empty");
    return make(sheaf_builder_lists, type, elements, offsets.data(), offsets.size() - 1);
  }
  Value tuples(Type type, const std::vector<Value> &parts, std::size_t count) {
    return make(sheaf_builder_tuples, type, parts.data(), parts.size(), count);
  }
  Value data(Type type, std::size_t constructor, const std::vector<Value> &fields,
             std::size_t count) {
    return make(sheaf_builder_data, type, constructor, fields.data(), fields.size(), count);
  }
  Value select(Value from, const std::vector<std::uint64_t> &which) {
    Value value{};
    check(sheaf_builder_select(get(), from, which.data(), which.size(), &value));
    return value;
  }
  Value preorder(Type type, const Preorder &written, std::size_t count) {
    sheaf_preorder arrays{sizeof arrays,          written.heads.data(),   written.heads.size(),
                          written.numbers.data(), written.numbers.size(), written.floats.data(),
                          written.floats.size(),  written.tensors.data(), written.tensors.size()};
    return make(sheaf_builder_preorder, type, &arrays, count);
  }
  Value take(const Values &other, Value from, std::size_t count) {
    Value value{};
    check(sheaf_builder_take(get(), other.get(), from, count, &value));
    return value;
  }
  void instances(const std::vector<Value> &arguments, std::size_t count,
                 const std::int64_t *ids = nullptr) {
    check(sheaf_builder_instances(get(), arguments.data(), arguments.size(), count, ids));
  }
  Values finish() {
    sheaf_values *values = nullptr;
    check(sheaf_builder_finish(get(), &values));
    return Values(values);
  }
};

class Batch : public MakesValues<sheaf_batch> {
public:
  explicit Batch(const Model &model)
      : MakesValues(model, sheaf_batch_create, sheaf_batch_release) {}
  std::size_t size() const { return sheaf_batch_size(get()); }
  void clear() { check(sheaf_batch_clear(get())); }

  Value makeInt(Type type, std::int64_t number) { return make(sheaf_make_int, type, number); }
  Value makeFloat(Type type, double number) { return make(sheaf_make_float, type, number); }
  Value makeBool(Type type, bool truth) { return make(sheaf_make_bool, type, truth); }
  Value makeToken(Type type, std::int64_t token) { return make(sheaf_make_token, type, token); }
  Value makeTensor(Type type, const DLTensor &tensor) {
    return make(sheaf_make_tensor, type, &tensor);
  }
  /// `elements`: row-major.
  template <typename T>
  Value makeTensor(Type type, const std::vector<std::int64_t> &shape, const T *elements) {
    DLTensor tensor{};
    tensor.data = const_cast<T *>(elements);
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<std::int32_t>(shape.size());
    tensor.dtype = sheaf_type_dtype(model().get(), type);
    if (tensor.dtype.bits != 8 * sizeof(T))
      throw Error(SHEAF_INVALID,
                  "the elements of '" + model().text(type) + "' are of another type");
    tensor.shape = const_cast<std::int64_t *>(shape.data());
    return makeTensor(type, tensor);
  }
  Value makeList(Type type, const std::vector<Value> &elements) {
    return make(sheaf_make_list, type, elements.data(), elements.size());
  }
  Value makeTuple(Type type, const std::vector<Value> &parts) {
    return make(sheaf_make_tuple, type, parts.data(), parts.size());
  }
  Value makeData(Type type, std::size_t constructor, const std::vector<Value> &fields) {
    return make(sheaf_make_data, type, constructor, fields.data(), fields.size());
  }
  /// By the constructor's name.
  Value makeData(Type type, const std::string &constructor, const std::vector<Value> &fields) {
    int number = sheaf_type_find_constructor(model().get(), type, constructor.c_str());
    if (number < 0)
      throw Error(SHEAF_INVALID,
                  "'" + model().text(type) + "' has no constructor '" + constructor + "'");
    return makeData(type, static_cast<std::size_t>(number), fields);
  }

  /// An argument, as a whole, of instances of the engine that keeps it.
  Value makeKept(Type type, const Kept &kept) { return make(sheaf_make_kept, type, kept.get()); }

  void add(const std::vector<Value> &arguments, std::int64_t id) {
    check(sheaf_batch_add(get(), arguments.data(), arguments.size(), id));
  }
  void add(const std::vector<Value> &arguments) {
    add(arguments, static_cast<std::int64_t>(size()));
  }
  /// All of them, with their ids.
  void add(const Values &values) { add(values, nullptr, values.size()); }
  void add(const Values &values, const std::vector<std::uint64_t> &which,
           const std::int64_t *ids = nullptr) {
    add(values, which.data(), which.size(), ids);
  }

private:
  void add(const Values &values, const std::uint64_t *which, std::size_t count,
           const std::int64_t *ids = nullptr) {
    check(sheaf_batch_add_instances(get(), values.get(), which, count, ids));
  }
};

/// Ends the runs that are given it. Copies are one stop.
class Stop {
public:
  Stop() {
    sheaf_stop *stop = nullptr;
    check(sheaf_stop_create(&stop));
    stop_.reset(stop, sheaf_stop_release);
  }
  sheaf_stop *get() const { return stop_.get(); }
  void request() const { sheaf_stop_request(get()); }

private:
  std::shared_ptr<sheaf_stop> stop_;
};

/// Threads that sessions and engines share: `options.workers = workers.get()`. Copies are the same.
class Workers {
public:
  explicit Workers(std::uint32_t threads) {
    sheaf_workers *workers = nullptr;
    check(sheaf_workers_create(threads, &workers));
    workers_.reset(workers, sheaf_workers_release);
  }
  sheaf_workers *get() const { return workers_.get(); }

private:
  std::shared_ptr<sheaf_workers> workers_;
};

class Session {
public:
  explicit Session(std::uint32_t threads = 1, std::uint64_t memoryLimit = 0) {
    sheaf_session_options options{};
    options.size = sizeof options;
    options.threads = threads;
    options.memory_limit = memoryLimit;
    create(options);
  }
  explicit Session(const sheaf_session_options &options) { create(options); }
  sheaf_session *get() const { return session_.get(); }

  void add(const Model &model) { check(sheaf_session_add(get(), model.get())); }
  void remove(const Model &model) { check(sheaf_session_remove(get(), model.get())); }
  Result run(const Batch &batch) {
    sheaf_result *result = nullptr;
    check(sheaf_session_run(get(), batch.get(), &result));
    return Result(result);
  }
  Result run(const Batch &batch, const Stop &stop) {
    sheaf_run_options options{};
    options.stop = stop.get();
    return run(batch, options);
  }
  /// `emitted(id, view)` is told what each instance emits as soon as that is computed; the view is
  /// valid during the call. What it throws comes out when the run has ended; nothing more is told
  /// then.
  template <typename Emitted> Result run(const Batch &batch, const Stop &stop, Emitted emitted) {
    struct Told {
      Emitted &emitted;
      std::exception_ptr thrown;
    } told{emitted, nullptr};
    sheaf_run_options options{};
    options.stop = stop.get();
    options.emit_user = &told;
    options.emit = [](void *user, std::int64_t id, const sheaf_result *result, sheaf_view value) {
      Told &told = *static_cast<Told *>(user);
      if (told.thrown)
        return;
      try {
        told.emitted(id, View::lent(result, value));
      } catch (...) {
        told.thrown = std::current_exception();
      }
    };
    Result result = run(batch, options);
    if (told.thrown)
      std::rethrow_exception(told.thrown);
    return result;
  }

private:
  Result run(const Batch &batch, sheaf_run_options &options) {
    options.size = sizeof options;
    sheaf_result *result = nullptr;
    check(sheaf_session_run_with(get(), batch.get(), &options, &result));
    return Result(result);
  }
  void create(const sheaf_session_options &options) {
    sheaf_session *session = nullptr;
    check(sheaf_session_create(&options, &session));
    session_.reset(session, sheaf_session_release);
  }
  std::shared_ptr<sheaf_session> session_;
};

/// Bytes that several engines share: `options.budget = budget.get()`. Copies are one budget.
class Budget {
public:
  explicit Budget(std::uint64_t bytes) {
    sheaf_budget *budget = nullptr;
    check(sheaf_budget_create(bytes, &budget));
    budget_.reset(budget, sheaf_budget_release);
  }
  sheaf_budget *get() const { return budget_.get(); }
  std::uint64_t used() const { return sheaf_budget_used(get()); }

private:
  std::shared_ptr<sheaf_budget> budget_;
};

/// Steps the engines that are made with it, in turns. Copies are one executor; it is destroyed when
/// no thread steps.
class Executor {
public:
  /// `failed` is told in the thread that steps what an engine's step or its callbacks threw; the
  /// engine is Engine::get(). Without, the first of that comes out of step(), or of run() when its
  /// stop is requested.
  using Failed = std::function<void(sheaf_engine *, std::exception_ptr)>;
  explicit Executor(Failed failed = nullptr) : errors_(std::make_shared<Errors>()) {
    errors_->failed = std::move(failed);
    sheaf_executor_options options{};
    options.size = sizeof options;
    options.failed_user = errors_.get();
    options.failed = [](void *user, sheaf_engine *engine, sheaf_status status) {
      try {
        check(status);
      } catch (...) {
        static_cast<Errors *>(user)->note(engine);
      }
    };
    sheaf_executor *executor = nullptr;
    check(sheaf_executor_create(&options, &executor));
    executor_.reset(executor, sheaf_executor_release);
  }
  sheaf_executor *get() const { return executor_.get(); }

  /// One engine's turn. Returns whether any has anything left to do.
  bool step() const {
    int more = 0;
    check(sheaf_executor_step(get(), &more));
    errors_->rethrow();
    return more != 0;
  }
  /// Until the stop is requested; in as many threads as shall step engines.
  void run(const Stop &stop) const {
    check(sheaf_executor_run(get(), stop.get()));
    errors_->rethrow();
  }

private:
  friend class Engine;
  struct Errors {
    /// Within a handler.
    void note(sheaf_engine *engine) {
      std::exception_ptr error = std::current_exception();
      if (failed) {
        try {
          return failed(engine, error);
        } catch (...) {
          error = std::current_exception();
        }
      }
      std::lock_guard<std::mutex> lock(mutex);
      if (!thrown)
        thrown = error;
    }
    void rethrow() {
      std::unique_lock<std::mutex> lock(mutex);
      std::exception_ptr error = std::exchange(thrown, nullptr);
      lock.unlock();
      if (error)
        std::rethrow_exception(error);
    }
    Failed failed;
    std::mutex mutex;
    std::exception_ptr thrown; ///< the first
  };
  std::shared_ptr<Errors> errors_; ///< the engines hold it
  std::shared_ptr<sheaf_executor> executor_;
};

/// Runs instances that come and go, in the thread that steps. `submit`, `waiting` and stops are for
/// any thread; an engine is destroyed when none steps, but for an executor.
class Engine {
public:
  explicit Engine(const Model &model, const sheaf_session_options *session = nullptr,
                  const sheaf_engine_options *options = nullptr) {
    sheaf_engine *engine = nullptr;
    check(sheaf_engine_create(model.get(), session, options, &engine));
    engine_.reset(engine);
  }
  /// It is stepped by the executor alone.
  Engine(const Model &model, const Executor &executor,
         const sheaf_session_options *session = nullptr, sheaf_engine_options options = {})
      : Engine(model, session, &in(options, executor)) {
    state_->engine = get();
    state_->errors = executor.errors_;
  }
  sheaf_engine *get() const { return engine_.get(); }

  /// Calls `done(id, result)` once for each instance of the batch, which is empty afterwards; the
  /// result is of that one instance. Before, `emitted(id, view)` is told what the instance emits as
  /// soon as that is computed; the view is valid during the call. What they throw comes out of
  /// step() or run().
  void submit(const Batch &batch, std::function<void(std::int64_t, Result)> done,
              sheaf_request_options options = {},
              std::function<void(std::int64_t, View)> emitted = {}) {
    options.size = sizeof options;
    std::size_t count = batch.size();
    if (count == 0)
      return;
    auto pending = std::make_unique<Pending>(
        Pending{std::move(done), std::move(emitted), count, state_.get()});
    Pending *user = pending.get();
    if (user->emitted) {
      options.emit = tellEmission;
      options.emit_user = user;
    }
    {
      std::lock_guard<std::mutex> lock(state_->mutex);
      state_->pending.emplace(user, std::move(pending));
    }
    sheaf_status status = sheaf_engine_submit(get(), batch.get(), &options, tell, user);
    if (status != SHEAF_OK) {
      std::lock_guard<std::mutex> lock(state_->mutex);
      state_->pending.erase(user);
    }
    check(status);
  }
  /// Whether there is more to do.
  bool step() {
    int more = 0;
    check(sheaf_engine_step(get(), &more));
    if (std::exception_ptr thrown = std::exchange(state_->thrown, nullptr))
      std::rethrow_exception(thrown);
    return more != 0;
  }
  /// Until the stop is requested. What a callback throws comes out then.
  void run(const Stop &stop) {
    check(sheaf_engine_run(get(), stop.get()));
    if (std::exception_ptr thrown = std::exchange(state_->thrown, nullptr))
      std::rethrow_exception(thrown);
  }
  std::size_t waiting() const { return sheaf_engine_waiting(get()); }
  /// Values that it keeps, and their bytes.
  std::size_t keptValues() const { return sheaf_engine_kept_values(get()); }
  std::uint64_t keptBytes() const { return sheaf_engine_kept_bytes(get()); }

private:
  struct State;
  struct Pending {
    std::function<void(std::int64_t, Result)> done;
    std::function<void(std::int64_t, View)> emitted;
    std::size_t left; ///< instances that have not ended
    State *state;
  };
  struct State {
    std::mutex mutex;
    std::map<Pending *, std::unique_ptr<Pending>> pending;
    std::exception_ptr thrown; ///< the first of a round; only the thread that steps looks
    sheaf_engine *engine = nullptr;
    std::shared_ptr<Executor::Errors> errors; ///< null: there is no executor
    void noteThrown() {
      if (errors)
        errors->note(engine);
      else if (!thrown)
        thrown = std::current_exception();
    }
  };
  static const sheaf_engine_options &in(sheaf_engine_options &options, const Executor &executor) {
    options.size = sizeof options;
    options.executor = executor.get();
    return options;
  }
  static void tellEmission(void *user, std::int64_t id, const sheaf_result *result,
                           sheaf_view value) {
    auto *pending = static_cast<Pending *>(user);
    try {
      pending->emitted(id, View::lent(result, value));
    } catch (...) {
      pending->state->noteThrown();
    }
  }
  static void tell(void *user, std::int64_t id, sheaf_result *result) {
    auto *pending = static_cast<Pending *>(user);
    State &state = *pending->state;
    Result own(result);
    try {
      pending->done(id, std::move(own));
    } catch (...) {
      state.noteThrown();
    }
    if (--pending->left == 0) {
      std::lock_guard<std::mutex> lock(state.mutex);
      state.pending.erase(pending);
    }
  }
  struct Release {
    void operator()(sheaf_engine *engine) const { sheaf_engine_release(engine); }
  };

  std::unique_ptr<State> state_ = std::make_unique<State>();
  std::unique_ptr<sheaf_engine, Release> engine_;
};

//===----------------------------------------------------------------------===//
// What generated structs are made of
//===----------------------------------------------------------------------===//

/// The elements of a tensor, row-major, in memory of one's own. bf16 and f16 are their bits, truth
/// values bytes, tokens 32-bit ints.
template <typename T> struct Array {
  std::vector<std::int64_t> shape;
  std::vector<T> elements;
};

namespace detail {

/// Objects that wait to be destroyed in this thread: so structures take no stack for their depth.
struct Doomed {
  struct Entry {
    void *object;
    void (*destroy)(void *);
  };
  std::vector<Entry> entries;
  bool running = false;

  static Doomed &ofThread() {
    thread_local Doomed doomed;
    return doomed;
  }
  void add(void *object, void (*destroy)(void *)) {
    entries.push_back({object, destroy});
    if (running)
      return;
    running = true;
    while (!entries.empty()) {
      Entry entry = entries.back();
      entries.pop_back();
      entry.destroy(entry.object);
    }
    running = false;
  }
};

} // namespace detail

/// An object of its own on the heap, for fields of recursive types. Empty when it was given none
/// and after being moved from.
template <typename T> class Box {
public:
  Box() = default;
  Box(T object) : object_(new T(std::move(object))) {}
  Box(Box &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Box &operator=(Box &&other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Box() {
    if (object_)
      detail::Doomed::ofThread().add(object_,
                                     [](void *object) { delete static_cast<T *>(object); });
  }
  explicit operator bool() const { return object_ != nullptr; }
  T &operator*() const { return *object_; }
  T *operator->() const { return object_; }

private:
  T *object_ = nullptr;
};

/// Turns structs into values of a batch and values of a result into structs, with a stack of its
/// own: they may be as deep as memory allows. Throws Error when struct and type do not fit.
class Encoder {
public:
  explicit Encoder(Batch &batch) : batch_(batch) {}

  template <typename T> Value encode(const T &object, Type type) {
    push(object, type);
    while (!tasks_.empty()) {
      Task task = tasks_.back();
      tasks_.pop_back();
      task.run(*this, task);
    }
    Value value = done_.back();
    done_.pop_back();
    return value;
  }

private:
  struct Task {
    void (*run)(Encoder &, const Task &);
    const void *object;
    Type type;
    std::size_t constructor, count;
  };

  template <typename T> void push(const T &object, Type type) {
    tasks_.push_back({[](Encoder &e, const Task &task) {
                        e.visit(*static_cast<const T *>(task.object), task.type);
                      },
                      &object, type, 0, 0});
  }
  sheaf_model *model() const { return batch_.model().get(); }
  sheaf_kind kind(Type type) const { return sheaf_type_kind(model(), type); }

  void visit(std::int64_t number, Type type) {
    done_.push_back(kind(type) == SHEAF_TOKEN ? batch_.makeToken(type, number)
                                              : batch_.makeInt(type, number));
  }
  void visit(double number, Type type) { done_.push_back(batch_.makeFloat(type, number)); }
  void visit(bool truth, Type type) { done_.push_back(batch_.makeBool(type, truth)); }
  void visit(unsigned char truth, Type type) { done_.push_back(batch_.makeBool(type, truth)); }
  template <typename T> void visit(const Array<T> &array, Type type) {
    std::size_t elements = 1;
    for (std::int64_t extent : array.shape)
      elements *= static_cast<std::size_t>(extent);
    if (elements != array.elements.size())
      throw Error(SHEAF_INVALID, "an array's shape does not fit its elements");
    done_.push_back(batch_.makeTensor(type, array.shape, array.elements.data()));
  }
  template <typename T> void visit(const Box<T> &box, Type type) {
    if (!box)
      throw Error(SHEAF_INVALID,
                  "a box is empty where a '" + batch_.model().text(type) + "' belongs");
    push(*box, type);
  }
  template <typename T> void visit(const std::vector<T> &list, Type type) {
    tasks_.push_back({finishList, nullptr, type, 0, list.size()});
    Type element = sheaf_type_child(model(), type, 0);
    for (std::size_t i = list.size(); i-- > 0;)
      push(list[i], element);
  }
  template <typename... T> void visit(const std::tuple<T...> &tuple, Type type) {
    tasks_.push_back({finishTuple, nullptr, type, 0, sizeof...(T)});
    pushMembers(
        tuple, [&](std::size_t i) { return sheaf_type_child(model(), type, i); },
        std::index_sequence_for<T...>());
  }
  /// A generated struct: `value` is a std::variant of its constructors.
  template <typename T>
  auto visit(const T &object, Type type) -> decltype(object.value.index(), void()) {
    std::size_t constructor = object.value.index();
    std::visit(
        [&](const auto &fields) {
          auto tied = fields.fields();
          constexpr std::size_t count = std::tuple_size_v<decltype(tied)>;
          tasks_.push_back({finishData, nullptr, type, constructor, count});
          pushMembers(
              tied,
              [&](std::size_t i) { return sheaf_type_field_type(model(), type, constructor, i); },
              std::make_index_sequence<count>());
        },
        object.value);
  }
  /// The last first, so that they are done in order.
  template <typename Members, typename TypeOf, std::size_t... I>
  void pushMembers(const Members &members, TypeOf typeOf, std::index_sequence<I...>) {
    constexpr std::size_t count = sizeof...(I);
    (push(std::get<count - 1 - I>(members), typeOf(count - 1 - I)), ...);
    (void)members;
    (void)typeOf;
  }

  std::vector<Value> take(std::size_t count) {
    std::vector<Value> parts(done_.end() - static_cast<std::ptrdiff_t>(count), done_.end());
    done_.resize(done_.size() - count);
    return parts;
  }
  static void finishList(Encoder &e, const Task &task) {
    e.done_.push_back(e.batch_.makeList(task.type, e.take(task.count)));
  }
  static void finishTuple(Encoder &e, const Task &task) {
    e.done_.push_back(e.batch_.makeTuple(task.type, e.take(task.count)));
  }
  static void finishData(Encoder &e, const Task &task) {
    e.done_.push_back(e.batch_.makeData(task.type, task.constructor, e.take(task.count)));
  }

  Batch &batch_;
  std::vector<Task> tasks_;
  std::vector<Value> done_;
};

class Decoder {
public:
  template <typename T> static T decode(const View &view) {
    T object{};
    Decoder decoder;
    decoder.push(object, view);
    while (!decoder.tasks_.empty()) {
      Task task = std::move(decoder.tasks_.back());
      decoder.tasks_.pop_back();
      task.run(decoder, task);
    }
    return object;
  }

private:
  struct Task {
    void (*run)(Decoder &, const Task &);
    void *object;
    View view;
  };

  template <typename T> void push(T &object, const View &view) {
    tasks_.push_back(
        {[](Decoder &d, const Task &task) { d.visit(*static_cast<T *>(task.object), task.view); },
         &object, view});
  }

  void visit(std::int64_t &number, const View &view) { number = view.toInt(); }
  void visit(double &number, const View &view) { number = view.toFloat(); }
  void visit(bool &truth, const View &view) { truth = view.toInt() != 0; }
  void visit(unsigned char &truth, const View &view) { truth = view.toInt() != 0; }
  template <typename T> void visit(Array<T> &array, const View &view) {
    Tensor tensor = view.tensor();
    array.shape = tensor.shape();
    array.elements.assign(tensor.data<T>(), tensor.data<T>() + tensor.size());
  }
  template <typename T> void visit(Box<T> &box, const View &view) {
    box = Box<T>(T());
    push(*box, view);
  }
  template <typename T> void visit(std::vector<T> &list, const View &view) {
    list.resize(view.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      push(list[i], view[i]);
  }
  template <typename... T> void visit(std::tuple<T...> &tuple, const View &view) {
    pushMembers(tuple, view, std::index_sequence_for<T...>());
  }
  template <typename T>
  auto visit(T &object, const View &view) -> decltype(object.value.index(), void()) {
    emplace(object.value, view.constructor(),
            std::make_index_sequence<std::variant_size_v<decltype(object.value)>>());
    std::visit(
        [&](auto &fields) {
          auto tied = fields.fields();
          pushMembers(tied, view, std::make_index_sequence<std::tuple_size_v<decltype(tied)>>());
        },
        object.value);
  }
  template <typename Members, std::size_t... I>
  void pushMembers(Members &members, const View &view, std::index_sequence<I...>) {
    if (view.size() != sizeof...(I))
      throw Error(SHEAF_INVALID, "a struct and a value have other parts");
    (push(std::get<I>(members), view[I]), ...);
  }
  template <typename Variant, std::size_t... I>
  static void emplace(Variant &variant, std::size_t index, std::index_sequence<I...>) {
    if (index >= sizeof...(I))
      throw Error(SHEAF_INVALID, "a struct lacks a constructor of its type");
    ((index == I ? void(variant.template emplace<I>()) : void()), ...);
  }

  std::vector<Task> tasks_;
};

} // namespace sheaf

#endif // SHEAF_SHEAF_HPP
