//===- Blocks.cpp - Products of matrices that leave the caches ------------===//

#include "compiler/kernels/cpu/LayoutPlanner.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

// Of the caches, in sixteenths: see LayoutPlanner::level1() and level2().
/// A panel of the steps of a block stays in the first-level cache beside rows, if that leaves a
/// block steps enough.
constexpr int64_t kNearBlockPanel = 12;
/// An operand of more bytes is packed: what a panel reads of it would leave the second-level cache
/// before the next rows do, since its rows lie as far apart as they are long.
constexpr int64_t kLargeOperand = 8;

constexpr int64_t kBlockColumns = 256, kBlockRowsOfProduct = 96;
constexpr int64_t kLeastSteps = 256, kMostSteps = 512, kStepsMultiple = 64;
/// Fewer steps have so few rows of the right operand that they stay near, wherever they lie; to
/// pack all of it needs more to be worth the memory.
constexpr int64_t kLeastDepth = 128, kLeastDepthOfWhole = 257;
/// Each run has code of its own.
constexpr size_t kMostRuns = 4;

/// Whether rows of the left operand are neighbours in memory.
bool rowsAreNeighbours(const Stage &stage, const ProductSegment &segment) {
  return !segment.lhsView.empty() && segment.lhsView.back().axis == stage.rowAxis &&
         !segment.lhsView.back().index;
}

} // namespace

int64_t LayoutPlanner::largeFrom() const { return level2(kLargeOperand); }

/// Whether a segment's operands are known to stay near as they are: they have fewer steps than
/// that, or are small. The left one counts where it would be packed.
bool LayoutPlanner::staysNear(const Stage &stage, const ProductSegment &segment, bool packsLeft,
                              int64_t leastDepth) const {
  const Dim &depth = segment.extent, &columns = stage.shape.back();
  const Dim &rows = stage.shape[static_cast<size_t>(stage.rowAxis)];
  if (!depth.isConstant())
    return false;
  if (depth.constant() < leastDepth)
    return true;
  if (!columns.isConstant() || (packsLeft && !rows.isConstant()))
    return false;
  int64_t widest = std::max(columns.constant(), packsLeft ? rows.constant() : 0);
  return depth.constant() * widest * bytesOf(ops::DType::F32) < largeFrom();
}

/// Whether a stage is nothing but products, by chains, of rows of one record with its own matrices.
bool LayoutPlanner::mayGoByBlocks(const Stage &stage) const {
  return packMatrices_ && stage.kind == Stage::Products && stage.sums == Sums::Chain &&
         !stage.rowsAreRecords && stage.rowAxis >= 0 && !stage.sumsRows && !stage.takesTurns &&
         llvm::all_of(stage.groups, [](const ProductGroup &group) { return group.weightUse < 0; });
}

/// Where operands may be large, groups of a tile are computed one after the other, so that they may
/// go by blocks; else all sums of a tile stay in registers.
bool LayoutPlanner::computesGroupsInTurn(const Stage &stage) const {
  return mayGoByBlocks(stage) && stage.groups.size() > 1 &&
         llvm::any_of(stage.groups, [&](const ProductGroup &group) {
           return llvm::any_of(group.lead->segments, [&](const ProductSegment &segment) {
             return !staysNear(stage, segment, rowsAreNeighbours(stage, segment), kLeastDepth);
           });
         });
}

/// How a stage's products go by blocks, unless it is known that its operands are small.
std::optional<Blocking> LayoutPlanner::blockingOf(const Stage &stage) {
  if (!mayGoByBlocks(stage) || stage.rowsOfAllRecords ||
      (stage.groups.size() > 1 && !stage.groupsInTurn))
    return std::nullopt;
  if (stage.rowBlock >= 0 && !areRowsOfBlock(stage))
    return std::nullopt;
  auto isOfBlock = [&](const Buffer &buffer) {
    return stage.rowBlock >= 0 && llvm::any_of(layout_->stages, [&](const Stage &other) {
             return other.rowBlock == stage.rowBlock &&
                    llvm::any_of(other.roots, [&](const Root &root) {
                      return &root.buffer->whole() == &buffer.whole();
                    });
           });
  };
  int64_t panel = stage.lanes * stage.tileVectors;
  const Dim &columns = stage.shape.back(), &rows = stage.shape[static_cast<size_t>(stage.rowAxis)];
  if (rows.isConstant() && rows.constant() < Blocking::kLeastTiles * stage.tileRows)
    return std::nullopt;
  for (const Accumulator &accumulator : stage.accumulators)
    for (const ProductSegment &segment : accumulator.product->segments) {
      const Buffer &right = *plan_.bufferOf.lookup(segment.rhs);
      if (right.dtype != ops::DType::F32 || isOfBlock(right))
        return std::nullopt;
    }

  Blocking blocking;
  blocking.packsWhole = stage.rowBlock >= 0 && !endsRowBlockAlone(stage);
  bool isSmall = true;
  Dim panelRows(0);
  for (auto [g, group] : llvm::enumerate(stage.groups)) {
    if (group.lead->start)
      return std::nullopt;
    for (auto [s, segment] : llvm::enumerate(group.lead->segments)) {
      const Buffer &left = *plan_.bufferOf.lookup(segment.lhs);
      bool packsLeft =
          rowsAreNeighbours(stage, segment) && left.dtype == ops::DType::F32 && !isOfBlock(left);
      blocking.runs.push_back({static_cast<unsigned>(g), static_cast<unsigned>(s), packsLeft});
      panelRows = panelRows + segment.extent * Dim(static_cast<int64_t>(group.accumulators.size()));
      isSmall &= staysNear(stage, segment, packsLeft,
                           blocking.packsWhole ? kLeastDepthOfWhole : kLeastDepth);
    }
  }
  if (isSmall || blocking.runs.size() > kMostRuns)
    return std::nullopt;

  blocking.columns = llvm::alignTo(kBlockColumns, panel);
  if (columns.isConstant())
    blocking.columns =
        std::min<int64_t>(blocking.columns, llvm::alignTo(columns.constant(), panel));
  blocking.rows = stage.rowBlock >= 0 ? llvm::alignTo(layout_->blockRows, stage.tileRows)
                                      : kBlockRowsOfProduct / stage.tileRows * stage.tileRows;
  int64_t near = level1(kNearBlockPanel) / (panel * bytesOf(ops::DType::F32));
  blocking.steps =
      std::clamp<int64_t>(near / kStepsMultiple * kStepsMultiple, kLeastSteps, kMostSteps);
  auto accumulators = static_cast<int64_t>(stage.accumulators.size());
  blocking.sumsBytes = blocking.rows * blocking.columns * accumulators * bytesOf(ops::DType::F32);
  // The last rows are written in whole vectors.
  blocking.leftBytes =
      blocking.packsLeft()
          ? blocking.rows * blocking.steps * bytesOf(ops::DType::F32) +
                llvm::alignTo(stage.tileRows, stage.lanes) * bytesOf(ops::DType::F32)
          : 0;

  blocking.packedColumns = Dim(blocking.columns);
  if (blocking.packsWhole)
    blocking.packedColumns =
        columns.isConstant() ? Dim(llvm::alignTo(columns.constant(), panel)) : columns + Dim(panel);
  RecordBuffer panels{ops::DType::F32, {panelRows, blocking.packedColumns}};
  // Stages of a row block take turns at it.
  auto isFree = [&](unsigned place) {
    return llvm::none_of(layout_->stages, [&](const Stage &other) {
      return other.blocking && other.rowBlock >= 0 && other.rowBlock == stage.rowBlock &&
             other.blocking->panels == place;
    });
  };
  auto &places = layout_->packing;
  for (blocking.panels = 0; blocking.panels < places.size(); ++blocking.panels)
    if (places[blocking.panels].shape == panels.shape && isFree(blocking.panels))
      return blocking;
  places.push_back(std::move(panels));
  return blocking;
}

/// Whether a row block's last stage is its only product. Then no stage reads what it makes, and
/// nothing that computes much comes before it: the rows go by once for each block of columns.
bool LayoutPlanner::endsRowBlockAlone(const Stage &stage) const {
  return &stage - layout_->stages.data() + 1 ==
             plan_.rowBlocks[static_cast<size_t>(stage.rowBlock)].end &&
         llvm::count_if(layout_->stages, [&](const Stage &other) {
           return other.rowBlock == stage.rowBlock && other.kind == Stage::Products;
         }) == 1;
}

/// Whether the rows of a tile are those of a row block with bounds, and zeros are left out.
bool LayoutPlanner::takesStepsOfTiles(const Stage &stage) const {
  return stage.kind == Stage::Products && stage.seen == Seen::Steps && stage.sums == Sums::Chain &&
         areRowsOfBlock(stage) && !stage.sumsRows &&
         !(stage.blocking && stage.blocking->packsLeft()) &&
         llvm::all_of(stage.groups,
                      [](const ProductGroup &group) { return group.lead->leavesOutZeros; });
}

/// Whether a tile's rows are those of the stage's row block.
bool LayoutPlanner::areRowsOfBlock(const Stage &stage) const {
  return stage.rowBlock >= 0 && stage.rowAxis >= 0 &&
         plan_.rowBlocks[static_cast<size_t>(stage.rowBlock)].axes.size() + 1 == stage.shape.size();
}

void LayoutPlanner::chooseBlocks() {
  layout_->packedFrom = largeFrom();
  int64_t known = 0;
  for (Stage &stage : layout_->stages) {
    stage.blocking = blockingOf(stage);
    stage.stepsOfTiles = takesStepsOfTiles(stage);
    if (stage.blocking)
      known = std::max(known, stage.blocking->sumsBytes + stage.blocking->leftBytes);
  }
  if (known)
    layout_->packing.push_back({ops::DType::F32, {Dim(known / bytesOf(ops::DType::F32))}});
}

} // namespace sheaf::kernels::cpu
