//===- failure.h - Instances that failed, as structs ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_FAILURE_H
#define SHEAF_RUNTIME_API_FAILURE_H

#include "runtime/api/handles.h"
#include "runtime/model/error.h"

#include <optional>
#include <string>
#include <utility>

namespace sheaf::api {

sheaf_cause causeOf(RunError::Cause cause);

FailedAt failedAt(const RunError &error);

/// An instance that failed, for sheaf_failure to point into.
struct FailedInstance {
  FailedInstance(const RunError &error, std::string place)
      : error(error), at(failedAt(error)), place(std::move(place)) {}

  RunError error;
  FailedAt at;
  std::string place; ///< where it was read; empty: not known
};

/// What it points to must stay. `text`: RunError::message().
sheaf_failure failureOf(const std::string &text, sheaf_cause cause, const FailedAt &at,
                        const std::string &place = {});
/// Without one: no instance has failed.
sheaf_failure failureOf(const std::optional<FailedInstance> &failed);

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_FAILURE_H
