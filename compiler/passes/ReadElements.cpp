//===- ReadElements.cpp - Elements that are read where they lie -----------===//
//
// read(x[i]) waits for x and takes the element out of it, where it would record a copy of the
// element first. A beam that reads several places of one vector so waits once, and for no launch
// of its own. Of a vector that is made beside it, for the read alone, the copy is part of the
// vector's block, and writes less.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Program.h"
#include "compiler/passes/Pass.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Whether an operation is one element of a vector that is there in any case.
bool picksElement(ir::ApplyOp pick) {
  if (!moves(pick, ops::Movement::Element) || pick->getNumOperands() != 2)
    return false;
  Value from = pick.getOperands()[0], at = pick.getOperands()[1];
  if (cast<RankedTensorType>(from.getType()).getRank() != 1 || !at.getType().isInteger(64))
    return false;
  Operation *maker = from.getDefiningOp();
  bool isMadeBeside = isTensorCode(maker) && maker->getBlock() == pick->getBlock();
  return !isMadeBeside &&
         llvm::all_of(pick->getUsers(), [](Operation *user) { return isa<ir::ReadOp>(user); });
}

LogicalResult readElements(ModuleOp module, PassContext &context) {
  SmallVector<ir::ReadOp> reads;
  module.walk([&](ir::ReadOp read) { reads.push_back(read); });
  for (ir::ReadOp read : reads) {
    auto pick = read.getTensor().getDefiningOp<ir::ApplyOp>();
    if (!pick || read.getAt() || !picksElement(pick))
      continue;
    read.getTensorMutable().assign(pick.getOperands()[0]);
    read.getAtMutable().assign(pick.getOperands()[1]);
    if (pick->use_empty())
      pick->erase();
    context.remark(read.getLoc(), "the element is read where it lies, without a record of its own");
  }
  return success();
}

} // namespace

PassRecord readElementsPass() {
  return {.name = "read-elements",
          .description = "An element of a vector that is read is taken where it lies, without a "
                         "record of its own.",
          .run = readElements};
}

} // namespace sheaf::passes
