//===- invalid_argument.h - What cannot be asked for ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_INVALID_ARGUMENT_H
#define SHEAF_RUNTIME_SESSION_INVALID_ARGUMENT_H

#include "runtime/model/error.h"

namespace sheaf::rt {

/// What is given does not go with what it is given to, however much memory there is.
class InvalidArgument : public UserError {
public:
  using UserError::UserError;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_INVALID_ARGUMENT_H
