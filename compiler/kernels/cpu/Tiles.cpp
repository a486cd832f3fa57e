//===- Tiles.cpp - Register tiles of products -----------------------------===//

#include "compiler/kernels/cpu/LayoutPlanner.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

// Of the caches, in sixteenths: see LayoutPlanner::level1() and level2().
/// A panel that the first-level cache holds beside rows.
constexpr int64_t kNearPanel = 12;
/// Panels that leave the second-level cache while other tiles are computed.
constexpr int64_t kFarPanel = 3;

/// More rows a tile cost code, not speed: each number of rows has code of its own. Where all
/// records have as many rows, one or two numbers occur.
constexpr int64_t kMostTileRows = 8;
constexpr int64_t kMostKnownTileRows = 16;
/// Rows of two of the processor's tiles, one above the other.
constexpr int64_t kHardwareTileRows = 32;

/// Bytes of a panel of packed weights one vector wide, where sums are chains.
int64_t panelBytes(const Stage &stage) {
  int64_t depth = 0;
  for (const ProductGroup &group : stage.groups) {
    int64_t own = 0;
    for (const ProductSegment &segment : group.lead->segments)
      own += group.weightUse < 0 ? 0 : segment.extent.constant();
    depth = std::max(depth, own);
  }
  return stage.sums == Sums::Chain ? depth * stage.lanes * bytesOf(ops::DType::F32) : 0;
}

} // namespace

/// Register tile: rows x vectors, so that accumulators, one row of weights and the broadcast
/// values fit the registers. With 32 of them, 5 or 6 vectors across feed two multiply-adds a cycle
/// from one load each. With 16, 4 across leave 3 rows, which is well where the weights come from
/// the first-level cache; else 2 across and 6 rows read them half as often.
void LayoutPlanner::chooseTile(Stage &stage) const {
  int64_t across = stage.accumulatorsAtOnce();
  stage.lanes = stage.sums == Sums::Tiles ? kLoopLanes : target_.lanes;
  // Narrower vectors pad less, where they are no slower for it.
  const Dim &columns = stage.shape.back();
  int64_t half = target_.lanes / 2;
  if (target_.halves && stage.sums == Sums::Chain && columns.isConstant() &&
      llvm::alignTo(columns.constant(), half) < llvm::alignTo(columns.constant(), target_.lanes))
    stage.lanes = half;
  int64_t most = target_.registers;
  bool severalRows = stage.rowsAreRecords || stage.rowAxis >= 0;
  bool deep = severalRows && panelBytes(stage) * 4 > level1(kNearPanel);
  int64_t wanted = tuning_.vectors ? tuning_.vectors : target_.registers == 32 ? 6 : deep ? 2 : 4;
  if (stage.shape.back().isConstant()) {
    int64_t vectors =
        std::max<int64_t>(1, llvm::divideCeil(stage.shape.back().constant(), stage.lanes));
    // A wish for more than there are registers is none.
    if (tuning_.vectors)
      wanted = std::min(wanted, most - 2);
    int64_t limit = std::max<int64_t>(1, std::min(vectors, wanted / across));
    // The widest tile that wastes the least. One vector across would be bound by loads: where two
    // are wanted, three are the other choice.
    llvm::SmallVector<int64_t> tried;
    for (int64_t v = limit; v >= std::max<int64_t>(1, limit - 2); --v)
      tried.push_back(v);
    if (limit == 2 && across == 1 && !tuning_.vectors)
      tried = {2, 3};
    int64_t best = 1, bestWaste = INT64_MAX;
    for (int64_t v : tried) {
      int64_t waste = llvm::divideCeil(vectors, v) * v - vectors;
      if (waste < bestWaste)
        best = v, bestWaste = waste;
    }
    stage.tileVectors = best;
  } else {
    // As many columns as rows are padded to.
    stage.tileVectors = kLoopLanes / stage.lanes;
    // One vector across would be bound by loads.
    bool ofRecord = severalRows && !stage.rowsAreRecords && !stage.rowsOfAllRecords;
    bool inPlace = stage.sums == Sums::Chain || stage.sums == Sums::Pairs;
    if (inPlace && ofRecord && across == 1 && stage.tileVectors == 1 && target_.registers == 32)
      stage.restVectors = std::exchange(stage.tileVectors, 3);
  }
  stage.tileRows = 1;
  if (stage.sums == Sums::Foreign) {
    // There is no tile; what follows takes a vector of each accumulator.
    stage.tileVectors = 1;
    return;
  }
  int64_t width = across * stage.tileVectors;
  if (stage.sums == Sums::Tiles) {
    stage.tileRows = kHardwareTileRows;
    return;
  }
  std::optional<int64_t> known = stage.knownRows();
  int64_t mostRows = tuning_.rows ? tuning_.rows : known ? kMostKnownTileRows : kMostTileRows;
  while (severalRows && stage.tileRows < mostRows &&
         (stage.tileRows + 1) * width + std::min(stage.tileRows + 1, width) + 1 <= most)
    ++stage.tileRows;
  // A multiply-add takes four cycles and two begin in each, so a row of fewer than four vectors
  // leaves them idle where there are few rows.
  if (stage.sums == Sums::Chain && severalRows && !known && width < 4 &&
      stage.shape.back().isConstant() &&
      stage.shape.back().constant() > stage.lanes * stage.tileVectors && stage.allPacked())
    stage.fewRows = stage.tileRows / 2;
  // Equal tiles have one size.
  if (known && *known > 0)
    stage.tileRows = llvm::divideCeil(*known, llvm::divideCeil(*known, stage.tileRows));
  // Sums of more tiles are further away, but panels of all accumulators may be further still.
  if (stage.takesTurns) {
    auto accumulators = static_cast<int64_t>(stage.accumulators.size());
    bool areFar = panelBytes(stage) * stage.tileVectors * accumulators > level2(kFarPanel);
    stage.tilesAtOnce = areFar ? 8 : 4;
  }
}

/// Where a tile has few rows, each weight is read for few multiply-adds, from the second-level
/// cache mostly: rather than all accumulators in few rows, they take turns.
void LayoutPlanner::chooseTurns(Stage &stage) const {
  size_t most = target_.registers == 32 ? 6 : 3;
  stage.takesTurns =
      stage.sums == Sums::Chain && stage.accumulators.size() > most && stage.allPacked();
}

} // namespace sheaf::kernels::cpu
