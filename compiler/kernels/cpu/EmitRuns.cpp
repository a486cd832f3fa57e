//===- EmitRuns.cpp - Runs over k: the inner loops of products ------------===//
#include "compiler/kernels/cpu/Emitter.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// A step that adds to more accumulators is long enough to be unrolled once only.
constexpr int64_t kManySums = 12;
/// A step that adds to no more has just enough to do while it loads its operands.
constexpr int64_t kFewSums = 8;
/// Weights that are likely to be in a cache of the core's own or in the next.
constexpr int64_t kNearWeightBytes = int64_t{4} << 20;
/// Steps of a turn of the others' loops, where they divide the run.
constexpr int64_t kMostUnrolled = 4;

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

/// At how many steps a tile asks for a line of the next panel, and what part of the panel each tile
/// is given. To ask is an instruction more, and most lines come without: the processor sees where
/// the panel goes on, but not beyond a page. So tiles of few sums ask for half of the panel, with
/// yet fewer and weights that stay near for a fourth, and leave more to those that follow.
std::pair<int64_t, int64_t> askingOf(const Stage &stage, const ProductGroup &group, size_t rows,
                                     int64_t vectors) {
  if (stage.tileRows * vectors > kManySums)
    return {1, 1};
  int64_t columns = static_cast<int64_t>(group.accumulators.size()) * stage.shape.back().constant();
  bool areNear = 4 * group.depth * columns <= kNearWeightBytes;
  bool areFew = static_cast<int64_t>(rows) * vectors <= kFewSums;
  int64_t every = areNear && areFew ? kMostUnrolled : kMostUnrolled / 2;
  // Runs of several segments are unrolled by what divides them all.
  if (group.lead->segments.size() > 1)
    for (const ProductSegment &segment : group.lead->segments)
      every = std::gcd(every, segment.extent.constant());
  return {every, 2};
}

} // namespace

/// An operand of a tile's product where k is 0.
Emitter::Operand Emitter::operandAt(Value value, const View &view, const Place &place, int k) {
  const Buffer &buffer = *plan_.bufferOf.lookup(value);
  Operand operand{address(buffer, indices(view, place)), constant(0), &buffer};
  for (auto [axis, map] : llvm::enumerate(view))
    if (map.axis == k)
      operand.stride = add(operand.stride, strides(buffer)[axis]);
  return operand;
}

/// The right operand of a run, where it lies or as another stage has left it.
Emitter::Operand Emitter::rightAt(const Stage &stage, const ProductSegment &segment,
                                  const Place &place, int k, bool lies) {
  return lies ? operandAt(stage.lying->value, stage.lying->view, place, k)
              : operandAt(segment.rhs, segment.rhsView, place, k);
}

/// Where step `at` of a run is that so many bytes go on each.
Value Emitter::along(Value pointer, Value stride, At at) {
  std::optional<int64_t> known = getConstantIntValue(stride);
  // What an address may multiply an index with costs nothing.
  bool isFree = known && llvm::is_contained({0, 1, 2, 4, 8}, *known);
  Value turn;
  for (const Walk &walk : walks_)
    if (!isFree && walk.from == pointer && walk.stride == stride)
      turn = walk.at;
  if (!turn) {
    turn = bytes(pointer, mul(at.turn, stride));
    if (!isFree && isa<BlockArgument>(at.turn))
      walks_.push_back({pointer, stride, turn});
  }
  return bytes(turn, known ? constant(at.step * *known) : mul(constant(at.step), stride));
}

/// Lets a loop carry what its turns computed from their number by a multiplication each: LLVM would
/// find that out for longer than all the rest of the kernel takes. Addresses that go on by the same
/// share what they have gone on by; one alone is carried itself.
scf::ForOp Emitter::carryWalks(scf::ForOp loop, ArrayRef<Walk> walks) {
  llvm::MapVector<Value, SmallVector<Walk>> byStride;
  for (const Walk &walk : walks)
    byStride[walk.stride].push_back(walk);
  SmallVector<Value> starts, strides;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(loop);
    for (const auto &[stride, same] : byStride) {
      starts.push_back(same.size() == 1 ? same.front().from : constant(0));
      strides.push_back(mul(loop.getStep(), stride));
    }
  }
  auto goOn = [&](OpBuilder &, Location, ArrayRef<BlockArgument> now) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    SmallVector<Value> next;
    for (auto [value, stride] : llvm::zip_equal(now, strides))
      next.push_back(value.getType() == pointer_ ? bytes(value, stride) : add(value, stride));
    return next;
  };
  IRRewriter rewriter(b);
  auto carrying = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, starts, /*replaceInitOperandUsesInLoop=*/false, goOn));
  auto carried = carrying.getRegionIterArgs().take_back(starts.size());
  for (auto [now, strided] : llvm::zip_equal(carried, byStride))
    for (const Walk &walk : strided.second) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfterValue(walk.at);
      rewriter.replaceOp(walk.at.getDefiningOp(),
                         now.getType() == pointer_ ? Value(now) : bytes(walk.from, now));
    }
  return carrying;
}

Value Emitter::numberOf(At at) { return add(at.turn, constant(at.step)); }

/// Element k of a left operand, in every lane.
Value Emitter::leftLanes(const Operand &operand, At k, int64_t lanes) {
  Value element = loadElement(*operand.buffer, along(operand.pointer, operand.stride, k));
  return splat(toLanes(element, operand.buffer->dtype), lanes);
}

/// Row k of a right operand that is not packed: vector number `vector` of all operands'.
Value Emitter::rightLanes(const Stage &stage, ArrayRef<Operand> rights, size_t vector, At k) {
  const Operand &operand = rights[vector / static_cast<size_t>(stage.tileVectors)];
  ops::DType dtype = operand.buffer->dtype;
  int64_t place = static_cast<int64_t>(vector) % stage.tileVectors * stage.lanes * bytesOf(dtype);
  Value at = bytes(along(operand.pointer, operand.stride, k), place);
  auto stored = VectorType::get({stage.lanes}, storageType(dtype));
  return toLanes(loadAs(stored, at, bytesOf(dtype)), dtype);
}

/// Adds one step to the accumulators. The fewer operands wait in registers for the others, as the
/// tile was chosen for.
void Emitter::emitStep(const Step &step, At at, MutableArrayRef<Value> sums) {
  auto add = [&](size_t row, size_t vector, Value left, Value right) {
    Value &sum = sums[row * step.vectors + vector];
    sum = step.add(left, right, sum);
  };
  for (at.half = 0; at.half < step.halves; ++at.half) {
    SmallVector<Value> waiting;
    if (step.rows < step.vectors) {
      for (size_t row = 0; row < step.rows; ++row)
        waiting.push_back(step.left(row, at));
      for (size_t vector = 0; vector < step.vectors; ++vector) {
        Value right = step.right(vector, at);
        for (size_t row = 0; row < step.rows; ++row)
          add(row, vector, waiting[row], right);
      }
    } else {
      for (size_t vector = 0; vector < step.vectors; ++vector)
        waiting.push_back(step.right(vector, at));
      for (size_t row = 0; row < step.rows; ++row) {
        Value left = step.left(row, at);
        for (size_t vector = 0; vector < step.vectors; ++vector)
          add(row, vector, left, waiting[vector]);
      }
    }
  }
}

/// Adds one run over k to the accumulators `sums` (row by row, vectors of the group's products):
/// the inner loop of all products. It is unrolled: where another program runs on the same core,
/// each of them gets half of the instructions that the core can begin, and those that only count
/// are as dear as multiply-adds; and of few turns a processor foresees the last. But where strides
/// and the number of steps are those of an instance, each step of a turn would need registers of
/// its own.
SmallVector<Value> Emitter::emitRun(const Step &step, Value steps, ArrayRef<Value> sums) {
  std::optional<int64_t> known = getConstantIntValue(steps);
  int64_t unroll = 1, rest = 0;
  if (step.packed || known)
    unroll = static_cast<int64_t>(step.rows * step.vectors) > kManySums ? 2 : kMostUnrolled;
  if (known)
    unroll = std::clamp<int64_t>(*known, 1, unroll);
  if (known)
    rest = *known % unroll;
  else
    unroll = std::gcd(unroll, divisorOf(steps));
  Value end = known ? constant(*known - rest) : steps;
  auto turns = scf::ForOp::create(b, constant(0), end, constant(unroll), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(turns.getBody());
    SmallVector<Value> now(turns.getRegionIterArgs());
    walks_.clear();
    for (int64_t i = 0; i < unroll; ++i) {
      if (step.ask && i % step.askEvery == 0)
        step.ask({turns.getInductionVar(), i});
      emitStep(step, {turns.getInductionVar(), i}, now);
    }
    scf::YieldOp::create(b, now);
  }
  turns = carryWalks(turns, std::exchange(walks_, {}));
  SmallVector<Value> now(turns.getResults().take_front(sums.size()));
  for (int64_t i = 0; i < rest; ++i)
    emitStep(step, {end, i}, now);
  return now;
}

/// A run of one multiply-add for each k.
SmallVector<Value> Emitter::emitChain(ArrayRef<Operand> rows, Value extent, ArrayRef<Value> sums,
                                      int64_t lanes, bool packed,
                                      llvm::function_ref<Value(size_t vector, At k)> right,
                                      llvm::function_ref<void(At k)> ask, int64_t askEvery) {
  auto left = [&](size_t row, At k) { return leftLanes(rows[row], k, lanes); };
  auto add = [&](Value a, Value c, Value sum) { return multiplyAdd(a, c, sum); };
  return emitRun({rows.size(), sums.size() / rows.size(), packed, left, right, add, ask, askEvery},
                 extent, sums);
}

/// A panel of `steps` steps of so many bytes. It is read once a tile, and its first reading would
/// wait for a cache further out than the second level: so each tile asks for its share of the next
/// panel, so many bytes for every step. Where accumulators take turns that is the next one's, which
/// lies after it.
Emitter::Panel Emitter::panelOf(const Turn &turn, const Tile &tile, int64_t stepBytes,
                                int64_t steps, int64_t askedAStep) {
  const ProductGroup &group = *turn.group;
  Value panels = atEntry([&] { return loadAs(pointer_, bytes(weights_, 8 * group.weightUse), 8); });
  int64_t own = steps * stepBytes;
  auto turns = static_cast<int64_t>(group.accumulators.size() / turn.accumulators.size());
  Value begin = turn.further(*this, bytes(panels, turn.first * own), own);
  auto at = [&](Value panel) { return bytes(begin, mul(panel, constant(turns * own))); };
  SmallVector<Value, 2> packed;
  for (Value panel : tile.panels)
    packed.push_back(at(panel));
  Value next = turn.number ? bytes(packed.front(), own) : at(tile.following);
  Value share = bytes(next, mul(tile.number, constant(askedAStep * steps)));
  Value isNeeded = arith::CmpIOp::create(
      b, arith::CmpIPredicate::slt, tile.number,
      constant(static_cast<int64_t>(llvm::divideCeil(stepBytes, askedAStep))));
  return {packed, arith::SelectOp::create(b, isNeeded, share, packed.front())};
}

/// The runs of a group whose weights are packed, one after the other. Several runs are one loop in
/// the code, with its operands chosen by the number of the run.
SmallVector<Value> Emitter::emitPacked(const Stage &stage, const Turn &turn, const Tile &tile,
                                       ArrayRef<SmallVector<Operand>> lefts, ArrayRef<Value> sums) {
  auto type = VectorType::get({stage.lanes}, f32_);
  SmallVector<Value> extents;
  for (const ProductSegment &segment : turn.group->lead->segments)
    extents.push_back(constant(segment.extent.constant()));
  int64_t vectors = static_cast<int64_t>(turn.accumulators.size()) * stage.tileVectors;
  int64_t step = vectors * stage.lanes * 4;
  auto [askEvery, share] = askingOf(stage, *turn.group, lefts[0].size(), vectors);
  int64_t askedAStep = kLineBytes / askEvery;
  auto [packed, asked] = panelOf(turn, tile, step, turn.group->depth, kLineBytes / share);
  auto run = [&](ArrayRef<Operand> rows, Value extent, ArrayRef<Value> from,
                 ArrayRef<Value> weights, Value lines) {
    auto right = [&](size_t vector, At k) {
      int64_t number = static_cast<int64_t>(vector), across = tile.vectors(stage);
      int64_t accumulator = number / across, v = number % across;
      int64_t place = (accumulator * stage.tileVectors + v % stage.tileVectors) * stage.lanes * 4;
      Value panel = weights[static_cast<size_t>(v / stage.tileVectors)];
      return loadAs(type, bytes(along(panel, constant(step), k), place), 4);
    };
    auto ask = [&](At k) {
      if (rows.size() > 2)
        LLVM::Prefetch::create(b, along(lines, constant(askedAStep), k), 0, 2, 1);
    };
    return emitChain(rows, extent, from, stage.lanes, /*packed=*/true, right, ask, askEvery);
  };
  if (lefts.size() == 1)
    return run(lefts[0], extents[0], sums, packed, asked);

  SmallVector<Value> start(sums);
  llvm::append_range(start, packed);
  start.push_back(asked);
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
  SmallVector<Value> carried(runs.getRegionIterArgs());
  Value lines = carried.back();
  ArrayRef<Value> weights = ArrayRef(carried).slice(sums.size(), packed.size());
  SmallVector<Value> out =
      run(rows, extent, ArrayRef(carried).take_front(sums.size()), weights, lines);
  for (Value panel : weights)
    out.push_back(bytes(panel, mul(extent, constant(step))));
  out.push_back(bytes(lines, mul(extent, constant(askedAStep))));
  scf::YieldOp::create(b, out);
  return SmallVector<Value>(runs.getResults().take_front(sums.size()));
}

} // namespace sheaf::kernels::cpu
