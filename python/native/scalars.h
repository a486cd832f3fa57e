//===- scalars.h - Numbers of Python ----------------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_SCALARS_H
#define SHEAF_PYTHON_NATIVE_SCALARS_H

#include "python/native/raise.h"

#include <cstdint>

namespace sheaf::python {

/// They throw Refusal, or nb::python_error when the object's own code fails. What is no plain
/// number of Python may run such code.
int64_t toIntSlow(PyObject *object);
double toFloat(PyObject *object);
bool toBool(PyObject *object);
/// Whether an object is one of NumPy's truth values.
bool isNumpyBool(PyObject *object);

/// Whether an int has one digit, which is then its value.
inline bool isSmallInt(PyObject *object, int64_t &value) {
  if (Py_TYPE(object) != &PyLong_Type)
    return false;
#if PY_VERSION_HEX < 0x030c0000
  Py_ssize_t size = Py_SIZE(object);
  if (size < -1 || size > 1)
    return false;
  value = size * static_cast<int64_t>(reinterpret_cast<PyLongObject *>(object)->ob_digit[0]);
  return true;
#else
  auto *number = reinterpret_cast<PyLongObject *>(object);
  if (!PyUnstable_Long_IsCompact(number))
    return false;
  value = PyUnstable_Long_CompactValue(number);
  return true;
#endif
}

inline int64_t toInt(PyObject *object) {
  int64_t value;
  return isSmallInt(object, value) ? value : toIntSlow(object);
}

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_SCALARS_H
