//===- copier.h - Values on their way out of a session ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_COPIER_H
#define SHEAF_RUNTIME_API_COPIER_H

#include "runtime/api/failure.h"
#include "runtime/api/handles.h"
#include "runtime/session/session.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace sheaf::api {

/// Copies values out of a session. What stands in many places is copied once.
class Copier {
public:
  /// `gradients`: in place of tensors of floats, which are an argument's, stand their gradients.
  Copier(const rt::Session &session, ResultData &result, bool gradients = false)
      : session_(session), result_(result), model_(*result.model), gradients_(gradients) {}

  /// Before each run: addresses mean other values then.
  void forget() { copies_.clear(); }

  /// Results of so many instances will come: what they all have becomes one array.
  void stack(uint32_t type, size_t instances) {
    std::vector<std::pair<uint32_t, int64_t>> pending{{type, 0}};
    while (!pending.empty()) {
      auto [number, slot] = pending.back();
      pending.pop_back();
      const rt::TypeDesc &desc = model_.types().types[number];
      if (desc.kind == rt::TypeKind::Tuple) {
        int64_t end = slot + model_.slots(number);
        for (size_t i = desc.children.size(); i-- > 0;) // the first part is looked at first
          pending.emplace_back(desc.children[i], end -= model_.slots(desc.children[i]));
      }
      if (desc.kind != rt::TypeKind::Tensor || std::ranges::count(desc.shape, -1) > 0)
        continue;
      ResultStack &stack =
          result_.stacks.emplace_back(slot, dlpackType(desc.dtype), desc.shape, size_t(1));
      for (int64_t extent : desc.shape)
        stack.bytes *= static_cast<size_t>(extent);
      stack.bytes *= (stack.dtype.bits + 7) / 8;
      stack.all = rt::allocateAligned(stack.bytes * instances);
    }
  }

  /// `instance`: its place in the stacks, if there are any.
  const rt::Slot *copy(uint32_t type, const rt::Slot *from, size_t instance = 0) {
    rt::Slot *to = result_.heap.allocate(model_.slots(type));
    root_ = to;
    instance_ = instance;
    pending_.push_back({type, from, to});
    while (!pending_.empty()) {
      Item item = pending_.back();
      pending_.pop_back();
      step(item);
    }
    return to;
  }

  ResultData::Item copy(uint32_t type, const rt::Outcome &outcome, size_t instance = 0) {
    if (outcome.ok())
      return {copy(type, outcome.slots, instance), {}, SHEAF_ENDED};
    return {nullptr, outcome.error->message(), causeOf(outcome.error->cause()),
            failedAt(*outcome.error)};
  }

private:
  struct Item {
    uint32_t type;
    const rt::Slot *from;
    rt::Slot *to;
  };

  void pushAll(std::span<const uint32_t> types, const rt::Slot *from, rt::Slot *to) {
    for (uint32_t type : types) {
      pending_.push_back({type, from, to});
      from += model_.slots(type);
      to += model_.slots(type);
    }
  }

  void step(const Item &item) {
    const rt::TypeDesc &type = model_.types().types[item.type];
    switch (type.kind) {
    case rt::TypeKind::Tensor:
      item.to[0] = std::bit_cast<rt::Slot>(tensor(gradients_ && rt::isFloat(type)
                                                      ? session_.inputGradient(item.type, item.from)
                                                      : session_.tensor(item.type, item.from),
                                                  item.to - root_));
      std::copy_n(item.from + 1, model_.slots(item.type) - 1, item.to + 1);
      return;
    case rt::TypeKind::Tuple:
      pushAll(type.children, item.from, item.to);
      return;
    case rt::TypeKind::List:
    case rt::TypeKind::Data:
      break;
    default:
      item.to[0] = item.from[0];
      return;
    }
    auto [known, fresh] = copies_.try_emplace(item.from[0], 0);
    if (fresh)
      known->second =
          type.kind == rt::TypeKind::List ? list(type, item.from[0]) : data(type, item.from[0]);
    item.to[0] = known->second;
  }

  rt::Slot list(const rt::TypeDesc &type, rt::Slot from) {
    const auto *list = std::bit_cast<const rt::ListObject *>(from);
    rt::Slot copy = result_.heap.list(list->elements, list->size, list->elementSlots);
    rt::Slot *to = std::bit_cast<rt::ListObject *>(copy)->elements;
    for (int64_t i = 0; i < list->size; ++i)
      pending_.push_back(
          {type.children[0], list->elements + i * list->elementSlots, to + i * list->elementSlots});
    return copy;
  }

  rt::Slot data(const rt::TypeDesc &type, rt::Slot from) {
    const auto *object = std::bit_cast<const rt::Slot *>(from);
    auto constructor = static_cast<size_t>(object[0]);
    const rt::CtorDesc &ctor = model_.types().data[type.data].ctors[constructor];
    rt::Slot copy = result_.heap.data(static_cast<uint32_t>(constructor), object + 1,
                                      model_.fieldSlots(type, constructor));
    pushAll(ctor.fieldTypes, object + 1, std::bit_cast<rt::Slot *>(copy) + 1);
    return copy;
  }

  const ResultTensor *tensor(const rt::TensorView &view, int64_t slot) {
    ResultTensor &tensor = result_.tensors.emplace_back();
    tensor.dtype = dlpackType(view.dtype);
    tensor.shape = view.shape;
    auto elements = static_cast<size_t>(view.elements());
    size_t bytes = elements * ((tensor.dtype.bits + 7) / 8);
    auto stack = std::ranges::find(result_.stacks, slot, &ResultStack::slot);
    uint8_t *to = nullptr;
    if (stack != result_.stacks.end()) {
      to = stack->all.get() + instance_ * stack->bytes;
    } else {
      tensor.own = rt::allocateAligned(bytes);
      to = tensor.own.get();
    }
    tensor.data = to;
    if (view.dtype != rt::DType::Bool) {
      view.copyTo(to);
      return &tensor;
    }
    truths_.resize(elements);
    view.copyTo(truths_.data());
    std::ranges::transform(truths_, to, [](int32_t truth) { return static_cast<uint8_t>(truth); });
    return &tensor;
  }

  const rt::Session &session_;
  ResultData &result_;
  const LoadedModel &model_;
  const bool gradients_;
  std::unordered_map<rt::Slot, rt::Slot> copies_;
  std::vector<Item> pending_;
  const rt::Slot *root_ = nullptr; ///< of the value that is being copied
  size_t instance_ = 0;
  std::vector<int32_t> truths_;
};

/// Tells a caller a value that an instance emits.
inline void tellEmission(const rt::Session &session,
                         const std::shared_ptr<const LoadedModel> &model, sheaf_emit_function emit,
                         void *user, const rt::Instance &instance, const rt::Slot *slots) {
  auto data = std::make_shared<ResultData>();
  data->model = model;
  uint32_t type = *model->model().entry.emits;
  sheaf_view value{type, Copier(session, *data).copy(type, slots)};
  sheaf_result result{std::move(data)};
  emit(user, instance.index, &result, value);
}

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_COPIER_H
