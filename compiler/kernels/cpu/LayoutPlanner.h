//===- LayoutPlanner.h - Lays a plan out for a processor --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_CPU_LAYOUTPLANNER_H
#define SHEAF_COMPILER_KERNELS_CPU_LAYOUTPLANNER_H

#include "compiler/kernels/cpu/Dispatch.h"
#include "compiler/kernels/cpu/Layout.h"

namespace sheaf::kernels::cpu {

/// So many rows hide the reading of a panel of weights.
constexpr int64_t kMostPassRows = 256;
/// Rows of a block of rows: whole tiles of 8 or 6 rows, enough of them to read the right operand
/// from near, few enough that what they leave is near.
constexpr int64_t kBlockRows = 48;
static_assert(kBlockRows % 2 == 0, "sums over the rows of a block go on in pairs");

/// Plans one block and lays it out.
class LayoutPlanner {
public:
  LayoutPlanner(ir::BlockOp block, const rt::Target &target, const std::set<std::string> &without,
                const Tuning &tuning, NumericClass numericClass);
  Kernel run();

private:
  // Layout.cpp
  const Plan &makePlan(ir::BlockOp block, const std::set<std::string> &without);
  unsigned methodOf(const Product &product, const BlockShapes &shapes);
  void layOutStages();
  void layOutProducts(const kernels::Stage &of, Stage &stage);

  // Tiles.cpp
  void chooseTurns(Stage &stage) const;
  void chooseTile(Stage &stage) const;

  // PackWeights.cpp
  static void placeFactors(Stage &stage);
  void packWeights(Stage &stage);
  void takeRawWeights();

  // Blocks.cpp
  std::optional<Blocking> blockingOf(const Stage &stage);
  bool areRowsOfBlock(const Stage &stage) const;
  bool takesStepsOfTiles(const Stage &stage) const;
  void chooseBlocks();
  int64_t largeFrom() const;
  bool staysNear(const Stage &stage, const ProductSegment &segment, bool packsLeft,
                 int64_t leastDepth) const;
  bool mayGoByBlocks(const Stage &stage) const;
  bool computesGroupsInTurn(const Stage &stage) const;
  bool endsRowBlockAlone(const Stage &stage) const;

  // LyingOperands.cpp
  std::optional<Stage::Lying> lyingOperandOf(const Stage &stage) const;
  void findLyingOperands();

  // Chunks.cpp
  int64_t rowBytes(const Stage &stage) const;
  int64_t ownBytes() const;
  int64_t nearRows(const Stage &stage) const;
  int64_t level1(int64_t sixteenths) const;
  int64_t level2(int64_t sixteenths) const;
  int64_t nearBytes(int64_t bytes) const;
  static int turnedAxis(const kernels::Stage &of, const Stage &stage);
  void groupStages();
  void chooseChunk();

  // Describe.cpp
  void describe(Kernel &kernel) const;
  void describeDispatch(Kernel &kernel) const;

  const rt::Target &target_;
  const Tuning tuning_;
  Dispatch dispatch_;
  const rt::Library *library_ = nullptr; ///< that computes products of the block
  llvm::DenseMap<mlir::Value, std::vector<Verdict>> verdicts_;
  bool serpentine_, flatRows_, readsLying_, packMatrices_;
  std::shared_ptr<Layout> layout_;
  const Plan &plan_;
};

} // namespace sheaf::kernels::cpu

#endif // SHEAF_COMPILER_KERNELS_CPU_LAYOUTPLANNER_H
