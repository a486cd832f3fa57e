//===- KnownValues.h - Taking apart what was put together -------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_KNOWNVALUES_H
#define SHEAF_COMPILER_ANALYSIS_KNOWNVALUES_H

#include "compiler/ir/Program.h"

#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace sheaf::passes {

/// The number that a host int is, when it is a constant.
std::optional<int64_t> intConstant(mlir::Value value);

/// Rewrites of values that were made on the spot: a match on a construct takes one arm, an element
/// of a list is what it was made of, and so on. Loops over lists that hold parameters are written
/// out, so that each turn has its own.
void populateKnownValuePatterns(mlir::RewritePatternSet &patterns);

/// Whether a function makes a tuple, a list or a value of a data type that holds a parameter.
bool makesOfParams(mlir::Operation *function);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_KNOWNVALUES_H
