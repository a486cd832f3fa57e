//===- raise.h - Errors on their way to Python ------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_RAISE_H
#define SHEAF_PYTHON_NATIVE_RAISE_H

#include "sheaf/sheaf.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

namespace sheaf::python {

namespace nb = nanobind;

/// Why an object is no value of a type: becomes a Python exception of this class, which also says
/// where the object was found.
class Refusal : public std::runtime_error {
public:
  Refusal(PyObject *type, const std::string &why) : std::runtime_error(why), type(type) {}
  PyObject *type; ///< one of Python's own classes
};

/// Throws a Python exception.
[[noreturn]] void raise(PyObject *type, const std::string &message);
/// The class `name` of sheaf.errors.
nb::object errorClass(const char *name);
/// Throws what the C interface failed with, as the exception that fits.
void check(sheaf_status status);
[[noreturn]] void raiseStatus(sheaf_status status, const std::string &message);

/// An object that was made, or what Python says against it.
inline nb::object owned(PyObject *object) {
  if (!object)
    throw nb::python_error();
  return nb::steal(object);
}

/// "list", "numpy.ndarray": how messages call what an object is.
std::string kindOf(PyObject *object);
/// A text that Python has, which may hold lone surrogates.
std::string textOf(PyObject *text);

/// Adds a note to the exception that is being thrown.
void addNote(nb::python_error &error, const std::string &note);

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_RAISE_H
