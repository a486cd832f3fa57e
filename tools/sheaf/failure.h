//===- failure.h - What a report says is wrong ------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_FAILURE_H
#define SHEAF_TOOLS_SHEAF_FAILURE_H

#include <string>

namespace sheaf::tool {

/// The environment variable that names the file of tellFailure().
inline constexpr const char *kFailureFile = "SHEAF_FAILURE_FILE";

/// Of commands whose reports go to standard output, as text or JSON: leaves the reason for exit
/// code 1 to `sheaf reduce`, which keeps what fails for the same one. Does nothing when it is not
/// `sheaf reduce` that runs the command.
void tellFailure(const std::string &what);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_FAILURE_H
