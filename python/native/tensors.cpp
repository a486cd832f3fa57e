#include "python/native/tensors.h"
#include "python/native/scalars.h"

#include "runtime/io/half.h"
#include "runtime/io/vocab.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace sheaf::python {

using rt::DType;
using rt::Slot;
using rt::TypeKind;

namespace {

constexpr int64_t kMostBytes = int64_t(1) << 37;

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

/// Throws Refusal when a tensor of this type has no such extents.
void checkShape(const Model &model, uint32_t number, const std::vector<int64_t> &shape) {
  const rt::TypeDesc &type = model.type(number);
  bool fits = shape.size() == type.shape.size();
  for (size_t axis = 0; fits && axis < shape.size(); ++axis)
    fits = type.shape[axis] < 0 || type.shape[axis] == shape[axis];
  if (!fits)
    throw Refusal(PyExc_ValueError, "an array of shape " + shapeText(shape) + " is no '" +
                                        model.loaded().text(number) + "'");
  int64_t bytes = rt::kGranuleBytes;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes) || bytes > kMostBytes)
      throw Refusal(PyExc_ValueError, "an array of shape " + shapeText(shape) + " is too large");
}

/// Copies elements, which lie row by row as rows have them, into the heap.
void put(const Model &model, uint32_t number, const std::vector<int64_t> &shape, const void *rows,
         io::SlotHeap &heap, Slot *to) {
  const rt::TypeDesc &type = model.type(number);
  to[0] = heap.tensor(type.dtype, shape, rows);
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (type.shape[axis] < 0)
      *++to = shape[axis];
}

template <typename T> T load(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// An element of an array of ints.
int64_t intAt(DLDataType dtype, const uint8_t *at) {
  bool is = dtype.code == kDLInt;
  switch (dtype.bits) {
  case 8:
    return is ? load<int8_t>(at) : load<uint8_t>(at);
  case 16:
    return is ? load<int16_t>(at) : load<uint16_t>(at);
  case 32:
    return is ? load<int32_t>(at) : load<uint32_t>(at);
  default:
    break;
  }
  auto bits = load<int64_t>(at);
  if (!is && bits < 0)
    throw Refusal(PyExc_OverflowError, "an int of more than 63 bits");
  return bits;
}

bool isInts(DLDataType dtype) { return dtype.code == kDLInt || dtype.code == kDLUInt; }

void storeInt(Model &model, uint32_t number, int64_t value, uint8_t *to) {
  const rt::TypeDesc &type = model.type(number);
  if (type.isToken && (value < 0 || value >= model.words(number).size))
    noToken(model, number, value);
  if (type.dtype == DType::I64) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  if (value < INT32_MIN || value > INT32_MAX)
    throw Refusal(PyExc_OverflowError, std::to_string(value) + " is no 'i32'");
  auto narrow = static_cast<int32_t>(value);
  std::memcpy(to, &narrow, sizeof narrow);
}

/// Infinity belongs where it was given.
void requireFits(double given, bool isInfinite, const char *dtype) {
  if (isInfinite && !std::isinf(given))
    throw Refusal(PyExc_OverflowError, "a number that is too large for " + std::string(dtype));
}

/// A number of Python as an element.
void storeElement(Model &model, uint32_t number, PyObject *object, uint8_t *to) {
  const rt::TypeDesc &type = model.type(number);
  switch (type.dtype) {
  case DType::F32: {
    double given = toFloat(object);
    auto value = static_cast<float>(given);
    requireFits(given, std::isinf(value), "f32");
    std::memcpy(to, &value, sizeof value);
    return;
  }
  case DType::F16:
  case DType::BF16: {
    double value = toFloat(object);
    bool half = type.dtype == DType::F16;
    uint16_t bits = half ? io::toF16(value) : io::toBF16(value);
    requireFits(value, (bits & 0x7FFF) == (half ? 0x7C00 : 0x7F80), half ? "f16" : "bf16");
    std::memcpy(to, &bits, sizeof bits);
    return;
  }
  case DType::Bool: {
    int32_t truth = toBool(object);
    std::memcpy(to, &truth, sizeof truth);
    return;
  }
  case DType::I32:
  case DType::I64:
    if (type.isToken && PyUnicode_Check(object))
      storeInt(model, number, model.token(number, object), to);
    else
      storeInt(model, number, toInt(object), to);
    return;
  }
}

/// Reads lists in lists, as many as a type has axes.
class Nested {
public:
  Nested(Model &model, uint32_t type)
      : model_(model), type_(type), axes_(model.type(type).shape.size()),
        bytes_(static_cast<size_t>(rt::dtypeBytes(model.type(type).dtype))), shape_(axes_, -1) {}

  /// As deep as the type has axes, which programs write out.
  void read(PyObject *object, size_t axis) {
    if (axis == axes_) {
      elements_.resize(elements_.size() + bytes_);
      storeElement(model_, type_, object, elements_.data() + elements_.size() - bytes_);
      return;
    }
    if (!PyList_Check(object) && !PyTuple_Check(object)) {
      Array array;
      if (axis > 0 && array.borrow(object))
        throw Refusal(PyExc_TypeError, "a list of arrays is no tensor: numpy.stack them");
      throw Refusal(PyExc_TypeError, "an array belongs here ('" + model_.loaded().text(type_) +
                                         "'), not " + kindOf(object));
    }
    Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
    if (shape_[axis] < 0)
      shape_[axis] = size;
    else if (shape_[axis] != size)
      throw Refusal(PyExc_ValueError, "lists of " + std::to_string(shape_[axis]) + " and of " +
                                          std::to_string(size) + " elements are no tensor");
    if (axis + 1 == axes_)
      elements_.reserve(elements_.size() + static_cast<size_t>(size) * bytes_);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (PySequence_Fast_GET_SIZE(object) != size)
        throw Refusal(PyExc_RuntimeError, "the list changed while it was read");
      nb::object element = nb::borrow(PySequence_Fast_GET_ITEM(object, i));
      read(element.ptr(), axis + 1);
    }
  }

  std::vector<int64_t> shape() const {
    std::vector<int64_t> shape = shape_;
    std::replace(shape.begin(), shape.end(), int64_t(-1), int64_t(0)); // below an empty list
    return shape;
  }
  const uint8_t *elements() const { return elements_.data(); }

private:
  Model &model_;
  uint32_t type_;
  size_t axes_, bytes_;
  std::vector<int64_t> shape_; ///< -1: not known yet
  std::vector<uint8_t> elements_;
};

} // namespace

void noToken(Model &model, uint32_t type, int64_t token) {
  throw Refusal(PyExc_ValueError, "token " + std::to_string(token) + " is none of the " +
                                      std::to_string(model.words(type).size) +
                                      " of the vocabulary of '" +
                                      io::tokenTypeName(model.type(type).vocab) + "'");
}

void putTensor(Model &model, uint32_t number, PyObject *object, io::SlotHeap &heap, Slot *to) {
  Array array;
  if (array.borrow(object))
    return putTensor(model, number, array, heap, to);
  Nested nested(model, number);
  nested.read(object, 0);
  std::vector<int64_t> shape = nested.shape();
  // What no element shows, the type may.
  const rt::TypeDesc &type = model.type(number);
  bool empty = std::count(shape.begin(), shape.end(), 0) > 0;
  for (size_t axis = 1; empty && axis < shape.size(); ++axis)
    if (shape[axis - 1] == 0 && type.shape[axis] >= 0)
      shape[axis] = type.shape[axis];
  checkShape(model, number, shape);
  put(model, number, shape, nested.elements(), heap, to);
}

void putTensor(Model &model, uint32_t number, const Array &array, io::SlotHeap &heap, Slot *to) {
  const rt::TypeDesc &type = model.type(number);
  DLDataType wanted = api::dlpackType(type.dtype);
  bool same = array.dtype.code == wanted.code && array.dtype.bits == wanted.bits;
  bool ints = type.dtype == DType::I32 || type.dtype == DType::I64;
  if (!same && !(ints && isInts(array.dtype))) {
    std::string name = Array::nameOf(wanted);
    std::string help = array.isOfTorch()          ? ": t.to(torch." + name + ")"
                       : wanted.code != kDLBfloat ? ": a.astype(\"" + name + "\")"
                                                  : "";
    throw Refusal(PyExc_TypeError, "an array of " + array.elementName() + " where '" +
                                       model.loaded().text(number) + "' belongs" + help);
  }
  checkShape(model, number, array.shape);
  auto elements = static_cast<size_t>(array.elements());
  auto bytes = static_cast<size_t>(rt::dtypeBytes(type.dtype));
  if (same && !type.isToken && type.dtype != DType::Bool) {
    if (array.isDense())
      return put(model, number, array.shape, array.data, heap, to);
    std::vector<uint8_t> rows(elements * bytes);
    array.gather(rows.data());
    return put(model, number, array.shape, rows.data(), heap, to);
  }
  std::vector<uint8_t> from(elements * array.bytes()), rows(elements * bytes);
  array.gather(from.data());
  for (size_t i = 0; i < elements; ++i) {
    const uint8_t *at = from.data() + i * array.bytes();
    if (type.dtype == DType::Bool) {
      int32_t truth = *at != 0;
      std::memcpy(rows.data() + i * bytes, &truth, sizeof truth);
    } else {
      storeInt(model, number, intAt(array.dtype, at), rows.data() + i * bytes);
    }
  }
  put(model, number, array.shape, rows.data(), heap, to);
}

void checkNumbers(Model &model, uint32_t type, const Array &array) {
  TypeKind kind = model.type(type).kind;
  bool fits = kind == TypeKind::Float  ? array.dtype.code == kDLFloat && array.dtype.bits >= 32
              : kind == TypeKind::Bool ? array.dtype.code == kDLBool && array.dtype.bits == 8
                                       : isInts(array.dtype);
  if (!fits)
    throw Refusal(PyExc_TypeError, "an array of " + array.elementName() + " has no '" +
                                       model.loaded().text(type) + "'");
}

Slot numberOf(Model &model, uint32_t type, const Array &array, int64_t i) {
  const uint8_t *at = array.data + i * array.strides[0];
  switch (model.type(type).kind) {
  case TypeKind::Float:
    return std::bit_cast<Slot>(array.dtype.bits == 32 ? static_cast<double>(load<float>(at))
                                                      : load<double>(at));
  case TypeKind::Bool:
    return *at != 0;
  case TypeKind::Token: {
    int64_t token = intAt(array.dtype, at);
    if (token < 0 || token >= model.words(type).size)
      noToken(model, type, token);
    return token;
  }
  default:
    return intAt(array.dtype, at);
  }
}

} // namespace sheaf::python
