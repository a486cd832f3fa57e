//===- RecordFlow.h - Which records make which tensors ----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_RECORDFLOW_H
#define SHEAF_COMPILER_ANALYSIS_RECORDFLOW_H

#include "compiler/ir/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <vector>

namespace sheaf::passes {

/// A place where host code records: a `sheaf.record`, or one of the blocks that an operator over a
/// list (`stack`) records by itself.
struct RecordSite {
  mlir::Operation *op = nullptr;
  /// `sheaf.copy` or `sheaf.arrange` of an operator over a list; empty for a `sheaf.record`.
  llvm::StringRef role;
  mlir::FlatSymbolRefAttr block;
  mlir::ArrayAttr weights;
};

/// For a module with blocks: which sites may have made the tensors of each value. A value that
/// holds several (a list, a tuple, a data value) is one place for all of them. Does not depend on
/// the order of operations; a function's arguments stand for those of all its calls.
class RecordFlow {
public:
  /// `withFolded`: the function that computes what follows from weights (ir::kFoldedAttr) has a
  /// part in it.
  explicit RecordFlow(mlir::ModuleOp module, bool withFolded = false);

  const std::vector<RecordSite> &sites() const { return sites_; }

  /// Bit i: site i. The last three bits: rows that are there before anything is recorded, of
  /// constants, of parameters, and of the entry's arguments.
  const llvm::BitVector &makers(mlir::Value value) const;
  bool isSite(unsigned bit) const { return bit < sites_.size(); }

  /// The makers of each tensor that a record of the site takes.
  const std::vector<llvm::BitVector> &arguments(unsigned site) const { return arguments_[site]; }

  /// For each site the sites whose records one of its own may depend on, directly or not; itself
  /// when it is part of a recursion.
  std::vector<llvm::BitVector> closure() const;

  /// For each site whether a `sheaf.read`, or in a program that reads a `sheaf.emit`, may depend on
  /// what its kernel, the block with these weights, computes there or elsewhere.
  llvm::BitVector demanded() const;

  /// For each block that is recorded: whether each of its arguments may depend on a parameter,
  /// or on an argument of the entry, however little (derivatives that are zero count). Ints and
  /// tensors of ints never do.
  llvm::StringMap<llvm::BitVector> onParameters(bool orOnArguments) const;

private:
  unsigned constantBit() const { return sites_.size(); }
  unsigned paramBit() const { return sites_.size() + 1; }
  unsigned argumentBit() const { return sites_.size() + 2; }
  bool isTrainable(mlir::FlatSymbolRefAttr param) const;
  void forEachFunction(llvm::function_ref<void(mlir::func::FuncOp)> visit);
  void findSites();
  void visit(mlir::Operation *op);
  void visitLoop(mlir::Operation *op);
  unsigned numberOf(mlir::Value value);
  void add(mlir::Value value, unsigned maker);
  void pass(mlir::ValueRange sources, mlir::ValueRange values);
  void solve();
  void takeArguments();

  mlir::ModuleOp module_;
  bool withFolded_;
  mlir::SymbolTable symbols_;
  llvm::DenseSet<mlir::Attribute> folded_; ///< parameters that follow from others
  std::vector<RecordSite> sites_;
  llvm::DenseMap<mlir::Operation *, unsigned> firstSite_; ///< of an operation
  llvm::DenseMap<mlir::Value, unsigned> numbers_;         ///< of values that may hold tensors
  std::vector<std::vector<unsigned>> sources_;       ///< the values whose tensors each may hold
  std::vector<std::pair<unsigned, unsigned>> added_; ///< values and makers of their own
  std::vector<unsigned> component_;                  ///< values that hold each other's tensors
  std::vector<llvm::BitVector> makers_;              ///< of each component
  std::vector<std::vector<llvm::BitVector>> arguments_;
  llvm::BitVector none_;
};

/// Whether values of the type may hold tensors.
bool mayHoldTensors(mlir::Type type);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_RECORDFLOW_H
