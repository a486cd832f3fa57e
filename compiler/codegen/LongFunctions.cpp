//===- LongFunctions.cpp --------------------------------------------------===//

#include "compiler/codegen/LongFunctions.h"

#include "llvm/IR/Instructions.h"

namespace sheaf::driver {
namespace {

/// A function of so many instructions is long.
constexpr unsigned kLong = 4000;
/// The length of the blocks that it is divided into.
constexpr unsigned kPiece = 250;

void divideBlocks(llvm::Function &function) {
  llvm::SmallVector<llvm::BasicBlock *> blocks;
  for (llvm::BasicBlock &block : function)
    blocks.push_back(&block);
  for (llvm::BasicBlock *block : blocks) {
    llvm::SmallVector<llvm::Instruction *> starts;
    unsigned length = 0;
    for (llvm::Instruction &instruction : *block) {
      // Storage of the frame is that of the entry block; a tail call's return follows it.
      if (llvm::isa<llvm::AllocaInst>(instruction))
        starts.clear();
      if (++length < kPiece || llvm::isa<llvm::PHINode>(instruction) || instruction.isTerminator())
        continue;
      starts.push_back(&instruction);
      length = 0;
    }
    for (llvm::Instruction *start : llvm::reverse(starts))
      if (!start->getNextNode()->isTerminator())
        block->splitBasicBlock(start);
  }
}

} // namespace

void LongFunctions::divide(llvm::Module &host) {
  for (llvm::Function &function : host)
    if (function.getInstructionCount() >= kLong) {
      descriptions_.insert(("function (" + function.getName() + ")").str());
      divideBlocks(function);
    }
}

bool LongFunctions::shouldRunPass(llvm::StringRef pass, llvm::StringRef description) const {
  if (pass == leaveOut_)
    return false;
  bool takesLong = pass == "codegenprepare" || pass == "machine-sink" || pass == "post-RA-sched";
  return !takesLong || !descriptions_.contains(description);
}

} // namespace sheaf::driver
