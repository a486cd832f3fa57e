#include "runtime/api/hand_out.h"
#include "runtime/api/handles.h"
#include "runtime/model/members.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;
using rt::TypeKind;

namespace {

static_assert(sizeof(Slot) == sizeof(int64_t));

/// The type of a view after checking that it may be one of this result.
const rt::TypeDesc &typeOf(const sheaf_result *result, const sheaf_view &view) {
  const rt::TypeDesc *type = given(result, "result").data->model->type(view.type);
  if (!type || !view.slots)
    throw Invalid("no view of a value");
  return *type;
}

[[noreturn]] void wrongKind(const sheaf_result *result, const sheaf_view &view,
                            const char *wanted) {
  throw Invalid("a value of type '" + result->data->model->text(view.type) + "' is no " + wanted);
}

rt::Members membersOf(const sheaf_result *result, const sheaf_view &view) {
  TypeKind kind = typeOf(result, view).kind;
  if (kind != TypeKind::List && kind != TypeKind::Tuple && kind != TypeKind::Data)
    wrongKind(result, view, "list, tuple or data");
  return rt::membersOf(result->data->model->types(), view.type, view.slots);
}

/// Of an outcome that there is.
const Slot *slotsOf(const sheaf_result *result, size_t instance) {
  given(result, "result");
  if (instance >= result->data->items.size())
    throw Invalid("the result has no instance " + std::to_string(instance));
  const ResultData::Item &item = result->data->items[instance];
  if (!item.slots)
    throw Invalid("instance " + std::to_string(instance) + (item.hasEnded() ? ": " : " failed: ") +
                  item.error);
  return item.slots;
}

} // namespace

void sheaf_result_release(sheaf_result *result) { delete result; }

size_t sheaf_result_size(const sheaf_result *result) {
  return result ? result->data->items.size() : 0;
}

const char *sheaf_result_error(const sheaf_result *result, size_t instance) {
  if (instance >= sheaf_result_size(result))
    return "the result has no such instance";
  const ResultData::Item &item = result->data->items[instance];
  return item.hasEnded() ? nullptr : item.error.c_str();
}

sheaf_cause sheaf_result_cause(const sheaf_result *result, size_t instance) {
  return instance < sheaf_result_size(result) ? result->data->items[instance].cause : SHEAF_ENDED;
}

sheaf_status sheaf_result_value(const sheaf_result *result, size_t instance, sheaf_view *view) {
  return guarded([&] {
    const Slot *slots = slotsOf(result, instance);
    given(view, "view") = {result->data->ownType(), slots};
  });
}

sheaf_status sheaf_result_emitted(const sheaf_result *result, size_t instance, sheaf_view *view) {
  return guarded([&] {
    const Slot *slots = slotsOf(result, instance);
    auto both = result->data->model->emitting();
    if (!both)
      throw Invalid("the model emits nothing");
    given(view, "view") = {both->list, slots + both->listSlot};
  });
}

sheaf_status sheaf_view_int(const sheaf_result *result, sheaf_view view, int64_t *number) {
  return guarded([&] {
    TypeKind kind = typeOf(result, view).kind;
    if (kind != TypeKind::Int && kind != TypeKind::Token && kind != TypeKind::Bool)
      wrongKind(result, view, "int, token or bool");
    given(number, "number") = view.slots[0];
  });
}

sheaf_status sheaf_view_float(const sheaf_result *result, sheaf_view view, double *number) {
  return guarded([&] {
    if (typeOf(result, view).kind != TypeKind::Float)
      wrongKind(result, view, "float");
    given(number, "number") = std::bit_cast<double>(view.slots[0]);
  });
}

sheaf_status sheaf_view_constructor(const sheaf_result *result, sheaf_view view,
                                    size_t *constructor) {
  return guarded([&] {
    if (typeOf(result, view).kind != TypeKind::Data)
      wrongKind(result, view, "data");
    given(constructor, "constructor") =
        static_cast<size_t>(*std::bit_cast<const Slot *>(view.slots[0]));
  });
}

sheaf_status sheaf_view_count(const sheaf_result *result, sheaf_view view, size_t *count) {
  return guarded(
      [&] { given(count, "count") = static_cast<size_t>(membersOf(result, view).count); });
}

sheaf_status sheaf_view_child(const sheaf_result *result, sheaf_view view, size_t child,
                              sheaf_view *part) {
  return guarded([&] {
    rt::Members members = membersOf(result, view);
    const LoadedModel &model = *result->data->model;
    given(part, "part");
    if (child >= static_cast<size_t>(members.count))
      throw Invalid("a value of type '" + model.text(view.type) + "' has no part " +
                    std::to_string(child) + " but " + std::to_string(members.count));
    if (members.sameType) {
      uint32_t type = members.types[0];
      *part = {type, members.first + static_cast<int64_t>(child) * model.slots(type)};
      return;
    }
    const Slot *at = members.first;
    for (size_t i = 0; i < child; ++i)
      at += model.slots(members.types[i]);
    *part = {members.types[child], at};
  });
}

sheaf_status sheaf_view_tensor(const sheaf_result *result, sheaf_view view,
                               DLManagedTensor **tensor) {
  return guarded([&] {
    if (typeOf(result, view).kind != TypeKind::Tensor)
      wrongKind(result, view, "tensor");
    given(tensor, "tensor");
    const auto *from = std::bit_cast<const ResultTensor *>(view.slots[0]);
    auto holder = std::make_unique<Holder>();
    holder->data = result->data;
    holder->shape = from->shape;
    *tensor = handOut(std::move(holder), from->data, from->dtype);
  });
}

namespace {

/// A part that all results have.
struct Part {
  sheaf_type type;
  int64_t slot;
};

Part partOf(const ResultData &data, const size_t *path, size_t length) {
  const LoadedModel &model = *data.model;
  Part part{data.ownType(), 0};
  for (size_t i = 0; i < length; ++i) {
    const rt::TypeDesc &type = model.types().types[part.type];
    if (type.kind != TypeKind::Tuple)
      throw Invalid("'" + model.text(part.type) + "' is no tuple: it has no part " +
                    std::to_string(path[i]) + " that all results have");
    if (path[i] >= type.children.size())
      throw Invalid("'" + model.text(part.type) + "' has no part " + std::to_string(path[i]) +
                    " but " + std::to_string(type.children.size()));
    for (size_t before = 0; before < path[i]; ++before)
      part.slot += model.slots(type.children[before]);
    part.type = type.children[path[i]];
  }
  return part;
}

/// How elements of a number stand in an array.
DLDataType dtypeOf(const rt::TypeDesc &type) {
  switch (type.kind) {
  case TypeKind::Float:
    return {kDLFloat, 64, 1};
  case TypeKind::Bool:
    return {kDLBool, 8, 1};
  default:
    return {kDLInt, 64, 1};
  }
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

/// One array of tensors that stand apart.
DLManagedTensor *copyStack(std::unique_ptr<Holder> holder,
                           const std::vector<const ResultTensor *> &tensors,
                           const std::vector<size_t> &instances, const rt::TypeDesc &type) {
  std::vector<int64_t> shape = tensors.empty() ? type.shape : tensors[0]->shape;
  if (tensors.empty())
    std::ranges::replace(shape, -1, 0);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i]->shape != shape)
      throw Invalid("the tensor of instance " + std::to_string(instances[i]) + " is of extents " +
                    shapeText(tensors[i]->shape) + ", that of instance " +
                    std::to_string(instances[0]) + " of " + shapeText(shape));
  DLDataType dtype = dlpackType(type.dtype);
  size_t bytes = (dtype.bits + 7) / 8;
  for (int64_t extent : shape)
    bytes *= static_cast<size_t>(extent);
  holder->own = rt::allocateAligned(bytes * tensors.size());
  for (size_t i = 0; bytes && i < tensors.size(); ++i)
    std::memcpy(holder->own.get() + i * bytes, tensors[i]->data, bytes);
  holder->shape.insert(holder->shape.end(), shape.begin(), shape.end());
  const uint8_t *elements = holder->own.get();
  return handOut(std::move(holder), elements, dtype);
}

} // namespace

sheaf_status sheaf_result_stack(const sheaf_result *result, const size_t *instances, size_t count,
                                const size_t *path, size_t length, DLManagedTensor **tensor) {
  return guarded([&] {
    const ResultData &data = *given(result, "result").data;
    given(tensor, "tensor");
    if (length)
      given(path, "path");
    Part part = partOf(data, path, length);
    const rt::TypeDesc &type = data.model->types().types[part.type];
    if (type.kind == TypeKind::List || type.kind == TypeKind::Tuple || type.kind == TypeKind::Data)
      throw Invalid("a value of type '" + data.model->text(part.type) +
                    "' is no tensor and no number");
    std::vector<size_t> which(instances ? count : data.items.size());
    for (size_t i = 0; i < which.size(); ++i)
      which[i] = instances ? instances[i] : i;
    std::vector<const Slot *> slots;
    for (size_t instance : which)
      slots.push_back(slotsOf(result, instance) + part.slot);
    auto holder = std::make_unique<Holder>();
    holder->data = result->data;
    holder->shape = {static_cast<int64_t>(which.size())};
    if (type.kind != TypeKind::Tensor) {
      DLDataType dtype = dtypeOf(type);
      size_t bytes = dtype.bits / 8;
      holder->own = rt::allocateAligned(which.size() * bytes);
      for (size_t i = 0; i < which.size(); ++i) // of a truth value the lowest byte
        std::memcpy(holder->own.get() + i * bytes, slots[i], bytes);
      const uint8_t *elements = holder->own.get();
      *tensor = handOut(std::move(holder), elements, dtype);
      return;
    }
    auto stack = std::ranges::find(data.stacks, part.slot, &ResultStack::slot);
    bool follow = true;
    for (size_t i = 1; i < which.size(); ++i)
      follow &= which[i] == which[i - 1] + 1;
    if (stack != data.stacks.end() && follow && !which.empty()) {
      holder->shape.insert(holder->shape.end(), stack->shape.begin(), stack->shape.end());
      *tensor =
          handOut(std::move(holder), stack->all.get() + which[0] * stack->bytes, stack->dtype);
      return;
    }
    std::vector<const ResultTensor *> tensors;
    for (const Slot *slot : slots)
      tensors.push_back(std::bit_cast<const ResultTensor *>(*slot));
    *tensor = copyStack(std::move(holder), tensors, which, type);
  });
}
