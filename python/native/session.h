//===- session.h - Running --------------------------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_SESSION_H
#define SHEAF_PYTHON_NATIVE_SESSION_H

#include "python/native/model.h"
#include "python/native/values.h"
#include "python/native/waiting.h"

#include <memory>

namespace sheaf::python {

/// A run and all that it uses. It may outlive the call, when that is interrupted.
struct Running {
  explicit Running(const std::shared_ptr<const api::LoadedModel> &model) : batch(model) {}
  ~Running() { sheaf_result_release(result); }
  Running(const Running &) = delete;

  void run() noexcept;

  std::shared_ptr<sheaf_session> session;
  sheaf_batch batch;
  uint64_t step = 0; ///< of a training, that draws follow from
  Stop stop;
  sheaf_result *result = nullptr;
  sheaf_status status = SHEAF_OK;
  std::string message;
  double nanoseconds = 0;
};

/// A session of one model. After a fork the child's makes itself anew, with the model's weights.
class Session {
public:
  Session(Model &model, const sheaf_session_options &options);

  /// Runs the instances of columns, or of Values alone. With `each` what fails is in the list, else
  /// it is raised.
  nb::object run(nb::handle columns, bool each);
  /// The instances of columns, or of Values alone, as a run that has not begun.
  std::shared_ptr<Running> prepare(nb::handle columns);
  /// Runs them and keeps all that there is to go back from. `step`: of a training, from 1.
  std::shared_ptr<Running> runKept(nb::handle columns, uint64_t step);
  /// The session's weights by name, as arrays that may only be read. Views, which keep it alive.
  /// Where they are `writable`, weightsWritten() comes after writing and before the next run.
  nb::dict parameters(bool writable);
  void weightsWritten();
  /// Copies arrays into weights, by name; what has no weight of its name here is passed by.
  void setWeights(const nb::dict &arrays);

  Model &model() const { return model_; }
  /// Of this process.
  const std::shared_ptr<sheaf_session> &handle();

  /// What the C interface took for the last run, of all that a call is; for measuring.
  double lastRun() const { return lastRun_; }

  /// In the child of a fork.
  static void noteFork();

private:
  void open();
  void runBatch(const std::shared_ptr<Running> &running);

  Model &model_; ///< Python keeps it
  sheaf_session_options options_;
  std::shared_ptr<sheaf_session> session_;
  unsigned generation_; ///< of forks
  /// What an instance took in the last two runs: short runs stay in the thread of the caller.
  double lastRun_ = 0;
  double lastNanoseconds_ = 1e12, nanosecondsBefore_ = 1e12;
};

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_SESSION_H
