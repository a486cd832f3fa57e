//===- EmitAhead.cpp - Requests for memory that is needed later -----------===//
//
// Rows and matrices of records lie scattered, so the processor cannot foresee them. Panels of
// weights are asked for by the runs over them (EmitRuns.cpp).
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// A row that is asked for is so far ahead, and at least so long.
constexpr int64_t kAheadBytes = 4096;
constexpr int64_t kLeastAheadBytes = 512;
/// Rows narrower than this are in the first-level cache anyway.
constexpr int64_t kPrefetchWidth = 128;
/// A matrix that is asked for ahead is at least so large, by so many lines a tile at most.
constexpr int64_t kLeastMatrixBytes = 2048;
constexpr int64_t kMostLinesAsked = 16;

} // namespace

/// Rows lie scattered, so the processor cannot foresee the next. What a loop over this shape
/// computes hides the reading of rows that a later record takes, and of those that it writes, be it
/// another loop that writes them: one chunk ahead, or where all records are one chunk, kAheadBytes.
SmallVector<Emitter::RowAhead> Emitter::rowsAhead(ArrayRef<Dim> shape) {
  SmallVector<RowAhead> rows;
  int64_t bytesOfRow = bytesOf(ops::DType::F32) * knownElements(shape).value_or(0);
  if (bytesOfRow < kLeastAheadBytes)
    return rows;
  int64_t ahead = layout_.chunkRecords != INT64_MAX
                      ? layout_.chunkRecords
                      : std::max<int64_t>(kAheadBytes / bytesOfRow, 1);
  withRecordAhead(ahead, [&] {
    for (const Buffer &buffer : plan_.buffers) {
      if (ArrayRef(buffer.shape) == shape &&
          (buffer.kind == Buffer::Argument || buffer.kind == Buffer::Result))
        rows.push_back({&buffer, base(buffer)});
    }
  });
  return rows;
}

/// Asks for the lines of rows ahead that `place` is in. Each row is asked for by one loop: the
/// first that computes enough to hide it; else, where several pass over rows that stay near,
/// the last that reduces, or the last, for then the others have brought in what it reads.
void Emitter::ask(ArrayRef<RowAhead> rows, const Place &place, bool reduces) {
  Block *block = b.getInsertionBlock();
  bool computesMuch = llvm::any_of(*block, [](Operation &op) {
    return isa<math::MathDialect>(op.getDialect()) && !isa<math::FmaOp, math::AbsFOp>(op);
  });
  if (!computesMuch && (layout_.stages.size() == 1 || layout_.wantsRows()))
    return;
  int worth = computesMuch ? 2 : reduces ? 1 : 0;
  for (const RowAhead &row : rows) {
    Asking &asking = asking_[row.buffer];
    if (asking.loop != block) {
      if (computesMuch ? asking.worth >= worth : asking.worth > worth)
        continue;
      for (LLVM::Prefetch request : asking.requests)
        request.erase();
      asking = {block, worth, {}};
    }
    asking.requests.push_back(
        LLVM::Prefetch::create(b, addressFrom(row.base, *row.buffer, place.index),
                               row.buffer->kind == Buffer::Result, 2, 1));
  }
}

/// The epilogue's operands and results lie scattered: asks for their lines while the tile computes.
void Emitter::prefetch(const Stage &stage, const Tile &tile, EnterRow enter) {
  if (stage.shape.back().constant() < kPrefetchWidth)
    return;
  loop(constant(0), tile.rows, 1, [&](Value row) {
    enter(add(tile.first, row));
    auto line = [&](const Buffer &buffer, bool write) {
      int64_t panelBytes = stage.lanes * stage.tileVectors * bytesOf(buffer.dtype);
      Value first = bytes(base(buffer), mul(tile.panels.front(), constant(panelBytes)));
      for (int64_t offset = 0; offset < panelBytes * static_cast<int64_t>(tile.panels.size());
           offset += kLineBytes)
        LLVM::Prefetch::create(b, bytes(first, offset), write, 3, 1);
    };
    for (const Buffer *buffer : stage.prefetch)
      line(*buffer, false);
    for (const Root &root : stage.roots)
      if (root.buffer->kind == Buffer::Result && root.view == identityView(1))
        line(*root.buffer, true);
  });
}

/// Chains start at rows that lie scattered: each tile asks for those of the next one, which comes
/// after it in the panel, or first in the following panel.
void Emitter::prefetchStarts(const Stage &stage, const Tile &tile, Value count, EnterRow enter) {
  if (!stage.startsAtRows() || stage.shape.back().constant() < kPrefetchWidth)
    return;
  Value next = add(tile.first, tile.rows);
  Value isLast = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, next, count);
  Value first = arith::SelectOp::create(b, isLast, constant(0), next);
  Value panel = arith::SelectOp::create(b, isLast, tile.following, tile.panels.front());
  Value last = arith::SubIOp::create(b, count, constant(1));
  int64_t panelBytes = stage.lanes * stage.tileVectors * bytesOf(ops::DType::F32);
  Value begin = mul(panel, constant(panelBytes));
  loop(constant(0), tile.rows, 1, [&](Value row) {
    enter(minimum(add(first, row), last));
    for (const Accumulator &accumulator : stage.accumulators) {
      if (!accumulator.startRow())
        continue;
      Value at = bytes(base(*plan_.bufferOf.lookup(accumulator.startRow())), begin);
      int64_t column = accumulator.column * bytesOf(ops::DType::F32);
      for (int64_t offset = 0; offset < panelBytes; offset += kLineBytes)
        LLVM::Prefetch::create(b, bytes(at, column + offset), 0, 3, 1);
    }
  });
}

/// Matrices of instances lie scattered, and are read in strips: each tile of a record asks for its
/// share of the matrices of the next one.
SmallVector<Emitter::MatrixAhead> Emitter::matricesAhead(const Stage &stage) {
  SmallVector<MatrixAhead> ahead;
  if (stage.rowAxis != 0 || stage.fewRows || stage.shape.size() != 2 ||
      !stage.shape[0].isConstant() || !stage.shape[1].isConstant())
    return ahead;
  int64_t columns = stage.lanes * stage.tileVectors;
  int64_t tilesOfPanel = llvm::divideCeil(stage.shape[0].constant(), stage.tileRows);
  int64_t tiles = tilesOfPanel * llvm::divideCeil(stage.shape[1].constant(), columns);
  if (tiles == 0)
    return ahead;
  llvm::SmallPtrSet<const Buffer *, 4> seen;
  auto consider = [&](Value operand) {
    const Buffer *buffer = plan_.bufferOf.lookup(operand);
    if (!buffer || buffer->kind != Buffer::Argument || buffer->shape.size() != 2 ||
        !seen.insert(buffer).second)
      return;
    int64_t size = bytesOf(buffer->dtype) * knownElements(buffer->shape).value_or(0);
    int64_t lines = llvm::divideCeil(size, kLineBytes * tiles);
    if (size >= kLeastMatrixBytes && lines <= kMostLinesAsked)
      ahead.push_back({base(*buffer), lines, tilesOfPanel});
  };
  withRecordAhead(1, [&] {
    for (const Accumulator &accumulator : stage.accumulators)
      for (const ProductSegment &segment : accumulator.product->segments) {
        consider(segment.lhs);
        consider(segment.rhs);
      }
  });
  return ahead;
}

void Emitter::ask(ArrayRef<MatrixAhead> matrices, const Tile &tile) {
  for (const MatrixAhead &matrix : matrices) {
    Value number = add(mul(tile.panels.front(), constant(matrix.tilesOfPanel)), tile.number);
    Value share = bytes(matrix.base, mul(number, constant(matrix.lines * kLineBytes)));
    for (int64_t line = 0; line < matrix.lines; ++line)
      LLVM::Prefetch::create(b, bytes(share, line * kLineBytes), 0, 2, 1);
  }
}

} // namespace sheaf::kernels::cpu
