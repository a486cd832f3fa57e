//===- Place.h - Where something stands in the source -----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_IR_PLACE_H
#define SHEAF_COMPILER_IR_PLACE_H

#include "mlir/IR/Location.h"

#include <string>

namespace sheaf::ir {

/// `file:line` of a location, or `?`.
std::string placeOf(mlir::Location loc);
/// Of the same place; 0 where there is none.
int64_t columnOf(mlir::Location loc);

} // namespace sheaf::ir

#endif // SHEAF_COMPILER_IR_PLACE_H
