// Values on their way in.
#include "runtime/api/handles.h"

#include "runtime/io/types.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <unordered_set>
#include <utility>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;
using rt::TypeKind;

namespace {

uint32_t nextSerial() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

constexpr uint64_t kMostGranules = uint64_t(1) << 31;

class Builder {
public:
  Builder(sheaf_batch *batch, sheaf_value *value)
      : batch_(given(batch, "batch")), out_(given(value, "value")), lock_(batch_.mutex),
        model_(*batch_.model) {}

  const LoadedModel &model() const { return model_; }
  io::SlotHeap &heap() { return batch_.heap; }

  /// The slots of a part, which must be of a type; `what` and `number` say which it is.
  const Slot *part(sheaf_value value, sheaf_type type, const char *what, size_t number) const {
    uint64_t index = (value.id & UINT32_MAX) - 1;
    if (value.id >> 32 != batch_.serial || index >= batch_.values.size())
      throw Invalid(std::string(what) + " " + std::to_string(number) +
                    " is no value of this batch");
    const sheaf_batch::Value &found = batch_.values[index];
    if (found.type != type)
      throw Invalid(std::string(what) + " " + std::to_string(number) + " is of type '" +
                    model_.text(found.type) + "', not '" + model_.text(type) + "'");
    return batch_.slots.data() + found.first;
  }

  /// Slots of parts of these types, one after the other.
  std::vector<Slot> parts(const sheaf_value *values, size_t count, std::span<const uint32_t> types,
                          const char *what) const {
    if (count != types.size())
      throw Invalid("given " + std::to_string(count) + " of " + std::to_string(types.size()) + " " +
                    what + "s");
    if (count)
      given(values, what);
    std::vector<Slot> slots;
    for (size_t i = 0; i < count; ++i) {
      const Slot *from = part(values[i], types[i], what, i);
      slots.insert(slots.end(), from, from + model_.slots(types[i]));
    }
    return slots;
  }

  void finish(sheaf_type type, std::span<const Slot> slots) {
    if (batch_.values.size() == UINT32_MAX - 1)
      throw Invalid("the batch has too many values");
    batch_.values.push_back({type, batch_.slots.size()});
    batch_.slots.insert(batch_.slots.end(), slots.begin(), slots.end());
    out_.id = uint64_t(batch_.serial) << 32 | batch_.values.size();
  }
  void finish(sheaf_type type, Slot slot) { finish(type, std::span(&slot, 1)); }

private:
  sheaf_batch &batch_;
  sheaf_value &out_;
  std::lock_guard<std::mutex> lock_;
  const LoadedModel &model_;
};

void checkToken(const LoadedModel &model, const rt::TypeDesc &type, int64_t token) {
  int64_t size = model.vocabulary(type.vocab) ? model.vocabulary(type.vocab)->size : 0;
  if (token < 0 || token >= size)
    throw Invalid("token " + std::to_string(token) + " is none of the " + std::to_string(size) +
                  " of the vocabulary of '" + io::tokenTypeName(type.vocab) + "'");
}

/// The elements in row-major order and the form of runtime/model/layout.h.
std::vector<uint8_t> elementsOf(const DLTensor &tensor, const rt::TypeDesc &type,
                                const std::string &text) {
  DLDataType wanted = dlpackType(type.dtype);
  if (tensor.device.device_type != kDLCPU)
    throw Invalid("the tensor is not in the CPU's memory");
  if (tensor.dtype.code != wanted.code || tensor.dtype.bits != wanted.bits ||
      tensor.dtype.lanes != 1)
    throw Invalid("the tensor's dtype (code " + std::to_string(tensor.dtype.code) + ", " +
                  std::to_string(tensor.dtype.bits) + " bits) is not that of '" + text + "'");
  if (tensor.ndim < 0 || static_cast<size_t>(tensor.ndim) != type.shape.size())
    throw Invalid("the tensor has " + std::to_string(tensor.ndim) + " axes, '" + text + "' has " +
                  std::to_string(type.shape.size()));
  uint64_t elements = 1;
  if (!type.shape.empty())
    given(tensor.shape, "the tensor's shape");
  uint64_t granules = 1;
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    int64_t extent = tensor.shape[axis];
    if (extent < 0 || (type.shape[axis] >= 0 && extent != type.shape[axis]))
      throw Invalid("axis " + std::to_string(axis) + " of the tensor has " +
                    std::to_string(extent) + " elements; its type is '" + text + "'");
    uint64_t least = static_cast<uint64_t>(
        axis + 1 == type.shape.size()
            ? rt::rowGranules(std::min<int64_t>(extent, int64_t(1) << 40), type.dtype)
            : extent);
    if (__builtin_mul_overflow(granules, least, &granules) || granules > kMostGranules)
      throw Invalid("the tensor is too large");
    elements *= static_cast<uint64_t>(extent);
  }
  auto bytes = static_cast<size_t>(rt::dtypeBytes(type.dtype));
  std::vector<uint8_t> out(elements * bytes);
  if (elements == 0)
    return out;
  size_t from = type.dtype == rt::DType::Bool ? 1 : bytes;
  const auto *data = static_cast<const uint8_t *>(static_cast<const void *>(
                         &given(static_cast<uint8_t *>(tensor.data), "the tensor's data"))) +
                     tensor.byte_offset;
  // Strides of a dense tensor, where none are given.
  std::vector<int64_t> strides(type.shape.size(), 1);
  for (size_t axis = strides.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * tensor.shape[axis];
  if (tensor.strides)
    strides.assign(tensor.strides, tensor.strides + type.shape.size());
  std::vector<int64_t> index(type.shape.size());
  int64_t at = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    const uint8_t *element = data + at * static_cast<int64_t>(from);
    if (type.dtype == rt::DType::Bool) {
      int32_t truth = *element != 0;
      std::memcpy(out.data() + i * bytes, &truth, bytes);
    } else {
      std::memcpy(out.data() + i * bytes, element, bytes);
    }
    for (size_t axis = index.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < tensor.shape[axis])
        break;
      at -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return out;
}

/// Binds the names of per-instance extents in an instance: one name, one number.
void bindExtents(const LoadedModel &model, std::span<const uint32_t> argTypes, const Slot *args) {
  struct Item {
    uint32_t type;
    const Slot *slots;
  };
  io::ExtentBinder extents(&model.model().dims);
  auto bind = [&](uint32_t type, const std::string &name, int64_t value, const char *what) {
    if (io::isFreeDim(name))
      return;
    const io::ExtentBinder::Binding *binding = extents.find(name);
    if (!io::ExtentBinder::isPlainName(name))
      extents.expect(name, value, what);
    else if (!binding)
      extents.bind(name, value, what);
    else if (binding->value != value)
      throw Invalid("the extent " + name + " of '" + model.text(type) + "' is " +
                    std::to_string(value) + " in " + what + " and " +
                    std::to_string(binding->value) + " in another of the same instance");
  };
  std::unordered_set<const Slot *> seen; // parts may stand in many places
  std::vector<Item> pending;
  auto push = [&](std::span<const uint32_t> types, const Slot *slots) {
    for (uint32_t type : types) {
      pending.push_back({type, slots});
      slots += model.slots(type);
    }
  };
  push(argTypes, args);
  while (!pending.empty()) {
    Item item = pending.back();
    pending.pop_back();
    const rt::TypeDesc &type = model.types().types[item.type];
    switch (type.kind) {
    case TypeKind::Tensor: {
      const Slot *extent = item.slots;
      for (size_t axis = 0; axis < type.shape.size(); ++axis)
        if (type.shape[axis] < 0)
          bind(item.type, type.dimNames[axis], *++extent, "one tensor");
      break;
    }
    case TypeKind::Tuple:
      push(type.children, item.slots);
      break;
    case TypeKind::List: {
      const auto *list = std::bit_cast<const rt::ListObject *>(item.slots[0]);
      if (type.length == -1)
        bind(item.type, type.dimNames[0], list->size, "one list");
      if (seen.insert(std::bit_cast<const Slot *>(list)).second)
        for (int64_t i = 0; i < list->size; ++i)
          pending.push_back({type.children[0], list->elements + i * list->elementSlots});
      break;
    }
    case TypeKind::Data: {
      const auto *object = std::bit_cast<const Slot *>(item.slots[0]);
      if (seen.insert(object).second)
        push(model.types().data[type.data].ctors[static_cast<size_t>(object[0])].fieldTypes,
             object + 1);
      break;
    }
    default:
      break;
    }
  }
  if (std::string message = extents.finish(); !message.empty())
    throw Invalid(message);
}

} // namespace

sheaf_batch::sheaf_batch(std::shared_ptr<const LoadedModel> of)
    : model(std::move(of)), serial(nextSerial()) {}

sheaf_status sheaf_batch_create(sheaf_model *model, sheaf_batch **batch) {
  return guarded([&] {
    given(batch, "batch");
    *batch = new sheaf_batch(given(model, "model").model);
  });
}

void sheaf_batch_release(sheaf_batch *batch) { delete batch; }

sheaf_status sheaf_batch_clear(sheaf_batch *batch) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(batch, "batch").mutex);
    takeValues(*batch);
  });
}

io::SlotHeap api::takeValues(sheaf_batch &batch) {
  batch.serial = nextSerial();
  batch.values.clear();
  batch.slots.clear();
  batch.instances.clear();
  return std::exchange(batch.heap, io::SlotHeap());
}

size_t sheaf_batch_size(const sheaf_batch *batch) {
  if (!batch)
    return 0;
  std::lock_guard<std::mutex> lock(const_cast<sheaf_batch *>(batch)->mutex);
  return batch->instances.size();
}

sheaf_status sheaf_make_int(sheaf_batch *batch, sheaf_type type, int64_t number,
                            sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Int);
    builder.finish(type, number);
  });
}

sheaf_status sheaf_make_float(sheaf_batch *batch, sheaf_type type, double number,
                              sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Float);
    builder.finish(type, std::bit_cast<Slot>(number));
  });
}

sheaf_status sheaf_make_bool(sheaf_batch *batch, sheaf_type type, int truth, sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Bool);
    builder.finish(type, Slot(truth != 0));
  });
}

sheaf_status sheaf_make_token(sheaf_batch *batch, sheaf_type type, int64_t token,
                              sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    checkToken(builder.model(), builder.model().typeOf(type, TypeKind::Token), token);
    builder.finish(type, token);
  });
}

sheaf_status sheaf_make_tensor(sheaf_batch *batch, sheaf_type type, const DLTensor *tensor,
                               sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    const rt::TypeDesc &desc = builder.model().typeOf(type, TypeKind::Tensor);
    std::vector<uint8_t> elements =
        elementsOf(given(tensor, "tensor"), desc, builder.model().text(type));
    if (desc.isToken)
      for (size_t at = 0; at < elements.size(); at += sizeof(int32_t)) {
        int32_t token;
        std::memcpy(&token, elements.data() + at, sizeof token);
        checkToken(builder.model(), desc, token);
      }
    std::vector<int64_t> shape;
    std::vector<Slot> slots(1);
    for (size_t axis = 0; axis < desc.shape.size(); ++axis) {
      shape.push_back(tensor->shape[axis]);
      if (desc.shape[axis] < 0)
        slots.push_back(tensor->shape[axis]);
    }
    slots[0] = builder.heap().tensor(desc.dtype, std::move(shape), elements.data());
    builder.finish(type, slots);
  });
}

sheaf_status sheaf_make_list(sheaf_batch *batch, sheaf_type type, const sheaf_value *elements,
                             size_t count, sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    const rt::TypeDesc &desc = builder.model().typeOf(type, TypeKind::List);
    uint32_t element = desc.children[0];
    if (desc.length >= 0 && static_cast<uint64_t>(*desc.length) != count)
      throw Invalid("the list has " + std::to_string(count) + " elements; its type is '" +
                    builder.model().text(type) + "'");
    if (count)
      given(elements, "elements");
    int64_t width = builder.model().slots(element);
    std::vector<Slot> slots;
    for (size_t i = 0; i < count; ++i) {
      const Slot *from = builder.part(elements[i], element, "element", i);
      slots.insert(slots.end(), from, from + width);
    }
    builder.finish(type, builder.heap().list(slots.data(), static_cast<int64_t>(count), width));
  });
}

sheaf_status sheaf_make_tuple(sheaf_batch *batch, sheaf_type type, const sheaf_value *parts,
                              size_t count, sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    const rt::TypeDesc &desc = builder.model().typeOf(type, TypeKind::Tuple);
    builder.finish(type, builder.parts(parts, count, desc.children, "part"));
  });
}

sheaf_status sheaf_make_data(sheaf_batch *batch, sheaf_type type, size_t constructor,
                             const sheaf_value *fields, size_t count, sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Data);
    const rt::CtorDesc *ctor = builder.model().constructor(type, constructor);
    if (!ctor)
      throw Invalid("'" + builder.model().text(type) + "' has no constructor " +
                    std::to_string(constructor));
    std::vector<Slot> slots;
    try {
      slots = builder.parts(fields, count, ctor->fieldTypes, "field");
    } catch (const Invalid &error) {
      throw Invalid(ctor->name + ": " + error.what());
    }
    builder.finish(type, builder.heap().data(static_cast<uint32_t>(constructor), slots.data(),
                                             static_cast<int64_t>(slots.size())));
  });
}

sheaf_status sheaf_batch_add(sheaf_batch *batch, const sheaf_value *arguments, size_t count,
                             int64_t id) {
  return guarded([&] {
    sheaf_value unused;
    Builder builder(batch, &unused);
    const std::vector<uint32_t> &types = builder.model().model().entry.argTypes;
    std::vector<Slot> slots = builder.parts(arguments, count, types, "argument");
    if (builder.model().bindsExtents())
      bindExtents(builder.model(), types, slots.data());
    Slot *args = builder.heap().allocate(static_cast<int64_t>(slots.size()));
    std::copy(slots.begin(), slots.end(), args);
    batch->instances.push_back({args, id});
  });
}
