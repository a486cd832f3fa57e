#include "python/native/arrays.h"

#include <bit>
#include <cstring>

namespace sheaf::python {

static_assert(std::endian::native == std::endian::little);

namespace {

/// What a format of the buffer protocol says of an element of so many bytes.
DLDataType elementOf(const char *format, Py_ssize_t bytes) {
  const char *given = format ? format : "B";
  const char *at = given;
  if (*at == '>' || *at == '!') {
    if (bytes > 1)
      throw Refusal(PyExc_TypeError, "the array has its bytes in the other order: "
                                     "a.astype(a.dtype.newbyteorder('='))");
    ++at;
  } else if (*at == '@' || *at == '=' || *at == '<') {
    ++at;
  }
  auto bits = static_cast<uint8_t>(8 * bytes);
  bool sane = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (sane && at[0] && !at[1]) {
    if (std::strchr("bhilqn", *at))
      return {kDLInt, bits, 1};
    if (std::strchr("BHILQN", *at))
      return {kDLUInt, bits, 1};
    if (std::strchr("efd", *at))
      return {kDLFloat, bits, 1};
    if (*at == '?')
      return {kDLBool, bits, 1};
  }
  throw Refusal(PyExc_TypeError,
                std::string("an array with elements of format '") + given + "' is none of numbers");
}

} // namespace

std::string Array::nameOf(DLDataType dtype) {
  const char *kind = dtype.code == kDLInt      ? "int"
                     : dtype.code == kDLUInt   ? "uint"
                     : dtype.code == kDLFloat  ? "float"
                     : dtype.code == kDLBfloat ? "bfloat"
                     : dtype.code == kDLBool   ? "bool"
                                               : "another type";
  return dtype.code == kDLBool ? kind : kind + std::to_string(dtype.bits);
}

Array &Array::operator=(Array &&other) noexcept {
  release();
  data = other.data;
  dtype = other.dtype;
  shape = std::move(other.shape);
  strides = std::move(other.strides);
  buffer_ = other.buffer_;
  holdsBuffer_ = std::exchange(other.holdsBuffer_, false);
  capsule_ = std::move(other.capsule_);
  ofTorch_ = other.ofTorch_;
  return *this;
}

void Array::release() {
  if (std::exchange(holdsBuffer_, false))
    PyBuffer_Release(&buffer_);
}

bool Array::borrow(PyObject *object) {
  release();
  if (PyBytes_Check(object) || PyByteArray_Check(object))
    return false;
  return borrowBuffer(object) || borrowDlpack(object);
}

bool Array::borrowBuffer(PyObject *object) {
  if (!PyObject_CheckBuffer(object))
    return false;
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_RECORDS_RO) < 0) {
    // NumPy has types of elements that buffers lack; DLPack may have them.
    if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_BufferError) ||
        PyErr_ExceptionMatches(PyExc_NotImplementedError)) {
      PyErr_Clear();
      return false;
    }
    throw nb::python_error();
  }
  holdsBuffer_ = true;
  dtype = elementOf(buffer_.format, buffer_.itemsize);
  data = static_cast<const uint8_t *>(buffer_.buf);
  shape.assign(buffer_.shape, buffer_.shape + buffer_.ndim);
  if (buffer_.ndim > 0 && buffer_.strides) {
    strides.assign(buffer_.strides, buffer_.strides + buffer_.ndim);
  } else {
    strides.assign(shape.size(), buffer_.itemsize);
    for (size_t axis = shape.size(); axis-- > 1;)
      strides[axis - 1] = strides[axis] * shape[axis];
  }
  return true;
}

bool Array::borrowDlpack(PyObject *object) {
  // Of the class, not of the object: what answers to any name is no array.
  if (PyType_Check(object) ||
      !PyObject_HasAttrString(reinterpret_cast<PyObject *>(Py_TYPE(object)), "__dlpack__"))
    return false;
  nb::object device = nb::steal(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
  if (!device.is_valid())
    throw nb::python_error();
  long kind = 0;
  if (PyTuple_Check(device.ptr()) && PyTuple_GET_SIZE(device.ptr()) == 2)
    kind = PyLong_AsLong(PyTuple_GET_ITEM(device.ptr(), 0));
  if (kind == -1 && PyErr_Occurred())
    throw nb::python_error();
  if (kind != kDLCPU) {
    nb::object name = nb::steal(PyObject_GetAttrString(object, "device"));
    std::string where = "another device";
    if (nb::object text = name.is_valid() ? nb::steal(PyObject_Str(name.ptr())) : nb::object();
        text.is_valid())
      where = "device '" + textOf(text.ptr()) + "'";
    PyErr_Clear();
    throw Refusal(PyExc_ValueError,
                  "the tensor is on " + where + ": move it to the CPU first, by .cpu() or alike");
  }
  // PyTorch lends a view whose sign is to be changed (of x.conj().imag) as it lies in memory.
  ofTorch_ = PyObject_HasAttrString(reinterpret_cast<PyObject *>(Py_TYPE(object)), "resolve_neg");
  if (ofTorch_) {
    nb::object negative = nb::steal(PyObject_CallMethod(object, "is_neg", nullptr));
    if (!negative.is_valid())
      throw nb::python_error();
    if (negative.ptr() == Py_True)
      throw Refusal(PyExc_ValueError,
                    "the tensor's signs have yet to be changed: pass t.resolve_neg()");
  }
  capsule_ = nb::steal(PyObject_CallMethod(object, "__dlpack__", nullptr));
  if (!capsule_.is_valid()) {
    // Those that take part in autograd are not lent; PyTorch says so in its own words.
    nb::python_error error; // it is asked without one
    nb::object wants = nb::steal(PyObject_GetAttrString(object, "requires_grad"));
    PyErr_Clear();
    if (wants.ptr() != Py_True)
      throw error;
    throw Refusal(PyExc_ValueError,
                  "the tensor requires a gradient, which ends here: pass t.detach()");
  }
  auto *managed = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule_.ptr(), "dltensor"));
  if (!managed)
    throw nb::python_error();
  const DLTensor &tensor = managed->dl_tensor;
  // The capsule's own destructor gives the tensor back, as it was not taken.
  dtype = tensor.dtype;
  bool whole = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  if (dtype.lanes != 1 || !whole ||
      (dtype.code != kDLInt && dtype.code != kDLUInt && dtype.code != kDLFloat &&
       dtype.code != kDLBfloat && dtype.code != kDLBool))
    throw Refusal(PyExc_TypeError, "the tensor's elements are no numbers that are known here");
  data = static_cast<const uint8_t *>(tensor.data) + tensor.byte_offset;
  shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  strides.assign(shape.size(), static_cast<int64_t>(bytes()));
  for (size_t axis = shape.size(); axis-- > 0;)
    strides[axis] = tensor.strides            ? tensor.strides[axis] * static_cast<int64_t>(bytes())
                    : axis + 1 < shape.size() ? strides[axis + 1] * shape[axis + 1]
                                              : static_cast<int64_t>(bytes());
  return true;
}

bool Array::isDense() const {
  auto stride = static_cast<int64_t>(bytes());
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != stride)
      return false;
    stride *= shape[axis];
  }
  return true;
}

void Array::gather(uint8_t *to) const {
  int64_t all = elements();
  size_t size = bytes();
  if (all == 0)
    return;
  if (isDense()) {
    std::memcpy(to, data, static_cast<size_t>(all) * size);
    return;
  }
  std::vector<int64_t> index(axes());
  const uint8_t *from = data;
  for (int64_t i = 0; i < all; ++i, to += size) {
    std::memcpy(to, from, size);
    for (size_t axis = axes(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis])
        break;
      from -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
}

Array Array::part(int64_t index) const {
  Array one;
  one.data = data + index * strides[0];
  one.dtype = dtype;
  one.ofTorch_ = ofTorch_;
  one.shape.assign(shape.begin() + 1, shape.end());
  one.strides.assign(strides.begin() + 1, strides.end());
  return one;
}

LentTensor::LentTensor(PyObject *object, const std::string &what) {
  try {
    if (!array_.borrow(object))
      throw Refusal(PyExc_TypeError, "an array belongs here, not " + kindOf(object));
  } catch (const Refusal &refusal) {
    raise(refusal.type, what + ": " + refusal.what());
  }
  const uint8_t *data = array_.data;
  if (!array_.isDense()) {
    gathered_.resize(static_cast<size_t>(array_.elements()) * array_.bytes());
    array_.gather(gathered_.data());
    data = gathered_.data();
  }
  tensor_.data = const_cast<uint8_t *>(data);
  tensor_.device = {kDLCPU, 0};
  tensor_.ndim = static_cast<int32_t>(array_.axes());
  tensor_.dtype = array_.dtype;
  tensor_.shape = array_.shape.data();
}

} // namespace sheaf::python
