//===- Lower.cpp - Emitted kernels to LLVM IR -----------------------------===//

#include "compiler/kernels/cpu/Emitter.h"
#include "compiler/kernels/cpu/Functions.h"
#include "compiler/kernels/cpu/NarrowFloats.h"
#include "runtime/model/error.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// For processors without a fused multiply-add, where each would become a call of the C library.
struct SplitFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    Value product = arith::MulFOp::create(rewriter, op.getLoc(), op.getA(), op.getB());
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, product, op.getC());
    return success();
  }
};

struct ExpandMath : PassWrapper<ExpandMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  explicit ExpandMath(bool fma) : fma(fma) {}
  void runOnOperation() override {
    apply([](RewritePatternSet &patterns) { populateFunctionPatterns(patterns); });
    if (!fma)
      apply([](RewritePatternSet &patterns) { patterns.add<SplitFma>(patterns.getContext()); });
    // What is left would become calls of the C library, one lane at a time.
    getOperation().walk([&](Operation *op) {
      if (isa<math::ExpOp, math::TanhOp, math::ErfOp, math::LogOp, math::SinOp, math::CosOp>(op) ||
          (!fma && isa<math::FmaOp>(op)))
        signalPassFailure();
    });
  }
  void apply(llvm::function_ref<void(RewritePatternSet &)> populate) {
    RewritePatternSet patterns(&getContext());
    populate(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
  bool fma;
};

/// All dialects of a kernel at once: a conversion for each walks the whole module each time.
struct ConvertToLLVM : PassWrapper<ConvertToLLVM, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertToLLVM)
  void runOnOperation() override {
    LLVMTypeConverter types(&getContext());
    RewritePatternSet patterns(&getContext());
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    index::populateIndexToLLVMConversionPatterns(types, patterns);
    populateFuncToLLVMConversionPatterns(types, patterns);
    populateMathToLLVMConversionPatterns(types, patterns);
    populateVectorToLLVMConversionPatterns(types, patterns);
    LLVMConversionTarget target(getContext());
    target.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

void run(ModuleOp kernels, ArrayRef<std::function<std::unique_ptr<Pass>()>> passes,
         const char *what) {
  PassManager manager(kernels.getContext());
  // What is emitted follows from blocks that have been verified; tests verify the kernels.
  manager.enableVerifier(false);
  for (const auto &pass : passes)
    manager.addPass(pass());
  if (failed(manager.run(kernels)))
    throw InternalError(std::string(what) + " the kernels failed");
}

} // namespace

OwningOpRef<ModuleOp> emitKernels(llvm::ArrayRef<Kernel> kernels, const rt::Target &target,
                                  MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, scf::SCFDialect, math::MathDialect,
                      vector::VectorDialect, LLVM::LLVMDialect, cf::ControlFlowDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  for (const Kernel &kernel : kernels)
    Emitter(kernel, target, *module).run();
  // Before anything merges these conversions with others.
  RewritePatternSet patterns(&context);
  populateNarrowFloatPatterns(patterns, target);
  walkAndApplyPatterns(*module, std::move(patterns));
  run(*module, {[] { return createLoopInvariantCodeMotionPass(); }, [] { return createCSEPass(); }},
      "simplifying");
  return module;
}

std::unique_ptr<llvm::Module> lowerKernels(ModuleOp kernels, const rt::Target &target,
                                           llvm::LLVMContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  kernels.getContext()->appendDialectRegistry(registry);

  run(kernels,
      {[&] { return std::make_unique<ExpandMath>(target.fma); }, [] { return createCSEPass(); },
       [] { return createSCFToControlFlowPass(); },
       [] { return std::make_unique<ConvertToLLVM>(); }},
      "lowering");
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    throw InternalError("translating the kernels to LLVM IR failed");
  return module;
}

} // namespace sheaf::kernels::cpu
