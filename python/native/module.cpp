// The extension `sheaf._native`: private, sheaf/*.py is what users see.
#include "python/native/gradients.h"
#include "python/native/model.h"
#include "python/native/values.h"

NB_MODULE(_native, module) {
  // What lives until the end of the process is no leak worth a message to users.
  nanobind::set_leak_warnings(false);
  sheaf::python::bindModel(module);
  sheaf::python::bindValues(module);
  sheaf::python::bindSession(module);
  sheaf::python::bindCompile(module);
  sheaf::python::bindGradients(module);
  sheaf::python::bindTraining(module);
  module.attr("version") = sheaf_version();
}
