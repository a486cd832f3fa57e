//===- EmitRuns.cpp - Runs over k: the inner loops of products ------------===//
#include "compiler/kernels/Emitter.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;

namespace sheaf::kernels {
namespace {

/// A step that adds to more accumulators is long enough to be unrolled once only.
constexpr size_t kManySums = 8;

/// What a run over `steps` can be unrolled by: all of it where it is known, else what divides it.
int64_t divisorOf(Value steps) {
  SmallVector<Value> work{steps};
  int64_t divisor = 0;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (std::optional<int64_t> known = getConstantIntValue(value))
      divisor = std::gcd(divisor, *known);
    else if (auto either = value.getDefiningOp<arith::SelectOp>())
      work.append({either.getTrueValue(), either.getFalseValue()});
    else
      return 1;
  }
  return divisor;
}

} // namespace

/// An operand of a tile's product where k is 0.
Emitter::Operand Emitter::operandAt(Value value, const View &view, const Place &place, int k) {
  const Buffer &buffer = *plan_.bufferOf.lookup(value);
  Operand operand{address(buffer, indices(buffer, view, place)), constant(0), &buffer};
  for (auto [axis, map] : llvm::enumerate(view))
    if (map.axis == k)
      operand.stride = add(operand.stride, strides(buffer)[axis]);
  return operand;
}

/// Element k of a left operand, in every lane.
Value Emitter::leftLanes(const Operand &operand, Value k, int64_t lanes) {
  Value element = loadElement(*operand.buffer, bytes(operand.pointer, mul(k, operand.stride)));
  return splat(toLanes(element, operand.buffer->dtype), lanes);
}

/// Row k of a right operand that is not packed: vector number `vector` of all operands'.
Value Emitter::rightLanes(const Stage &stage, ArrayRef<Operand> rights, size_t vector, Value k) {
  const Operand &operand = rights[vector / static_cast<size_t>(stage.tileVectors)];
  ops::DType dtype = operand.buffer->dtype;
  int64_t place = static_cast<int64_t>(vector) % stage.tileVectors * stage.lanes * bytesOf(dtype);
  Value at = bytes(bytes(operand.pointer, mul(k, operand.stride)), place);
  auto stored = VectorType::get({stage.lanes}, storageType(dtype));
  return toLanes(loadAs(stored, at, bytesOf(dtype)), dtype);
}

/// Adds step number `number` to the accumulators. The fewer operands wait in registers for the
/// others, as the tile was chosen for.
void Emitter::emitStep(const Step &step, Value number, MutableArrayRef<Value> sums) {
  auto add = [&](size_t row, size_t vector, Value left, Value right) {
    Value &sum = sums[row * step.vectors + vector];
    sum = step.add(left, right, sum);
  };
  SmallVector<Value> waiting;
  if (step.rows < step.vectors) {
    for (size_t row = 0; row < step.rows; ++row)
      waiting.push_back(step.left(row, number));
    for (size_t vector = 0; vector < step.vectors; ++vector) {
      Value right = step.right(vector, number);
      for (size_t row = 0; row < step.rows; ++row)
        add(row, vector, waiting[row], right);
    }
  } else {
    for (size_t vector = 0; vector < step.vectors; ++vector)
      waiting.push_back(step.right(vector, number));
    for (size_t row = 0; row < step.rows; ++row) {
      Value left = step.left(row, number);
      for (size_t vector = 0; vector < step.vectors; ++vector)
        add(row, vector, left, waiting[vector]);
    }
  }
}

/// Adds one run over k to the accumulators `sums` (row by row, vectors of the group's products):
/// the inner loop of all products. With packed weights it is unrolled: where another program runs
/// on the same core, each of them gets half of the instructions that the core can begin, and those
/// that only count are as dear as multiply-adds. Matrices of instances gain nothing by it, and
/// their strides make it slow to compile.
SmallVector<Value> Emitter::emitRun(const Step &step, Value steps, ArrayRef<Value> sums) {
  int64_t unroll = 1, rest = 0;
  if (step.packed)
    unroll = step.rows * step.vectors > kManySums ? 2 : 4;
  std::optional<int64_t> known = getConstantIntValue(steps);
  if (known)
    rest = *known % unroll;
  else
    unroll = std::gcd(unroll, divisorOf(steps));
  Value end = known ? constant(*known - rest) : steps;
  auto along = scf::ForOp::create(b, constant(0), end, constant(unroll), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(along.getBody());
    SmallVector<Value> now(along.getRegionIterArgs());
    for (int64_t i = 0; i < unroll; ++i)
      emitStep(step, add(along.getInductionVar(), constant(i)), now);
    scf::YieldOp::create(b, now);
  }
  SmallVector<Value> now(along.getResults());
  for (int64_t i = 0; i < rest; ++i)
    emitStep(step, add(end, constant(i)), now);
  return now;
}

/// A run of one multiply-add for each k.
SmallVector<Value> Emitter::emitChain(ArrayRef<Operand> rows, Value extent, ArrayRef<Value> sums,
                                      int64_t lanes, bool packed,
                                      llvm::function_ref<Value(size_t vector, Value step)> right) {
  auto left = [&](size_t row, Value k) { return leftLanes(rows[row], k, lanes); };
  auto add = [&](Value a, Value c, Value sum) { return multiplyAdd(a, c, sum); };
  return emitRun({rows.size(), sums.size() / rows.size(), packed, left, right, add}, extent, sums);
}

/// A panel of `steps` steps of so many bytes. It is read once a tile, and its first reading would
/// wait for a cache further out than the second level: so each tile asks for its share of the next
/// panel, a line or a few for every step.
Emitter::Panel Emitter::panelOf(const ProductGroup &group, const Tile &tile, int64_t stepBytes,
                                int64_t steps, int64_t linesAStep) {
  Value panels = atEntry([&] { return loadAs(pointer_, bytes(weights_, 8 * group.weightUse), 8); });
  Value packed = bytes(panels, mul(tile.panel, constant(steps * stepBytes)));
  Value share = bytes(bytes(panels, mul(tile.following, constant(steps * stepBytes))),
                      mul(tile.number, constant(linesAStep * steps * kLineBytes)));
  Value isNeeded = arith::CmpIOp::create(
      b, arith::CmpIPredicate::slt, tile.number,
      constant(static_cast<int64_t>(llvm::divideCeil(stepBytes, linesAStep * kLineBytes))));
  return {packed, arith::SelectOp::create(b, isNeeded, share, packed)};
}

/// The runs of a group whose weights are packed, one behind the other: `step` bytes for each k.
/// Several runs are one loop in the code, with its operands chosen by the number of the run.
SmallVector<Value> Emitter::emitPacked(const Stage &stage, const ProductGroup &group,
                                       const Tile &tile, int64_t step,
                                       ArrayRef<SmallVector<Operand>> lefts, ArrayRef<Value> sums) {
  auto type = VectorType::get({stage.lanes}, f32_);
  SmallVector<Value> extents;
  for (const ProductSegment &segment : group.lead->segments)
    extents.push_back(constant(segment.extent.constant()));
  auto [packed, asked] = panelOf(group, tile, step, group.depth);
  auto run = [&](ArrayRef<Operand> rows, Value extent, ArrayRef<Value> from, Value weights,
                 Value lines) {
    auto right = [&](size_t vector, Value number) {
      if (vector == 0 && rows.size() > 2)
        LLVM::Prefetch::create(b, bytes(lines, mul(number, constant(kLineBytes))), 0, 2, 1);
      int64_t place = static_cast<int64_t>(vector) * stage.lanes * 4;
      return loadAs(type, bytes(bytes(weights, mul(number, constant(step))), place), 4);
    };
    return emitChain(rows, extent, from, stage.lanes, /*packed=*/true, right);
  };
  if (lefts.size() == 1)
    return run(lefts[0], extents[0], sums, packed, asked);

  SmallVector<Value> start(sums);
  start.append({packed, asked});
  auto runs = scf::ForOp::create(b, constant(0), constant(static_cast<int64_t>(lefts.size())),
                                 constant(1), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(runs.getBody());
  auto choose = [&](llvm::function_ref<Value(size_t)> of) {
    Value chosen = of(0);
    for (size_t s = 1; s < lefts.size(); ++s)
      if (of(s) != chosen) {
        Value isThis = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, runs.getInductionVar(),
                                             constant(static_cast<int64_t>(s)));
        chosen = arith::SelectOp::create(b, isThis, of(s), chosen);
      }
    return chosen;
  };
  SmallVector<Operand> rows;
  for (size_t row = 0; row < lefts[0].size(); ++row)
    rows.push_back({choose([&](size_t s) { return lefts[s][row].pointer; }),
                    choose([&](size_t s) { return lefts[s][row].stride; }), lefts[0][row].buffer});
  Value extent = choose([&](size_t s) { return extents[s]; });
  ValueRange carried = runs.getRegionIterArgs();
  Value weights = carried.drop_back().back(), lines = carried.back();
  SmallVector<Value> out =
      run(rows, extent, SmallVector<Value>(carried.drop_back(2)), weights, lines);
  out.push_back(bytes(weights, mul(extent, constant(step))));
  out.push_back(bytes(lines, mul(extent, constant(kLineBytes))));
  scf::YieldOp::create(b, out);
  return SmallVector<Value>(runs.getResults().drop_back(2));
}

} // namespace sheaf::kernels
