#include "python/native/session.h"
#include "python/native/decode.h"
#include "python/native/encode.h"
#include "python/native/run.h"

#include "runtime/session/session.h"

#include <nanobind/ndarray.h>

namespace sheaf::python {

Stop makeStop() {
  sheaf_stop *stop = nullptr;
  check(sheaf_stop_create(&stop));
  return Stop(stop, sheaf_stop_release);
}

Session::Session(Model &model, const sheaf_session_options &options) : model_(model) {
  sheaf_session *session = nullptr;
  check(sheaf_session_create(&options, &session));
  session_.reset(session, sheaf_session_release);
}

std::shared_ptr<sheaf_result> Session::runBatch(sheaf_batch &batch) {
  sheaf_result *result = nullptr;
  sheaf_status status;
  std::string message;
  {
    nb::gil_scoped_release unlocked;
    status = sheaf_session_run(session_.get(), &batch, &result);
    if (status != SHEAF_OK)
      message = sheaf_error_message();
  }
  if (status != SHEAF_OK)
    raiseStatus(status, message);
  return std::shared_ptr<sheaf_result>(result, sheaf_result_release);
}

nb::object Session::run(nb::handle columns, bool each) {
  sheaf_batch batch(model_.shared());
  encodeColumns(model_, columns, batch.store);
  std::shared_ptr<sheaf_result> result = runBatch(batch);
  if (each)
    return decodeEach(model_, result.get());
  nb::list failures;
  const auto &items = result->data->items;
  for (size_t i = 0; i < items.size(); ++i)
    if (!items[i].slots)
      failures.append(failureOf(result.get(), i));
  if (failures.size()) {
    nb::object error = errorClass("raise_failures");
    error(failures, items.size());
  }
  return decodeColumn(model_, result.get());
}

nb::dict Session::parameters(nb::handle self) {
  check(sheaf_session_add(session_.get(), model_.handle()));
  rt::Session *session = nullptr;
  {
    std::lock_guard lock(session_->running->mutex);
    session = api::runningFor(*session_->running, model_.shared()).session.get();
  }
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
    for (size_t axis = shape.size(); axis-- > 1; stride *= param.shape[axis])
      strides[axis - 1] = stride;
    DLDataType dtype =
        param.dtype == rt::DType::Bool ? DLDataType{kDLInt, 32, 1} : api::dlpackType(param.dtype);
    nb::dlpack::dtype element{dtype.code, dtype.bits, dtype.lanes};
    const void *data = session->param(i).data;
    if (dtype.code == kDLBfloat)
      all[param.name.c_str()] =
          nb::ndarray<nb::ro>(data, shape.size(), shape.data(), self, strides.data(), element)
              .cast();
    else
      all[param.name.c_str()] = nb::ndarray<nb::numpy, nb::ro>(data, shape.size(), shape.data(),
                                                               self, strides.data(), element)
                                    .cast();
  }
  return all;
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
      .def("parameters",
           [](nb::handle_t<Session> self) { return nb::cast<Session &>(self).parameters(self); });
}

} // namespace sheaf::python
