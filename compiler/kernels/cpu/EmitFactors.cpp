//===- EmitFactors.cpp - Products of factors in bf16 ----------------------===//
//
// Rows are rounded once for all panels of a pass and lie one after the other in scratch, filled up
// with zeros; weights are packed so. What a pair of factors adds to a sum is what AVX512_BF16 says,
// and is computed exactly so where the processor has none; tiles are AMX's (docs/numerics.md).
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// Of a hardware tile: rows, and k in a row of factors.
constexpr int64_t kTileRows = 16, kTileDepth = 32;
constexpr int64_t kTileRegisters = 8;
/// Columns of sums that are computed at once, where these are one or two tiles high: the registers
/// that are left take the factors.
constexpr int64_t kMostTileSums[] = {6, 2};
/// The least number of f32 that is not subnormal.
constexpr float kLeastNormal = 0x1p-126f;

Value vectorConstant(ImplicitLocOpBuilder &b, Value like, double number) {
  auto type = cast<VectorType>(like.getType());
  TypedAttr element =
      isa<FloatType>(type.getElementType())
          ? TypedAttr(b.getFloatAttr(type.getElementType(), number))
          : TypedAttr(b.getIntegerAttr(type.getElementType(), static_cast<int64_t>(number)));
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<Attribute>{element}));
}

Value bitsAs(ImplicitLocOpBuilder &b, Type element, Value value) {
  return arith::BitcastOp::create(b, cast<VectorType>(value.getType()).clone(element), value);
}

/// Zero of the same sign where `isTiny` holds.
Value flushWhere(ImplicitLocOpBuilder &b, Value isTiny, Value x) {
  Value bits = bitsAs(b, b.getI32Type(), x);
  Value sign = arith::AndIOp::create(b, bits, vectorConstant(b, bits, double(INT32_MIN)));
  return arith::SelectOp::create(b, isTiny, bitsAs(b, b.getF32Type(), sign), x);
}

Value isBelow(ImplicitLocOpBuilder &b, Value x, double limit) {
  Value size = math::AbsFOp::create(b, x);
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, size, vectorConstant(b, x, limit));
}

Value flush(ImplicitLocOpBuilder &b, Value x) {
  return flushWhere(b, isBelow(b, x, kLeastNormal), x);
}

/// A lane's pair of factors: `low` and `high` are i16; without the latter it is zero.
Value joinPair(ImplicitLocOpBuilder &b, Value low, Value high) {
  auto lanes = dyn_cast<VectorType>(low.getType());
  Type wide = lanes ? Type(lanes.clone(b.getI32Type())) : b.getI32Type();
  if (!high)
    return arith::ExtUIOp::create(b, wide, low);
  if (lanes) {
    SmallVector<int64_t> places;
    for (int64_t lane = 0; lane < lanes.getNumElements(); ++lane)
      places.append({lane, lane + lanes.getNumElements()});
    return vector::BitCastOp::create(b, cast<VectorType>(wide),
                                     vector::ShuffleOp::create(b, low, high, places));
  }
  Value lower = arith::ExtUIOp::create(b, wide, low), upper = arith::ExtUIOp::create(b, wide, high);
  upper = arith::ShLIOp::create(b, upper, arith::ConstantIntOp::create(b, wide, 16));
  return arith::OrIOp::create(b, lower, upper);
}

/// The lower or upper factors of pairs, as f32.
Value halfOfPair(ImplicitLocOpBuilder &b, Value pairs, bool upper) {
  Value bits = upper ? Value(arith::AndIOp::create(b, pairs, vectorConstant(b, pairs, -65536)))
                     : Value(arith::ShLIOp::create(b, pairs, vectorConstant(b, pairs, 16)));
  return bitsAs(b, b.getF32Type(), bits);
}

Value callIntrinsic(ImplicitLocOpBuilder &b, Type result, StringRef name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, result, b.getStringAttr(name), operands).getResult(0);
}

} // namespace

/// Lanes of f32 rounded as rt::floatToFactor does.
Value Emitter::toFactors(Value lanes) {
  auto type = cast<VectorType>(lanes.getType());
  auto narrow = type.clone(b.getBF16Type());
  Value rounded;
  if (target_.bf16 && type.getNumElements() == 16)
    rounded = callIntrinsic(b, narrow, "llvm.x86.avx512bf16.cvtneps2bf16.512", lanes);
  else
    rounded = arith::TruncFOp::create(b, narrow, flush(b, lanes));
  return bitsAs(b, b.getI16Type(), rounded);
}

/// Pairs of factors, multiplied and added: the upper ones first.
Value Emitter::addPair(Value left, Value right, Value sum) {
  auto type = cast<VectorType>(sum.getType());
  if (target_.bf16 && type.getNumElements() == 16) {
    auto factors = VectorType::get({2 * type.getNumElements()}, b.getBF16Type());
    return callIntrinsic(b, type, "llvm.x86.avx512bf16.dpbf16ps.512",
                         {sum, vector::BitCastOp::create(b, factors, left),
                          vector::BitCastOp::create(b, factors, right)});
  }
  for (bool upper : {true, false}) {
    Value a = halfOfPair(b, left, upper), c = halfOfPair(b, right, upper);
    sum = target_.fma ? addRoundedProduct(a, c, sum) : addRoundedProductInDoubles(a, c, sum);
  }
  return sum;
}

/// Lets the processor take subnormal numbers for zeros, and make zeros of them, while `body` sums
/// pairs: where it has no instruction for these, a pair so is two multiply-adds. An x86-64 sees
/// what is subnormal after rounding to 24 bits. Nothing but sums may be computed there, and they
/// must be stored before it ends.
void Emitter::flushing(const Stage &stage, llvm::function_ref<void()> body) {
  if (!flushes(stage))
    return body();
  // As rt::FloatEnvironment has it, with FTZ and DAZ, and without.
  constexpr int32_t flush = 0x9FC0, keep = 0x1F80;
  auto set = [&](int32_t state) {
    Value &at = floatStates_[state == flush];
    if (!at)
      at = atEntry([&] {
        Value one = constant(1);
        Value place = LLVM::AllocaOp::create(b, pointer_, b.getI32Type(), one);
        LLVM::StoreOp::create(b, arith::ConstantIntOp::create(b, b.getI32Type(), state), place, 4);
        return place;
      });
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.x86.sse.ldmxcsr"), ValueRange{at});
  };
  set(flush);
  flushing_ = true;
  body();
  flushing_ = false;
  set(keep);
}

bool Emitter::flushes(const Stage &stage) const {
  return stage.sums == Sums::Pairs && addsPairsFlushing(target_);
}

/// sum + a * c, rounded once; what is subnormal after rounding to 24 bits becomes zero. Whether it
/// is shows where nothing is subnormal: far from zero.
Value Emitter::addRoundedProduct(Value a, Value c, Value sum) {
  constexpr double far = 0x1p30;
  Value result = math::FmaOp::create(b, a, c, sum);
  Value scale = vectorConstant(b, sum, far);
  Value there = math::FmaOp::create(b, arith::MulFOp::create(b, a, scale), c,
                                    arith::MulFOp::create(b, sum, scale));
  return flushWhere(b, isBelow(b, there, kLeastNormal * far), result);
}

/// The same without a fused multiply-add. In doubles the product is exact; their sum is rounded to
/// odd, so that rounding it again rounds as once (Boldo and Melquiond, 2008).
Value Emitter::addRoundedProductInDoubles(Value a, Value c, Value sum) {
  auto type = cast<VectorType>(sum.getType());
  auto doubles = type.clone(b.getF64Type());
  auto widen = [&](Value x) { return arith::ExtFOp::create(b, doubles, x); };
  Value x = widen(sum), y = arith::MulFOp::create(b, widen(a), widen(c));
  Value s = arith::AddFOp::create(b, x, y);
  // What the addition lost (Knuth).
  Value ofY = arith::SubFOp::create(b, s, x), ofX = arith::SubFOp::create(b, s, ofY);
  Value lost =
      arith::AddFOp::create(b, arith::SubFOp::create(b, x, ofX), arith::SubFOp::create(b, y, ofY));
  Value zero = vectorConstant(b, s, 0);
  Value isInexact = arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, lost, zero);
  Value bits = bitsAs(b, b.getI64Type(), s);
  Value one = vectorConstant(b, bits, 1), none = vectorConstant(b, bits, 0);
  Value isEven =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, arith::AndIOp::create(b, bits, one), none);
  Value lostIsPositive = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, lost, zero);
  Value isPositive = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, s, zero);
  Value isAway = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lostIsPositive, isPositive);
  Value step = arith::SelectOp::create(b, isAway, one, vectorConstant(b, bits, -1));
  Value isMoved = arith::AndIOp::create(b, isInexact, isEven);
  Value odd = arith::AddIOp::create(b, bits, arith::SelectOp::create(b, isMoved, step, none));
  s = bitsAs(b, b.getF64Type(), odd);
  // Halfway between the last number of 24 bits below the least normal one and that.
  constexpr double least = double(kLeastNormal) - 0x1p-151;
  return flushWhere(b, isBelow(b, s, least), arith::TruncFOp::create(b, type, s));
}

//===----------------------------------------------------------------------===//
// Rows of factors
//===----------------------------------------------------------------------===//

/// The factors of a pass.
Value Emitter::factorRows() {
  return atEntry([&] { return bytes(scratch_, layout_.accumulatorBytes + layout_.rowTableBytes); });
}

/// Rounds what the groups read of so many rows; for a library, gathers it.
void Emitter::emitFactorRows(const Stage &stage, Value rows, EnterRow enter) {
  if (!stage.factorRow)
    return;
  const int64_t size = factorBytes(stage.sums);
  bool rounds = stage.sums != Sums::Foreign;
  Dim laneExtent = laneExtent_;
  auto wholeOf = [](const ProductSegment &segment) {
    return segment.extent.constant() / kLoopLanes * kLoopLanes;
  };
  /// Of a run that begins at `begin` in a row: its whole vectors, the rest and what fills it up.
  auto write = [&](const ProductSegment &segment, int64_t begin, Value row,
                   const std::vector<Value> &index, bool wholeVectors, bool rest) {
    laneExtent_ = segment.extent;
    Place place;
    place.index = index;
    place.index.insert(place.index.end(), {constant(0), constant(0)});
    place.lanesAxis = static_cast<int>(place.index.size()) - 1;
    Value to = bytes(bytes(factorRows(), mul(row, constant(stage.factorRow))), begin);
    const Buffer &buffer = *plan_.bufferOf.lookup(segment.lhs);
    auto round = [&](Value k, bool isTail) {
      place.index.back() = k;
      Value lanes = load(buffer, segment.lhsView, place);
      if (isTail)
        lanes = arith::SelectOp::create(b, inRange(place), lanes, vectorConstant(b, lanes, 0));
      LLVM::StoreOp::create(b, rounds ? toFactors(lanes) : lanes, bytes(to, mul(k, constant(size))),
                            static_cast<unsigned>(size));
    };
    int64_t extent = segment.extent.constant(), whole = wholeOf(segment);
    int64_t end = llvm::alignTo(extent, depthMultiple(stage.sums));
    if (whole && wholeVectors) {
      laneExtent_ = whole;
      loop(constant(0), constant(whole), kLoopLanes, [&](Value k) { round(k, false); });
      laneExtent_ = segment.extent;
    }
    if (!rest)
      return;
    if (whole < extent)
      round(constant(whole), true);
    // What is written beyond the end comes before what stands there.
    for (int64_t k = llvm::alignTo(extent, kLoopLanes); k < end; k += kLoopLanes)
      LLVM::StoreOp::create(b,
                            arith::ConstantOp::create(
                                b, b.getZeroAttr(VectorType::get({kLoopLanes}, b.getI16Type()))),
                            bytes(to, k * size), size);
  };
  auto forRuns = [&](llvm::function_ref<void(const ProductSegment &, int64_t begin)> body) {
    for (const ProductGroup &group : stage.groups) {
      int64_t begin = group.rowOffset;
      for (const ProductSegment &segment : group.lead->segments) {
        body(segment, begin);
        begin += static_cast<int64_t>(
                     llvm::alignTo(segment.extent.constant(), depthMultiple(stage.sums))) *
                 size;
      }
    }
  };
  bool anyInBlocks = false;
  forRuns([&](const ProductSegment &segment, int64_t) {
    anyInBlocks |= rounds && liesTransposed(stage, segment);
  });
  if (!anyInBlocks)
    loop(constant(0), rows, 1, [&](Value row) {
      std::vector<Value> index = enter(row);
      forRuns([&](const ProductSegment &segment, int64_t begin) {
        write(segment, begin, row, index, true, true);
      });
    });
  else
    forRuns([&](const ProductSegment &segment, int64_t begin) {
      bool inBlocks = liesTransposed(stage, segment) && wholeOf(segment);
      if (inBlocks)
        emitFactorBlocks(stage, segment, begin, rows, enter,
                         [&](Value row) { write(segment, begin, row, enter(row), true, false); });
      loop(constant(0), rows, 1,
           [&](Value row) { write(segment, begin, row, enter(row), !inBlocks, true); });
    });
  laneExtent_ = laneExtent;
}

/// The runs of a group, whose rows and weights lie alike, one after the other.
SmallVector<Value> Emitter::emitPackedPairs(const Stage &stage, const Turn &turn, const Tile &tile,
                                            int64_t rows, ArrayRef<Value> sums) {
  const ProductGroup &group = *turn.group;
  int64_t vectors = static_cast<int64_t>(group.accumulators.size()) * stage.tileVectors;
  int64_t stepBytes = vectors * stage.lanes * 4, steps = group.depth / 2;
  Panel panel = panelOf(turn, tile, stepBytes, steps, kLineBytes);
  auto type = VectorType::get({stage.lanes}, b.getI32Type());
  Value first =
      bytes(bytes(factorRows(), mul(tile.first, constant(stage.factorRow))), group.rowOffset);
  // The processor takes subnormal sums for zeros; those that come in are start values.
  SmallVector<Value> start(sums);
  if (steps && (stage.startUse >= 0 || stage.startsAtRows()) && !target_.bf16 && !flushing_)
    for (Value &sum : start)
      sum = flush(b, sum);
  auto left = [&](size_t row, At step) {
    Value of = bytes(first, static_cast<int64_t>(row) * stage.factorRow);
    return stepOf(splat(loadAs(b.getI32Type(), along(of, constant(4), step), 4), stage.lanes),
                  step);
  };
  auto right = [&](size_t vector, At step) {
    int64_t place = static_cast<int64_t>(vector) * stage.lanes * 4;
    Value from = bytes(along(panel.weights.front(), constant(stepBytes), step), place);
    return stepOf(loadAs(type, from, 4), step);
  };
  auto add = [&](Value a, Value c, Value sum) { return addStep(a, c, sum); };
  auto ask = [&](At step) {
    if (rows > 2)
      LLVM::Prefetch::create(b, along(panel.lines, constant(kLineBytes), step), 0, 2, 1);
  };
  Step run{static_cast<size_t>(rows),
           static_cast<size_t>(vectors),
           /*packed=*/true,
           left,
           right,
           add,
           ask};
  run.halves = halvesOfStep();
  return emitRun(run, constant(steps), start);
}

/// Operands whose steps are pairs of k; those that go on by the same do so in pairs, too.
SmallVector<Emitter::InPairs> Emitter::inPairs(ArrayRef<Operand> operands) {
  SmallVector<InPairs> all;
  for (const Operand &operand : operands) {
    auto same = llvm::find_if(all, [&](const InPairs &o) { return o.stride == operand.stride; });
    Value step = same == all.end() ? mul(operand.stride, constant(2)) : same->pairStride;
    all.push_back({operand, step});
  }
  return all;
}

/// What a step takes of a pair: all, or where there are two, its upper factor, then the lower one.
Value Emitter::stepOf(Value pairs, At step) {
  return flushing_ ? halfOfPair(b, pairs, step.half == 0) : pairs;
}

int64_t Emitter::halvesOfStep() const { return flushing_ ? 2 : 1; }

Value Emitter::addStep(Value left, Value right, Value sum) {
  return flushing_ ? Value(math::FmaOp::create(b, left, right, sum)) : addPair(left, right, sum);
}

/// Factor k of a left operand and the one after it, or zero, in every lane.
Value Emitter::leftPair(const InPairs &operand, At step, bool isWhole, int64_t lanes) {
  ops::DType dtype = operand.buffer->dtype;
  Value at = along(operand.pointer, operand.pairStride, step);
  bool isFactor = dtype == ops::DType::BF16;
  if (isWide(operand))
    return wideFactor(at, operand.stride, step, isWhole,
                      [&](Value from) { return splat(loadElement(*operand.buffer, from), lanes); });
  // Neighbours are one load.
  if (isFactor && isWhole && getConstantIntValue(operand.stride) == bytesOf(dtype))
    return stepOf(splat(loadAs(b.getI32Type(), at, bytesOf(dtype)), lanes), step);
  if (!isFactor) {
    auto factors = [&](Value from) {
      return toFactors(splat(toLanes(loadElement(*operand.buffer, from), dtype), lanes));
    };
    return joinStep(step, isWhole,
                    [&](bool upper) { return factors(upper ? bytes(at, operand.stride) : at); });
  }
  // Each of the two is loaded into all halves of lanes, and half of these are taken.
  auto halves = [&](bool upper) {
    return splat(loadElement(*operand.buffer, upper ? bytes(at, operand.stride) : at), 2 * lanes);
  };
  auto type = VectorType::get({lanes}, b.getI32Type());
  if (flushing_ && (isWhole || step.half == 1))
    return halfOfPair(b, vector::BitCastOp::create(b, type, halves(step.half == 0)), true);
  if (!isWhole)
    return joinStep(step, false,
                    [&](bool) { return splat(loadElement(*operand.buffer, at), lanes); });
  SmallVector<int64_t> places;
  for (int64_t lane = 0; lane < lanes; ++lane)
    places.append({2 * lane, 2 * lanes + 2 * lane + 1});
  return vector::BitCastOp::create(
      b, type, vector::ShuffleOp::create(b, halves(false), halves(true), places));
}

/// Factors k of a right operand, that is not packed, and those after them, or zeros: `column` is
/// the first.
Value Emitter::rightPair(const InPairs &operand, At step, int64_t column, bool isWhole,
                         int64_t lanes) {
  ops::DType dtype = operand.buffer->dtype;
  Value at = along(operand.pointer, operand.pairStride, step);
  auto stored = VectorType::get({lanes}, storageType(dtype));
  if (isWide(operand))
    return wideFactor(at, operand.stride, step, isWhole, [&](Value from) {
      return loadAs(stored, bytes(from, column * bytesOf(dtype)), bytesOf(dtype));
    });
  return joinStep(step, isWhole, [&](bool upper) {
    Value row = bytes(upper ? bytes(at, operand.stride) : at, column * bytesOf(dtype));
    Value loaded = loadAs(stored, row, bytesOf(dtype));
    return dtype == ops::DType::BF16 ? loaded : toFactors(toLanes(loaded, dtype));
  });
}

/// Whether an operand holds rounded factors in f32, as steps in halves take them.
bool Emitter::isWide(const Operand &operand) const {
  return flushing_ && operand.buffer->dtype == ops::DType::F32 &&
         isOfFactors(operand.buffer->value);
}

Value Emitter::wideFactor(Value at, Value stride, At step, bool isWhole,
                          llvm::function_ref<Value(Value from)> load) {
  bool upper = step.half == 0;
  Value lanes = load(upper && isWhole ? bytes(at, stride) : at);
  return upper && !isWhole ? vectorConstant(b, lanes, 0) : lanes;
}

/// What a step takes of lanes of pairs: `factors` are the lower or upper ones, as i16; of a pair
/// that is not whole the upper ones are zeros.
Value Emitter::joinStep(At step, bool isWhole, llvm::function_ref<Value(bool upper)> factors) {
  if (!flushing_) {
    Value low = factors(false);
    return joinPair(b, low, isWhole ? factors(true) : Value());
  }
  bool upper = step.half == 0;
  Value lanes = factors(upper && isWhole);
  if (upper && !isWhole)
    lanes = vectorConstant(b, lanes, 0);
  return toLanes(lanes, ops::DType::BF16);
}

/// A run whose right operand is not packed. Of an odd number of k the last one is paired with
/// zeros.
SmallVector<Value> Emitter::emitPairsInPlace(const Stage &stage, Value extent,
                                             ArrayRef<Operand> lefts, ArrayRef<Operand> rights,
                                             ArrayRef<Value> sums) {
  bool isWhole = true;
  SmallVector<InPairs> leftPairs = inPairs(lefts), rightPairs = inPairs(rights);
  auto left = [&](size_t row, At step) {
    return leftPair(leftPairs[row], step, isWhole, stage.lanes);
  };
  auto right = [&](size_t vector, At step) {
    auto column = static_cast<int64_t>(vector) % stage.tileVectors * stage.lanes;
    return rightPair(rightPairs[vector / static_cast<size_t>(stage.tileVectors)], step, column,
                     isWhole, stage.lanes);
  };
  auto addBoth = [&](Value a, Value c, Value sum) { return addStep(a, c, sum); };
  Step run{lefts.size(), sums.size() / lefts.size(), /*packed=*/false, left, right, addBoth};
  run.halves = halvesOfStep();
  Value pairs = b.createOrFold<arith::DivSIOp>(extent, constant(2));
  Value odd = b.createOrFold<arith::RemSIOp>(extent, constant(2));
  if (std::optional<int64_t> known = getConstantIntValue(extent)) {
    pairs = constant(*known / 2);
    odd = constant(*known % 2);
  }
  SmallVector<Value> all = emitRun(run, pairs, sums);
  if (getConstantIntValue(odd) == 0)
    return all;
  isWhole = false;
  auto last = scf::ForOp::create(b, constant(0), odd, constant(1), all);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(last.getBody());
  SmallVector<Value> now(last.getRegionIterArgs());
  emitStep(run, {pairs, 0}, now);
  scf::YieldOp::create(b, now);
  return SmallVector<Value>(last.getResults());
}

/// A run of a vector of sums that leaves out zeros, both factors of the step.
Value Emitter::withoutZeroFactors(const Operand &left, const Operand &right, Value extent,
                                  Value sum) {
  int64_t lanes = cast<VectorType>(sum.getType()).getNumElements();
  InPairs lefts = inPairs(left).front(), rights = inPairs(right).front();
  auto step = [&](At at, bool isWhole, Value before) {
    Value a = leftPair(lefts, at, isWhole, lanes), c = rightPair(rights, at, 0, isWhole, lanes);
    auto halves = VectorType::get({2 * lanes}, b.getI16Type());
    Value x = vector::BitCastOp::create(b, halves, a), y = vector::BitCastOp::create(b, halves, c);
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(halves));
    auto isZero = [&](Value factors) -> Value {
      Value size = arith::AndIOp::create(b, factors, vectorConstant(b, factors, 0x7FFF));
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, size, zero);
    };
    Value isNothing = arith::OrIOp::create(b, isZero(x), isZero(y));
    auto kept = [&](Value factors) {
      return vector::BitCastOp::create(b, cast<VectorType>(a.getType()),
                                       arith::SelectOp::create(b, isNothing, zero, factors));
    };
    return addPair(kept(x), kept(y), before);
  };
  Value pairs = arith::DivSIOp::create(b, extent, constant(2));
  Value odd = arith::RemSIOp::create(b, extent, constant(2));
  for (bool isWhole : {true, false}) {
    auto run = scf::ForOp::create(b, constant(0), isWhole ? pairs : odd, constant(1), sum);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(run.getBody());
    walks_.clear();
    At at{isWhole ? run.getInductionVar() : pairs, 0};
    scf::YieldOp::create(b, step(at, isWhole, run.getRegionIterArg(0)));
    sum = run.getResult(0);
  }
  walks_.clear();
  return sum;
}

//===----------------------------------------------------------------------===//
// Hardware tiles
//===----------------------------------------------------------------------===//

/// Calls an intrinsic whose first operands are numbers of tile registers.
void Emitter::tileCall(StringRef name, ArrayRef<int64_t> registers, ArrayRef<Value> operands) {
  SmallVector<Value> all;
  for (int64_t number : registers)
    all.push_back(LLVM::ConstantOp::create(b, b.getI8Type(), b.getI8IntegerAttr(number)));
  all.append(operands.begin(), operands.end());
  LLVM::CallIntrinsicOp::create(b, b.getStringAttr(("llvm.x86." + name).str()), all);
}

/// All tiles have 16 rows of 64 bytes.
void Emitter::configureTiles() {
  std::array<uint8_t, kLineBytes> shapes{};
  shapes[0] = 1; // the palette
  for (int64_t tile = 0; tile < kTileRegisters; ++tile) {
    shapes[static_cast<size_t>(16 + 2 * tile)] = kLineBytes;
    shapes[static_cast<size_t>(48 + tile)] = kTileRows;
  }
  auto type = VectorType::get({kLineBytes}, b.getI8Type());
  Value number = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef(shapes)));
  Value at = bytes(scratch_, layout_.tileConfig);
  LLVM::StoreOp::create(b, number, at, static_cast<unsigned>(kLineBytes));
  tileCall("ldtilecfg", {}, at);
}

/// A tile of the stage is two hardware tiles high, so that each tile of weights is read once for
/// both, or one if it has that few rows. Rows beyond its own are computed as well, of what lies
/// there.
void Emitter::emitHardwareTiles(const Stage &stage, const Tile &tile, EnterRow enter) {
  // Tensors that chains start at lie scattered: they are laid where the sums will be.
  if (stage.startsAtRows())
    loop(constant(0), tile.rows, 1, [&](Value row) {
      std::vector<Value> index = enter(add(tile.first, row));
      int64_t across = static_cast<int64_t>(stage.accumulators.size()) * stage.tileVectors;
      Value sums = bytes(scratch_, mul(row, constant(across * kLineBytes)));
      Value column = mul(tile.panels.front(), constant(stage.lanes * stage.tileVectors));
      for (const ProductGroup &group : stage.groups)
        for (unsigned a : group.accumulators)
          for (int64_t v = 0; v < stage.tileVectors; ++v) {
            if (!stage.accumulators[a].startRow())
              continue;
            Value lanes = startOfRow(stage, stage.accumulators[a], index,
                                     add(column, constant(v * stage.lanes)), Turn::of(group));
            LLVM::StoreOp::create(b, lanes, bytes(sums, (a * stage.tileVectors + v) * kLineBytes),
                                  4);
          }
    });
  Value isHigh = isLess(constant(kTileRows), tile.rows);
  auto choose = scf::IfOp::create(b, isHigh, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choose.thenBlock());
  emitHardwareTiles(stage, tile, 2);
  b.setInsertionPointToStart(choose.elseBlock());
  emitHardwareTiles(stage, tile, 1);
}

void Emitter::emitHardwareTiles(const Stage &stage, const Tile &tile, int64_t high) {
  int64_t across = static_cast<int64_t>(stage.accumulators.size()) * stage.tileVectors;
  Value rows = bytes(factorRows(), mul(tile.first, constant(stage.factorRow)));
  Value starts = stage.startUse >= 0 ? startsOf(stage, tile.panels.front()) : Value();
  for (const ProductGroup &group : stage.groups) {
    int64_t vectors = static_cast<int64_t>(group.accumulators.size()) * stage.tileVectors;
    int64_t stepBytes = vectors * kLineBytes, steps = group.depth / 2;
    Panel panel = panelOf(Turn::of(group), tile, stepBytes, steps, high * kLineBytes);
    int64_t most = kMostTileSums[high - 1];
    for (int64_t first = 0; first < vectors; first += most) {
      int64_t count = std::min(vectors - first, most);
      auto accumulatorOf = [&](int64_t j) {
        return group.accumulators[static_cast<size_t>((first + j) / stage.tileVectors)];
      };
      auto vectorOf = [&](int64_t j) { return (first + j) % stage.tileVectors; };
      for (int64_t j = 0; j < count; ++j)
        for (int64_t r = 0; r < high; ++r) {
          if (stage.accumulators[accumulatorOf(j)].startRow()) {
            int64_t place =
                r * kTileRows * across + accumulatorOf(j) * stage.tileVectors + vectorOf(j);
            tileCall("tileloadd64", r * count + j,
                     {bytes(scratch_, place * kLineBytes), constant(across * kLineBytes)});
            continue;
          }
          int view = stage.startViews[accumulatorOf(j)];
          if (view < 0) {
            tileCall("tilezero", r * count + j);
            continue;
          }
          // Every row of the tile is the same line.
          int64_t line = view * stage.tileVectors + vectorOf(j);
          tileCall("tileloadd64", r * count + j, {bytes(starts, line * kLineBytes), constant(0)});
        }
      int64_t ofRows = high * count, ofWeights = ofRows + high, others = kTileRegisters - ofWeights;
      loop(constant(0), constant(group.depth / kTileDepth), 1, [&](Value block) {
        if (first == 0) {
          Value at = bytes(panel.lines, mul(block, constant(high * kTileDepth / 2 * kLineBytes)));
          for (int64_t line = 0; line < high * kTileDepth / 2; ++line)
            LLVM::Prefetch::create(b, bytes(at, line * kLineBytes), 0, 2, 1);
        }
        Value left = bytes(bytes(rows, group.rowOffset), mul(block, constant(kLineBytes)));
        for (int64_t r = 0; r < high; ++r)
          tileCall("tileloadd64", ofRows + r,
                   {bytes(left, r * kTileRows * stage.factorRow), constant(stage.factorRow)});
        Value right =
            bytes(panel.weights.front(), mul(block, constant(kTileDepth / 2 * stepBytes)));
        for (int64_t j = 0; j < count; ++j) {
          int64_t weights = ofWeights + j % others;
          tileCall("tileloadd64", weights,
                   {bytes(right, (first + j) * kLineBytes), constant(stepBytes)});
          for (int64_t r = 0; r < high; ++r)
            tileCall("tdpbf16ps", {r * count + j, ofRows + r, weights});
        }
      });
      for (int64_t j = 0; j < count; ++j)
        for (int64_t r = 0; r < high; ++r) {
          int64_t place =
              r * kTileRows * across + accumulatorOf(j) * stage.tileVectors + vectorOf(j);
          tileCall("tilestored64", r * count + j,
                   {bytes(scratch_, place * kLineBytes), constant(across * kLineBytes)});
        }
    }
  }
}

} // namespace sheaf::kernels::cpu
