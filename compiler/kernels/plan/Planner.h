//===- Planner.h - Decides the stages of one block --------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_PLAN_PLANNER_H
#define SHEAF_COMPILER_KERNELS_PLAN_PLANNER_H

#include "compiler/kernels/plan/Plan.h"

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
  Planner(ir::BlockOp block, const PlanOptions &options);
  std::unique_ptr<Plan> run();

private:
  /// How the products of a stage are computed.
  struct Mode {
    bool products = false; ///< else it has none
    unsigned method = 0;
    bool rowsAreRecords = false;
    bool contractsRows = false; ///< of left operands that lie as they do: k runs over their rows
    bool operator==(const Mode &) const = default;
  };
  static Mode modeOf(const Product &product);

  /// What a stage writes.
  struct RootSpec {
    enum Kind {
      Whole,     ///< a kept tensor
      Reduction, ///< a kept tensor that is a row reduction
      Piece,     ///< one piece of a kept concatenation
      Copy       ///< a result that is an argument, a weight or another result as well
    } kind;
    mlir::Value value;   ///< expression to evaluate
    mlir::Value target;  ///< Piece: the kept tensor it goes to
    View view;           ///< into the buffer
    unsigned result = 0; ///< Copy: number of the result

    /// Whether the value is made here, and not read if it is kept.
    bool computed() const { return kind == Whole || kind == Reduction; }
  };
  struct StageKey {
    int level;
    std::vector<Dim> shape;
    Mode mode;
    const Product *only; ///< set when products may not share a stage
    mlir::Value reduction;
    mlir::Value masked; ///< the operand with a mask that it makes, or that its products take
    bool operator==(const StageKey &) const = default;
  };
  /// What evaluating an expression reads and computes.
  struct Reads {
    /// Arguments, weights and kept tensors, at the place where the expression is evaluated.
    llvm::SmallVector<std::pair<mlir::Value, View>> kept;
    /// Tensors that are read elsewhere, by indices.
    llvm::SmallVector<mlir::Value> whole;
    /// Reshapes whose operands are read by the row-major number of a place.
    llvm::SmallVector<std::pair<mlir::Value, View>> reshapes;
    llvm::SmallVector<std::pair<const Product *, View>> products;
    llvm::SmallVector<mlir::Value> elementwise;
  };

  // Products.cpp
  void findProducts();
  Product makeProduct(ir::ApplyOp apply);
  void addSegments(Product &product, mlir::Value lhs, mlir::Value rhs, bool rhsInVectors);
  bool findWeights(Product &product);
  bool joinSum(ir::ApplyOp add);
  Product *joinable(mlir::Value term, mlir::Value sum);
  bool startsAt(mlir::Value start, const Product &product) const;

  // Planner.cpp
  bool keep(mlir::Value value); ///< true when it was not kept before
  /// A reshape that is read where its operand's elements are, since these lie evenly along its
  /// axes: the tensor in memory, and the part of it that the operand is.
  struct Part {
    mlir::Value of;
    View view;
    std::vector<Dim> shape;
  };
  std::optional<Part> regroupedPart(mlir::Value value) const;
  /// Whether it is a reshape that is no plain view.
  bool isRegrouping(mlir::Value value) const;
  /// Whether a reshape takes its elements across rows: then it lies without padding.
  bool isRegroupedAcrossRows(mlir::Value value) const;
  bool isKept(mlir::Value value) const { return kept_.contains(value); }
  std::vector<RootSpec> rootsOf(mlir::Value kept);
  std::optional<RootSpec> behindViews(mlir::Value value, mlir::Value target, View view);
  bool sumsLargeRows(const Product &product) const;
  bool isSoft(const RootSpec &root, mlir::Value kept, const View &view) const;
  int productLevel(const Product &product) const;
  int levelOf(mlir::Value kept) const { return levels_.lookup(kept); }
  int levelOf(const Reads &reads) const;
  int place(const RootSpec &root);
  bool settle();
  bool settleProducts();
  bool settleShared();
  void keepForReduction(mlir::Value reduction, const Reads &reads);
  bool keepBelow(mlir::Value root, const Product *product, int level);
  /// Visits what a root reads at a level, and what the pieces read that are computed along there.
  void readAlong(const RootSpec &root, int level, llvm::function_ref<void(const Reads &)> visit);
  bool isMaskedOperand(mlir::Value value) const;
  mlir::Value maskedOperand(const Product &product) const;
  mlir::Value maskedOperand(const RootSpec &root, int level);
  Mode modeOf(const RootSpec &root, int level, const Product **only, bool &conflict);
  const std::vector<Dim> &shape(mlir::Value v) const { return plan_->shapes->of(v); }

  // Reads.cpp
  /// Keeps what has to be read from memory. `computed`: the value itself is not read.
  Reads read(mlir::Value value, bool computed);
  /// Whether it follows from tensors of fewer axes alone, such as numbers of rows and of columns.
  bool isOfFewerAxes(mlir::Value value) const;
  bool isPlacesOnTheWay(mlir::Value index) const;

  // Stages.cpp
  void makeBuffers();
  void makeStages();
  void findAccumulators(Stage &stage, llvm::ArrayRef<RootSpec> roots);
  static void groupProducts(Stage &stage);
  void findReads(Stage &stage, llvm::ArrayRef<RootSpec> roots);
  llvm::SmallPtrSet<mlir::Value, 8> weightsReadAsTheyAre();

  // RowBlocks.cpp
  void findRowBlocks();

  // Lifetimes.cpp
  /// Gives temporaries their places: those that are never needed at the same time share one.
  void shareTemporaries();
  void forEachRead(const Stage &stage, llvm::function_ref<void(mlir::Value)> visit) const;

  // Records.cpp
  void recordLayout();
  void countWork();

  ir::BlockOp block_;
  const PlanOptions &options_;
  std::unique_ptr<Plan> plan_;
  std::vector<RootSpec> copies_;
  std::vector<const Buffer *> resultBuffers_;
  llvm::SetVector<mlir::Value> kept_;
  llvm::DenseSet<mlir::Value> turned_; ///< kept views that are written in another order
  llvm::DenseMap<mlir::Value, int> levels_;
  std::vector<std::pair<StageKey, std::vector<RootSpec>>> stageRoots_;
};

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_PLAN_PLANNER_H
