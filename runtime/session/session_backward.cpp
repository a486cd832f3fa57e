//===- session_backward.cpp - The backward pass ---------------------------===//
#include "runtime/model/members.h"
#include "runtime/session/session_impl.h"

#include <algorithm>

namespace sheaf::rt {

namespace {

std::string textOf(std::span<const int64_t> shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

/// Cotangent 3, of instance 1, part 0.2
std::string nameOf(const Cotangent &cotangent, size_t number, size_t depth) {
  std::string text =
      "cotangent " + std::to_string(number) + ", of instance " + std::to_string(cotangent.instance);
  for (size_t i = 0; i < depth; ++i)
    text += (i == 0 ? ", part " : ".") + std::to_string(cotangent.part[i]);
  return text;
}

} // namespace

void Session::Impl::checkGoesBack(const Ran &ran) const {
  if (!backward || options.keepBytes != 0)
    throw InternalError("backward() on a session that cannot go back");
  if (ran.weights != weightsVersion)
    throw UserError("weights have changed since the run that gradients are asked of");
}

/// The tensor that a cotangent names, after checking that it is one. Of an instance that failed
/// there is none: its seed has no gradient.
GradientSeed Session::Impl::seedOf(const Ran &ran, const Cotangent &cotangent, size_t number) {
  if (cotangent.instance >= ran.outcomes.size())
    throw UserError(nameOf(cotangent, number, 0) + ": the run had " +
                    std::to_string(ran.outcomes.size()) + " instances");
  const Outcome &outcome = ran.outcomes[cotangent.instance];
  if (!outcome.ok())
    return {};
  uint32_t type = model.entry.resultType;
  const Slot *slots = outcome.slots;
  for (size_t depth = 0; depth < cotangent.part.size(); ++depth) {
    Members members = membersOf(model.types, type, slots);
    size_t which = cotangent.part[depth];
    if (which >= static_cast<uint64_t>(members.count))
      throw UserError(nameOf(cotangent, number, depth) + ": there is no part " +
                      std::to_string(which) + " of " + std::to_string(members.count));
    if (members.sameType) {
      type = members.types[0];
      slots = members.first + static_cast<int64_t>(which) * values.facts().slots(type);
      continue;
    }
    slots = members.first;
    for (size_t i = 0; i < which; ++i)
      slots += values.facts().slots(members.types[i]);
    type = members.types[which];
  }
  const TypeDesc &desc = model.types.types[type];
  if (!isFloat(desc))
    throw UserError(nameOf(cotangent, number, cotangent.part.size()) +
                    ": it is no tensor of floats");
  std::vector<int64_t> shape = desc.shape;
  const Slot *extents = slots + 1;
  for (int64_t &extent : shape)
    if (extent < 0)
      extent = *extents++;
  if (!std::ranges::equal(shape, cotangent.shape))
    throw UserError(nameOf(cotangent, number, cotangent.part.size()) + ": its shape is " +
                    textOf(shape) + ", that of the cotangent " + textOf(cotangent.shape));
  return {TensorHandle::unpack(*slots).id, desc.dtype, cotangent.shape, cotangent.elements};
}

/// The float tensors in the arguments of all instances that have a result.
std::vector<GradientInput> Session::Impl::inputs(const Ran &ran) const {
  std::vector<GradientInput> inputs;
  if (!model.inputGradients)
    return inputs;
  std::vector<int64_t> slots;
  for (uint32_t type = 0; type < model.types.types.size(); ++type)
    slots.push_back(values.facts().slots(type));
  for (size_t i = 0; i < ran.outcomes.size(); ++i) {
    if (!ran.outcomes[i].ok())
      continue;
    Members arguments{model.entry.argTypes, false,
                      static_cast<int64_t>(model.entry.argTypes.size()), ran.walks[i].args};
    forEachTensor(
        model.types, slots, arguments,
        [&](uint32_t type) { return values.facts().hasTensor(type); },
        [&](uint32_t type, const Slot *value) {
          const TypeDesc &desc = model.types.types[type];
          int64_t granules = tensorGranules(desc.shape, desc.dtype, value + 1);
          if (isFloat(desc) && granules > 0)
            inputs.push_back(
                {TensorHandle::unpack(*value).id, static_cast<uint32_t>(granules), desc.dtype});
        });
  }
  return inputs;
}

std::span<const ParamGradient>
Session::Impl::goBack(const Ran &ran, std::span<const GradientSeed> seeds, bool keepRows) {
  uint64_t begin = trace ? clockNow() : 0;
  // Frames are needed no more, and memory that is asked for in vain here is not asked for again.
  if (meter.used() > meter.limit() / 2)
    recorder.stacks.giveBack();
  recorder.rowSpace.account();
  uint64_t before = recorder.rowSpace.used();
  try {
    backward->run(ran.recorded, ran.folded, ran.dropped, seeds, inputs(ran), counters, keepRows);
  } catch (const OutOfMemory &) {
    if (&ran.dropped == &dropped)
      noteShort();
    throw;
  }
  recorder.rowSpace.account();
  if (&ran.dropped == &dropped)
    noteNeed((recorder.rowSpace.used() - before) * kGranuleBytes);
  note(TracePart::Backward, begin, 0);
  noteMemory();
  return backward->gradients();
}

std::span<const ParamGradient> Session::Impl::goBack(const Ran &ran, std::span<const float> weights,
                                                     bool keepRows) {
  checkGoesBack(ran);
  const TypeDesc &type = model.types.types.at(model.entry.resultType);
  if (type.kind != TypeKind::Tensor || type.dtype != DType::F32 || !type.shape.empty())
    throw InternalError("backward() with weights of losses, but the result is none");
  if (weights.size() != ran.outcomes.size())
    throw InternalError("backward() with " + std::to_string(weights.size()) +
                        " weights for a run of " + std::to_string(ran.outcomes.size()) +
                        " instances");
  std::vector<GradientSeed> seeds;
  for (size_t i = 0; i < weights.size(); ++i)
    if (ran.outcomes[i].ok())
      seeds.push_back(
          {TensorHandle::unpack(*ran.outcomes[i].slots).id, DType::F32, {}, &weights[i]});
  return goBack(ran, seeds, keepRows);
}

std::span<const ParamGradient>
Session::Impl::goBack(const Ran &ran, std::span<const Cotangent> cotangents, bool keepRows) {
  checkGoesBack(ran);
  std::vector<GradientSeed> seeds;
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (GradientSeed seed = seedOf(ran, cotangents[i], i); seed.gradient)
      seeds.push_back(seed);
  return goBack(ran, seeds, keepRows);
}

std::span<const ParamGradient> Session::backward(std::span<const float> weights, bool keepRows) {
  return impl_->goBack(impl_->last(), weights, keepRows);
}

std::span<const ParamGradient> Session::backward(std::span<const Cotangent> cotangents,
                                                 bool keepRows) {
  return impl_->goBack(impl_->last(), cotangents, keepRows);
}

std::span<const ParamGradient> Session::backward(const Run &run, std::span<const float> weights) {
  return impl_->goBack(run.impl_->ran(), weights, /*keepRows=*/false);
}

std::span<const ParamGradient> Session::backward(const Run &run,
                                                 std::span<const Cotangent> cotangents) {
  return impl_->goBack(run.impl_->ran(), cotangents, /*keepRows=*/false);
}

void Session::forget() {
  impl_->outcomes.clear();
  impl_->walks.clear();
  impl_->forgetMiniBatch();
  impl_->rowPlan.release();
  impl_->recorder.promised.release();
  impl_->recorder.buckets.giveBack();
  if (impl_->backward)
    impl_->backward->giveBack();
}

void Session::allowRecompute(bool allowed) { impl_->recomputeAllowed = allowed; }

std::optional<std::span<const ParamGradient>>
Session::tryBackward(std::span<const float> weights) try {
  return backward(weights);
} catch (const OutOfMemory &) {
  if (!impl_->mayRecompute() || impl_->need.droppedAll)
    throw;
  return std::nullopt;
}

std::span<const ParamGradient> Session::gradients() const {
  return impl_->backward ? impl_->backward->gradients() : std::span<const ParamGradient>();
}

const Slot *Session::arguments(size_t instance) const {
  return impl_->outcomes.at(instance).ok() ? impl_->walks[instance].args : nullptr;
}

TensorView Session::inputGradient(uint32_t type, const Slot *slots) const {
  if (!impl_->backward || !impl_->model.inputGradients)
    throw InternalError("inputGradient() of a model without gradients of inputs");
  auto row = TensorHandle::unpack(*slots).id;
  std::optional<uint32_t> gradient = impl_->backward->inputGradient(row);
  TensorView view = impl_->tensor(type, slots);
  if (!gradient && view.elements() > 0)
    throw InternalError("inputGradient() of what backward() has none for");
  view.data = gradient ? impl_->recorder.rowSpace.address(*gradient) : nullptr;
  return view;
}

const Schedule &Session::backwardSchedule() const {
  if (!impl_->backward)
    throw InternalError("backwardSchedule() of a session that cannot go back");
  return impl_->backward->schedule();
}

bool Session::freeze(size_t param, bool frozen) {
  if (!impl_->backward)
    throw InternalError("freeze() on a session that cannot go back");
  return impl_->backward->freeze(param, frozen);
}

bool Session::trains(size_t param) const {
  return impl_->backward && impl_->backward->trains(param);
}

FrozenParams::FrozenParams(Session &session, std::span<const size_t> params) : session_(session) {
  for (size_t param : params)
    if (!session.freeze(param))
      params_.push_back(param);
}

FrozenParams::~FrozenParams() {
  for (size_t param : params_)
    session_.freeze(param, false);
}

} // namespace sheaf::rt
