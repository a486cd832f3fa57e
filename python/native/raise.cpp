#include "python/native/raise.h"

namespace sheaf::python {

void raise(PyObject *type, const std::string &message) {
  // Messages quote what is in files; what is no UTF-8 shows as such.
  PyObject *text = PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()),
                                        "backslashreplace");
  if (text) {
    PyErr_SetObject(type, text);
    Py_DECREF(text);
  }
  throw nb::python_error();
}

nb::object errorClass(const char *name) { return nb::module_::import_("sheaf.errors").attr(name); }

void raiseStatus(sheaf_status status, const std::string &message) {
  switch (status) {
  case SHEAF_NOT_READABLE:
    // The errno is in the text only; what is not there is what is met most.
    raise(message.find("No such file") != std::string::npos ? PyExc_FileNotFoundError
                                                            : PyExc_OSError,
          message);
  case SHEAF_NOT_AN_ARTEFACT:
  case SHEAF_DAMAGED:
  case SHEAF_NEWER:
  case SHEAF_OTHER_MACHINE:
  case SHEAF_DIGEST:
    raise(errorClass("ArtefactError").ptr(), message);
  case SHEAF_NO_MEMORY:
    raise(PyExc_MemoryError, message);
  case SHEAF_NO_COMPILER:
    raise(errorClass("CompilerMissing").ptr(), message);
  case SHEAF_INTERNAL:
    raise(errorClass("InternalError").ptr(), message);
  case SHEAF_STOPPED:
    raise(errorClass("Stopped").ptr(), message);
  default:
    raise(PyExc_ValueError, message);
  }
}

void check(sheaf_status status) {
  if (status != SHEAF_OK)
    raiseStatus(status, sheaf_error_message());
}

std::string kindOf(PyObject *object) {
  if (object == Py_None)
    return "None";
  nb::object type = nb::borrow(reinterpret_cast<PyObject *>(Py_TYPE(object)));
  std::string name = Py_TYPE(object)->tp_name;
  PyObject *module = PyObject_GetAttrString(type.ptr(), "__module__");
  if (!module)
    PyErr_Clear();
  nb::object holder = nb::steal(module);
  // Builtin types of extensions have the module in their names.
  if (module && PyUnicode_Check(module) && name.find('.') == std::string::npos) {
    std::string of = textOf(module);
    if (of != "builtins" && of != "__main__")
      name = of + "." + name;
  }
  return name;
}

std::string textOf(PyObject *text) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) {
    PyErr_Clear();
    return "?";
  }
  return std::string(PyBytes_AS_STRING(bytes.ptr()),
                     static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())));
}

void addNote(nb::python_error &error, const std::string &note) {
  PyObject *value = error.value().ptr();
  nb::object done = nb::steal(PyObject_CallMethod(value, "add_note", "s", note.c_str()));
  if (!done.is_valid())
    PyErr_Clear();
}

} // namespace sheaf::python
