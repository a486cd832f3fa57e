//===- Place.cpp - Where something stands in the source -------------------===//

#include "compiler/ir/Place.h"

#include "mlir/IR/Visitors.h"

using namespace mlir;

namespace sheaf::ir {

/// Null when nothing of a location is in a file.
static FileLineColLoc fileOf(Location loc) {
  FileLineColLoc found;
  loc->walk([&](Location inner) {
    found = dyn_cast<FileLineColLoc>(inner);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

std::string placeOf(Location loc) {
  FileLineColLoc file = fileOf(loc);
  return file ? file.getFilename().str() + ":" + std::to_string(file.getLine()) : "?";
}

int64_t columnOf(Location loc) {
  FileLineColLoc file = fileOf(loc);
  return file ? file.getColumn() : 0;
}

} // namespace sheaf::ir
