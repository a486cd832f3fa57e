//===- Register.cpp - The passes as MLIR passes, for sheaf-opt ------------===//

#include "compiler/passes/Pipeline.h"

#include "compiler/ir/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// The dialects whose operations passes make (those of math to weigh operators by), whether the
/// module they are given has any or not.
void insertMade(DialectRegistry &registry) {
  registry.insert<ir::SheafDialect, arith::ArithDialect, func::FuncDialect, scf::SCFDialect,
                  math::MathDialect>();
}

void emitRemarks(const std::vector<Remark> &remarks) {
  for (const Remark &remark : remarks)
    mlir::emitRemark(remark.where) << remark.text;
}

class ProgramPass : public PassWrapper<ProgramPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ProgramPass)

  explicit ProgramPass(const PassRecord &record) : record_(&record) {}
  ProgramPass(const ProgramPass &other) : PassWrapper(other), record_(other.record_) {}

  StringRef getArgument() const override { return record_->name; }
  StringRef getDescription() const override { return record_->description; }
  StringRef getName() const override { return record_->name; }
  void getDependentDialects(DialectRegistry &registry) const override { insertMade(registry); }

  void runOnOperation() override {
    PassReport report;
    std::set<std::string> off(without.begin(), without.end());
    LogicalResult result = runPass(*record_, getOperation(), off, report);
    if (remarks)
      emitRemarks(report.remarks);
    if (failed(result))
      signalPassFailure();
  }

  ListOption<std::string> without{*this, "without", llvm::cl::desc("switches that are off")};
  Option<bool> remarks{*this, "remarks", llvm::cl::desc("tell what was done"),
                       llvm::cl::init(false)};

private:
  const PassRecord *record_;
};

class PipelinePass : public PassWrapper<PipelinePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PipelinePass)

  PipelinePass() = default;
  PipelinePass(const PipelinePass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "sheaf-pipeline"; }
  StringRef getDescription() const override { return "all passes, from Program to blocks"; }

  void getDependentDialects(DialectRegistry &registry) const override { insertMade(registry); }

  void runOnOperation() override {
    PipelineOptions options{entry, {without.begin(), without.end()}};
    std::vector<PassReport> reports;
    LogicalResult result = passes::runPipeline(getOperation(), options, reports);
    if (remarks)
      for (const PassReport &report : reports)
        emitRemarks(report.remarks);
    if (failed(result))
      signalPassFailure();
  }

  Option<std::string> entry{*this, "entry", llvm::cl::desc("the function that is called")};
  ListOption<std::string> without{*this, "without", llvm::cl::desc("passes that are off")};
  Option<bool> remarks{*this, "remarks", llvm::cl::desc("tell what was done"),
                       llvm::cl::init(false)};
};

} // namespace

void registerMlirPasses() {
  for (const PassRecord &record : allPasses())
    registerPass(
        [&record]() -> std::unique_ptr<Pass> { return std::make_unique<ProgramPass>(record); });
  PassRegistration<PipelinePass>();
}

} // namespace sheaf::passes
