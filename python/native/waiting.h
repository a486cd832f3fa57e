//===- waiting.h - Work without the GIL, and signals ------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_WAITING_H
#define SHEAF_PYTHON_NATIVE_WAITING_H

#include "python/native/raise.h"

#include <functional>
#include <memory>

namespace sheaf::python {

/// Lets other threads of Python run. When the interpreter has ended meanwhile, the thread stays
/// here, as it does in Python 3.14; before, Python ends it, and with frames of C++ on it the
/// process.
class Unlocked {
public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked &) = delete;

private:
  PyThreadState *state_;
};

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

#endif // SHEAF_PYTHON_NATIVE_WAITING_H
