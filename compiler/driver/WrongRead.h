//===- WrongRead.h - Whether what was read could be read --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_WRONGREAD_H
#define SHEAF_COMPILER_DRIVER_WRONGREAD_H

#include "compiler/oracle/Replay.h"
#include "runtime/model.h"

#include <span>
#include <string>

namespace sheaf::driver {

/// The first number that a replayed run of the oracle found too far from what the compiled program
/// read, with its place, in words; nothing if all are near enough. `allowed`: of each of
/// Replay::reads(), or one for all.
std::string wrongRead(const rt::Model &model, const oracle::Replay &replay,
                      std::span<const double> allowed);
/// And then the first read of the log that the run did not come to, if it ended well.
std::string wrongOrMissingRead(const rt::Model &model, const oracle::Replay &replay,
                               double allowed);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_WRONGREAD_H
