//===- run.h - Work without the GIL -----------------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_RUN_H
#define SHEAF_PYTHON_RUN_H

#include "python/native/raise.h"

#include "runtime/api/handles.h"

#include <functional>
#include <memory>

namespace sheaf::python {

/// A stop of the C interface, held.
using Stop = std::unique_ptr<sheaf_stop, void (*)(sheaf_stop *)>;
Stop makeStop();

} // namespace sheaf::python

#endif // SHEAF_PYTHON_RUN_H
