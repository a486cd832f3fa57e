//===- Lower.cpp - Emitted kernels to LLVM IR -----------------------------===//

#include "compiler/kernels/Emitter.h"
#include "compiler/kernels/NarrowFloats.h"
#include "runtime/error.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace sheaf::kernels {
namespace {

/// Transcendental functions become vector polynomials; docs/numerics.md states their accuracy.
struct ExpandMath : PassWrapper<ExpandMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<math::MathDialect, vector::VectorDialect, arith::ArithDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::TanhOp::getOperationName() || name == math::ExpOp::getOperationName() ||
             name == math::LogOp::getOperationName() || name == math::ErfOp::getOperationName() ||
             name == math::SinOp::getOperationName() || name == math::CosOp::getOperationName();
    });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

OwningOpRef<ModuleOp> emitKernels(llvm::ArrayRef<Kernel> kernels, const Target &target,
                                  MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, scf::SCFDialect, math::MathDialect,
                      vector::VectorDialect, LLVM::LLVMDialect, cf::ControlFlowDialect,
                      ub::UBDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  for (const Kernel &kernel : kernels)
    Emitter(kernel, target, *module).run();
  if (failed(verify(*module)))
    throw InternalError("the emitted kernels do not verify");
  // Before anything merges these conversions with others.
  RewritePatternSet patterns(&context);
  populateNarrowFloatPatterns(patterns, target);
  walkAndApplyPatterns(*module, std::move(patterns));
  PassManager manager(&context);
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createLoopInvariantCodeMotionPass());
  manager.addPass(createCSEPass());
  if (failed(manager.run(*module)))
    throw InternalError("simplifying the emitted kernels failed");
  return module;
}

std::unique_ptr<llvm::Module> lowerKernels(ModuleOp kernels, const Target &,
                                           llvm::LLVMContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  kernels.getContext()->appendDialectRegistry(registry);

  PassManager manager(kernels.getContext());
  manager.enableVerifier(false);
  manager.addPass(std::make_unique<ExpandMath>());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertIndexToLLVMPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createUBToLLVMConversionPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  if (failed(manager.run(kernels)))
    throw InternalError("lowering the kernels to LLVM failed");
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    throw InternalError("translating the kernels to LLVM IR failed");
  return module;
}

} // namespace sheaf::kernels
