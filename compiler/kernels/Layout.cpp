//===- Layout.cpp - Buffers, tiles and packed weights of a plan -----------===//

#include "compiler/kernels/Planner.h"
#include "runtime/model/error.h"
#include "runtime/model/packing.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace sheaf::kernels {
namespace {

// Of the caches, in sixteenths: see Planner::level1() and level2().
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
/// A panel that the first-level cache holds beside rows.
constexpr int64_t kNearPanel = 12;
/// Panels that leave the second-level cache while other tiles are computed.
constexpr int64_t kFarPanel = 3;
/// Temporaries after which a chunk ends: they stay in the second-level cache.
constexpr int64_t kChunkTemporaries = 16;
/// No plan counts on more of a cache: its scratch would grow with it.
constexpr int64_t kMostLevel1 = 256 << 10, kMostLevel2 = 8 << 20;

/// So many rows hide the reading of a panel of weights.
constexpr int64_t kMostPassRows = 256;
/// More rows a tile cost code, not speed: each number of rows has code of its own. Where all
/// records have as many rows, one or two numbers occur.
constexpr int64_t kMostTileRows = 8;
constexpr int64_t kMostKnownTileRows = 16;
/// Rows of two of the processor's tiles, one above the other.
constexpr int64_t kHardwareTileRows = 32;

bool isStatic(const std::vector<Dim> &dims) {
  return llvm::all_of(dims, [](const Dim &d) { return d.isConstant(); });
}

std::vector<int64_t> constants(const std::vector<Dim> &dims) {
  std::vector<int64_t> out;
  for (const Dim &d : dims)
    out.push_back(d.constant());
  return out;
}

/// Whether the last whole vector of a row would be written over something else: the next piece of a
/// concatenation, or the next row. Padding may be written, and so may a row that comes later.
bool overruns(const Stage &stage, const Root &root) {
  if (stage.shape.empty())
    return false;
  if (root.isScattered(stage)) // lane by lane
    return !stage.shape.back().isConstant() || stage.shape.back().constant() % stage.lanes != 0;
  const Dim &begin = root.view.back().offset, &extent = stage.shape.back(),
            &row = root.buffer->shape.back();
  if (root.buffer->dense && !(stage.kind == Stage::Loop && root.computed))
    return !extent.isConstant() || extent.constant() % stage.lanes != 0;
  bool isLast = begin + extent == row;
  int64_t granule = rt::kGranuleBytes / bytesOf(root.buffer->dtype);
  if (!begin.isConstant() || !extent.isConstant())
    return !isLast || !begin.isConstant() || begin.constant() % stage.lanes != 0 ||
           granule % stage.lanes != 0;
  int64_t end = begin.constant() + llvm::alignTo(extent.constant(), stage.lanes);
  return end > (isLast ? static_cast<int64_t>(llvm::alignTo(row.constant(), granule))
                       : begin.constant() + extent.constant());
}

} // namespace

void Planner::recordLayout(Kernel &kernel) {
  for (BlockArgument arg :
       block_.getBody().front().getArguments().take_front(block_.getNumArgs())) {
    std::string name = "arg" + std::to_string(arg.getArgNumber());
    plan_->argumentWords.push_back(kernel.words);
    if (auto type = dyn_cast<RankedTensorType>(arg.getType())) {
      std::vector<int64_t> shape;
      for (int64_t extent : type.getShape())
        shape.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
      auto dtype = static_cast<rt::DType>(dtypeOf(arg));
      kernel.layout.push_back({rt::RecordWord::Row, name, std::move(shape), dtype});
      for (unsigned i = 0; i < type.getNumDynamicDims(); ++i)
        kernel.layout.push_back({rt::RecordWord::Extent, name + "." + std::to_string(i)});
      kernel.words += 1 + static_cast<uint32_t>(type.getNumDynamicDims());
    } else if (auto list = dyn_cast<ir::ListType>(arg.getType())) {
      auto element = cast<RankedTensorType>(list.getElement());
      kernel.layout.push_back(
          {rt::RecordWord::List, name, element.getShape().vec(), runtimeType(dtypeOf(arg))});
      kernel.layout.push_back({rt::RecordWord::Extent, name + ".0"});
      kernel.words += 2;
    } else {
      kernel.layout.push_back(
          {arg.getType().isF64() ? rt::RecordWord::Float : rt::RecordWord::Int, name});
      kernel.words += 2;
    }
  }
  kernel.layout.push_back({rt::RecordWord::Out, "out"});
  ++kernel.words;
}

void Planner::makeBuffers(Kernel &kernel) {
  Block &body = block_.getBody().front();
  auto add = [&](Buffer::Kind kind, Value value, size_t index) {
    Buffer buffer{kind, value, dtypeOf(value), shape(value), static_cast<unsigned>(index), 0, 0};
    plan_->buffers.push_back(std::move(buffer));
    return &plan_->buffers.back();
  };
  auto reserve = [&](Value value) {
    kernel.results.push_back({dtypeOf(value), shape(value)});
    return add(Buffer::Result, value, kernel.results.size() - 1);
  };

  for (BlockArgument arg : body.getArguments())
    if (isa<RankedTensorType>(arg.getType())) {
      bool isWeight = roleOf(arg) == Role::Weight;
      // The number of a weight's use is known when all packed ones are.
      plan_->bufferOf[arg] =
          add(isWeight ? Buffer::Weight : Buffer::Argument, arg,
              isWeight ? arg.getArgNumber() : plan_->argumentWords[arg.getArgNumber()]);
    }
  for (BlockArgument arg : body.getArguments())
    if (isa<ir::ListType>(arg.getType()))
      plan_->bufferOf[arg] = add(Buffer::List, arg, plan_->argumentWords[arg.getArgNumber()]);
  for (Value result : body.getTerminator()->getOperands()) {
    resultBuffers_.push_back(reserve(result));
    // A copy does not stand for its value.
    plan_->bufferOf.try_emplace(result, resultBuffers_.back());
  }
  // What is regrouped across its rows lies without padding. It takes no more room for it, not even
  // where the last row is written in whole vectors.
  auto isDense = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto apply = dyn_cast<ir::ApplyOp>(user);
      if (!apply || roleOf(apply->getResult(0)) != Role::View)
        return false;
      Value to = apply->getResult(0);
      return movementOf(to) == ops::Movement::Reshape && !isPlainReshape(to, *plan_->shapes) &&
             !liesEvenly(shape(value), shape(to));
    });
  };
  for (Value value : kept_) {
    if (plan_->bufferOf.contains(value))
      continue;
    if (isStatic(shape(value))) {
      Buffer *buffer = add(Buffer::Scratch, value, 0);
      buffer->scratchStride =
          rt::tensorGranules(constants(buffer->shape), runtimeType(buffer->dtype)) *
          rt::kGranuleBytes;
      plan_->bufferOf[value] = buffer;
    } else {
      plan_->bufferOf[value] = add(Buffer::Temporary, value, 0);
    }
    plan_->buffers.back().dense = isDense(value);
  }
}

/// The accumulators of a stage: products and columns that its roots read, through what the stage
/// itself computes on the way.
void Planner::findAccumulators(Stage &stage, llvm::ArrayRef<RootSpec> roots) {
  for (const RootSpec &root : roots) {
    if (!root.computed() && isKept(root.value) && levelOf(root.value) != stage.level)
      continue;
    llvm::SmallVector<Value> work{root.value};
    llvm::SmallPtrSet<Value, 8> seen;
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (!seen.insert(value).second)
        continue;
      Reads reads = read(value, true);
      for (auto &[product, view] : reads.products) {
        int64_t column = view.back().offset.constant();
        if (llvm::none_of(stage.accumulators, [&](const Accumulator &a) {
              return a.product == product && a.column == column;
            }))
          stage.accumulators.push_back({product, column});
      }
      for (auto &[kept, view] : reads.kept) {
        const Buffer *buffer = plan_->bufferOf.lookup(kept);
        if (buffer->kind == Buffer::Argument && view.size() == 1 && view[0].axis == 0 &&
            !llvm::is_contained(stage.prefetch, buffer))
          stage.prefetch.push_back(buffer);
        if (isKept(kept) && isSoft(root, kept, view) && levelOf(kept) == stage.level)
          work.push_back(kept);
      }
    }
  }
  // The rows of a tile share the right operand.
  int axis = static_cast<int>(stage.shape.size()) - 2;
  bool shared = llvm::all_of(stage.accumulators, [&](const Accumulator &a) {
    return llvm::all_of(a.product->segments, [&](const ProductSegment &segment) {
      return !dependsOn(segment.rhsView, axis);
    });
  });
  if (!stage.rowsAreRecords && axis >= 0 && shared)
    stage.rowAxis = axis;
}

/// Bytes of a panel of packed weights one vector wide, where sums are chains.
static int64_t panelBytes(const Stage &stage) {
  int64_t depth = 0;
  for (const ProductGroup &group : stage.groups) {
    int64_t own = 0;
    for (const ProductSegment &segment : group.lead->segments)
      own += group.weightUse < 0 ? 0 : segment.extent.constant();
    depth = std::max(depth, own);
  }
  return stage.sums == Sums::Chain ? depth * stage.lanes * bytesOf(ops::DType::F32) : 0;
}

/// Register tile: rows x vectors, so that accumulators, one row of weights and the broadcast
/// values fit the registers. With 32 of them, 5 or 6 vectors across feed two multiply-adds a cycle
/// from one load each. With 16, 4 across leave 3 rows, which is well where the weights come from
/// the first-level cache; else 2 across and 6 rows read them half as often.
void Planner::chooseTile(Stage &stage) {
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
      stage.shape.back().constant() > stage.lanes * stage.tileVectors &&
      llvm::all_of(stage.groups, [](const ProductGroup &g) { return g.weightUse >= 0; }))
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

/// Where the factors of each group lie in a row of the stage.
void Planner::placeFactors(Stage &stage) {
  for (ProductGroup &group : stage.groups) {
    if (group.weightUse < 0)
      continue;
    for (const ProductSegment &segment : group.lead->segments)
      group.depth +=
          static_cast<int64_t>(llvm::alignTo(segment.extent.constant(), depthMultiple(stage.sums)));
    if (stage.sums == Sums::Chain)
      continue;
    group.rowOffset = stage.factorRow;
    stage.factorRow += group.depth * factorBytes(stage.sums);
    if (stage.sums == Sums::Foreign) {
      group.columnOffset = stage.sumsRow;
      stage.sumsRow += static_cast<int64_t>(group.accumulators.size()) *
                       stage.shape.back().constant() * bytesOf(ops::DType::F32);
    }
  }
  // Whole vectors are written; rows that lie a multiple of a page apart would meet in the caches.
  for (int64_t *row : {&stage.factorRow, &stage.sumsRow}) {
    *row = static_cast<int64_t>(llvm::alignTo(*row, rt::kGranuleBytes));
    if (*row && *row % 1024 == 0)
      *row += rt::kGranuleBytes;
  }
}

/// Products of the same rows are computed in one run over k.
void Planner::groupProducts(Stage &stage) {
  for (unsigned i = 0; i < stage.accumulators.size(); ++i) {
    const Product &product = *stage.accumulators[i].product;
    auto sameRows = [&](const ProductGroup &group) {
      const Product &lead = *group.lead;
      if (lead.packed != product.packed || lead.segments.size() != product.segments.size())
        return false;
      for (auto [a, b] : llvm::zip(lead.segments, product.segments))
        if (a.lhs != b.lhs || a.lhsView != b.lhsView || a.extent != b.extent)
          return false;
      return true;
    };
    auto group = llvm::find_if(stage.groups, sameRows);
    if (group == stage.groups.end()) {
      stage.groups.push_back({&product, {}, product.packed ? 0 : -1});
      group = std::prev(stage.groups.end());
    }
    group->accumulators.push_back(i);
  }
  // Where a tile has few rows, each weight is read for few multiply-adds, from the second-level
  // cache mostly: rather than all accumulators in few rows, they take turns.
  size_t most = target_.registers == 32 ? 6 : 3;
  stage.takesTurns = stage.sums == Sums::Chain && stage.accumulators.size() > most &&
                     llvm::all_of(stage.groups, [](auto &g) { return g.weightUse >= 0; });
}

void Planner::packWeights(Kernel &kernel, Stage &stage) {
  placeFactors(stage);

  unsigned firstWeight = static_cast<unsigned>(block_.getNumArgs());
  auto addUse = [&](std::vector<rt::PackView> views, Sums sums) {
    rt::WeightUse use;
    use.kind = rt::WeightUse::Panels;
    use.views = std::move(views);
    use.width = stage.shape.back().constant();
    use.lanes = stage.lanes;
    use.vectors = stage.tileVectors;
    use.factors = sums == Sums::Pairs || sums == Sums::Tiles;
    use.depthMultiple = depthMultiple(sums);
    kernel.weights.push_back(std::move(use));
    return static_cast<int>(kernel.weights.size()) - 1;
  };
  for (ProductGroup &group : stage.groups) {
    if (group.weightUse < 0)
      continue;
    std::vector<rt::PackView> views;
    for (unsigned i : group.accumulators) {
      const Accumulator &a = stage.accumulators[i];
      rt::PackView view;
      view.segments = a.product->pack;
      for (rt::PackSegment &segment : view.segments)
        segment.param -= firstWeight;
      view.column = a.product->packColumns.front() + a.column;
      views.push_back(std::move(view));
    }
    group.weightUse = addUse(std::move(views), stage.sums);
    if (stage.takesTurns)
      kernel.weights.back().kind = rt::WeightUse::PanelsByView;
    if (stage.sums == Sums::Foreign) {
      rt::WeightUse &use = kernel.weights.back();
      use.kind = rt::WeightUse::Foreign;
      use.library = stage.library;
      use.lanes = use.width;
      use.aStride = stage.factorRow / bytesOf(ops::DType::F32);
      use.cStride = stage.sumsRow / bytesOf(ops::DType::F32);
    }
  }
  std::vector<rt::PackView> starts;
  for (const Accumulator &a : stage.accumulators) {
    bool isWeight = a.product->start && !a.startRow();
    stage.startViews.push_back(isWeight ? static_cast<int>(starts.size()) : -1);
    if (!isWeight)
      continue;
    unsigned param = cast<BlockArgument>(a.product->start).getArgNumber() - firstWeight;
    starts.push_back({{{param, 0, 1, false}}, a.column});
  }
  if (!starts.empty())
    stage.startUse = addUse(std::move(starts), Sums::Chain);
}

/// Bytes of left-hand rows that a tile row reads.
int64_t Planner::rowBytes(const Stage &stage) const {
  if (stage.factorRow)
    return stage.factorRow;
  int64_t bytes = 0;
  for (const ProductGroup &group : stage.groups)
    for (const ProductSegment &segment : group.lead->segments)
      bytes += segment.extent.isConstant() ? 4 * segment.extent.constant() : 0;
  return std::max<int64_t>(bytes, 64);
}

/// Bytes of a record's results that a stage of products writes.
static int64_t resultBytes(const Stage &stage) {
  int64_t bytes = 0;
  for (const Root &root : stage.roots)
    if (root.buffer->kind == Buffer::Result && stage.shape.back().isConstant())
      bytes += bytesOf(root.buffer->dtype) * stage.shape.back().constant();
  return bytes;
}

/// Bytes of a record's arguments and results, as far as they are known.
int64_t Planner::ownBytes() const {
  int64_t bytes = rt::kGranuleBytes;
  for (const Buffer &buffer : plan_->buffers) {
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

/// Whether a pass over many rows goes along several panels of packed weights.
static bool walksPanels(const Stage &stage) {
  return (stage.rowsAreRecords || stage.rowsOfAllRecords) && !stage.library &&
         stage.shape.back().isConstant() &&
         stage.shape.back().constant() > stage.lanes * stage.tileVectors &&
         llvm::any_of(stage.groups, [](const ProductGroup &g) { return g.weightUse >= 0; });
}

/// Bytes of so many sixteenths of a cache.
int64_t Planner::level1(int64_t sixteenths) const {
  return std::min(target_.caches.l1, kMostLevel1) * sixteenths / 16;
}
int64_t Planner::level2(int64_t sixteenths) const {
  return std::min(target_.caches.l2, kMostLevel2) * sixteenths / 16;
}

/// What is wanted of so much of the caches.
int64_t Planner::nearBytes(int64_t bytes) const {
  return tuning_.near ? bytes * tuning_.near / 100 : bytes;
}

/// So many rows stay near, with what is made of them, while all panels pass over them.
int64_t Planner::nearRows(const Stage &stage) const {
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

/// Bytes of the copies of weights that a kernel reads.
static double packedBytes(const Kernel &kernel) {
  double bytes = 0;
  for (const rt::WeightUse &use : kernel.weights)
    if (use.kind != rt::WeightUse::Raw)
      bytes += static_cast<double>(rt::packedBytes(use).value_or(UINT64_MAX));
  return bytes;
}

void Planner::chooseChunk(Kernel &kernel) {
  int64_t scratch = plan_->scratchBytes, chunk = INT64_MAX;
  for (auto [i, stage] : llvm::enumerate(plan_->stages)) {
    if (stage.kind == Stage::Products && stage.rowsAreRecords)
      chunk = std::min(chunk, nearRows(stage));
    // What a stage leaves in a record's rows is read by the next ones while it is near.
    if (stage.rowsOfAllRecords && plan_->chunkStage < 0 && plan_->stages.size() > 1)
      plan_->chunkStage = static_cast<int>(i);
  }
  if (scratch)
    chunk = std::min(chunk, std::max<int64_t>(nearBytes(level2(kChunkScratch)) / scratch, 1));
  // What stages hand on stays in the first-level cache where no weights want many rows; in the
  // second, with the records' own rows, where those are more than the weights: to read these once
  // more takes less than to read the rows from further away in each stage.
  bool wantsRows = plan_->wantsRows();
  if (plan_->stages.size() > 1 &&
      (!wantsRows || packedBytes(kernel) < static_cast<double>(ownBytes()))) {
    int64_t near = nearBytes(wantsRows ? level2(kChunkRows) : level1(kChunkNear));
    chunk = std::min(chunk, std::max<int64_t>(near / (scratch + ownBytes()), 1));
  }
  if (!kernel.temporaries.empty())
    chunk = std::min(chunk, kMostPassRows);
  plan_->chunkRecords = chunk;

  int64_t offset = plan_->accumulatorBytes + plan_->rowTableBytes;
  for (const Stage &stage : plan_->stages)
    if (stage.factorRow) {
      int64_t rows = llvm::alignTo(stage.rowsAreRecords ? chunk : stage.passRows, stage.tileRows);
      plan_->factorBytes = std::max(plan_->factorBytes, rows * stage.factorRow);
      plan_->sumsBytes = std::max(plan_->sumsBytes, rows * stage.sumsRow);
    }
  // A row's last vector may be written whole.
  if (plan_->factorBytes)
    offset += plan_->factorBytes += rt::kGranuleBytes;
  offset += plan_->sumsBytes;
  if (llvm::any_of(plan_->stages, [](const Stage &s) { return s.sums == Sums::Tiles; })) {
    plan_->tileConfig = offset;
    kernel.tiles = true;
    offset += rt::kGranuleBytes;
  }
  for (Buffer &buffer : plan_->buffers)
    if (buffer.kind == Buffer::Scratch)
      buffer.scratchOffset = offset + buffer.scratchOffset * chunk;
  if (scratch)
    offset += scratch * chunk;
  if (!kernel.temporaries.empty()) {
    plan_->temporaryTable = offset;
    offset += llvm::alignTo(8 * chunk, rt::kGranuleBytes);
    plan_->temporaryOffset = offset;
    // A chunk ends behind the record that brings it here; the room for that one is the runtime's.
    plan_->chunkTemporaries = level2(kChunkTemporaries);
    offset += plan_->chunkTemporaries;
  }
  // Whole vectors may be read beyond the end of the last slice.
  kernel.scratchBytes = static_cast<uint64_t>(offset) + 1024;
}

/// Those that something else than a packed product reads.
llvm::SmallPtrSet<Value, 8> Planner::weightsReadRaw() {
  llvm::SmallPtrSet<Value, 8> weights;
  llvm::SmallPtrSet<Value, 32> seen;
  llvm::SmallVector<Value> work(block_.getBody().front().getTerminator()->getOperands());
  // Without `simplify` and `fuse` there are stages of what nothing follows from.
  for (const auto &[key, roots] : stageRoots_)
    for (const RootSpec &root : roots)
      work.push_back(root.value);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (roleOf(value) == Role::Weight)
      weights.insert(value);
    const Product *product = plan_->productOf.lookup(value);
    if (product && product->packed) {
      for (const ProductSegment &segment : product->segments)
        work.push_back(segment.lhs);
      if (product->start && roleOf(product->start) != Role::Weight)
        work.push_back(product->start);
    } else if (Operation *op = value.getDefiningOp()) {
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          work.push_back(operand);
    }
  }
  return weights;
}

void Planner::makeStages(Kernel &kernel) {
  std::vector<size_t> order(stageRoots_.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(stageRoots_[a].first.level, a) < std::pair(stageRoots_[b].first.level, b);
  });
  for (size_t number : order) {
    auto &[key, roots] = stageRoots_[number];
    Stage stage;
    stage.kind = key.reduction            ? Stage::Reduce
                 : key.mode == Mode::None ? Stage::Loop
                                          : Stage::Products;
    stage.level = key.level;
    stage.shape = key.shape;
    stage.rowsAreRecords = key.mode == Mode::Records || key.mode == Mode::FactorRecords ||
                           key.mode == Mode::ForeignRecords;
    if (stage.kind == Stage::Products) {
      findAccumulators(stage, roots);
      stage.sums = stage.accumulators.front().product->sums;
      stage.library = stage.accumulators.front().product->library;
      groupProducts(stage);
      stage.rowsOfAllRecords =
          key.mode == Mode::FactorRows || key.mode == Mode::ForeignRows ||
          (flatRows_ && stage.rowAxis >= 0 &&
           llvm::all_of(stage.groups, [](auto &g) { return g.weightUse >= 0; }));
      chooseTile(stage);
      packWeights(kernel, stage);
      stage.serpentine = serpentine_ && walksPanels(stage);
      kernel.serpentine |= stage.serpentine;
      int64_t rows = stage.tilesAtOnce * stage.tileRows;
      if (stage.fewRows)
        rows = std::max({rows, stage.fewRows * stage.panelsAtOnce(), Stage::kPanelsOfOneRow});
      int64_t floats = llvm::divideCeil(rows, stage.tileRows) * stage.sumsOfTile();
      stage.transposedBegin = llvm::alignTo(4 * floats, rt::kGranuleBytes);
      if (stage.rowsOfAllRecords) {
        stage.passOfOneRecord = !flatRows_;
        stage.passRows = std::min(nearRows(stage), kMostPassRows);
        plan_->rowTableBytes = std::max(plan_->rowTableBytes, stage.passRows * kRowEntryBytes);
      }
    }
    int64_t transposedBytes = 0;
    for (const RootSpec &root : roots) {
      const Buffer *buffer = root.kind == RootSpec::Copy
                                 ? resultBuffers_[root.result]
                                 : plan_->bufferOf.lookup(root.target ? root.target : root.value);
      stage.roots.push_back({root.value, buffer, root.view, root.computed(), false});
      stage.roots.back().masked = overruns(stage, stage.roots.back());
      if (stage.kind == Stage::Products && stage.roots.back().isTransposed(stage)) {
        stage.roots.back().transposedBegin = transposedBytes;
        transposedBytes +=
            llvm::alignTo(4 * stage.passRows * stage.tileVectors * stage.lanes, rt::kGranuleBytes);
      }
    }
    plan_->accumulatorBytes =
        std::max(plan_->accumulatorBytes, stage.transposedBegin + transposedBytes);
    plan_->stages.push_back(std::move(stage));
  }
  // Weights that are read as they lie in the row space.
  llvm::SmallPtrSet<Value, 8> raw = weightsReadRaw();
  for (Buffer &buffer : plan_->buffers)
    if (buffer.kind == Buffer::Weight) {
      if (!raw.contains(buffer.value)) {
        buffer.index = Buffer::kNoUse;
        continue;
      }
      rt::WeightUse use;
      use.kind = rt::WeightUse::Raw;
      use.param = buffer.index - static_cast<unsigned>(block_.getNumArgs());
      buffer.index = static_cast<unsigned>(kernel.weights.size());
      kernel.weights.push_back(use);
    }
  plan_->levels = levels_;
  shareTemporaries(kernel);
  chooseChunk(kernel);
  if (plan_->stages.size() == 1 && plan_->stages[0].rowsAreRecords &&
      plan_->stages[0].sums != Sums::Foreign) {
    const Stage &stage = plan_->stages[0];
    kernel.panels = static_cast<uint32_t>(llvm::divideCeil(
        stage.shape.back().constant(), stage.lanes * stage.tileVectors * stage.panelsAtOnce()));
  }
}

} // namespace sheaf::kernels
