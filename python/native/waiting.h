//===- waiting.h - Work without the GIL, and signals ------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_WAITING_H
#define SHEAF_PYTHON_WAITING_H

#include "python/native/raise.h"

#include <functional>
#include <memory>

namespace sheaf::python {

/// A stop of the C interface, shared.
using Stop = std::shared_ptr<sheaf_stop>;
Stop makeStop();

/// Whether this thread is the one to which Python tells signals.
bool tellsSignals();

/// Runs work without the GIL. In the thread that is told of signals it runs on another one, kept
/// for this, while this one looks for signals: Ctrl-C requests the stop and throws
/// KeyboardInterrupt, when the work has ended or has been given a moment to. So all that it uses
/// must be its own. `work` must not throw.
void runWaiting(std::function<void()> work, const Stop &stop);

/// Waits for work that was interrupted and has not ended; before the interpreter goes.
void finishWaiting();
/// In the child of a fork: its threads are not there.
void forgetThreads();

} // namespace sheaf::python

#endif // SHEAF_PYTHON_WAITING_H
