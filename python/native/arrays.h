//===- arrays.h - Arrays of other libraries ---------------------*- C++ -*-===//
//
// By the buffer protocol, as NumPy has it, or by DLPack, as PyTorch does. What is lent is only
// read, and given back when the object here ends.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_PYTHON_NATIVE_ARRAYS_H
#define SHEAF_PYTHON_NATIVE_ARRAYS_H

#include "python/native/raise.h"

#include "sheaf/dlpack.h"

#include <span>
#include <vector>

namespace sheaf::python {

class Array {
public:
  Array() = default;
  ~Array() { release(); }
  Array(const Array &) = delete;
  Array(Array &&other) noexcept { *this = std::move(other); }
  Array &operator=(Array &&other) noexcept;

  /// Borrows the elements of an object. False when it is no array. Throws Refusal for one that
  /// cannot be read here: of another device, of elements that no tensor has, in the other byte
  /// order.
  bool borrow(PyObject *object);

  const uint8_t *data = nullptr;
  DLDataType dtype{};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; ///< in bytes

  size_t axes() const { return shape.size(); }
  size_t bytes() const { return dtype.bits / 8; }
  int64_t elements() const {
    int64_t all = 1;
    for (int64_t extent : shape)
      all *= extent;
    return all;
  }
  /// Whether the elements lie row by row without gaps.
  bool isDense() const;
  /// Copies them so.
  void gather(uint8_t *to) const;
  /// The part at `index` of the first axis, which this one must outlive.
  Array part(int64_t index) const;
  /// The type of its elements, as NumPy calls it.
  std::string elementName() const { return nameOf(dtype); }
  static std::string nameOf(DLDataType dtype);
  bool isOfTorch() const { return ofTorch_; }

private:
  bool borrowBuffer(PyObject *object);
  bool borrowDlpack(PyObject *object);
  void release();

  Py_buffer buffer_{};
  bool holdsBuffer_ = false, ofTorch_ = false;
  nb::object capsule_;
};

/// An object's elements as the C interface takes a tensor, dense, while this one lives.
class LentTensor {
public:
  /// Throws nb::python_error, which begins with `what`, for an object that is no array.
  LentTensor(PyObject *object, const std::string &what);
  LentTensor(const LentTensor &) = delete;

  const DLTensor *get() const { return &tensor_; }

private:
  Array array_;
  std::vector<uint8_t> gathered_;
  DLTensor tensor_{};
};

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_ARRAYS_H
