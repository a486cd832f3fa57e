//===- EmitTransposed.cpp - Tiles written with rows for columns -----------===//
//
// Where the rows of a tile are neighbours in memory and its columns are not (Planner::behindViews),
// what a tile comes to is put into scratch as any other, row by row, and then written in blocks of
// four by four, transposed in registers.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/Emitter.h"

#include <array>

using namespace mlir;

namespace sheaf::kernels {
namespace {

/// Rows and columns of a block.
constexpr int64_t kBlock = 4;
/// How two rows come to pairs of one from each, and two of such to columns: the first and the
/// second halves.
constexpr std::array<std::array<int64_t, kBlock>, 2> kPairs = {{{0, 4, 1, 5}, {2, 6, 3, 7}}};
constexpr std::array<std::array<int64_t, kBlock>, 2> kColumns = {{{0, 1, 4, 5}, {2, 3, 6, 7}}};

} // namespace

/// Where the tile's rows of a root lie in scratch; they are as long as the tile is wide.
Value Emitter::transposedRow(const Stage &stage, const Root &root, const Tile &tile, Value row) {
  int64_t rowBytes = tile.vectors(stage) * stage.lanes * bytesOf(ops::DType::F32);
  return bytes(bytes(scratch_, stage.transposedBegin + root.transposedBegin),
               mul(row, constant(rowBytes)));
}

/// Writes the tile's rows of all roots that lie in scratch.
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
    Value stride = constant(0);
    for (auto [axis, map] : llvm::enumerate(root.view))
      if (map.axis == lanesAxis)
        stride = add(stride, strides(*root.buffer)[axis]);
    return std::pair(address(*root.buffer, indices(*root.buffer, root.view, place)), stride);
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
  auto shuffle = [&](Value a, Value c, ArrayRef<int64_t> order) -> Value {
    return vector::ShuffleOp::create(b, a, c, order);
  };
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
      SmallVector<Value> rows, halves;
      for (Value row : from)
        rows.push_back(loadAs(four, bytes(row, place), size));
      for (const auto &order : kPairs)
        for (int64_t i = 0; i < kBlock; i += 2)
          halves.push_back(shuffle(rows[i], rows[i + 1], order));
      for (int64_t i = 0; i < kBlock; ++i) {
        Value lanes = shuffle(halves[i / 2 * 2], halves[i / 2 * 2 + 1], kColumns[i % 2]);
        LLVM::StoreOp::create(b, lanes, bytes(first, further[i]), size);
      }
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
    // The last rows are written once more rather than one by one.
    Value last = arith::SubIOp::create(b, tile.rows, constant(kBlock));
    Value some = arith::MaxSIOp::create(b, last, constant(0));
    Value end = arith::SelectOp::create(b, isLess(last, constant(0)), constant(0), tile.rows);
    loop(constant(0), end, kBlock, [&](Value begin) {
      Value row = minimum(begin, some);
      Value there = enter(root, add(row, constant(kBlock - 1))).first;
      auto [to, stride] = enter(root, row);
      // Rows of one record follow each other.
      Value distance = arith::SubIOp::create(b, LLVM::PtrToIntOp::create(b, i64_, there),
                                             LLVM::PtrToIntOp::create(b, i64_, to));
      Value isBlock = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, distance,
                                            constant((kBlock - 1) * size));
      auto choose = scf::IfOp::create(b, isBlock, true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(choose.thenBlock());
      SmallVector<Value> from;
      for (int64_t i = 0; i < kBlock; ++i)
        from.push_back(rowAt(add(row, constant(i))));
      inBlocks(from, to, stride);
      b.setInsertionPointToStart(choose.elseBlock());
      loop(row, add(row, constant(kBlock)), 1, alone);
    });
    loop(end, tile.rows, 1, alone);
  }
}

} // namespace sheaf::kernels
