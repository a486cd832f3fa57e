//===- Passes.h - The pass records ------------------------------*- C++ -*-===//
//
// One function a pass; each is defined in the file named after it.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_PASSES_PASSES_H
#define SHEAF_PASSES_PASSES_H

#include "compiler/passes/Pass.h"

namespace sheaf::passes {

PassRecord alignBranchesPass();
PassRecord assignPhasesPass();
PassRecord autocastPass();
PassRecord codeMotionPass();
PassRecord deriveGradientsPass();
PassRecord dropUnneededPass();
PassRecord inlinePass();
PassRecord specialisePass();
PassRecord simplifyPass();
PassRecord expandOperatorsPass();
PassRecord foldConstantsPass();
PassRecord foldWeightsPass();
PassRecord forkCallsPass();
PassRecord formBlocksPass();
PassRecord identicalRecordsPass();
PassRecord keepJoinedPass();
PassRecord readElementsPass();
PassRecord reduceFoldsPass();
PassRecord spreadLoopsPass();
PassRecord hoistProductsPass();
PassRecord orderSumsPass();
PassRecord weightsRightPass();

} // namespace sheaf::passes

#endif // SHEAF_PASSES_PASSES_H
