#include "python/native/session.h"
#include "python/native/arrays.h"
#include "python/native/decode.h"
#include "python/native/encode.h"

#include "sheaf/gradients.h"

#include "runtime/session/session.h"

#include <nanobind/ndarray.h>

#include <chrono>

namespace sheaf::python {

namespace {

unsigned forks = 0;

/// Runs that are expected to take less stay where they are: another thread costs some of that.
constexpr double kShort = 1e6;

} // namespace

void Running::run() noexcept {
  sheaf_run_options options{};
  options.size = sizeof options;
  options.stop = stop.get();
  options.step = step;
  auto begin = std::chrono::steady_clock::now();
  status = sheaf_session_run_with(session.get(), &batch, &options, &result);
  if (status != SHEAF_OK)
    message = sheaf_error_message();
  nanoseconds =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

Session::Session(Model &model, const sheaf_session_options &options)
    : model_(model), options_(options) {
  open();
}

void Session::open() {
  sheaf_session *session = nullptr;
  check(sheaf_session_create(&options_, &session));
  session_.reset(session, sheaf_session_release);
  generation_ = forks;
}

void Session::noteFork() { ++forks; }

const std::shared_ptr<sheaf_session> &Session::handle() {
  if (generation_ != forks) {
    // Of the parent's threads there are none here, not even to be ended: what it has is left alone.
    new std::shared_ptr<sheaf_session>(std::move(session_));
    open();
  }
  return session_;
}

void Session::runBatch(const std::shared_ptr<Running> &running) {
  running->session = handle();
  size_t instances = running->batch.store->instances.size();
  double expected = std::max(lastNanoseconds_, nanosecondsBefore_) * static_cast<double>(instances);
  if (expected < kShort) {
    Unlocked unlocked;
    running->run();
  } else {
    running->stop = makeStop();
    runWaiting([running] { running->run(); }, running->stop);
  }
  lastRun_ = running->nanoseconds;
  if (instances)
    nanosecondsBefore_ =
        std::exchange(lastNanoseconds_, running->nanoseconds / static_cast<double>(instances));
  if (running->status != SHEAF_OK)
    raiseStatus(running->status, running->message);
}

std::shared_ptr<Running> Session::prepare(nb::handle columns) {
  auto running = std::make_shared<Running>(model_.shared());
  api::ValueStore &store = *running->batch.store;
  const Values *values = nullptr;
  if (PyTuple_GET_SIZE(columns.ptr()) == 1 &&
      nb::try_cast(nb::handle(PyTuple_GET_ITEM(columns.ptr(), 0)), values) && values)
    // Errors and draws go by the place in the call, as they do for lists.
    values->putInto(store, model_);
  else
    encodeColumns(model_, columns, store);
  return running;
}

std::shared_ptr<Running> Session::runKept(nb::handle columns, uint64_t step) {
  std::shared_ptr<Running> running = prepare(columns);
  running->step = step;
  runBatch(running);
  return running;
}

nb::object Session::run(nb::handle columns, bool each) {
  std::shared_ptr<Running> running = runKept(columns, 0);
  if (each)
    return decodeEach(model_, running->result);
  raiseFailures(running->result);
  return decodeColumn(model_, running->result);
}

void Session::setWeights(const nb::dict &arrays) {
  const std::shared_ptr<sheaf_session> &session = handle();
  const std::vector<rt::ParamDesc> &params = model_.loaded().model().params;
  for (size_t weight : model_.loaded().weights()) {
    const char *name = params[weight].name.c_str();
    if (params[weight].dtype == rt::DType::Bool || !arrays.contains(name))
      continue;
    nb::object array = arrays[name];
    LentTensor tensor(array.ptr(), std::string("weight '") + name + "'");
    sheaf_status status;
    {
      Unlocked unlocked;
      status = sheaf_session_set_weight(session.get(), model_.handle(), name, tensor.get());
    }
    check(status);
  }
}

nb::dict Session::parameters(bool writable) {
  auto *held = new std::shared_ptr<sheaf_session>(handle());
  nb::capsule self(
      held, [](void *p) noexcept { delete static_cast<std::shared_ptr<sheaf_session> *>(p); });
  sheaf_status status;
  rt::Session *session = nullptr;
  {
    Unlocked unlocked; // a run has the session until it ends
    status = sheaf_session_add(held->get(), model_.handle());
    if (status == SHEAF_OK) {
      std::lock_guard lock((*held)->running->mutex);
      session = api::runningFor(*(*held)->running, model_.shared()).session.get();
    }
  }
  check(status);
  nb::dict all;
  const std::vector<rt::ParamDesc> &params = model_.loaded().model().params;
  for (size_t i = 0; i < params.size(); ++i) {
    const rt::ParamDesc &param = params[i];
    if (param.synthetic)
      continue;
    auto bytes = rt::dtypeBytes(param.dtype);
    std::vector<size_t> shape(param.shape.begin(), param.shape.end());
    // Rows are padded to whole granules; a truth value takes four bytes there.
    std::vector<int64_t> strides(shape.size(), 1);
    int64_t stride = shape.empty() ? 1
                                   : rt::rowGranules(param.shape.back(), param.dtype) *
                                         rt::kGranuleBytes / bytes;
    for (size_t axis = shape.size(); axis-- > 1; stride *= param.shape[axis - 1])
      strides[axis - 1] = stride;
    DLDataType dtype =
        param.dtype == rt::DType::Bool ? DLDataType{kDLInt, 32, 1} : api::dlpackType(param.dtype);
    nb::dlpack::dtype element{dtype.code, dtype.bits, dtype.lanes};
    const void *data = session->param(i).data;
    if (dtype.code == kDLBfloat)
      all[param.name.c_str()] =
          nb::ndarray<nb::ro>(data, shape.size(), shape.data(), self, strides.data(), element)
              .cast();
    else if (writable && dtype.code == kDLFloat)
      all[param.name.c_str()] = nb::ndarray<nb::numpy>(const_cast<void *>(data), shape.size(),
                                                       shape.data(), self, strides.data(), element)
                                    .cast();
    else
      all[param.name.c_str()] = nb::ndarray<nb::numpy, nb::ro>(data, shape.size(), shape.data(),
                                                               self, strides.data(), element)
                                    .cast();
  }
  return all;
}

void Session::weightsWritten() {
  const std::shared_ptr<sheaf_session> &session = handle();
  Unlocked unlocked;
  std::lock_guard lock(session->running->mutex);
  rt::Session &written = *api::runningFor(*session->running, model_.shared()).session;
  for (size_t weight : model_.loaded().weights())
    written.paramRow(weight); // it takes them for changed
}

void bindSession(nb::module_ &module) {
  nb::class_<Session>(module, "Session")
      .def(
          "__init__",
          [](Session *self, Model &model, uint32_t threads, uint64_t memoryLimit, uint64_t seed,
             uint64_t maxDepth, uint64_t maxSteps, bool checkResults) {
            sheaf_session_options options{};
            options.size = sizeof options;
            options.threads = threads;
            options.memory_limit = memoryLimit;
            options.sample_seed = seed;
            options.max_depth = maxDepth;
            options.max_steps = maxSteps;
            options.check_results = checkResults;
            new (self) Session(model, options);
          },
          nb::arg("model"), nb::kw_only(), nb::arg("threads") = 1, nb::arg("memory_limit") = 0,
          nb::arg("seed") = 0, nb::arg("max_depth") = 0, nb::arg("max_steps") = 0,
          nb::arg("check_results") = false, nb::keep_alive<1, 2>())
      .def("run", &Session::run)
      .def_prop_ro("last_run", &Session::lastRun)
      .def("parameters", &Session::parameters, nb::arg("writable") = false)
      .def("weights_written", &Session::weightsWritten)
      .def("set_weights", &Session::setWeights);
  module.def("finish_waiting", finishWaiting);
  module.def("after_fork", [] {
    forgetThreads();
    Session::noteFork();
  });
}

} // namespace sheaf::python
