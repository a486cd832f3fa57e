//===- Pass.h - What a pass over Programs is --------------------*- C++ -*-===//
//
// A pass is a record: its name, what it does in one paragraph, and a function over the module.
// Every pass runs through `runPass`, which honours the off-switch, takes the time, gathers the
// remarks and verifies the result.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_PASSES_PASS_H
#define SHEAF_COMPILER_PASSES_PASS_H

#include "compiler/ir/Switch.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"

#include "llvm/ADT/Twine.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::passes {

/// What a pass did, or did not do and why, at a place of the source.
struct Remark {
  mlir::Location where;
  std::string text;
};

/// What may still stand in a module, from the most liberal to the strictest.
enum class Level {
  Program, ///< everything the front end makes
  Plain,   ///< no operator with an Expand rule
  Blocks   ///< tensor code stands in blocks only; functions hold records
};

/// What a running pass is given beside the module.
struct PassContext {
  /// Names of passes and switches that are off.
  const std::set<std::string> &without;
  std::vector<Remark> &remarks;

  bool isOff(std::string_view name) const { return without.contains(std::string(name)); }
  void remark(mlir::Location where, const llvm::Twine &text) {
    remarks.push_back({where, text.str()});
  }
};

using ir::Switch;

struct PassRecord {
  std::string_view name;
  std::string_view description;
  /// Changes the module. On failure a diagnostic has been emitted.
  mlir::LogicalResult (*run)(mlir::ModuleOp, PassContext &);
  /// Later stages need it: it cannot be switched off.
  bool required = false;
  /// What the module must satisfy when all passes up to this one ran.
  Level after = Level::Program;
  std::vector<Switch> switches = {}; ///< of its parts
};

/// What one run of a pass was.
struct PassReport {
  std::string name;
  bool skipped = false; ///< switched off
  double ms = 0;
  std::vector<Remark> remarks;
};

/// Runs one pass with timing and verification; does nothing but say so when it is off.
mlir::LogicalResult runPass(const PassRecord &pass, mlir::ModuleOp module,
                            const std::set<std::string> &without, PassReport &report);

/// Fails with diagnostics when something stands in the module that the level does not allow.
mlir::LogicalResult verifyLevel(mlir::ModuleOp module, Level level);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_PASS_H
