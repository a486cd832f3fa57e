//===- failure.cpp - What a report says is wrong --------------------------===//
#include "tools/sheaf/failure.h"

#include "runtime/io/output.h"

#include <cstdlib>

namespace sheaf::tool {

void tellFailure(const std::string &what) {
  if (const char *file = std::getenv(kFailureFile); file && *file)
    io::writeFile(file, what + "\n");
}

} // namespace sheaf::tool
