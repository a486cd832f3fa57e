//===- LiveTensors.h - Tensors that are needed at one time ------*- C++ -*-===//
//
// Where memory is short a run may compute each record when it is made (Session's planOneByOne), so
// a tensor takes rows from the operation that makes it to the last one that uses it, as the program
// stands. Here is which values these are at each operation of a block; how many tensors they hold,
// SizeWalk says.
//
// A call, and the state of a fold, take what is not used afterwards from whoever hands it to them:
// it is counted inside, as long as it is used there. All else that an operation uses, itself or in
// its regions, is counted outside while it runs.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ANALYSIS_LIVETENSORS_H
#define SHEAF_COMPILER_ANALYSIS_LIVETENSORS_H

#include "mlir/IR/Block.h"

#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace sheaf::passes {

class LiveTensors {
public:
  /// A value that is no tuple, or such a part of one.
  struct Part {
    mlir::Value whole;
    llvm::SmallVector<unsigned, 2> way; ///< fields of tuples, from the outside
    mlir::Type type;
  };

  explicit LiveTensors(mlir::Block &block);

  /// Whether the operation of that number, or one in it, may make tensors.
  bool matters(size_t op) const { return matters_[op]; }
  /// The numbers of the parts that are needed while it runs; of the terminator after all others.
  llvm::ArrayRef<unsigned> at(size_t op) const { return at_[op]; }
  const Part &part(unsigned number) const { return parts_[number]; }

private:
  void add(mlir::Value value, std::vector<unsigned> &parts);
  void add(mlir::Value value, llvm::SmallVector<unsigned, 2> way, mlir::Type type,
           std::vector<unsigned> &parts);

  mlir::Block &block_;
  std::vector<Part> parts_;
  std::vector<bool> matters_;
  std::vector<std::vector<unsigned>> at_;
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_LIVETENSORS_H
