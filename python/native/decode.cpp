#include "python/native/decode.h"

#include "runtime/model/members.h"

#include <nanobind/ndarray.h>

#include <bit>
#include <unordered_map>

namespace sheaf::python {

using rt::Slot;
using rt::TypeKind;

namespace {

/// An array of NumPy's over memory that `owner` keeps; of bfloat16, which NumPy lacks, an object
/// that DLPack takes.
nb::object arrayOf(void *data, std::span<const int64_t> shape, DLDataType dtype, nb::handle owner) {
  std::vector<size_t> extents(shape.begin(), shape.end());
  nb::dlpack::dtype element{dtype.code, dtype.bits, dtype.lanes};
  if (dtype.code == kDLBfloat)
    return nb::cast(nb::ndarray<>(data, extents.size(), extents.data(), owner, nullptr, element));
  return nb::cast(
      nb::ndarray<nb::numpy>(data, extents.size(), extents.data(), owner, nullptr, element));
}

} // namespace

nb::object takeArray(DLManagedTensor *tensor) {
  nb::capsule owner(tensor, [](void *p) noexcept {
    auto *held = static_cast<DLManagedTensor *>(p);
    held->deleter(held);
  });
  const DLTensor &t = tensor->dl_tensor;
  return arrayOf(t.data, {t.shape, static_cast<size_t>(t.ndim)}, t.dtype, owner);
}

namespace {

class Decoder {
public:
  Decoder(Model &model, const std::shared_ptr<const api::ResultData> &result)
      : model_(model), result_(result) {}

  nb::object decode(uint32_t type, const Slot *slots) {
    nb::object made = begin(type, slots);
    if (made.is_valid())
      return made;
    while (true) {
      Frame &frame = frames_.back();
      if (frame.left.count == 0) {
        nb::object whole = finish(frame);
        frames_.pop_back();
        if (frames_.empty())
          return whole;
        put(frames_.back(), std::move(whole));
        continue;
      }
      auto [part, at] = take(frame.left);
      nb::object value = begin(part, at); // may move the frames
      if (value.is_valid())
        put(frames_.back(), std::move(value));
    }
  }

private:
  struct Frame {
    nb::object parts; ///< a list or a tuple that is being filled
    Py_ssize_t at;
    rt::Members left;
    const Constructor *constructor; ///< of data
    Slot key;                       ///< of lists and data: their address
  };

  std::pair<uint32_t, const Slot *> take(rt::Members &members) {
    std::pair<uint32_t, const Slot *> member(members.types[0], members.first);
    members.first += model_.loaded().slots(member.first);
    --members.count;
    if (!members.sameType)
      members.types = members.types.subspan(1);
    return member;
  }

  static void put(Frame &frame, nb::object value) {
    if (PyList_CheckExact(frame.parts.ptr()))
      PyList_SET_ITEM(frame.parts.ptr(), frame.at++, value.release().ptr());
    else
      PyTuple_SET_ITEM(frame.parts.ptr(), frame.at++, value.release().ptr());
  }

  /// The object of a value without parts, or of one that was made before; else none, and a frame.
  nb::object begin(uint32_t number, const Slot *slots) {
    while (model_.type(number).kind == TypeKind::Data) {
      const OptionalData *data = model_.classes().optional(model_.type(number).data);
      if (!data)
        break;
      const auto *inner = std::bit_cast<const Slot *>(*slots);
      if (inner[0] == data->none)
        return nb::none();
      number = data->value.type;
      slots = inner + 1;
    }
    const rt::TypeDesc &type = model_.type(number);
    switch (type.kind) {
    case TypeKind::Float:
      return owned(PyFloat_FromDouble(std::bit_cast<double>(*slots)));
    case TypeKind::Bool:
      return nb::bool_(*slots != 0);
    case TypeKind::Int:
    case TypeKind::Token:
      return owned(PyLong_FromLongLong(*slots));
    case TypeKind::Tensor:
      return tensor(*std::bit_cast<const api::ResultTensor *>(*slots));
    default:
      break;
    }
    bool tuple = type.kind == TypeKind::Tuple;
    if (!tuple)
      if (auto made = made_.find(*slots); made != made_.end())
        return made->second;
    rt::Members members = rt::membersOf(model_.loaded().types(), number, slots);
    const Constructor *ctor = nullptr;
    if (type.kind == TypeKind::Data)
      ctor = &model_.classes().constructor(
          type.data, static_cast<size_t>(*std::bit_cast<const Slot *>(*slots)));
    nb::object parts =
        owned(type.kind == TypeKind::List ? PyList_New(members.count) : PyTuple_New(members.count));
    frames_.push_back({std::move(parts), 0, members, ctor, tuple ? 0 : *slots});
    return {};
  }

  nb::object finish(Frame &frame) {
    nb::object whole = std::move(frame.parts);
    if (const Constructor *ctor = frame.constructor) {
      if (!ctor->type.is_valid())
        raise(PyExc_RuntimeError, "the constructor '" + ctor->name + "' has no class");
      PyObject *const *fields = PySequence_Fast_ITEMS(whole.ptr());
      whole = owned(PyObject_Vectorcall(ctor->type.ptr(), fields, 0,
                                        ctor->fields.empty() ? nullptr : ctor->keywords.ptr()));
    }
    if (frame.key)
      made_.emplace(frame.key, whole);
    return whole;
  }

  nb::object tensor(const api::ResultTensor &tensor) {
    auto *held = new std::shared_ptr<const api::ResultData>(result_);
    nb::capsule owner(held, [](void *p) noexcept {
      delete static_cast<std::shared_ptr<const api::ResultData> *>(p);
    });
    return arrayOf(const_cast<uint8_t *>(tensor.data), tensor.shape, tensor.dtype, owner);
  }

  Model &model_;
  std::shared_ptr<const api::ResultData> result_;
  std::vector<Frame> frames_;
  std::unordered_map<Slot, nb::object> made_;
};

bool isFixed(const rt::TypeDesc &type) {
  if (type.kind == TypeKind::Tensor)
    return std::find(type.shape.begin(), type.shape.end(), -1) == type.shape.end();
  return type.kind != TypeKind::List && type.kind != TypeKind::Data && type.kind != TypeKind::Tuple;
}

/// A part that all results have. As deep as tuples are in each other in a program's text.
nb::object partOf(Model &model, sheaf_result *result, uint32_t number, int64_t slot,
                  std::vector<size_t> &path) {
  const rt::TypeDesc &type = model.type(number);
  if (isFixed(type)) {
    DLManagedTensor *tensor = nullptr;
    check(sheaf_result_stack(result, nullptr, 0, path.data(), path.size(), &tensor));
    return takeArray(tensor);
  }
  if (type.kind == TypeKind::Tuple) {
    nb::list parts;
    for (size_t i = 0; i < type.children.size(); ++i) {
      path.push_back(i);
      parts.append(partOf(model, result, type.children[i], slot, path));
      path.pop_back();
      slot += model.loaded().slots(type.children[i]);
    }
    return nb::tuple(parts);
  }
  const auto &items = result->data->items;
  nb::object list = owned(PyList_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i)
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i),
                    decode(model, result->data, number, items[i].slots + slot).release().ptr());
  return list;
}

} // namespace

nb::object decode(Model &model, const std::shared_ptr<const api::ResultData> &result, uint32_t type,
                  const Slot *slots) {
  return Decoder(model, result).decode(type, slots);
}

nb::object decodeColumn(Model &model, sheaf_result *result) {
  std::vector<size_t> path;
  return partOf(model, result, result->data->ownType(), 0, path);
}

nb::object failureOf(sheaf_result *result, size_t instance) {
  const api::ResultData::Item &item = result->data->items[instance];
  static constexpr const char *causes[] = {"ended",  "program",  "limit",
                                           "memory", "deadline", "cancelled"};
  return errorClass("InstanceError")(instance, item.error, causes[item.cause]);
}

void raiseFailures(sheaf_result *result) {
  nb::list failures;
  const auto &items = result->data->items;
  for (size_t i = 0; i < items.size(); ++i)
    if (!items[i].slots)
      failures.append(failureOf(result, i));
  if (failures.size())
    errorClass("raise_failures")(failures, items.size());
}

nb::list decodeEach(Model &model, sheaf_result *result) {
  nb::list all;
  const auto &items = result->data->items;
  uint32_t type = result->data->ownType();
  for (size_t i = 0; i < items.size(); ++i)
    all.append(items[i].slots ? decode(model, result->data, type, items[i].slots)
                              : failureOf(result, i));
  return all;
}

} // namespace sheaf::python
