#include "runtime/api/handles.h"
#include "runtime/model/members.h"

#include <bit>

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

/// What a tensor that was handed out keeps alive.
struct Holder {
  std::shared_ptr<const ResultData> data;
  DLManagedTensor tensor;
  std::vector<int64_t> shape;
};

/// Of an outcome that there is.
const Slot *slotsOf(const sheaf_result *result, size_t instance) {
  given(result, "result");
  if (instance >= result->data->items.size())
    throw Invalid("the result has no instance " + std::to_string(instance));
  const ResultData::Item &item = result->data->items[instance];
  if (!item.slots)
    throw Invalid("instance " + std::to_string(instance) + " failed: " + item.error);
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
  return item.slots ? nullptr : item.error.c_str();
}

sheaf_cause sheaf_result_cause(const sheaf_result *result, size_t instance) {
  return instance < sheaf_result_size(result) ? result->data->items[instance].cause : SHEAF_ENDED;
}

sheaf_status sheaf_result_value(const sheaf_result *result, size_t instance, sheaf_view *view) {
  return guarded([&] {
    const Slot *slots = slotsOf(result, instance);
    given(view, "view") = {result->data->model->resultType(), slots};
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
    DLTensor &out = holder->tensor.dl_tensor;
    out.data = from->bytes.get();
    out.device = {kDLCPU, 0};
    out.ndim = static_cast<int32_t>(from->shape.size());
    out.dtype = from->dtype;
    out.shape = holder->shape.data();
    out.strides = nullptr;
    out.byte_offset = 0;
    holder->tensor.manager_ctx = holder.get();
    holder->tensor.deleter = [](DLManagedTensor *self) {
      if (self)
        delete static_cast<Holder *>(self->manager_ctx);
    };
    *tensor = &holder.release()->tensor;
  });
}
