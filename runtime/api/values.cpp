#include "runtime/api/values.h"

#include "runtime/api/tensors.h"

#include <algorithm>
#include <atomic>
#include <bit>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;
using rt::TypeKind;

namespace {

uint32_t nextStoreSerial() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

/// Stores that wait to be let go in this thread: each may keep others, which takes no stack.
struct LetGo {
  std::vector<std::shared_ptr<const ValueStore>> stores;
  bool running = false;
};

void letGo(std::vector<std::shared_ptr<const ValueStore>> stores) {
  thread_local LetGo waiting;
  for (auto &store : stores)
    waiting.stores.push_back(std::move(store));
  if (std::exchange(waiting.running, true))
    return;
  while (!waiting.stores.empty()) {
    auto last = std::move(waiting.stores.back());
    waiting.stores.pop_back();
    last.reset();
  }
  waiting.running = false;
}

/// Calls `visit(element)` for each, which are of type T.
template <typename T, typename Visit> void forEachAs(const Elements &elements, Visit visit) {
  for (int64_t i = 0; i < elements.size(); ++i)
    visit(i, elements.at<T>(i));
}

/// The same for ints of any width.
template <typename Visit> void forEachInt(const Elements &elements, Visit visit) {
  DLDataType dtype = elements.dtype();
  if (dtype.lanes == 1 && dtype.code == kDLInt)
    switch (dtype.bits) {
    case 8:
      return forEachAs<int8_t>(elements, visit);
    case 16:
      return forEachAs<int16_t>(elements, visit);
    case 32:
      return forEachAs<int32_t>(elements, visit);
    case 64:
      return forEachAs<int64_t>(elements, visit);
    }
  if (dtype.lanes == 1 && dtype.code == kDLUInt)
    switch (dtype.bits) {
    case 8:
      return forEachAs<uint8_t>(elements, visit);
    case 16:
      return forEachAs<uint16_t>(elements, visit);
    case 32:
      return forEachAs<uint32_t>(elements, visit);
    }
  throw Invalid("the numbers are not ints of 8, 16, 32 or 64 bits, nor unsigned ones of 8, 16 or "
                "32");
}

template <typename Visit> void forEachFloat(const Elements &elements, Visit visit) {
  DLDataType dtype = elements.dtype();
  if (dtype.lanes == 1 && dtype.code == kDLFloat && dtype.bits == 32)
    return forEachAs<float>(elements, visit);
  if (dtype.lanes == 1 && dtype.code == kDLFloat && dtype.bits == 64)
    return forEachAs<double>(elements, visit);
  throw Invalid("the numbers are not floats of 32 or 64 bits");
}

std::string numbered(const char *what, size_t number) {
  return std::string(what) + " " + std::to_string(number);
}

} // namespace

api::ValueStore::ValueStore(std::shared_ptr<const LoadedModel> of)
    : model(std::move(of)), serial(nextStoreSerial()) {}

api::ValueStore::~ValueStore() { letGo(std::move(others)); }

void api::ValueStore::keep(const std::shared_ptr<const ValueStore> &other) {
  if (std::find(others.rbegin(), others.rend(), other) == others.rend())
    others.push_back(other);
}

const ValueStore::Column *api::columnOf(const ValueStore &store, sheaf_value value) {
  uint64_t number = (value.id & UINT32_MAX) - 1;
  if (value.id >> 32 != store.serial || (value.id & UINT32_MAX) == 0)
    return nullptr;
  auto after = std::upper_bound(
      store.columns.begin(), store.columns.end(), number,
      [](uint64_t n, const ValueStore::Column &column) { return n < column.first; });
  if (after == store.columns.begin())
    return nullptr;
  const ValueStore::Column &column = *std::prev(after);
  return number - column.first < column.count ? &column : nullptr;
}

Slot *api::ValueBuilder::allocate(uint64_t count, int64_t slots) {
  constexpr uint64_t kMost = uint64_t(1) << 40;
  if (slots && count > kMost / static_cast<uint64_t>(slots))
    throw Invalid(std::to_string(count) + " values are too many");
  return store_.heap.allocate(static_cast<int64_t>(count) * slots);
}

sheaf_value api::ValueBuilder::add(sheaf_type type, const Slot *slots, uint64_t count) {
  uint64_t first =
      store_.columns.empty() ? 0 : store_.columns.back().first + store_.columns.back().count;
  if (count >= UINT32_MAX - first)
    throw Invalid("one builder makes no more than 4,294,967,294 values");
  if (count) // a column without values would have the number of the next
    store_.columns.push_back({type, first, count, slots});
  return {uint64_t(store_.serial) << 32 | (first + 1)};
}

const Slot *api::ValueBuilder::column(sheaf_value first, uint64_t count, sheaf_type type,
                                      const char *what, size_t number) const {
  if (count == 0)
    return nullptr;
  const ValueStore::Column *found = columnOf(store_, first);
  if (!found)
    throw Invalid(numbered(what, number) + " is no value of this builder");
  if (found->type != type)
    throw Invalid(numbered(what, number) + " is of type '" + model_.text(found->type) + "', not '" +
                  model_.text(type) + "'");
  uint64_t before = (first.id & UINT32_MAX) - 1 - found->first;
  if (count > found->count - before)
    throw Invalid(numbered(what, number) + ": " + std::to_string(count) +
                  " values are needed; those made with it end after " +
                  std::to_string(found->count - before));
  return found->slots + static_cast<int64_t>(before) * model_.slots(type);
}

std::vector<const Slot *> api::ValueBuilder::columns(std::span<const sheaf_value> firsts,
                                                     uint64_t count,
                                                     std::span<const uint32_t> types,
                                                     const char *what) const {
  if (firsts.size() != types.size())
    throw Invalid("given " + std::to_string(firsts.size()) + " of " + std::to_string(types.size()) +
                  " " + what + "s");
  std::vector<const Slot *> found;
  for (size_t i = 0; i < firsts.size(); ++i)
    found.push_back(column(firsts[i], count, types[i], what, i));
  return found;
}

void api::ValueBuilder::join(std::span<const uint32_t> types, std::span<const Slot *const> columns,
                             size_t i, Slot *to) const {
  for (size_t part = 0; part < types.size(); ++part) {
    int64_t width = model_.slots(types[part]);
    to = std::copy_n(columns[part] + static_cast<int64_t>(i) * width, width, to);
  }
}

sheaf_value api::ValueBuilder::numbers(sheaf_type number, const DLTensor &tensor) {
  const rt::TypeDesc *type = model_.type(number);
  TypeKind kind = type ? type->kind : TypeKind::Int;
  if (!type || kind == TypeKind::Tensor || kind == TypeKind::List || kind == TypeKind::Tuple ||
      kind == TypeKind::Data)
    model_.typeOf(number, TypeKind::Int);
  Elements elements(tensor);
  auto count = static_cast<uint64_t>(elements.size());
  Slot *slots = allocate(count, 1);
  switch (kind) {
  case TypeKind::Token:
    forEachInt(elements, [&](int64_t i, int64_t token) {
      if (token < 0 || token >= model_.tokens(number)) [[unlikely]] {
        try {
          throwNoToken(model_, number, token);
        } catch (const Invalid &error) {
          throw Invalid("number " + std::to_string(i) + ": " + error.what());
        }
      }
      slots[i] = token;
    });
    break;
  case TypeKind::Float:
    forEachFloat(elements, [&](int64_t i, double x) { slots[i] = std::bit_cast<Slot>(x); });
    break;
  case TypeKind::Bool:
    if (elements.dtype().code != kDLBool || elements.dtype().bits != 8)
      throw Invalid("the numbers are not of kDLBool with 8 bits");
    forEachAs<uint8_t>(elements, [&](int64_t i, uint8_t truth) { slots[i] = truth != 0; });
    break;
  default:
    forEachInt(elements, [&](int64_t i, int64_t x) { slots[i] = x; });
  }
  return add(number, slots, count);
}

sheaf_value api::ValueBuilder::tensors(sheaf_type type, const DLTensor *const *tensors,
                                       size_t count) {
  model_.typeOf(type, TypeKind::Tensor);
  if (count)
    given(tensors, "tensors");
  int64_t width = model_.slots(type);
  Slot *slots = allocate(count, width);
  for (size_t i = 0; i < count; ++i)
    try {
      putTensor(model_, type, given(tensors[i], "the tensor"), store_.heap,
                slots + static_cast<int64_t>(i) * width);
    } catch (const Invalid &error) {
      throw Invalid(numbered("tensor", i) + ": " + error.what());
    }
  return add(type, slots, count);
}

sheaf_value api::ValueBuilder::unstack(sheaf_type number, const DLTensor &stack) {
  const rt::TypeDesc &type = model_.typeOf(number, TypeKind::Tensor);
  checkAxes(stack, type.shape.size() + 1);
  auto count = static_cast<size_t>(stack.shape[0]);
  int64_t stride = 1;
  for (int32_t axis = 1; axis < stack.ndim && !stack.strides; ++axis)
    if (__builtin_mul_overflow(stride, stack.shape[axis], &stride))
      throw Invalid("the tensor is too large");
  if (stack.strides)
    stride = stack.strides[0];
  int64_t bytes = stack.dtype.bits / 8;
  DLTensor part = stack;
  part.ndim = stack.ndim - 1;
  part.shape = stack.shape + 1;
  part.strides = stack.strides ? stack.strides + 1 : nullptr;
  int64_t width = model_.slots(number);
  Slot *slots = allocate(count, width);
  for (size_t i = 0; i < count; ++i) {
    part.byte_offset =
        stack.byte_offset + static_cast<uint64_t>(static_cast<int64_t>(i) * stride * bytes);
    putTensor(model_, number, part, store_.heap, slots + static_cast<int64_t>(i) * width);
  }
  return add(number, slots, count);
}

sheaf_value api::ValueBuilder::lists(sheaf_type number, sheaf_value elements,
                                     const uint64_t *offsets, size_t count) {
  const rt::TypeDesc &type = model_.typeOf(number, TypeKind::List);
  uint32_t element = type.children[0];
  given(offsets, "offsets");
  for (size_t i = 0; i < count; ++i) {
    if (offsets[i] > offsets[i + 1])
      throw Invalid("offset " + std::to_string(i + 1) + " is " + std::to_string(offsets[i + 1]) +
                    ", less than the one before");
    uint64_t size = offsets[i + 1] - offsets[i];
    if (type.length >= 0 && static_cast<uint64_t>(*type.length) != size)
      throw Invalid("list " + std::to_string(i) + " has " + std::to_string(size) +
                    " elements; its type is '" + model_.text(number) + "'");
  }
  bool any = offsets[0] < offsets[count];
  Slot *first =
      const_cast<Slot *>(column(elements, any ? offsets[count] : 0, element, "element", 0));
  int64_t width = model_.slots(element);
  // Lists are views of the elements' slots, which stay where they are.
  constexpr int64_t kObject = sizeof(rt::ListObject) / sizeof(Slot);
  Slot *slots = allocate(count, 1), *objects = allocate(count, kObject);
  for (size_t i = 0; i < count; ++i, objects += kObject)
    slots[i] = std::bit_cast<Slot>(new (objects) rt::ListObject{
        any ? first + static_cast<int64_t>(offsets[i]) * width : nullptr,
        static_cast<int64_t>(offsets[i + 1] - offsets[i]), width, nullptr});
  return add(number, slots, count);
}

sheaf_value api::ValueBuilder::tuples(sheaf_type number, std::span<const sheaf_value> parts,
                                      size_t count) {
  const rt::TypeDesc &type = model_.typeOf(number, TypeKind::Tuple);
  auto from = columns(parts, count, type.children, "part");
  int64_t width = model_.slots(number);
  Slot *slots = allocate(count, width);
  for (size_t i = 0; i < count; ++i)
    join(type.children, from, i, slots + static_cast<int64_t>(i) * width);
  return add(number, slots, count);
}

sheaf_value api::ValueBuilder::data(sheaf_type number, size_t constructor,
                                    std::span<const sheaf_value> fields, size_t count) {
  const rt::TypeDesc &type = model_.typeOf(number, TypeKind::Data);
  const rt::CtorDesc *ctor = model_.constructor(number, constructor);
  if (!ctor)
    throw Invalid("'" + model_.text(number) + "' has no constructor " +
                  std::to_string(constructor));
  std::vector<const Slot *> from;
  try {
    from = columns(fields, count, ctor->fieldTypes, "field");
  } catch (const Invalid &error) {
    throw Invalid(ctor->name + ": " + error.what());
  }
  int64_t width = 1 + model_.fieldSlots(type, constructor);
  Slot *slots = allocate(count, 1), *objects = allocate(count, width);
  for (size_t i = 0; i < count; ++i, objects += width) {
    objects[0] = static_cast<Slot>(constructor);
    join(ctor->fieldTypes, from, i, objects + 1);
    slots[i] = std::bit_cast<Slot>(objects);
  }
  return add(number, slots, count);
}

sheaf_value api::ValueBuilder::select(sheaf_value from, std::span<const uint64_t> which) {
  const ValueStore::Column *found = columnOf(store_, from);
  if (!found)
    throw Invalid("the first value is none of this builder");
  uint64_t before = (from.id & UINT32_MAX) - 1 - found->first;
  int64_t width = model_.slots(found->type);
  Slot *slots = allocate(which.size(), width), *to = slots;
  for (size_t i = 0; i < which.size(); ++i) {
    if (which[i] >= found->count - before)
      throw Invalid("index " + std::to_string(i) + " is " + std::to_string(which[i]) + " of " +
                    std::to_string(found->count - before) + " values");
    to = std::copy_n(found->slots + static_cast<int64_t>(before + which[i]) * width, width, to);
  }
  return add(found->type, slots, which.size());
}

sheaf_value api::ValueBuilder::take(const std::shared_ptr<const ValueStore> &other,
                                    sheaf_value from, size_t count) {
  if (other->model != store_.model)
    throw Invalid("the values are of another model");
  const ValueStore::Column *found = columnOf(*other, from);
  if (!found)
    throw Invalid("the first value is none of these values");
  uint64_t before = (from.id & UINT32_MAX) - 1 - found->first;
  if (count > found->count - before)
    throw Invalid(std::to_string(count) + " values are asked for; those made with the first end " +
                  "after " + std::to_string(found->count - before));
  store_.keep(other);
  return add(found->type, found->slots + static_cast<int64_t>(before) * model_.slots(found->type),
             count);
}

void api::ValueBuilder::instances(std::span<const sheaf_value> arguments, size_t count,
                                  const int64_t *ids) {
  const std::vector<uint32_t> &types = model_.model().entry.argTypes;
  auto from = columns(arguments, count, types, "argument");
  int64_t width = 0;
  for (uint32_t type : types)
    width += model_.slots(type);
  // Those of one argument are what its column has already.
  const Slot *args = types.size() == 1 ? from[0] : nullptr;
  if (!args) {
    Slot *slots = allocate(std::max<size_t>(count, 1), std::max<int64_t>(width, 1));
    for (size_t i = 0; i < count; ++i)
      join(types, from, i, slots + static_cast<int64_t>(i) * width);
    args = slots;
  }
  if (model_.bindsExtents())
    for (size_t i = 0; i < count; ++i)
      try {
        bindExtents(model_, types, args + static_cast<int64_t>(i) * width);
      } catch (const Invalid &error) {
        throw Invalid(numbered("instance", i) + ": " + error.what());
      }
  size_t before = store_.instances.size();
  store_.instances.reserve(before + count);
  for (size_t i = 0; i < count; ++i)
    store_.instances.push_back(
        {args + static_cast<int64_t>(i) * width, ids ? ids[i] : static_cast<int64_t>(before + i)});
}
