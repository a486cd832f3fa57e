//===- Layout.h - How a processor computes a plan ---------------*- C++ -*-===//
//
// What the CPU adds to a plan: register tiles, packed weights, passes and chunks of records, and
// where temporaries lie in a thread's scratch.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_KERNELS_CPU_LAYOUT_H
#define SHEAF_COMPILER_KERNELS_CPU_LAYOUT_H

#include "compiler/kernels/cpu/Cpu.h"
#include "compiler/kernels/plan/Plan.h"
#include "runtime/cpu/cpu.h"

namespace sheaf::kernels::cpu {

/// Lanes of elementwise loops and of every row reduction, on all targets: the lane pattern of a
/// reduction is part of its value (docs/numerics.md), so it must not follow the machine.
constexpr int64_t kLoopLanes = 16;
/// Vectors of partial results of a reduction along the innermost axis; like kLoopLanes, part of its
/// value.
constexpr int64_t kReduceVectors = 4;

/// Of the caches: what one prefetch asks for.
constexpr int64_t kLineBytes = 64;
/// A row of a pass in scratch: the number of its record, its place among the record's rows.
constexpr int64_t kRowEntryBytes = 16;
/// A row of a row block in scratch: the first column that it sees, and the one after the last.
constexpr int64_t kSeenEntryBytes = 16;
/// Most ranges of columns that rows with masks see; the last one reaches further than it must.
constexpr int64_t kMostRanges = 64;

/// How the factors of a product come to its sums (docs/numerics.md).
enum class Sums {
  Chain,  ///< one multiply-add for each k
  Pairs,  ///< factors in bf16, two k at a time
  Tiles,  ///< factors in bf16, 32 k at a time, by the processor's tiles
  Foreign ///< as a vendor's library likes
};

/// Whether a pair is two multiply-adds while the processor flushes subnormal numbers.
inline bool addsPairsFlushing(const rt::Target &target) {
  return !target.bf16 && target.fma && target.architecture == rt::kX86_64;
}

/// So many k the last run of a segment is filled up to, with zeros.
inline int64_t depthMultiple(Sums sums) {
  return sums == Sums::Tiles ? 32 : sums == Sums::Pairs ? 2 : 1;
}

/// Bytes of a factor in scratch.
inline int64_t factorBytes(Sums sums) {
  return bytesOf(sums == Sums::Foreign ? ops::DType::F32 : ops::DType::BF16);
}

struct ProductGroup : kernels::ProductGroup {
  int weightUse = -1;       ///< packed panels of the group, or -1
  int64_t rowOffset = 0;    ///< factor rows: where the group's k begin, in bytes
  int64_t columnOffset = 0; ///< Foreign: where its columns begin in a row of sums
  int64_t depth = 0;        ///< packed: of all segments, filled up
};

/// Of a product of the record's own matrices: how it goes by blocks where its operands are large
/// (EmitBlocks.cpp).
struct Blocking {
  /// A segment of a group. Its steps end before those of the next begin, for a block of rows.
  struct Run {
    unsigned group, segment;
    bool packsLeft; ///< rows of the left operand are columns in memory: it is packed, too
  };

  std::vector<Run> runs;
  int64_t columns;     ///< of a block; whole panels
  bool packsWhole;     ///< all columns are packed before the rows of a row block; else a block's
  Dim packedColumns;   ///< at most
  int64_t rows, steps; ///< of a block: whole tiles
  unsigned panels;     ///< where packed columns are, among Layout::packing
  int64_t sumsBytes;   ///< of all accumulators of a block
  int64_t leftBytes;   ///< of a left operand's rows of a block

  bool packsLeft() const {
    return std::any_of(runs.begin(), runs.end(), [](const Run &run) { return run.packsLeft; });
  }

  /// Fewer tiles of rows are not worth the packing.
  static constexpr int64_t kLeastTiles = 4;
};

struct Stage;

struct Root : kernels::Root {
  bool masked = false; ///< the last vector must not be written whole
  /// Products: where its rows of a pass begin in scratch, after those of other such roots, until
  /// they are written with rows for columns; -1: it is written as it is computed.
  int64_t transposedBegin = -1;
  /// Whether neighbouring columns of the stage are not neighbours in the buffer.
  bool isScattered(const Stage &stage) const;
  /// Whether neighbouring rows of its tiles are, if they belong to one record.
  bool isTransposed(const Stage &stage) const;
};

/// A stage of a plan; the last axis of its space runs over vectors.
struct Stage {
  using Kind = kernels::Stage::Kind;
  static constexpr Kind Loop = Kind::Loop, Products = Kind::Products, Reduce = Kind::Reduce;

  explicit Stage(const kernels::Stage &of)
      : kind(of.kind), level(of.level), shape(of.shape), rowsAreRecords(of.rowsAreRecords),
        rowAxis(of.rowAxis), rowBlock(of.rowBlock), sumsRows(of.sumsRows), seen(of.seen),
        seenAxis(of.seenAxis), seenBy(of.seenBy), accumulators(of.accumulators),
        prefetch(of.argumentRows) {}

  Kind kind;
  int level;
  std::vector<Dim> shape;
  std::vector<Root> roots;
  /// Loop: the axis along which neighbours in memory follow each other in all that it reads along
  /// its last axis, which is another one; -1: none, or nothing is gained by blocks
  /// (EmitTurned.cpp).
  int turnedAxis = -1;
  /// Loop: number of the stage of products whose right operand it lays out or rounds, and which
  /// reads that where it lies if a record has one row (LyingOperands.cpp); -1: it always runs.
  int laysOutFor = -1;

  // Products
  /// The right operand before another stage has laid it out or rounded it.
  struct Lying {
    mlir::Value value;
    View view;   ///< over the index space of the product
    bool turned; ///< k is the innermost axis, not the columns
  };
  std::optional<Lying> lying;
  bool rowsAreRecords;
  int rowAxis;             ///< else: the axis whose places are the rows of a tile; -1: one row
  int rowBlock;            ///< of the plan, or -1
  bool sumsRows;           ///< of a row block: sums go on where those of the rows before lie
  bool hasAllRows = false; ///< of a row block: there are so few that all are computed together
  Seen seen;
  int seenAxis, seenBy; ///< Loop: what another's rows see of it
  /// A tile's rows may come from several records: a pass over the panels takes `passRows` of them.
  bool rowsOfAllRecords = false;
  int64_t passRows = 0;
  bool passOfOneRecord = false; ///< all rows of a pass come from one record
  std::vector<Accumulator> accumulators;
  std::vector<ProductGroup> groups;
  /// Accumulators run over k one after the other, each for all rows of a tile, and their packed
  /// weights lie so; else those of a group run together.
  bool takesTurns = false;
  /// Sums of a group of own matrices go to scratch before the next group's begin.
  bool groupsInTurn = false;
  Sums sums = Sums::Chain;
  /// Bytes of a row of factors in scratch: what the groups read of a row, one after the other;
  /// rounded, but for a library. 0: rows are read where they are.
  int64_t factorRow = 0;
  const rt::Library *library = nullptr; ///< Foreign
  int64_t sumsRow = 0;                  ///< Foreign: bytes of a row of all accumulators in scratch
  std::optional<Blocking> blocking;
  /// Of a row block: each tile takes the steps that one of its own rows sees. The others add zeros,
  /// which are left out.
  bool stepsOfTiles = false;
  std::vector<const Buffer *> prefetch; ///< argument rows that the epilogue reads
  int64_t transposedBegin = 0;          ///< in scratch: rows of a tile that are to be transposed
  int startUse = -1;           ///< packed start values, one view an accumulator of such a weight
  std::vector<int> startViews; ///< for each accumulator its view in startUse, or -1
  int64_t tileRows = 1;        ///< most rows of a tile
  int64_t tileVectors = 1;     ///< vectors of each accumulator in a tile
  /// Where it is not known how many columns there are: vectors of the panels after the last whole
  /// one, of which none is beyond the padding of rows. 0: all are alike.
  int64_t restVectors = 0;
  /// Where accumulators take turns, so many tiles have the turn before the next accumulator does:
  /// they read its panel of weights while it is near.
  int64_t tilesAtOnce = 1;
  /// Panels are walked first to last or last to first, as the launch says, and each further pass of
  /// a launch the other way: it begins where the one before it ended.
  bool serpentine = false;
  /// So many rows and fewer leave registers unused, and each step waits for the sums of the one
  /// before: they are computed in two panels of columns at once. 0: none are.
  int64_t fewRows = 0;
  int64_t panelsAtOnce() const { return fewRows ? 2 : 1; }
  /// Of these a single row is computed in so many, as long as there are that many.
  static constexpr int64_t kPanelsOfOneRow = 4;
  int64_t lanes = kLoopLanes;

  /// Of a tile's accumulators in scratch.
  int64_t sumsOfTile() const {
    return tileRows * tileVectors * lanes * static_cast<int64_t>(accumulators.size());
  }
  /// Whether chains start at tensors in memory.
  bool startsAtRows() const {
    return std::any_of(accumulators.begin(), accumulators.end(),
                       [](const Accumulator &a) { return static_cast<bool>(a.startRow()); });
  }
  /// Accumulators that are in registers together.
  int64_t accumulatorsAtOnce() const {
    if (takesTurns)
      return 1;
    if (!groupsInTurn)
      return static_cast<int64_t>(accumulators.size());
    size_t most = 0;
    for (const ProductGroup &group : groups)
      most = std::max(most, group.accumulators.size());
    return static_cast<int64_t>(most);
  }
  const ProductSegment &segmentOf(const Blocking::Run &run) const {
    return groups[run.group].lead->segments[run.segment];
  }
  /// Whether all right operands are packed weights.
  bool allPacked() const {
    return std::all_of(groups.begin(), groups.end(),
                       [](const ProductGroup &group) { return group.weightUse >= 0; });
  }

  /// Rows of one record's products that tiles share out, where these are its own.
  Dim ownRows() const { return rowAxis < 0 ? Dim(1) : shape[static_cast<size_t>(rowAxis)]; }

  /// How many rows tiles share out, where every record has as many of its own.
  std::optional<int64_t> knownRows() const {
    if (rowsAreRecords || rowsOfAllRecords || (rowBlock >= 0 && !hasAllRows) || rowAxis < 0 ||
        !shape[static_cast<size_t>(rowAxis)].isConstant())
      return std::nullopt;
    return shape[static_cast<size_t>(rowAxis)].constant();
  }
};

inline bool Root::isTransposed(const Stage &stage) const {
  return isScattered(stage) && stage.rowsOfAllRecords && !stage.library && view.size() >= 2 &&
         view.back().axis == static_cast<int>(stage.shape.size()) - 2 &&
         buffer->dtype == ops::DType::F32;
}

inline bool Root::isScattered(const Stage &stage) const {
  return view.empty() || view.back().axis != static_cast<int>(stage.shape.size()) - 1;
}

/// Stages that all run for one record before the first runs for the next: no products of theirs
/// take rows of several records, and what they leave each other is large.
struct RecordGroup {
  unsigned begin, end; ///< among the plan's stages
};

struct Layout : BackendPlan {
  std::unique_ptr<const Plan> plan;
  std::vector<Stage> stages;       ///< those of the plan
  std::vector<RecordGroup> groups; ///< ascending, apart
  std::vector<RecordBuffer> own,
      handedOn; ///< temporaries of a record that groups need alone; others
  /// By place of a temporary in the record's: whether it is a group's own, and its place there.
  std::vector<std::pair<bool, unsigned>> temporaryPlaces;
  /// What a thread needs after the temporaries while a record's products go by blocks: operands,
  /// and last what is of known size.
  std::vector<RecordBuffer> packing;
  int64_t packedFrom = 0; ///< bytes of an operand from which on it is packed
  KernelCode code;
  static constexpr int kNoUse = -1;
  /// By number of the block's weights: the use of it as it is, or kNoUse.
  std::vector<int> rawUses;
  int64_t blockRows = 0;               ///< most rows of a row block at a time
  int64_t chunkRecords = 0;            ///< most records whose stages run together
  int chunkStage = -1;                 ///< a chunk ends when this stage has enough rows
  std::vector<int64_t> scratchOffsets; ///< by places of Plan::scratch: of the first record's
  int64_t temporaryTable = -1;         ///< offset in scratch: where each record's temporaries are
  int64_t temporaryOffset = 0;         ///< offset in scratch of the temporaries
  int64_t chunkTemporaries = 0;        ///< bytes of temporaries after which a chunk ends
  int64_t accumulatorBytes = 0;        ///< scratch for the accumulators of a tile, at offset 0
  int64_t rowTableBytes = 0;           ///< after it: the rows of a pass
  int64_t factorBytes = 0;             ///< after it: rows of factors
  int64_t sumsBytes = 0;               ///< after it: what libraries make of them
  /// Offset in scratch of what each row of a row block sees, if products take that tile by tile
  /// (Stage::stepsOfTiles), or -1: its first column and the one after its last.
  int64_t seenTable = -1;
  /// Where ranges of columns begin in scratch that rows with masks see (RowBlock::masks), or -1.
  int64_t rangeTable = -1;
  int64_t tileConfig = -1; ///< offset in scratch of the shapes of tiles, or -1

  /// Whether weights are read once for the rows of many records.
  bool wantsRows() const {
    return std::any_of(stages.begin(), stages.end(), [](const Stage &stage) {
      return stage.rowsAreRecords || stage.rowsOfAllRecords;
    });
  }
};

/// Of a kernel that planKernel() made.
inline const Layout &layoutOf(const Kernel &kernel) {
  return static_cast<const Layout &>(*kernel.plan);
}

} // namespace sheaf::kernels::cpu

#endif // SHEAF_COMPILER_KERNELS_CPU_LAYOUT_H
