//===- Chunks.cpp - How many rows and records go on together --------------===//

#include "compiler/kernels/cpu/LayoutPlanner.h"
#include "runtime/cpu/packing.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

// Of the caches, in sixteenths: see LayoutPlanner::level1() and level2().
/// Rows of a chunk stay in the second-level cache beside a panel of weights.
constexpr int64_t kChunkRows = 3;
/// Rows of a pass over rows of several records, which many tiles read from further away: that takes
/// less than reading all weights once more for the next pass.
constexpr int64_t kPassRows = 12;
/// Rows of a chunk with the rows that are written, which every panel adds to.
constexpr int64_t kChunkOfAll = 8;
/// Scratch of a chunk stays in the second-level cache.
constexpr int64_t kChunkScratch = 3;
/// All that the stages of a chunk touch stays in the first-level cache, and leaves room for what is
/// asked for ahead.
constexpr int64_t kChunkNear = 4;
/// Temporaries after which a chunk ends: they stay in the second-level cache.
constexpr int64_t kChunkTemporaries = 16;
/// Weights that are not in the second-level cache are so many times what a chunk has of scratch; no
/// more than this is counted.
constexpr int64_t kWeightsOverScratch = 8, kMostWeights = 32 << 20;
/// No plan counts on more of a cache: its scratch would grow with it.
constexpr int64_t kMostLevel1 = 256 << 10, kMostLevel2 = 8 << 20;

/// Bytes of a record's results that a stage of products writes.
int64_t resultBytes(const Stage &stage) {
  int64_t bytes = 0;
  for (const Root &root : stage.roots)
    if (root.buffer->kind == Buffer::Result && stage.shape.back().isConstant())
      bytes += bytesOf(root.buffer->dtype) * stage.shape.back().constant();
  return bytes;
}

/// Bytes of the copies of weights that a kernel reads.
double packedBytes(const KernelCode &code) {
  double bytes = 0;
  for (const rt::WeightUse &use : code.weights)
    if (use.kind != rt::WeightUse::Raw)
      bytes += static_cast<double>(rt::packedBytes(use).value_or(UINT64_MAX));
  return bytes;
}

} // namespace

/// Bytes of left-hand rows that a tile row reads.
int64_t LayoutPlanner::rowBytes(const Stage &stage) const {
  if (stage.factorRow)
    return stage.factorRow;
  int64_t bytes = 0;
  for (const ProductGroup &group : stage.groups)
    for (const ProductSegment &segment : group.lead->segments)
      bytes += segment.extent.isConstant() ? 4 * segment.extent.constant() : 0;
  return std::max<int64_t>(bytes, 64);
}

/// Bytes of a record's arguments and results, as far as they are known.
int64_t LayoutPlanner::ownBytes() const {
  int64_t bytes = rt::kGranuleBytes;
  for (const Buffer &buffer : plan_.buffers) {
    bool own = buffer.kind == Buffer::Argument || buffer.kind == Buffer::Result;
    if (!own || !llvm::all_of(buffer.shape, [](const Dim &dim) { return dim.isConstant(); }))
      continue;
    std::vector<int64_t> extents;
    for (const Dim &dim : buffer.shape)
      extents.push_back(dim.constant());
    bytes += rt::tensorGranules(extents, runtimeType(buffer.dtype)) * rt::kGranuleBytes;
  }
  return bytes;
}

/// Bytes of so many sixteenths of a cache.
int64_t LayoutPlanner::level1(int64_t sixteenths) const {
  return std::min(target_.caches.l1, kMostLevel1) * sixteenths / 16;
}
int64_t LayoutPlanner::level2(int64_t sixteenths) const {
  return std::min(target_.caches.l2, kMostLevel2) * sixteenths / 16;
}

/// What is wanted of so much of the caches.
int64_t LayoutPlanner::nearBytes(int64_t bytes) const {
  return tuning_.near ? bytes * tuning_.near / 100 : bytes;
}

/// So many rows stay near, with what is made of them, while all panels pass over them.
int64_t LayoutPlanner::nearRows(const Stage &stage) const {
  bool isPass = stage.sums == Sums::Chain && !stage.rowsAreRecords;
  int64_t read = rowBytes(stage), rows = nearBytes(level2(isPass ? kPassRows : kChunkRows)) / read;
  if (stage.rowsAreRecords)
    rows = std::min(rows, nearBytes(level2(kChunkOfAll)) / (read + resultBytes(stage)));
  if (stage.sums == Sums::Foreign)
    return std::max<int64_t>(std::min(rows, nearBytes(level2(kChunkOfAll)) /
                                                (read + resultBytes(stage) + stage.sumsRow)),
                             8);
  if (stage.sums == Sums::Tiles) // no rest but the last
    return std::max<int64_t>(llvm::alignDown(rows, stage.tileRows), 2 * stage.tileRows);
  return std::max(rows, 4 * stage.tileRows);
}

/// Runs of stages that are each record's own form a group where a temporary is needed by them
/// alone. Then it is there for one record at a time, and as many records make a chunk as if there
/// were none: a step of a decoder has a mini-batch's rows for its weights, whatever its caches
/// take.
void LayoutPlanner::groupStages() {
  auto isOwn = [](const Stage &stage) {
    return stage.kind != Stage::Products || (!stage.rowsAreRecords && !stage.rowsOfAllRecords);
  };
  const auto count = static_cast<unsigned>(layout_->stages.size());
  std::vector<RecordGroup> runs;
  for (unsigned begin = 0, end; begin < count; begin = end) {
    for (end = begin; end < count && isOwn(layout_->stages[end]);)
      ++end;
    if (end > begin && end - begin < count)
      runs.push_back({begin, end});
    end = std::max(end, begin + 1);
  }
  auto runOf = [&](const Buffer &buffer) {
    return llvm::find_if(runs, [&](const RecordGroup &run) {
      return run.begin <= buffer.firstStage && buffer.lastStage < run.end;
    });
  };
  const std::vector<RecordBuffer> &temporaries = plan_.records.temporaries;
  std::vector<bool> isOfGroups(temporaries.size(), true);
  for (const Buffer &buffer : plan_.buffers)
    if (buffer.kind == Buffer::Temporary && runOf(buffer) == runs.end())
      isOfGroups[buffer.index] = false;
  for (auto [number, run] : llvm::enumerate(runs))
    if (llvm::any_of(plan_.buffers, [&](const Buffer &buffer) {
          return buffer.kind == Buffer::Temporary && isOfGroups[buffer.index] &&
                 runOf(buffer) == runs.begin() + static_cast<ptrdiff_t>(number);
        }))
      layout_->groups.push_back(run);
  for (auto [place, temporary] : llvm::enumerate(temporaries)) {
    auto &list = isOfGroups[place] ? layout_->own : layout_->handedOn;
    layout_->temporaryPlaces.push_back({isOfGroups[place], static_cast<unsigned>(list.size())});
    list.push_back(temporary);
  }
}

void LayoutPlanner::chooseChunk() {
  int64_t scratch = std::accumulate(plan_.scratch.begin(), plan_.scratch.end(), int64_t(0));
  int64_t chunk = INT64_MAX;
  bool hasTemporaries = !plan_.records.temporaries.empty();
  for (auto [i, stage] : llvm::enumerate(layout_->stages)) {
    if (stage.kind == Stage::Products && stage.rowsAreRecords)
      chunk = std::min(chunk, nearRows(stage));
    // What a stage leaves in a record's rows is read by the next ones while it is near.
    if (stage.rowsOfAllRecords && layout_->chunkStage < 0 && layout_->stages.size() > 1)
      layout_->chunkStage = static_cast<int>(i);
  }
  // Where weights come from further away, to read them once more for the next chunk takes longer
  // than to read from there what a chunk's stages hand on, as long as that is much less.
  if (scratch) {
    auto weights = static_cast<int64_t>(
        std::min(packedBytes(layout_->code), static_cast<double>(kMostWeights)));
    int64_t most = level2(kChunkScratch);
    if (weights > level2(16))
      most = std::max(most, weights / kWeightsOverScratch);
    chunk = std::min(chunk, std::max<int64_t>(nearBytes(most) / scratch, 1));
  }
  // What stages hand on stays in the first-level cache where no weights want many rows; in the
  // second, with the records' own rows, where those are more than the weights: to read these once
  // more takes less than to read the rows from further away in each stage.
  bool wantsRows = layout_->wantsRows();
  if (layout_->stages.size() > 1 &&
      (!wantsRows || packedBytes(layout_->code) < static_cast<double>(ownBytes()))) {
    int64_t near = nearBytes(wantsRows ? level2(kChunkRows) : level1(kChunkNear));
    chunk = std::min(chunk, std::max<int64_t>(near / (scratch + ownBytes()), 1));
  }
  if (hasTemporaries)
    chunk = std::min(chunk, kMostPassRows);
  layout_->chunkRecords = chunk;

  int64_t offset = layout_->accumulatorBytes + layout_->rowTableBytes;
  for (const Stage &stage : layout_->stages)
    if (stage.factorRow) {
      int64_t rows = llvm::alignTo(stage.rowsAreRecords ? chunk : stage.passRows, stage.tileRows);
      layout_->factorBytes = std::max(layout_->factorBytes, rows * stage.factorRow);
      layout_->sumsBytes = std::max(layout_->sumsBytes, rows * stage.sumsRow);
    }
  // A row's last vector may be written whole.
  if (layout_->factorBytes)
    offset += layout_->factorBytes += rt::kGranuleBytes;
  offset += layout_->sumsBytes;
  if (llvm::any_of(layout_->stages, [](const Stage &s) { return s.sums == Sums::Tiles; })) {
    layout_->tileConfig = offset;
    layout_->code.tiles = true;
    offset += rt::kGranuleBytes;
  }
  if (llvm::any_of(layout_->stages, [](const Stage &s) { return s.stepsOfTiles; })) {
    layout_->seenTable = offset;
    offset += llvm::alignTo(layout_->blockRows * kSeenEntryBytes, rt::kGranuleBytes);
  }
  if (llvm::any_of(plan_.rowBlocks, [](const RowBlock &block) { return !block.masks.empty(); })) {
    layout_->rangeTable = offset;
    offset += llvm::alignTo(kMostRanges * kSeenEntryBytes, rt::kGranuleBytes);
  }
  for (int64_t bytes : plan_.scratch) {
    layout_->scratchOffsets.push_back(offset);
    offset += bytes * chunk;
  }
  if (hasTemporaries) {
    layout_->temporaryTable = offset;
    offset += llvm::alignTo(8 * chunk, rt::kGranuleBytes);
    layout_->temporaryOffset = offset;
    // What a chunk's records hand on comes to no more than this, but for one record alone; beside
    // it the runtime has room for any record's temporaries.
    layout_->chunkTemporaries = level2(kChunkTemporaries);
    offset += layout_->chunkTemporaries;
  } else if (!layout_->packing.empty()) {
    layout_->temporaryOffset = offset;
  }
  // Whole vectors may be read beyond the end of the last slice.
  layout_->code.scratchBytes = static_cast<uint64_t>(offset) + 1024;
}

} // namespace sheaf::kernels::cpu
