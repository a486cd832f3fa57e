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
