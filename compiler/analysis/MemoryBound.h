//===- MemoryBound.h - What an instance takes at most -----------*- C++ -*-===//
//
// A program with blocks is walked as its host code walks an instance, with bounds instead of
// values: lengths, extents and ints as polynomials over the sizes of the entry's arguments. A
// branch that cannot be decided is both of its ways; a loop is its body as often as its list is
// long; a recursion over data is its body for every node. What that does not bound has a symbol of
// its own, which says where and why.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ANALYSIS_MEMORYBOUND_H
#define SHEAF_COMPILER_ANALYSIS_MEMORYBOUND_H

#include "compiler/analysis/SizeValue.h"
#include "compiler/ops/Dim.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <vector>

namespace sheaf::passes {

/// What each record of a kernel reserves, and what of it needs memory only while it runs.
struct RecordMemory {
  struct Tensor {
    std::vector<Dim> shape; ///< of the record's words: `0.1` is axis 1 of argument 0, `2` an int
    int64_t elementBytes = 0;
  };
  std::vector<Tensor> results, temporaries;
};

/// The kernels that host code records.
struct RecordingKernels {
  std::vector<RecordMemory> kernels;
  /// The number of what an operation records; `role` as in RecordSite.
  std::function<unsigned(mlir::Operation *op, llvm::StringRef role)> numberOf;
};

/// What an instance makes of a kernel's records.
struct KernelUse {
  Bound records;
  Bound rowBytes;    ///< results of all of them
  Bound tableBytes;  ///< tables of the lists that they take
  Bound scratch;     ///< temporaries of the neediest
  Bound largest;     ///< bytes of the results of one record, or of what several write into
  bool exact = true; ///< each has as many
};

struct MemoryUseBound {
  std::map<unsigned, KernelUse> kernels; ///< by number
  Bound grownBytes;                      ///< rows of tensors that grow
  Bound heapBytes;                       ///< lists, data and copies of arguments
  Bound frames;                          ///< of the recursion, at one time

  /// Tensors that are needed at one time if each record runs when it is made (LiveTensors.cpp):
  /// of all, and beside what a recursion that is looked at takes for the calls in it.
  Bound live, open;
  bool callsItself = false; ///< there are such calls

  /// What all turns of a loop or of a recursion take together for what they make longer in place
  /// (Growth.h), beside what each turn takes: of loops that are not at their end.
  struct AllTurns {
    Bound grownBytes, heapBytes;
  };
  using Turns = std::map<mlir::Operation *, AllTurns>; ///< by the operation that makes it longer
  std::map<mlir::Operation *, Turns> turns;            ///< by the loop or function
};

struct MemoryBound {
  SizeSymbols symbols;
  MemoryUseBound use;
  Bound inputBytes; ///< rows of the tensors among the arguments
  Bound results;    ///< tensors in what it gives
};

/// Of one instance of a function of the module. A module with blocks, after the passes. With `most`
/// of instances whose sizes of these names are no larger alone: branches that others take are left
/// out.
MemoryBound boundMemory(mlir::ModuleOp module, llvm::StringRef entry,
                        const RecordingKernels &kernels,
                        const std::map<std::string, double> &most = {});

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_MEMORYBOUND_H
