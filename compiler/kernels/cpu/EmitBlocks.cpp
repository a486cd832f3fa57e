//===- EmitBlocks.cpp - Products of matrices that leave the caches --------===//
//
// A panel of columns reads a vector of each row of the right operand. Where these are long, each is
// on a page of its own and in one of a few sets of the caches, and so for the next rows of the left
// operand it is not near any more. So where an operand is large its columns are packed into panels,
// some columns at a time, and what is computed of them goes by blocks of rows and of steps, of
// which all stays near. Of a left operand whose rows are columns in memory a block is packed as
// well.
//
// Whether it is done follows from the extents at run time. Blocks are loops around the tiles: where
// nothing is packed they have one turn each, and addresses are those of the operands. Sums go from
// block to block of steps in memory, so that each is one chain as ever.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// Rows of the right operand that are packed together: they have a page each.
constexpr int64_t kRowsTogether = 16;
constexpr int64_t kBytes = sizeof(float);

} // namespace

/// What is right where operands are packed, or else where they lie.
Value Emitter::ColumnsBlock::choose(ImplicitLocOpBuilder &b, Value packed, Value lying) const {
  return b.createOrFold<arith::SelectOp>(packs, packed, lying);
}

unsigned Emitter::numberOf(const Stage &stage) const {
  return static_cast<unsigned>(&stage - layout_.stages.data());
}

/// Where a part of Layout::packing is, for the record at hand.
Value Emitter::packingPlace(size_t place) {
  Value before = add(sizeOf(layout_.own), sizeOf(ArrayRef(layout_.packing).take_front(place)));
  if (handedOn_)
    before = add(before, handedOn_);
  return bytes(bytes(scratch_, layout_.temporaryOffset), before);
}

/// Whether operands are so large, and have so many rows to be read for, that packing them is worth
/// it. `outer` are places along the axes before that of the rows.
Value Emitter::isWorthPacking(const Stage &stage, ArrayRef<Value> outer, Value rows) {
  int k = static_cast<int>(stage.shape.size());
  Place place;
  place.index.assign(outer.begin(), outer.end());
  place.index.insert(place.index.end(), {constant(0), constant(0), constant(0)});
  Value large;
  auto orIsLarge = [&](const ProductSegment &segment, Value operand, const View &view) {
    Value size = mul(operandAt(operand, view, place, k).stride, extent(segment.extent));
    Value isLarge = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sge, size,
                                                  constant(layout_.packedFrom));
    large = large ? b.createOrFold<arith::OrIOp>(large, isLarge) : isLarge;
  };
  for (const Blocking::Run &run : stage.blocking->runs) {
    const ProductSegment &segment = stage.segmentOf(run);
    orIsLarge(segment, segment.rhs, segment.rhsView);
    if (run.packsLeft)
      orIsLarge(segment, segment.lhs, segment.lhsView);
  }
  Value areMany = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sge, rows,
                                                constant(Blocking::kLeastTiles * stage.tileRows));
  return b.createOrFold<arith::AndIOp>(large, areMany);
}

/// Blocks of columns; all of them if they are not packed, or not `several`.
void Emitter::forColumns(const Stage &stage, ArrayRef<Value> outer, Value packs, bool several,
                         llvm::function_ref<void(const ColumnsBlock &)> body) {
  Value width = extent(stage.shape.back());
  Value panels = packingPlace(stage.blocking->panels);
  auto block = [&](Value begin, Value end) {
    ColumnsBlock columns{packs, panels, begin, begin, end};
    when(packs, [&] { packColumns(stage, outer, columns); });
    body(columns);
  };
  if (!several)
    return block(constant(0), width);
  // What stands beside the product in a row block is needed where there are no columns, too.
  Value all = b.createOrFold<arith::MaxSIOp>(width, constant(1));
  Value step = b.createOrFold<arith::SelectOp>(packs, constant(stage.blocking->columns), all);
  auto loop = scf::ForOp::create(b, constant(0), all, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value begin = loop.getInductionVar();
  block(begin, minimum(add(begin, step), width));
}

/// The panels of a stage, or of some columns of it, by their widths.
void Emitter::forPanels(const Stage &stage, const ColumnsBlock *columns,
                        llvm::function_ref<void(const Stage &of, Value first, Value last)> body) {
  auto within = [&](const Stage &of, Value first, Value last) {
    if (columns) {
      int64_t width = of.lanes * of.tileVectors;
      Value begin = b.createOrFold<arith::DivSIOp>(columns->begin, constant(width));
      Value end =
          b.createOrFold<arith::DivSIOp>(add(columns->end, constant(width - 1)), constant(width));
      first = b.createOrFold<arith::MaxSIOp>(first, begin);
      last = b.createOrFold<arith::MaxSIOp>(first, minimum(last, end));
    }
    body(of, first, last);
  };
  if (stage.restVectors == 0)
    return within(stage, constant(0), panelCount(stage));
  Value width = extent(stage.shape.back());
  Value whole = b.createOrFold<arith::DivSIOp>(width, constant(stage.lanes * stage.tileVectors));
  within(stage, constant(0), whole);
  Stage rest = stage;
  rest.tileVectors = stage.restVectors;
  within(rest, mul(whole, constant(stage.tileVectors / stage.restVectors)), panelCount(rest));
}

/// Packs these columns of the right operands: panel by panel, each with all steps one after the
/// other.
void Emitter::packColumns(const Stage &stage, ArrayRef<Value> outer, const ColumnsBlock &columns) {
  int k = static_cast<int>(stage.shape.size());
  auto pack = [&](const Blocking::Run &run, size_t number) {
    const Accumulator &accumulator =
        stage.accumulators[stage.groups[run.group].accumulators[number]];
    const ProductSegment &segment = accumulator.product->segments[run.segment];
    Value steps = extent(segment.extent);
    auto packPanel = [&](const Stage &of, Value panel, Value begin, Value end) {
      int64_t stepBytes = of.lanes * of.tileVectors * kBytes;
      Place place;
      place.index.assign(outer.begin(), outer.end());
      place.index.push_back(constant(0));
      Value column = mul(panel, constant(of.lanes * of.tileVectors));
      place.index.insert(place.index.end(), {add(column, constant(accumulator.column)), begin});
      place.lanesAxis = k - 1;
      Operand from = operandAt(segment.rhs, segment.rhsView, place, k);
      Value to =
          bytes(packedPanel(of, columns, run, number, column), mul(begin, constant(stepBytes)));
      auto rows = scf::ForOp::create(b, begin, end, constant(1), ValueRange{from.pointer, to});
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(rows.getBody());
      Value source = rows.getRegionIterArg(0), target = rows.getRegionIterArg(1);
      auto type = VectorType::get({of.lanes}, f32_);
      for (int64_t v = 0; v < of.tileVectors; ++v) {
        int64_t at = v * of.lanes * kBytes;
        LLVM::StoreOp::create(b, loadAs(type, bytes(source, at), kBytes), bytes(target, at),
                              kBytes);
      }
      scf::YieldOp::create(b, ValueRange{bytes(source, from.stride), bytes(target, stepBytes)});
    };
    loop(constant(0), steps, kRowsTogether, [&](Value begin) {
      Value end = minimum(add(begin, constant(kRowsTogether)), steps);
      forPanels(stage, &columns, [&](const Stage &of, Value first, Value last) {
        loop(first, last, 1, [&](Value panel) { packPanel(of, panel, begin, end); });
      });
    });
  };
  for (const Blocking::Run &run : stage.blocking->runs)
    for (size_t number = 0; number < stage.groups[run.group].accumulators.size(); ++number)
      pack(run, number);
}

/// Where the panel is packed that begins at a column of the run's accumulator of that number.
Value Emitter::packedPanel(const Stage &of, const ColumnsBlock &columns, const Blocking::Run &run,
                           size_t accumulator, Value column) {
  auto stepsOfRun = [&](const Blocking::Run &one) { return extent(of.segmentOf(one).extent); };
  Value width = extent(of.blocking->packedColumns);
  Value before = b.createOrFold<arith::SubIOp>(column, columns.origin);
  before = add(before, mul(constant(static_cast<int64_t>(accumulator)), width));
  Value place = mul(before, stepsOfRun(run));
  for (const Blocking::Run &earlier : of.blocking->runs) {
    if (earlier.group == run.group && earlier.segment == run.segment)
      break;
    auto together = static_cast<int64_t>(of.groups[earlier.group].accumulators.size());
    place = add(place, mul(stepsOfRun(earlier), mul(constant(together), width)));
  }
  return bytes(columns.panels, mul(place, constant(kBytes)));
}

/// Blocks of rows, and of the steps of each run for these. With several runs, operands are packed.
void Emitter::forStepsBlocks(const Stage &stage, ArrayRef<Value> outer, const ColumnsBlock &columns,
                             Value firstPanel, Value rows,
                             llvm::function_ref<void(Value rowBegin, Value rows)> body) {
  const Blocking &blocking = *stage.blocking;
  auto atLeast = [&](Value number, Value least) {
    return b.createOrFold<arith::MaxSIOp>(number, least);
  };
  std::vector<SmallVector<RightInBlock, 2>> rights(blocking.runs.size());
  for (auto [run, all] : llvm::zip(blocking.runs, rights))
    for (size_t number = 0; number < stage.groups[run.group].accumulators.size(); ++number)
      all.push_back(rightInBlock(stage, outer, columns, run, number));
  Value work = packingPlace(layout_.packing.size() - 1);
  Value sums = columns.choose(b, work, scratch_);
  Value sumsBytes = columns.choose(b, constant(stage.sumsOfTile() * kBytes), constant(0));
  Value rowsTogether = columns.choose(b, constant(blocking.rows), atLeast(rows, constant(1)));
  auto byRows = scf::ForOp::create(b, constant(0), rows, rowsTogether);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(byRows.getBody());
  Value rowBegin = byRows.getInductionVar();
  Value rowsHere = minimum(rowsTogether, b.createOrFold<arith::SubIOp>(rows, rowBegin));
  for (auto [number, run] : llvm::enumerate(blocking.runs)) {
    auto [from, until] = stepsOf(stage, stage.segmentOf(run));
    // Without steps, sums are zero.
    Value end = atLeast(until, add(from, constant(1)));
    Value stepsTogether =
        columns.choose(b, constant(blocking.steps), b.createOrFold<arith::SubIOp>(end, from));
    auto bySteps = scf::ForOp::create(b, from, end, stepsTogether);
    OpBuilder::InsertionGuard inRun(b);
    b.setInsertionPointToStart(bySteps.getBody());
    Value begin = bySteps.getInductionVar(), next = add(begin, stepsTogether), isFirst, isLast;
    if (run.segment == 0)
      isFirst = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, begin, from);
    else
      isFirst = arith::ConstantOp::create(b, b.getBoolAttr(false));
    if (number + 1 == blocking.runs.size())
      isLast = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sge, next, until);
    stepsBlock_ = StepsBlock{run,
                             columns,
                             begin,
                             minimum(next, until),
                             isFirst,
                             isLast,
                             sums,
                             sumsBytes,
                             bytes(work, blocking.sumsBytes),
                             firstPanel,
                             rights[number]};
    body(rowBegin, rowsHere);
    stepsBlock_.reset();
  }
}

/// Whether the steps at hand are the turn's.
bool Emitter::computes(const Stage &stage, const Turn &turn) const {
  return !stepsBlock_ || turn.group == &stage.groups[stepsBlock_->run.group];
}

/// A tile with its place among those whose sums wait for the next steps.
Emitter::Tile Emitter::withSums(const Stage &stage, const Tile &tile) {
  if (!stepsBlock_)
    return tile;
  const StepsBlock &block = *stepsBlock_;
  int64_t tilesOfPanel = stage.blocking->rows / stage.tileRows;
  Value panel = b.createOrFold<arith::SubIOp>(tile.panels.front(), block.firstPanel);
  Value number = add(mul(panel, constant(tilesOfPanel)), tile.number);
  Tile now = tile;
  now.sums = bytes(block.sums, mul(number, block.sumsBytes));
  return now;
}

/// What comes before the sums of a tile: `firstRow` gives the index of its first row.
Emitter::Tile Emitter::enterBlock(const Stage &stage, const Tile &tile,
                                  llvm::function_ref<std::vector<Value>()> firstRow) {
  if (!stepsBlock_)
    return tile;
  askForPanel(stage, tile);
  if (stepsBlock_->run.packsLeft)
    packRows(stage, tile, firstRow());
  return withSums(stage, tile);
}

/// Each tile asks for its share of the next panel, which no cache of the core's own holds.
void Emitter::askForPanel(const Stage &stage, const Tile &tile) {
  int64_t columns = stage.lanes * stage.tileVectors;
  int64_t tilesOfPanel = stage.blocking->rows / stage.tileRows;
  int64_t lines =
      llvm::divideCeil(stage.blocking->steps * columns * kBytes, kLineBytes * tilesOfPanel);
  when(stepsBlock_->columns.packs, [&] {
    Value column = mul(add(tile.panels.front(), constant(1)), constant(columns));
    Value panel = stepsBlock_->rights.front().at(*this, column, stepsBlock_->begin);
    Value share = bytes(panel, mul(tile.number, constant(lines * kLineBytes)));
    loop(constant(0), constant(lines), 1, [&](Value line) {
      LLVM::Prefetch::create(b, bytes(share, mul(line, constant(kLineBytes))), 0, 2, 1);
    });
  });
}

/// The sums at these places of a tile as the steps before the block have left them, or `start`.
SmallVector<Value> Emitter::sumsOfStepsBefore(const Stage &stage, const Tile &tile,
                                              ArrayRef<size_t> places, ArrayRef<Value> start) {
  auto choose = scf::IfOp::create(b, ValueRange(start).getTypes(), stepsBlock_->isFirst, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choose.thenBlock());
  scf::YieldOp::create(b, start);
  b.setInsertionPointToStart(choose.elseBlock());
  SmallVector<Value> sums;
  for (auto [place, sum] : llvm::zip(places, start))
    sums.push_back(loadAs(sum.getType(),
                          bytes(tile.sums, static_cast<int64_t>(place) * stage.lanes * kBytes),
                          kBytes));
  scf::YieldOp::create(b, sums);
  return SmallVector<Value>(choose.getResults());
}

/// What is done with sums when no steps follow: always, where all are computed at once.
void Emitter::afterLastSteps(llvm::function_ref<void()> body) {
  if (!stepsBlock_)
    return body();
  if (stepsBlock_->isLast)
    when(stepsBlock_->isLast, body);
}

void Emitter::beforeLastSteps(llvm::function_ref<void()> body) {
  if (!stepsBlock_->isLast)
    return body();
  auto choose = scf::IfOp::create(b, stepsBlock_->isLast, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choose.elseBlock());
  body();
}

/// Where the rows of a tile are packed, step by step.
Value Emitter::packedRows(const Stage &stage, const Tile &tile) {
  int64_t tileBytes = stage.blocking->steps * stage.tileRows * kBytes;
  return bytes(stepsBlock_->left, mul(tile.number, constant(tileBytes)));
}

/// Packs the rows of a tile for the steps of the block, before its first panel. Rows that are not
/// the tile's are written after them, where the next step's or the next tile's come. `index` is of
/// the first row, without the column.
void Emitter::packRows(const Stage &stage, const Tile &tile, const std::vector<Value> &index) {
  const StepsBlock &block = *stepsBlock_;
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, tile.panels.front(), block.firstPanel);
  when(arith::AndIOp::create(b, isFirst, block.columns.packs), [&] {
    const ProductSegment &segment = stage.segmentOf(block.run);
    Place place;
    place.index = index;
    place.index.insert(place.index.end(), {constant(0), block.begin});
    Operand from =
        operandAt(segment.lhs, segment.lhsView, place, static_cast<int>(index.size()) + 1);
    auto steps = scf::ForOp::create(b, block.begin, block.end, constant(1),
                                    ValueRange{from.pointer, packedRows(stage, tile)});
    b.setInsertionPointToEnd(steps.getBody());
    Value source = steps.getRegionIterArg(0), target = steps.getRegionIterArg(1);
    auto type = VectorType::get({stage.lanes}, f32_);
    for (int64_t row = 0; row < stage.tileRows; row += stage.lanes)
      LLVM::StoreOp::create(b, loadAs(type, bytes(source, row * kBytes), kBytes),
                            bytes(target, row * kBytes), kBytes);
    scf::YieldOp::create(
        b, ValueRange{bytes(source, from.stride), bytes(target, stage.tileRows * kBytes)});
  });
}

/// The rows of a tile whose left operand may be packed: `first` is its first row, where it lies.
SmallVector<Emitter::Operand> Emitter::leftsInBlock(const Stage &stage, const Tile &tile,
                                                    const Operand &first, int64_t rows) {
  const ColumnsBlock &columns = stepsBlock_->columns;
  Value begin = columns.choose(b, packedRows(stage, tile), first.pointer);
  Value stride = columns.choose(b, constant(stage.tileRows * kBytes), first.stride);
  SmallVector<Operand> lefts;
  for (int64_t row = 0; row < rows; ++row)
    lefts.push_back({bytes(begin, row * kBytes), stride, first.buffer});
  return lefts;
}

/// The right operand of an accumulator of a run's group, packed or where it lies: what tiles find
/// it by.
Emitter::RightInBlock Emitter::rightInBlock(const Stage &stage, ArrayRef<Value> outer,
                                            const ColumnsBlock &columns, const Blocking::Run &run,
                                            size_t number) {
  const Accumulator &accumulator = stage.accumulators[stage.groups[run.group].accumulators[number]];
  const ProductSegment &segment = accumulator.product->segments[run.segment];
  int k = static_cast<int>(stage.shape.size());
  Place place;
  place.index.assign(outer.begin(), outer.end());
  place.index.insert(place.index.end(), {constant(0), constant(accumulator.column), constant(0)});
  place.lanesAxis = k - 1;
  Operand lying = operandAt(segment.rhs, segment.rhsView, place, k);
  Value steps = extent(segment.extent);
  return {columns.choose(b, packedPanel(stage, columns, run, number, constant(0)), lying.pointer),
          columns.choose(b, mul(steps, constant(kBytes)), constant(kBytes)),
          columns.choose(b, constant(stage.lanes * stage.tileVectors * kBytes), lying.stride),
          lying};
}

/// Where the panel from a column on has a step.
Value Emitter::RightInBlock::at(Emitter &emitter, Value column, Value step) const {
  Value panel = emitter.bytes(begin, emitter.mul(column, columnBytes));
  return emitter.bytes(panel, emitter.mul(step, stepBytes));
}

/// Blocks of columns of which all are packed.
void Emitter::forPackedColumns(const Stage &stage, const ColumnsBlock &all,
                               llvm::function_ref<void(const ColumnsBlock &)> body) {
  Value step = all.choose(b, constant(stage.blocking->columns),
                          b.createOrFold<arith::MaxSIOp>(all.end, constant(1)));
  auto blocks = scf::ForOp::create(b, all.begin, all.end, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  ColumnsBlock block = all;
  block.begin = blocks.getInductionVar();
  block.end = minimum(add(block.begin, step), all.end);
  body(block);
}

/// Packs what the products of a row block read whole, before its rows; these go by once for each
/// block of columns, if not all are packed.
void Emitter::inRowBlock(const RowBlock &block, ArrayRef<Value> outer,
                         llvm::function_ref<void()> body) {
  ArrayRef<Stage> stages = ArrayRef(layout_.stages).slice(block.begin, block.end - block.begin);
  Value rows = extent(block.axes.back());
  std::function<void(size_t)> from = [&](size_t i) {
    if (i == stages.size())
      return body();
    const Stage &stage = stages[i];
    if (!stage.blocking)
      return from(i + 1);
    Value packs = isWorthPacking(stage, outer, rows);
    forColumns(stage, outer, packs, /*several=*/!stage.blocking->packsWhole,
               [&](const ColumnsBlock &columns) {
                 columnsOf_[numberOf(stage)] = columns;
                 from(i + 1);
               });
  };
  from(0);
}

} // namespace sheaf::kernels::cpu
