// Weights of sessions, and gradients of what they ran.
#include "runtime/api/gradients.h"

#include "runtime/api/copier.h"
#include "runtime/api/hand_out.h"
#include "runtime/api/tensors.h"
#include "runtime/api/weights.h"
#include "runtime/train/gradient_rows.h"

#include <algorithm>
#include <cstring>

using namespace sheaf;
using namespace sheaf::api;

namespace {

constexpr DLDataType kFloat32 = {kDLFloat, 32, 1}, kInt64 = {kDLInt, 64, 1};

const rt::ParamDesc *weightOf(const sheaf_model *model, size_t weight) {
  if (!model || weight >= model->model->weights().size())
    return nullptr;
  return &model->model->model().params[model->model->weights()[weight]];
}

/// Calls `work` with the session of a model, which no one else uses meanwhile.
template <typename Work> sheaf_status with(sheaf_session *session, sheaf_model *model, Work work) {
  return guarded([&] {
    std::shared_ptr<Running> running = given(session, "session").running;
    std::lock_guard lock(running->mutex);
    work(runningFor(*running, given(model, "model").model));
  });
}

void setWeight(RunningModel &running, const char *name, const DLTensor &tensor) {
  size_t number = running.model->weight(name);
  const rt::ParamDesc &desc = running.model->model().params[number];
  std::string what = std::string("weight '") + name + "': ";
  DLDataType dtype = dlpackType(desc.dtype);
  if (tensor.dtype.code != dtype.code || tensor.dtype.bits != dtype.bits || tensor.dtype.lanes != 1)
    throw Invalid(what + "the tensor's dtype is another");
  try {
    checkAxes(tensor, desc.shape.size());
  } catch (const Invalid &error) {
    throw Invalid(what + error.what());
  }
  for (size_t axis = 0; axis < desc.shape.size(); ++axis)
    if (tensor.shape[axis] != desc.shape[axis])
      throw Invalid(what + "axis " + std::to_string(axis) + " has " +
                    std::to_string(desc.shape[axis]) + " elements, that of the tensor " +
                    std::to_string(tensor.shape[axis]));
  if (desc.dtype == rt::DType::Bool)
    throw Invalid(what + "it holds truth values, which stay as they are");
  std::vector<uint8_t> own;
  auto bytes = static_cast<size_t>(rt::dtypeBytes(desc.dtype));
  const uint8_t *elements = denseElements(tensor, bytes, own);
  for (int64_t extent : desc.shape)
    bytes *= static_cast<size_t>(extent);
  running.session->setParam(number, {elements, bytes});
}

//===----------------------------------------------------------------------===//
// Cotangents
//===----------------------------------------------------------------------===//

/// Cotangents of the interface as the session takes them, one an instance.
class Cotangents {
public:
  Cotangents(std::span<const sheaf_cotangent> given, size_t instances) {
    owned_.reserve(given.size());
    for (size_t i = 0; i < given.size(); ++i)
      add(given[i], instances, "cotangents[" + std::to_string(i) + "]");
  }

  std::span<const rt::Cotangent> all() const { return all_; }

private:
  void add(const sheaf_cotangent &from, size_t instances, const std::string &name) {
    const DLTensor &tensor = given(from.tensor, (name + ".tensor").c_str());
    if (from.length)
      given(from.path, (name + ".path").c_str());
    size_t count = from.instances ? from.count : instances;
    if (tensor.dtype.code != kDLFloat || tensor.dtype.bits != 32 || tensor.dtype.lanes != 1)
      throw Invalid(name + ": its elements are no floats of 32 bits");
    try {
      checkAxes(tensor, static_cast<size_t>(std::max(tensor.ndim, 1)));
    } catch (const Invalid &error) {
      throw Invalid(name + ": " + error.what());
    }
    if (tensor.shape[0] != static_cast<int64_t>(count))
      throw Invalid(name + ": its first axis has " + std::to_string(tensor.shape[0]) +
                    " elements, for " + std::to_string(count) + " instances");
    const auto *elements = reinterpret_cast<const float *>(
        denseElements(tensor, sizeof(float), owned_.emplace_back()));
    std::span<const int64_t> shape(tensor.shape + 1, static_cast<size_t>(tensor.ndim - 1));
    int64_t each = 1;
    for (int64_t extent : shape)
      each *= extent;
    for (size_t i = 0; i < count; ++i)
      all_.push_back({from.instances ? from.instances[i] : i,
                      {from.path, from.length},
                      shape,
                      elements ? elements + static_cast<int64_t>(i) * each : nullptr});
  }

  std::vector<std::vector<uint8_t>> owned_;
  std::vector<rt::Cotangent> all_;
};

/// That each loss counts 1, of a model whose result is one.
std::vector<float> lossWeights(const RunningModel &running, size_t instances) {
  const rt::TypeDesc &type = running.model->types().types[running.model->resultType()];
  if (type.kind != rt::TypeKind::Tensor || type.dtype != rt::DType::F32 || !type.shape.empty())
    throw Invalid("the result of '" + running.model->model().entry.name +
                  "' is no loss, which is f32 without axes, but '" +
                  running.model->text(running.model->resultType()) + "': cotangents are needed");
  return std::vector<float>(instances, 1.0F);
}

} // namespace

std::span<const rt::ParamGradient> api::gradientsOf(const sheaf_gradients &gradients) {
  if (!gradients.run)
    return gradients.sum->gradients();
  const RunningModel &origin = *gradients.run->origin;
  if (origin.backs != gradients.back || origin.runs != gradients.runs)
    throw Invalid("these gradients are there no more: the session has run or gone back since");
  return origin.session->gradients();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

size_t sheaf_model_weight_count(const sheaf_model *model) {
  return model ? model->model->weights().size() : 0;
}

const char *sheaf_model_weight_name(const sheaf_model *model, size_t weight) {
  const rt::ParamDesc *desc = weightOf(model, weight);
  return desc ? desc->name.c_str() : nullptr;
}

size_t sheaf_model_weight_rank(const sheaf_model *model, size_t weight) {
  const rt::ParamDesc *desc = weightOf(model, weight);
  return desc ? desc->shape.size() : 0;
}

int64_t sheaf_model_weight_extent(const sheaf_model *model, size_t weight, size_t axis) {
  const rt::ParamDesc *desc = weightOf(model, weight);
  return desc && axis < desc->shape.size() ? desc->shape[axis] : -1;
}

DLDataType sheaf_model_weight_dtype(const sheaf_model *model, size_t weight) {
  const rt::ParamDesc *desc = weightOf(model, weight);
  return desc ? dlpackType(desc->dtype) : DLDataType{};
}

sheaf_status sheaf_session_weight(sheaf_session *session, sheaf_model *model, const char *name,
                                  DLManagedTensor **tensor) {
  return with(session, model, [&](RunningModel &running) {
    given(tensor, "tensor");
    rt::TensorView view = running.session->param(running.model->weight(name));
    if (view.dtype == rt::DType::Bool)
      throw Invalid(std::string("weight '") + name + "' holds truth values");
    auto holder = ownTensor(view.shape, static_cast<size_t>(rt::dtypeBytes(view.dtype)));
    view.copyTo(holder->own.get());
    *tensor = handOut(std::move(holder), dlpackType(view.dtype));
  });
}

sheaf_status sheaf_session_set_weight(sheaf_session *session, sheaf_model *model, const char *name,
                                      const DLTensor *tensor) {
  return with(session, model,
              [&](RunningModel &running) { setWeight(running, name, given(tensor, "tensor")); });
}

static sheaf_status freeze(sheaf_session *session, sheaf_model *model, const char *pattern,
                           bool frozen) {
  return with(session, model, [&](RunningModel &running) {
    given(pattern, "pattern");
    if (!running.model->model().training)
      throw Invalid("the model was not compiled for training");
    for (size_t weight : running.model->weightsNamed(pattern))
      running.session->freeze(weight, frozen);
  });
}

sheaf_status sheaf_session_freeze(sheaf_session *session, sheaf_model *model, const char *pattern) {
  return freeze(session, model, pattern, true);
}

sheaf_status sheaf_session_unfreeze(sheaf_session *session, sheaf_model *model,
                                    const char *pattern) {
  return freeze(session, model, pattern, false);
}

//===----------------------------------------------------------------------===//
// Going back
//===----------------------------------------------------------------------===//

std::unique_ptr<sheaf_gradients> api::backward(sheaf_session &session, const sheaf_result &result,
                                               const sheaf_cotangent *cotangents, size_t count,
                                               std::span<const size_t> frozen) {
  std::shared_ptr<Running> running = session.running;
  const ResultData &data = *result.data;
  if (!data.model->model().training)
    throw Invalid("the model was not compiled for training");
  if (!result.run || result.run->running != running)
    throw Invalid("the result is of no run of this session");
  auto made = std::make_unique<sheaf_gradients>();
  std::lock_guard lock(running->mutex);
  RunOf &run = *result.run;
  RunningModel &origin = *run.origin;
  if (!run.isThere())
    throw Invalid("the run of this result is there no more");
  size_t instances = data.items.size();
  made->model = data.model;
  made->running = running;
  made->run = result.run;
  made->of = result.data;
  made->runs = origin.runs;
  made->back = ++origin.backs;
  rt::FrozenParams without(*origin.session, frozen);
  fromArguments([&] {
    auto goBack = [&](auto from) {
      if (run.aside)
        origin.session->backward(*run.aside, from);
      else
        origin.session->backward(from);
    };
    if (cotangents) {
      Cotangents given({cotangents, count}, instances);
      goBack(given.all());
    } else {
      std::vector<float> weights = lossWeights(origin, instances);
      goBack(std::span<const float>(weights));
    }
  });
  return made;
}

sheaf_status sheaf_session_backward(sheaf_session *session, const sheaf_result *result,
                                    const sheaf_cotangent *cotangents, size_t count,
                                    sheaf_gradients **gradients) {
  return guarded([&] {
    given(session, "session");
    given(result, "result");
    given(gradients, "gradients");
    if (count)
      given(cotangents, "cotangents");
    *gradients = backward(*session, *result, cotangents, count, {}).release();
  });
}

void sheaf_gradients_release(sheaf_gradients *gradients) { delete gradients; }

sheaf_status sheaf_gradients_weight(const sheaf_gradients *gradients, const char *name,
                                    DLManagedTensor **tensor, DLManagedTensor **indices) {
  return guarded([&] {
    given(gradients, "gradients");
    given(tensor, "tensor");
    std::lock_guard lock(gradients->running->mutex);
    size_t number = gradients->model->weight(name);
    const rt::ParamDesc &desc = gradients->model->model().params[number];
    if (desc.dtype != rt::DType::F32)
      throw Invalid(std::string("weight '") + name + "' is not of f32: it is not trained");
    const rt::ParamGradient &gradient = gradientsOf(*gradients)[number];
    bool rows = indices && desc.shape.size() == 2 && gradient.kind != rt::ParamGradient::Dense;
    if (!rows) {
      auto holder = ownTensor(desc.shape, sizeof(float));
      auto [count, width, stride] = rt::rowMatrix(desc);
      auto *to = reinterpret_cast<float *>(holder->own.get());
      rt::forEachRow(desc, gradient, [&](int64_t begin, int64_t size) {
        std::copy_n(gradient.data + begin, size, to + begin / stride * width);
      });
      *tensor = handOut(std::move(holder), kFloat32);
      if (indices)
        *indices = nullptr;
      return;
    }
    auto count = static_cast<int64_t>(gradient.rows.size());
    auto numbers = ownTensor({count}, sizeof(int64_t));
    std::ranges::copy(gradient.rows, reinterpret_cast<int64_t *>(numbers->own.get()));
    auto holder = ownTensor({count, desc.shape[1]}, sizeof(float));
    auto *to = reinterpret_cast<float *>(holder->own.get());
    rt::forEachRow(desc, gradient, [&](int64_t begin, int64_t size) {
      to = std::copy_n(gradient.data + begin, size, to);
    });
    *tensor = handOut(std::move(holder), kFloat32);
    *indices = handOut(std::move(numbers), kInt64);
  });
}

sheaf_status sheaf_gradients_argument(const sheaf_gradients *gradients, size_t argument,
                                      sheaf_result **result) {
  return guarded([&] {
    given(gradients, "gradients");
    given(result, "result");
    if (!gradients->run)
      throw Invalid("a sum of gradients has none of arguments");
    std::lock_guard lock(gradients->running->mutex);
    gradientsOf(*gradients);
    const rt::Model &model = gradients->model->model();
    if (!model.inputGradients)
      throw Invalid("the model was compiled without input_gradients");
    const std::vector<uint32_t> &types = model.entry.argTypes;
    if (argument >= types.size())
      throw Invalid("'" + model.entry.name + "' has no argument " + std::to_string(argument) +
                    " but " + std::to_string(types.size()));
    int64_t slot = 0;
    for (size_t i = 0; i < argument; ++i)
      slot += gradients->model->slots(types[i]);
    auto data = std::make_shared<ResultData>();
    data->model = gradients->model;
    data->type = types[argument];
    const rt::Session &session = *gradients->run->origin->session;
    size_t instances = gradients->of->items.size();
    Copier copier(session, *data, /*gradients=*/true);
    data->items.resize(instances);
    copier.stack(data->type, instances);
    for (size_t i = 0; i < instances; ++i) {
      if (const rt::Slot *arguments = gradients->run->arguments(i))
        data->items[i].slots = copier.copy(data->type, arguments + slot, i);
      else
        data->items[i] = {nullptr, gradients->of->items[i].error, gradients->of->items[i].cause,
                          gradients->of->items[i].at};
    }
    *result = new sheaf_result{std::move(data)};
  });
}

sheaf_status sheaf_gradients_create(sheaf_model *model, sheaf_gradients **sum) {
  return guarded([&] {
    given(sum, "sum");
    auto made = std::make_unique<sheaf_gradients>();
    made->model = given(model, "model").model;
    made->running = std::make_shared<Running>();
    made->sum = std::make_unique<rt::GradientSum>(made->model->model());
    *sum = made.release();
  });
}

namespace {

sheaf_gradients &sumOf(sheaf_gradients *sum) {
  if (given(sum, "sum").run)
    throw Invalid("gradients of a run are no sum: sheaf_gradients_create() makes one");
  return *sum;
}

} // namespace

sheaf_status sheaf_gradients_add(sheaf_gradients *sum, const sheaf_gradients *more) {
  return guarded([&] {
    sumOf(sum);
    if (given(more, "gradients").model != sum->model)
      throw Invalid("the gradients are of another model");
    if (sum == more)
      throw Invalid("a sum cannot be added to itself");
    std::scoped_lock lock(sum->running->mutex, more->running->mutex);
    sum->sum->add(gradientsOf(*more));
  });
}

sheaf_status sheaf_gradients_clear(sheaf_gradients *sum) {
  return guarded([&] {
    std::lock_guard lock(sumOf(sum).running->mutex);
    sum->sum->clear();
  });
}
