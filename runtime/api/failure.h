//===- failure.h - Instances that failed, as structs ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_FAILURE_H
#define SHEAF_RUNTIME_API_FAILURE_H

#include "runtime/api/handles.h"
#include "runtime/model/error.h"

#include <string>

namespace sheaf::api {

sheaf_cause causeOf(RunError::Cause cause);

FailedAt failedAt(const RunError &error);

/// `text`: RunError::message(), which must stay, as `at` and `place` must. `place`: where the
/// instance was read; empty: not known.
sheaf_failure failureOf(const std::string &text, sheaf_cause cause, const FailedAt &at,
                        const std::string &place = {});

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_FAILURE_H
