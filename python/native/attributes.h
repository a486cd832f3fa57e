//===- attributes.h - Where plain objects have attributes -------*- C++ -*-===//
//
// Objects of a class without slots have the values of their attributes in an array, by places that
// are the class's, until something asks for their __dict__. Reading them there is twice as fast as
// asking for the attribute. It is no interface of Python's: each version has them elsewhere, so it
// is done in those that are known here, and only there.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_PYTHON_NATIVE_ATTRIBUTES_H
#define SHEAF_PYTHON_NATIVE_ATTRIBUTES_H

#include "python/native/raise.h"

namespace sheaf::python {

/// Words that Python has of an object before its address, the first of them that of its values.
inline constexpr ptrdiff_t kWordsBefore = 4;

/// Which of the values of its objects a class has under a name; -1: that is not known. It stays as
/// long as the class is there.
Py_ssize_t valuePlace(PyTypeObject *type, PyObject *name);

/// The value at a place of an object whose class has it, or null: it is asked for the attribute.
inline PyObject *valueAt([[maybe_unused]] PyObject *object, [[maybe_unused]] Py_ssize_t place) {
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
  PyObject **values = reinterpret_cast<PyObject ***>(object)[-kWordsBefore];
  return values ? values[place] : nullptr;
#else
  return nullptr;
#endif
}

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_ATTRIBUTES_H
