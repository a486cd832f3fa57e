//===- run.h - A mini-batch that was put aside ------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_RUN_H
#define SHEAF_RUNTIME_SESSION_RUN_H

#include "runtime/model/value.h"

#include <memory>
#include <span>

namespace sheaf::rt {

/// A mini-batch whose results, records and rows stay until this is destroyed, whatever its session
/// runs meanwhile (Session::putAside). What it takes counts against the session's memory limit. It
/// is used and destroyed as its session is, by one thread at a time, and before it.
class Run {
public:
  ~Run();
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  /// As Session::run() gave them; Session::tensor() gives their tensors.
  std::span<const Outcome> outcomes() const;
  /// As Session::arguments().
  const Slot *arguments(size_t instance) const;

private:
  friend class Session;
  struct Impl;
  explicit Run(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_RUN_H
