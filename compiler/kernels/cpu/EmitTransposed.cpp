//===- EmitTransposed.cpp - Rows that are columns in memory ---------------===//
//
// Four rows that are neighbours in memory are read and written in blocks of four by four,
// transposed in registers.
//
// Where the rows of a tile are neighbours in memory and its columns are not (Planner::behindViews),
// what the tiles of a panel come to is put into scratch as any other, row by row, and written
// after the last of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

#include <array>
#include <numeric>

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// Rows and columns of a block.
constexpr int64_t kBlock = 4;
/// How two rows come to pairs of one from each, and two of such to columns: the first and the
/// second halves.
constexpr std::array<std::array<int64_t, kBlock>, 2> kPairs = {{{0, 4, 1, 5}, {2, 6, 3, 7}}};
constexpr std::array<std::array<int64_t, kBlock>, 2> kColumns = {{{0, 1, 4, 5}, {2, 3, 6, 7}}};

} // namespace

/// Four vectors of four, with rows for columns.
SmallVector<Value> Emitter::transposeBlock(ArrayRef<Value> rows) {
  SmallVector<Value> halves, columns;
  for (const auto &order : kPairs)
    for (int64_t i = 0; i < kBlock; i += 2)
      halves.push_back(vector::ShuffleOp::create(b, rows[i], rows[i + 1], order));
  for (int64_t i = 0; i < kBlock; ++i)
    columns.push_back(
        vector::ShuffleOp::create(b, halves[i / 2 * 2], halves[i / 2 * 2 + 1], kColumns[i % 2]));
  return columns;
}

/// Rows of one record follow each other: `addressOf` gives where each begins. Calls `block` for the
/// first of four that do, and `alone` for others.
void Emitter::forBlocks(Value rows, llvm::function_ref<Value(Value row)> addressOf,
                        llvm::function_ref<void(Value row)> block,
                        llvm::function_ref<void(Value row)> alone) {
  constexpr int64_t size = 4;
  auto takeSome = [&](Value row) {
    Value last = addressOf(add(row, constant(kBlock - 1))), first = addressOf(row);
    Value distance = arith::SubIOp::create(b, LLVM::PtrToIntOp::create(b, i64_, last),
                                           LLVM::PtrToIntOp::create(b, i64_, first));
    Value isBlock =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, distance, constant((kBlock - 1) * size));
    auto choose = scf::IfOp::create(b, i64_, isBlock, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choose.thenBlock());
    block(row);
    scf::YieldOp::create(b, constant(kBlock));
    b.setInsertionPointToStart(choose.elseBlock());
    alone(row);
    scf::YieldOp::create(b, constant(1));
    return choose.getResult(0);
  };
  Value rest = loopWhile(
      constant(0),
      [&](ValueRange row) {
        scf::ConditionOp::create(b, isLess(add(row[0], constant(kBlock - 1)), rows), row);
      },
      [&](ValueRange row) {
        Value taken = takeSome(row[0]);
        scf::YieldOp::create(b, add(row[0], taken));
      })[0];
  loop(rest, rows, 1, alone);
}

/// Whether the rows of a run are neighbours in memory.
bool Emitter::liesTransposed(const Stage &stage, const ProductSegment &segment) {
  const View &view = segment.lhsView;
  int k = static_cast<int>(stage.shape.size());
  return stage.rowsOfAllRecords && view.size() >= 2 && view.back().axis == k - 2 &&
         !view.back().index && dtypeOf(segment.lhs) == ops::DType::F32 &&
         llvm::any_of(view, [&](const AxisMap &map) { return map.axis == k && !map.index; });
}

/// Rounds the whole vectors of such a run.
void Emitter::emitFactorBlocks(const Stage &stage, const ProductSegment &segment, int64_t begin,
                               Value rows, EnterRow enter,
                               llvm::function_ref<void(Value row)> alone) {
  const Buffer &buffer = *plan_.bufferOf.lookup(segment.lhs);
  const int64_t size = factorBytes(stage.sums);
  auto addressOf = [&](Value row) {
    Place place;
    place.index = enter(row);
    place.index.insert(place.index.end(), {constant(0), constant(0)});
    return address(buffer, indices(segment.lhsView, place));
  };
  auto four = VectorType::get({kBlock}, f32_);
  auto join = [&](Value a, Value c) -> Value {
    SmallVector<int64_t> order(2 * cast<VectorType>(a.getType()).getNumElements());
    std::iota(order.begin(), order.end(), 0);
    return vector::ShuffleOp::create(b, a, c, order);
  };
  auto block = [&](Value row) {
    Value from = addressOf(row);
    Value stride = strideOf(buffer, segment.lhsView, static_cast<int>(stage.shape.size()));
    Value to = bytes(bytes(factorRows(), mul(row, constant(stage.factorRow))), begin);
    int64_t whole = segment.extent.constant() / kLoopLanes * kLoopLanes;
    auto steps = scf::ForOp::create(b, constant(0), constant(whole), constant(kLoopLanes), from);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(steps.getBody());
    Value at = steps.getRegionIterArg(0);
    std::array<SmallVector<Value>, kBlock> parts;
    for (int64_t i = 0; i < kLoopLanes / kBlock; ++i) {
      SmallVector<Value> columns;
      for (int64_t k = 0; k < kBlock; ++k, at = bytes(at, stride))
        columns.push_back(loadAs(four, at, bytesOf(buffer.dtype)));
      for (auto [part, lanes] : llvm::zip(parts, transposeBlock(columns)))
        part.push_back(lanes);
    }
    for (auto [i, part] : llvm::enumerate(parts)) {
      Value lanes = join(join(part[0], part[1]), join(part[2], part[3]));
      Value place = bytes(to, static_cast<int64_t>(i) * stage.factorRow);
      LLVM::StoreOp::create(b, toFactors(lanes),
                            bytes(place, mul(steps.getInductionVar(), constant(size))),
                            static_cast<unsigned>(size));
    }
    scf::YieldOp::create(b, at);
  };
  forBlocks(rows, addressOf, block, alone);
}

/// Where a row of a root lies in scratch: `row` counts among those that the panels pass over.
Value Emitter::transposedRow(const Stage &stage, const Root &root, const Tile &tile, Value row) {
  int64_t rowBytes = tile.vectors(stage) * stage.lanes * bytesOf(ops::DType::F32);
  return bytes(bytes(scratch_, stage.transposedBegin + root.transposedBegin),
               mul(row, constant(rowBytes)));
}

/// Writes the rows of all roots that lie in scratch; `tile` is of all rows.
void Emitter::emitTransposed(const Stage &stage, const Tile &tile, EnterRow indexOfRow) {
  const int64_t size = bytesOf(ops::DType::F32);
  Value column = mul(tile.panels.front(), constant(stage.lanes * stage.tileVectors));
  Value left = arith::SubIOp::create(b, extent(stage.shape.back()), column);
  Value width = minimum(left, constant(tile.vectors(stage) * stage.lanes));
  Value whole = arith::SubIOp::create(b, width, arith::RemSIOp::create(b, width, constant(kBlock)));
  int lanesAxis = static_cast<int>(stage.shape.size()) - 1;
  /// The first element of a row of the tile, and the bytes from column to column.
  auto enter = [&](const Root &root, Value row) {
    Place place;
    place.index = indexOfRow(row);
    place.index.push_back(column);
    place.lanesAxis = lanesAxis;
    Value stride = strideOf(*root.buffer, root.view, lanesAxis);
    return std::pair(address(*root.buffer, indices(root.view, place)), stride);
  };
  /// Elements from `begin` on, column by column; where they go is carried along.
  auto oneByOne = [&](Value from, Value to, Value stride, Value begin, Value end) {
    auto columns = scf::ForOp::create(b, begin, end, constant(1), to);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(columns.getBody());
    Value element = loadAs(f32_, bytes(from, mul(columns.getInductionVar(), constant(size))), size);
    LLVM::StoreOp::create(b, element, columns.getRegionIterArg(0), size);
    scf::YieldOp::create(b, bytes(columns.getRegionIterArg(0), stride));
  };
  auto four = VectorType::get({kBlock}, f32_);
  auto inBlocks = [&](ArrayRef<Value> from, Value to, Value stride) {
    SmallVector<Value> further{constant(0)};
    for (int64_t i = 1; i <= kBlock; ++i)
      further.push_back(add(further.back(), stride));
    auto columns = scf::ForOp::create(b, constant(0), whole, constant(kBlock), to);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(columns.getBody());
      Value place = mul(columns.getInductionVar(), constant(size));
      Value first = columns.getRegionIterArg(0);
      SmallVector<Value> rows;
      for (Value row : from)
        rows.push_back(loadAs(four, bytes(row, place), size));
      for (auto [i, lanes] : llvm::enumerate(transposeBlock(rows)))
        LLVM::StoreOp::create(b, lanes, bytes(first, further[i]), size);
      scf::YieldOp::create(b, bytes(first, further[kBlock]));
    }
    Value rest = columns.getResult(0);
    for (auto [i, row] : llvm::enumerate(from))
      oneByOne(row, bytes(rest, static_cast<int64_t>(i) * size), stride, whole, width);
  };

  for (const Root &root : stage.roots) {
    if (root.transposedBegin < 0)
      continue;
    auto rowAt = [&](Value row) { return transposedRow(stage, root, tile, row); };
    auto alone = [&](Value row) {
      auto [to, stride] = enter(root, row);
      oneByOne(rowAt(row), to, stride, constant(0), width);
    };
    auto block = [&](Value row) {
      auto [to, stride] = enter(root, row);
      SmallVector<Value> from;
      for (int64_t i = 0; i < kBlock; ++i)
        from.push_back(rowAt(add(row, constant(i))));
      inBlocks(from, to, stride);
    };
    forBlocks(tile.rows, [&](Value row) { return enter(root, row).first; }, block, alone);
  }
}

} // namespace sheaf::kernels::cpu
