//===- session.h - Running --------------------------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_SESSION_H
#define SHEAF_PYTHON_SESSION_H

#include "python/native/model.h"

#include <memory>

namespace sheaf::python {

class Session {
public:
  Session(Model &model, const sheaf_session_options &options);

  /// Runs the instances of columns. With `each` what fails is in the list, else it is raised.
  nb::object run(nb::handle columns, bool each);
  /// The session's weights by name, as arrays that may only be read. Views, which keep it alive.
  nb::dict parameters(nb::handle self);

private:
  std::shared_ptr<sheaf_result> runBatch(sheaf_batch &batch);

  Model &model_; ///< Python keeps it
  std::shared_ptr<sheaf_session> session_;
};

} // namespace sheaf::python

#endif // SHEAF_PYTHON_SESSION_H
