//===- EmitTurned.cpp - Loops whose operands lie the other way round ------===//
//
// A loop that lays keys out for products reads, along the lanes of what it writes, a row of memory
// for each element. Where rows are a multiple of a page's half apart, they are in a few sets of the
// cache as well. So such a loop goes by blocks: as many rows as a vector has lanes, a vector of
// each, and these vectors are transposed in registers.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

/// As many vectors as they have lanes, with rows for columns.
SmallVector<Value> Emitter::transposeLanes(SmallVector<Value> rows) {
  // Each turn shuffles the first half of the vectors into the second, element by element.
  int64_t lanes = static_cast<int64_t>(rows.size());
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    low.push_back(lane / 2 + lane % 2 * lanes);
    high.push_back(lanes / 2 + lane / 2 + lane % 2 * lanes);
  }
  for (int64_t turn = 1; turn < lanes; turn *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < lanes / 2; ++i) {
      Value first = rows[i], second = rows[i + lanes / 2];
      next.push_back(vector::ShuffleOp::create(b, first, second, low));
      next.push_back(vector::ShuffleOp::create(b, first, second, high));
    }
    rows = std::move(next);
  }
  return rows;
}

/// What `body` gives for one row of products, as the record at hand has its right operand.
SmallVector<Value> Emitter::eitherWay(const Stage &stage, TypeRange types,
                                      llvm::function_ref<SmallVector<Value>(bool lies)> body) {
  if (!stage.lying || stage.ownRows() == Dim(1))
    return body(stage.lying.has_value());
  Value isOneRow =
      b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, extent(stage.ownRows()), constant(1));
  auto choose = scf::IfOp::create(b, types, isOneRow, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choose.thenBlock());
  scf::YieldOp::create(b, body(true));
  b.setInsertionPointToStart(choose.elseBlock());
  scf::YieldOp::create(b, body(false));
  return SmallVector<Value>(choose.getResults());
}

/// Adds the steps from `first` to `end` to the sums of one row, from `column` on, of a right
/// operand whose columns are rows in memory: as many of these as a vector has lanes, a vector of
/// each, are transposed. There are no steps left over.
SmallVector<Value> Emitter::emitTurnedChain(const Stage &stage, const Operand &left, Value first,
                                            Value end, const std::vector<Value> &index,
                                            Value column, ArrayRef<Value> sums) {
  const Buffer &buffer = *plan_.bufferOf.lookup(stage.lying->value);
  Value last = add(extent(stage.shape.back()), constant(-1));
  SmallVector<Value> rows;
  for (int64_t lane = 0; lane < static_cast<int64_t>(sums.size()) * stage.lanes; ++lane) {
    Place place;
    place.index = index;
    // Beyond the last column it is that one again; no such sum is stored.
    place.index.insert(place.index.end(), {minimum(add(column, constant(lane)), last), first});
    rows.push_back(address(buffer, indices(stage.lying->view, place)));
  }
  // The rows of the next columns are as far on as all of these are long.
  Value ahead = constant(0);
  for (auto [axis, map] : llvm::enumerate(stage.lying->view))
    if (map.axis == static_cast<int>(stage.shape.size()) - 1)
      ahead = add(ahead, strides(buffer)[axis]);
  ahead = mul(ahead, constant(static_cast<int64_t>(rows.size())));

  // Factors in bf16 are taken in pairs: neighbours in memory, or two vectors that are rounded.
  bool arePairs = stage.sums == Sums::Pairs, areNarrow = buffer.dtype == ops::DType::BF16;
  auto type = VectorType::get({stage.lanes}, areNarrow ? Type(b.getI32Type()) : Type(f32_));
  int64_t together = areNarrow ? 2 * stage.lanes : stage.lanes, perStep = arePairs ? 2 : 1;
  Value count = b.createOrFold<arith::SubIOp>(end, first);
  auto turns = scf::ForOp::create(b, constant(0), count, constant(together), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(turns.getBody());
  Value begin = turns.getInductionVar();
  Value offset = mul(begin, constant(bytesOf(buffer.dtype)));
  Value step = perStep == 1 ? begin : arith::DivSIOp::create(b, begin, constant(perStep));
  InPairs leftPairs = inPairs(left).front();
  SmallVector<At> steps;
  SmallVector<Value> lefts;
  walks_.clear();
  for (int64_t i = 0; i < together / perStep; ++i)
    for (At at{step, i}; at.half < (arePairs ? halvesOfStep() : 1); ++at.half) {
      steps.push_back(at);
      lefts.push_back(arePairs ? leftPair(leftPairs, at, true, stage.lanes)
                               : leftLanes(left, at, stage.lanes));
    }
  walks_.clear();
  SmallVector<Value> next;
  for (auto [vector, sum] : llvm::enumerate(turns.getRegionIterArgs())) {
    SmallVector<Value> columns;
    for (Value row : ArrayRef(rows).slice(vector * stage.lanes, stage.lanes)) {
      Value at = bytes(row, offset);
      columns.push_back(loadAs(type, at, bytesOf(buffer.dtype)));
      LLVM::Prefetch::create(b, bytes(at, ahead), 0, 3, 1);
    }
    columns = transposeLanes(std::move(columns));
    auto right = [&](At at) {
      auto i = static_cast<size_t>(at.step);
      if (!arePairs)
        return columns[i];
      return areNarrow ? stepOf(columns[i], at) : joinStep(at, true, [&](bool upper) {
        return toFactors(columns[2 * i + (upper ? 1 : 0)]);
      });
    };
    Value now = sum;
    for (auto [factor, at] : llvm::zip(lefts, steps))
      now = arePairs ? addStep(factor, right(at), now) : multiplyAdd(factor, right(at), now);
    next.push_back(now);
  }
  scf::YieldOp::create(b, next);
  return SmallVector<Value>(turns.getResults());
}

/// The loop of one record.
void Emitter::emitTurned(const Stage &stage) {
  forRanges(stage, [&](ArrayRef<std::pair<Value, Value>> ranges) { emitTurned(stage, ranges); });
}

void Emitter::emitTurned(const Stage &stage, ArrayRef<std::pair<Value, Value>> ranges) {
  int last = static_cast<int>(stage.shape.size()) - 1, turned = stage.turnedAxis;
  std::vector<Value> index(stage.shape.size());
  auto [firstRow, rows] = ranges[static_cast<size_t>(last)];
  auto [first, width] = ranges[static_cast<size_t>(turned)];
  Value whole =
      mul(b.createOrFold<arith::DivSIOp>(width, constant(kLoopLanes)), constant(kLoopLanes));

  auto block = [&](Value column, Value row) {
    Value end = add(rows, constant(-1));
    std::vector<Place> places;
    for (int64_t i = 0; i < kLoopLanes; ++i) {
      Place &place = places.emplace_back();
      place.index = index;
      place.index[turned] = column;
      place.index[last] = minimum(add(row, constant(i)), end);
      place.lanesAxis = turned;
    }
    for (const Root &root : stage.roots) {
      SmallVector<Value> vectors;
      {
        llvm::SaveAndRestore along(laneExtent_, stage.shape[turned]);
        for (const Place &place : places) {
          Scope scope;
          scope.stage = &stage;
          scope.place = &place;
          vectors.push_back(
              evaluate(root.value, identityView(stage.shape.size()), scope, root.computed));
        }
      }
      vectors = transposeLanes(std::move(vectors));
      for (auto [i, lanes] : llvm::enumerate(vectors)) {
        Place place;
        place.index = index;
        place.index[turned] = add(column, constant(static_cast<int64_t>(i)));
        place.index[last] = row;
        place.lanesAxis = last;
        store(stage, root, lanes, place);
      }
    }
  };
  auto rest = [&](Value column) {
    loop(firstRow, rows, kLoopLanes, [&](Value row) {
      Place place;
      place.index = index;
      place.index[turned] = column;
      place.index[last] = row;
      place.lanesAxis = last;
      Scope scope;
      scope.stage = &stage;
      scope.place = &place;
      writeRoots(stage, scope);
    });
  };
  // Rows are read from their beginning to their end, whichever axes these are in.
  auto nestOthers = [&](llvm::function_ref<void()> body) {
    llvm::SmallVector<int> others;
    for (int axis = 0; axis < last; ++axis)
      if (axis != turned)
        others.push_back(axis);
    std::function<void(size_t)> nestFrom = [&](size_t i) {
      if (i == others.size())
        return body();
      auto [from, until] = ranges[static_cast<size_t>(others[i])];
      loop(from, until, 1, [&](Value place) {
        index[others[i]] = place;
        nestFrom(i + 1);
      });
    };
    nestFrom(0);
  };
  loop(firstRow, rows, kLoopLanes, [&](Value row) {
    nestOthers([&] { loop(first, whole, kLoopLanes, [&](Value column) { block(column, row); }); });
  });
  if (whole != width)
    nestOthers([&] { loop(whole, width, 1, rest); });
}

} // namespace sheaf::kernels::cpu
