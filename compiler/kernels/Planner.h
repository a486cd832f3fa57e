//===- Planner.h - Decides the stages of one block --------------*- C++ -*-===//
#ifndef SHEAF_KERNELS_PLANNER_H
#define SHEAF_KERNELS_PLANNER_H

#include "compiler/kernels/Plan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace sheaf::kernels {

/// Plans one block.
///
/// The set of tensors that are kept whole starts with the block's results and grows to a fixpoint:
/// by what products and reductions read, and by what two stages would otherwise compute twice.
/// Then every kept tensor is a root of a stage.
class Planner {
public:
  Planner(ir::BlockOp block, const Target &target, const std::set<std::string> &without);
  Kernel run();

private:
  /// How the rows of a stage's products are found; stages without products have None.
  enum class Mode { None, Records, Inner };

  /// One tensor, or one piece of a concatenation, that a stage computes.
  struct RootSpec {
    mlir::Value value;  ///< expression to evaluate
    mlir::Value target; ///< kept tensor whose buffer it goes to
    View view;          ///< into the target
    bool reduce = false;
    bool piece = false; ///< of a concatenation or a stack
  };
  struct StageKey {
    int level;
    std::vector<Dim> shape;
    Mode mode;
    const Product *only; ///< set when products may not share a stage
    mlir::Value reduction;
    bool operator==(const StageKey &) const = default;
  };
  /// What evaluating an expression reads.
  struct Reads {
    llvm::SmallVector<std::pair<mlir::Value, View>> kept;
    llvm::SmallVector<std::pair<const Product *, View>> products;
    llvm::SmallVector<mlir::Value> elementwise; ///< operators evaluated on the way
  };

  // Products.cpp
  void findProducts();
  Product makeProduct(ir::ApplyOp apply);
  void addSegments(Product &product, mlir::Value lhs, mlir::Value rhs, bool keepTransposed);
  bool pack(Product &product);
  bool joinSum(ir::ApplyOp add);

  // Planner.cpp
  bool keep(mlir::Value value); ///< true when it was not kept before
  bool isKept(mlir::Value value) const { return kept_.contains(value); }
  std::vector<RootSpec> rootsOf(mlir::Value kept) const;
  void read(mlir::Value value, const View &view, bool top, Reads &reads);
  bool isSoft(const RootSpec &root, mlir::Value kept, const View &view) const;
  int productLevel(const Product &product) const;
  int levelOf(mlir::Value kept) const { return levels_.lookup(kept); }
  bool settle();
  bool settleProducts();
  bool settleShared();
  void keepBelow(mlir::Value value, const View &view, const Product *product, int level,
                 bool &changed);
  int inlineLevel(mlir::Value value);
  Mode modeOf(const RootSpec &root, int level, const Product **only, bool &conflict);
  const std::vector<Dim> &shape(mlir::Value v) const { return plan_->shapes->of(v); }

  // Layout.cpp
  void makeBuffers(Kernel &kernel);
  void makeStages(Kernel &kernel);
  void chooseTile(Stage &stage);
  void findAccumulators(Stage &stage);
  void packWeights(Kernel &kernel, Stage &stage);
  void chooseChunk(Kernel &kernel);
  int64_t rowBytes(const Stage &stage) const;
  void describe(Kernel &kernel);
  void countFlop(Kernel &kernel);
  void recordLayout(Kernel &kernel);

  ir::BlockOp block_;
  const Target &target_;
  bool fuse_, merge_, panels_;
  std::shared_ptr<Plan> plan_;
  llvm::SetVector<mlir::Value> kept_;
  llvm::DenseMap<mlir::Value, int> levels_;
  std::vector<std::pair<StageKey, std::vector<RootSpec>>> stageRoots_;
};

} // namespace sheaf::kernels

#endif // SHEAF_KERNELS_PLANNER_H
