//===- Needs.h - Which values of a Program something takes ------*- C++ -*-===//
//
// From the results of an entry and from `check`s backwards, through functions, loops, branches,
// tuples, lists and data. docs/language.md says the rule ("What is computed").
//
// Of a value, parts are needed by themselves: a bit for each field of a tuple that is no tuple, one
// for the length of a list and those of its elements, one for a data value. Fields of data are
// needed for all values of the type alike. What one call of a function that may call itself takes,
// all its calls take; other functions are looked at for each set of parts that a call takes.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_PASSES_NEEDS_H
#define SHEAF_COMPILER_PASSES_NEEDS_H

#include "compiler/analysis/CallGraph.h"
#include "compiler/ir/Program.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace sheaf::passes {

class Needs {
public:
  /// The parts of a value that are needed, in order.
  using Parts = llvm::BitVector;

  /// A function as calls that take the same parts of its results see it.
  struct Instance {
    mlir::func::FuncOp func;
    /// The place in the queue: callees come before callers, in each the first that was asked for.
    std::pair<unsigned, unsigned> turn;
    std::vector<Parts> results;
    std::vector<Parts> arguments;
    llvm::DenseMap<mlir::Value, Parts> values;
    /// Checks that count where what they guard is needed, by number.
    llvm::DenseSet<int64_t> guards;
    /// Operations with something inside that happens whoever takes the result.
    llvm::DenseSet<mlir::Operation *> effects;
    llvm::SetVector<std::pair<Instance *, mlir::Operation *>> callers; ///< and the calls
    /// The operations, those around before those inside, and which are to be looked at (again).
    std::vector<mlir::Operation *> order;
    llvm::DenseMap<mlir::Operation *, unsigned> places;
    std::set<unsigned> pending;
    llvm::DenseMap<int64_t, std::vector<mlir::Operation *>> checks; ///< by their guards
  };

  /// Begins with the public functions. `canBeLeftOut`: whether there is something to stand in for a
  /// value of this type that nothing takes.
  Needs(mlir::ModuleOp module, std::function<bool(mlir::Type)> canBeLeftOut);

  /// The instances that run, those of public functions first.
  std::vector<Instance *> instances() const;
  /// Whether the operation is computed.
  bool isLive(const Instance &instance, mlir::Operation *op) const;
  /// Whether the operation, which is live, takes something of an operand.
  bool takes(Instance &instance, mlir::OpOperand &operand);
  Instance &callee(mlir::func::CallOp call, const Instance &instance);

private:
  using Take = llvm::function_ref<void(mlir::OpOperand &, Parts)>;

  unsigned size(mlir::Type type) const;
  Parts none(mlir::Type type) const { return Parts(size(type)); }
  Parts all(mlir::Type type) const { return Parts(size(type), true); }
  static Parts slice(const Parts &parts, unsigned begin, unsigned size);
  Parts elementOf(const Parts &list) const { return slice(list, 1, list.size() - 1); }
  Parts listOf(const Parts &element) const;
  Parts needOf(const Instance &instance, mlir::Value value) const;
  /// What is needed of a field of data, and who looks at that.
  struct Field {
    Parts parts;
    llvm::SetVector<std::pair<Instance *, mlir::Operation *>> users;
  };
  Field &fieldOf(mlir::Type data, int64_t ctor, unsigned field);

  Instance &instanceOf(mlir::func::FuncOp func, const std::vector<Parts> &results);
  void queue(Instance &instance, mlir::Operation *op);
  void queueAll(llvm::ArrayRef<std::pair<Instance *, mlir::Operation *>> users);
  void queueWithYields(Instance &instance, mlir::Operation *op);
  void analyse(Instance &instance);
  void visit(Instance &instance, mlir::Operation *op);
  void add(Instance &instance, mlir::Value value, const Parts &parts);
  void takeAll(mlir::Type type);
  /// What an operation takes of its operands.
  void forEachTaken(Instance &instance, mlir::Operation *op, Take take);
  void yieldTakes(Instance &instance, mlir::Operation *yield, Take take);

  mlir::SymbolTable symbols_;
  CallGraph calls_;
  llvm::DenseMap<mlir::Operation *, unsigned> ranks_; ///< of functions: callees come first
  std::function<bool(mlir::Type)> canBeLeftOut_;
  llvm::DenseSet<mlir::Operation *> mustRun_; ///< functions with a check, directly or in others
  mutable llvm::DenseMap<mlir::Type, unsigned> sizes_;
  std::map<std::pair<mlir::Operation *, std::vector<std::vector<bool>>>, std::unique_ptr<Instance>>
      instances_;
  std::vector<Instance *> roots_;
  std::map<std::tuple<const void *, int64_t, unsigned>, Field> fields_;
  llvm::DenseSet<mlir::Type> whole_;
  std::map<std::pair<unsigned, unsigned>, Instance *> queue_; ///< by their turns
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_NEEDS_H
