#include "python/native/scalars.h"

#include <cstring>

namespace sheaf::python {

namespace {

int64_t ofLong(PyObject *object) {
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow)
    throw Refusal(PyExc_OverflowError, "an int of more than 64 bits");
  if (value == -1 && PyErr_Occurred())
    throw nb::python_error();
  return value;
}

} // namespace

int64_t toIntSlow(PyObject *object) {
  if (PyLong_Check(object))
    return ofLong(object);
  // NumPy's ints, and all that is an index; arrays of more than one element are none.
  if (!PyIndex_Check(object))
    throw Refusal(PyExc_TypeError, "an int belongs here, not " + kindOf(object));
  nb::object number = nb::steal(PyNumber_Index(object));
  if (!number.is_valid()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
      throw nb::python_error();
    PyErr_Clear();
    throw Refusal(PyExc_TypeError, "an int belongs here, not " + kindOf(object));
  }
  return ofLong(number.ptr());
}

double toFloat(PyObject *object) {
  if (PyFloat_Check(object))
    return PyFloat_AS_DOUBLE(object);
  PyNumberMethods *methods = Py_TYPE(object)->tp_as_number;
  if (!methods || (!methods->nb_float && !methods->nb_index))
    throw Refusal(PyExc_TypeError, "a float belongs here, not " + kindOf(object));
  double value = PyFloat_AsDouble(object);
  if (value != -1.0 || !PyErr_Occurred())
    return value;
  if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
    PyErr_Clear();
    throw Refusal(PyExc_OverflowError, "an int that is too large for a float");
  }
  if (PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    throw Refusal(PyExc_TypeError, "a float belongs here, not " + kindOf(object));
  }
  throw nb::python_error();
}

bool isNumpyBool(PyObject *object) {
  const char *name = Py_TYPE(object)->tp_name;
  return std::strcmp(name, "numpy.bool_") == 0 || std::strcmp(name, "numpy.bool") == 0;
}

bool toBool(PyObject *object) {
  if (object == Py_True)
    return true;
  if (object == Py_False)
    return false;
  if (!isNumpyBool(object))
    throw Refusal(PyExc_TypeError, "a bool belongs here, not " + kindOf(object));
  int truth = PyObject_IsTrue(object);
  if (truth < 0)
    throw nb::python_error();
  return truth != 0;
}

} // namespace sheaf::python
