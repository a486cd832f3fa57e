//===- LongFunctions.h - Functions that LLVM would take long for -*- C++ -*-===//
//
// Some of LLVM's passes take time that is quadratic in the length of a block or in the number of
// blocks, and what a program says in one function comes as one.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_CODEGEN_LONGFUNCTIONS_H
#define SHEAF_COMPILER_CODEGEN_LONGFUNCTIONS_H

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"

namespace sheaf::driver {

/// Says which of the code generator's passes run. To be set as the gate of a module's context until
/// its code is made.
class LongFunctions : public llvm::OptPassGate {
public:
  /// `leaveOut`: a pass that runs for no function at all; may be empty.
  explicit LongFunctions(llvm::StringRef leaveOut) : leaveOut_(leaveOut) {}

  /// Divides the long blocks of the long functions of host code; the passes that would put them
  /// together again, or take long, leave them. Not of kernels: what goes from one block to the next
  /// has a type that the processor has, and there are vectors of others.
  void divide(llvm::Module &host);

  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef description) const override;

private:
  llvm::StringRef leaveOut_;
  llvm::StringSet<> descriptions_; ///< of long functions, as passes describe them
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_CODEGEN_LONGFUNCTIONS_H
