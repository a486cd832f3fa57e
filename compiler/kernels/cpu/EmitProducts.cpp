//===- EmitProducts.cpp - The sums of a tile and what follows them --------===//
//
// A tile is a few rows by a few vectors of columns (EmitTiles.cpp); its accumulators stay in
// registers while k
// runs (EmitRuns.cpp), are then put into scratch, and one epilogue loop over the tile's rows
// computes everything that follows and writes it. Every element is one chain of multiply-adds over
// ascending k, whatever the tile.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// Rows of a right operand that lie at least so far apart are asked for so many ahead.
constexpr int64_t kApartBytes = 2048, kRowsAhead = 16;

/// Whether nothing follows the products but storing them in whole vectors. Then a tile stores them
/// from its registers; the processor's tiles are stored by themselves, and so are groups that
/// are computed one after the other.
bool onlyStores(const Stage &stage, int64_t tileVectors) {
  const Dim &width = stage.shape.back();
  return !stage.groupsInTurn && stage.sums != Sums::Tiles && width.isConstant() &&
         !stage.takesTurns &&
         llvm::none_of(stage.groups,
                       [](const ProductGroup &g) { return g.lead->leavesOutZeros; }) &&
         width.constant() % (stage.lanes * tileVectors) == 0 &&
         llvm::all_of(stage.roots, [&](const Root &root) {
           return !root.masked && root.transposedBegin < 0 &&
                  llvm::any_of(
                      stage.accumulators,
                      [&](const Accumulator &a) {
                        return a.product->value == root.value && a.column == 0;
                      });
         });
}

} // namespace

/// The start values of a panel's columns: for each view `tileVectors` vectors.
Value Emitter::startsOf(const Stage &stage, Value panel) {
  int64_t views = llvm::count_if(stage.startViews, [](int v) { return v >= 0; });
  Value starts = atEntry([&] { return loadAs(pointer_, bytes(weights_, 8 * stage.startUse), 8); });
  return bytes(starts, mul(panel, constant(views * stage.tileVectors * stage.lanes * 4)));
}

/// A vector of the tensor that an accumulator's chains start at, in the current record; beyond the
/// last column another one, whose sums are not stored.
Value Emitter::startOfRow(const Stage &stage, const Accumulator &accumulator,
                          std::vector<Value> index, Value column, const Turn &turn) {
  const Dim &width = stage.shape.back();
  if (width.isConstant() && width.constant() % (stage.lanes * stage.tileVectors) != 0)
    column = minimum(column, constant((width.constant() - 1) / stage.lanes * stage.lanes));
  Place place;
  place.lanes = stage.lanes;
  place.index = std::move(index);
  if (stage.sumsRows) {
    place.index.push_back(column);
    place.lanesAxis = static_cast<int>(place.index.size()) - 1;
    return sumsBefore(stage, accumulator, place);
  }
  // The turn's columns are further on.
  if (turn.number)
    column = add(column, mul(turn.number, constant(turn.columns)));
  place.index.push_back(column);
  place.lanesAxis = static_cast<int>(place.index.size()) - 1;
  View view = identityView(place.index.size());
  view.back().offset = accumulator.column;
  return load(*plan_.bufferOf.lookup(accumulator.startRow()), view, place);
}

/// What a vector of an accumulator's sums has come to with the rows before those of the block.
Value Emitter::sumsBefore(const Stage &stage, const Accumulator &accumulator, const Place &place) {
  const Root &root = *llvm::find_if(
      stage.roots, [&](const Root &r) { return r.value == accumulator.product->value; });
  return load(*root.buffer, root.view, place);
}

/// Row by row, the vectors of the group's accumulators.
SmallVector<Value> Emitter::startValues(const Stage &stage, const Turn &turn, int64_t rows,
                                        const Tile &tile,
                                        llvm::function_ref<std::vector<Value>(int64_t)> enterRow) {
  auto type = VectorType::get({stage.lanes}, f32_);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<Value> starts;
  if (stage.startUse >= 0)
    for (Value panel : tile.panels)
      starts.push_back(
          turn.further(*this, startsOf(stage, panel), stage.tileVectors * stage.lanes * 4));
  SmallVector<Value> row;
  for (unsigned a : turn.accumulators)
    for (int64_t v = 0; v < tile.vectors(stage); ++v) {
      if (stage.startViews[a] < 0) {
        row.push_back(zero);
        continue;
      }
      int64_t place = stage.startViews[a] * stage.tileVectors + v % stage.tileVectors;
      Value from = starts[static_cast<size_t>(v / stage.tileVectors)];
      row.push_back(loadAs(type, bytes(from, place * stage.lanes * 4), 4));
    }
  SmallVector<Value> sums;
  for (int64_t i = 0; i < rows; ++i)
    sums.append(row);
  if (!stage.startsAtRows() && !stage.sumsRows)
    return sums;
  for (int64_t i = 0, number = 0; i < rows; ++i) {
    std::vector<Value> index = enterRow(i);
    for (unsigned a : turn.accumulators)
      for (int64_t v = 0; v < tile.vectors(stage); ++v, ++number) {
        if (!stage.accumulators[a].startRow() && !stage.sumsRows)
          continue;
        Value panel = tile.panels[static_cast<size_t>(v / stage.tileVectors)];
        Value column = add(mul(panel, constant(stage.lanes * stage.tileVectors)),
                           constant(v % stage.tileVectors * stage.lanes));
        sums[static_cast<size_t>(number)] =
            startOfRow(stage, stage.accumulators[a], index, column, turn);
      }
  }
  return sums;
}

/// Computes the turns' sums of one tile and stores its products, or leaves its accumulators in
/// scratch, row by row, when more is to be done. `enterRow` makes row i's record current and gives
/// its index, without the column.
void Emitter::emitTile(const Stage &stage, int64_t rows, const Tile &tile, ArrayRef<Turn> turns,
                       llvm::function_ref<std::vector<Value>(int64_t)> enterRow) {
  int64_t vectors = tile.vectors(stage);
  int64_t across = static_cast<int64_t>(stage.accumulators.size()) * vectors;
  int k = static_cast<int>(stage.shape.size());
  Value column = mul(tile.panels.front(), constant(stage.lanes * stage.tileVectors));
  std::vector<Value> sums(static_cast<size_t>(rows * across));
  bool stores = onlyStores(stage, vectors) && !flushes(stage);
  auto compute = [&](const Turn &turn) {
    if (!computes(stage, turn))
      return;
    const ProductGroup &group = *turn.group;
    /// Where the group's accumulators are among all.
    SmallVector<size_t> places;
    for (int64_t row = 0; row < rows; ++row)
      for (unsigned a : turn.accumulators)
        for (int64_t v = 0; v < vectors; ++v)
          places.push_back(static_cast<size_t>(row * across + a * vectors + v));
    SmallVector<Value> own = startValues(stage, turn, rows, tile, enterRow);
    if (stepsBlock_)
      own = sumsOfStepsBefore(stage, tile, places, own);
    auto isComputed = [&](size_t segment) {
      return !stepsBlock_ || segment == stepsBlock_->run.segment;
    };

    ArrayRef<ProductSegment> segments = group.lead->segments;
    bool leftPacked = stepsBlock_ && stepsBlock_->run.packsLeft;
    SmallVector<std::pair<Value, Value>> steps;
    for (const ProductSegment &segment : segments) {
      Value firstRow =
          stage.stepsOfTiles ? enterRow(0)[static_cast<size_t>(stage.rowAxis)] : Value();
      steps.push_back(stepsOfTile(stage, segment, firstRow, rows));
    }
    // Where the rows of a run's left operand are, from a step on.
    auto leftsAt = [&](size_t s, Value first) {
      SmallVector<Operand> left;
      for (int64_t row = 0; row < (leftPacked ? 1 : rows); ++row) {
        Place place;
        place.index = enterRow(row);
        place.index.insert(place.index.end(), {column, first});
        left.push_back(operandAt(segments[s].lhs, segments[s].lhsView, place, k));
      }
      return leftPacked ? leftsInBlock(stage, tile, left.front(), rows) : left;
    };
    // What the steps of a run from `first` to `end` add.
    auto ofSteps = [&](size_t s, Value first, Value end, ArrayRef<Value> own, bool lies) {
      SmallVector<Operand> left = leftsAt(s, first), rights;
      if (lies && stage.lying->turned)
        return emitTurnedChain(stage, left.front(), first, end, enterRow(0), column, own);
      Value count = b.createOrFold<arith::SubIOp>(end, first);
      bool liesApart = rows == 1;
      for (auto [number, a] : llvm::enumerate(group.accumulators)) {
        if (stepsBlock_ && !lies) {
          const RightInBlock &right = stepsBlock_->rights[number];
          liesApart &= getConstantIntValue(right.lying.stride).value_or(0) >= kApartBytes;
          rights.push_back({right.at(*this, column, first), right.stepBytes, right.lying.buffer});
          continue;
        }
        const ProductSegment &segment = stage.accumulators[a].product->segments[s];
        Place place;
        place.index = enterRow(0);
        place.index.insert(place.index.end(),
                           {add(column, constant(stage.accumulators[a].column)), first});
        place.lanesAxis = k - 1;
        rights.push_back(rightAt(stage, segment, place, k, lies));
        liesApart &= getConstantIntValue(rights.back().stride).value_or(0) >= kApartBytes;
      }
      if (stage.sums == Sums::Pairs)
        return emitPairsInPlace(stage, count, left, rights, own);
      auto right = [&](size_t vector, At k) { return rightLanes(stage, rights, vector, k); };
      // One row is done with each of the operand's before these are there, which lie apart.
      auto askAhead = [&](At now) {
        for (const Operand &operand : rights)
          for (int64_t v = 0; v < stage.tileVectors; ++v) {
            Value at = along(operand.pointer, operand.stride, {now.turn, now.step + kRowsAhead});
            LLVM::Prefetch::create(b, bytes(at, v * kLineBytes), 0, 3, 1);
          }
      };
      return emitChain(left, count, own, stage.lanes, /*packed=*/false, right,
                       liesApart ? llvm::function_ref<void(At)>(askAhead) : nullptr);
    };
    if (stage.factorRow) {
      own = emitPackedPairs(stage, turn, tile, rows, own);
    } else if (group.weightUse >= 0) {
      std::vector<SmallVector<Operand>> lefts(segments.size());
      for (size_t s = 0; s < segments.size(); ++s)
        if (isComputed(s))
          lefts[s] = leftsAt(s, steps[s].first);
      own = emitPacked(stage, turn, tile, lefts, own);
    } else {
      for (size_t s = 0; s < segments.size(); ++s)
        if (isComputed(s))
          own = inRanges(stage, Seen::Steps, steps[s], own,
                         [&](Value first, Value end, ArrayRef<Value> state) {
                           if (rows > 1)
                             return ofSteps(s, first, end, state, /*lies=*/false);
                           return eitherWay(stage, ValueRange(state).getTypes(), [&](bool lies) {
                             return ofSteps(s, first, end, state, lies);
                           });
                         });
    }
    Value scratch = turn.further(*this, tile.sums, vectors * stage.lanes * 4);
    auto leave = [&] {
      for (auto [place, sum] : llvm::zip(places, own))
        LLVM::StoreOp::create(b, sum, bytes(scratch, place * stage.lanes * 4), 4);
    };
    if (!stores)
      return leave();
    for (auto [place, sum] : llvm::zip(places, own))
      sums[place] = sum;
    if (stepsBlock_)
      beforeLastSteps(leave);
  };
  flushing(stage, [&] { llvm::for_each(turns, compute); });
  if (!stores)
    return;
  afterLastSteps([&] {
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<Value> index = enterRow(row);
      for (int64_t v = 0; v < vectors; ++v) {
        std::vector<Value> own;
        for (int64_t a = 0; a < static_cast<int64_t>(stage.accumulators.size()); ++a)
          own.push_back(sums[static_cast<size_t>(row * across + a * vectors + v)]);
        writeVector(stage, index, add(column, constant(v * stage.lanes)), std::move(own));
      }
    }
  });
}

/// Computes and stores one vector of each root, with as many lanes as those of `accumulators`, the
/// products there: `column` is its first.
void Emitter::writeVector(const Stage &stage, std::vector<Value> index, Value column,
                          std::vector<Value> accumulators) {
  Place place;
  place.lanes = cast<VectorType>(accumulators.front().getType()).getNumElements();
  place.index = std::move(index);
  place.index.push_back(column);
  place.lanesAxis = static_cast<int>(place.index.size()) - 1;
  Scope scope;
  scope.stage = &stage;
  scope.place = &place;
  scope.accumulators = std::move(accumulators);
  writeRoots(stage, scope);
}

/// A vector of sums of a product that leaves out zeros. To add 0 times a number changes none, so
/// they were summed up with them; only where that made NaN they are once more, without. The sign of
/// a sum that is 0 would still tell.
Value Emitter::withoutZeros(const Stage &stage, const Accumulator &accumulator,
                            std::vector<Value> index, Value column, Value sums) {
  auto type = cast<VectorType>(sums.getType());
  Place place;
  place.lanes = type.getNumElements();
  place.index = std::move(index);
  place.index.push_back(column);
  place.lanesAxis = static_cast<int>(place.index.size()) - 1;
  Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, sums, sums);
  const Dim &width = stage.shape.back();
  if (!width.isConstant() || width.constant() % place.lanes != 0)
    isNan = arith::AndIOp::create(b, isNan, inRange(place));
  Value any = vector::ReductionOp::create(b, vector::CombiningKind::OR, isNan);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  auto again = scf::IfOp::create(b, TypeRange{type}, any, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(again.thenBlock());
    Value sum = stage.sumsRows ? sumsBefore(stage, accumulator, place) : zero;
    place.index.back() = add(column, constant(accumulator.column));
    place.index.push_back(constant(0));
    int k = place.lanesAxis + 1;
    for (const ProductSegment &segment : accumulator.product->segments) {
      auto ofSteps = [&](Value first, Value end, Value sum, bool lies) -> Value {
        place.index.back() = stage.sums == Sums::Pairs ? first : constant(0);
        Operand left = operandAt(segment.lhs, segment.lhsView, place, k);
        Operand right = rightAt(stage, segment, place, k, lies);
        if (stage.sums == Sums::Pairs)
          return withoutZeroFactors(left, right, arith::SubIOp::create(b, end, first), sum);
        auto run = scf::ForOp::create(b, first, end, constant(1), sum);
        OpBuilder::InsertionGuard inRun(b);
        b.setInsertionPointToEnd(run.getBody());
        At at{run.getInductionVar(), 0};
        Value factor = leftLanes(left, at, place.lanes);
        ops::DType dtype = right.buffer->dtype;
        Value other = toLanes(loadAs(VectorType::get({place.lanes}, storageType(dtype)),
                                     along(right.pointer, right.stride, at), bytesOf(dtype)),
                              dtype);
        auto isZero = [&](Value lanes) -> Value {
          return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lanes, zero);
        };
        Value isNothing = arith::OrIOp::create(b, isZero(factor), isZero(other));
        factor = arith::SelectOp::create(b, isNothing, zero, factor);
        other = arith::SelectOp::create(b, isNothing, zero, other);
        scf::YieldOp::create(b, multiplyAdd(factor, other, run.getRegionIterArg(0)));
        return run.getResult(0);
      };
      sum =
          inRanges(stage, Seen::Steps, stepsOf(stage, segment), {sum},
                   [&](Value first, Value end, ArrayRef<Value> state) {
                     return eitherWay(stage, TypeRange{type}, [&](bool lies) -> SmallVector<Value> {
                       return {ofSteps(first, end, state.front(), lies)};
                     });
                   })
              .front();
    }
    walks_.clear();
    scf::YieldOp::create(b, sum);
    b.setInsertionPointToEnd(again.elseBlock());
    scf::YieldOp::create(b, sums);
  }
  return arith::AddFOp::create(b, again.getResult(0), zero);
}

/// What follows the products, for one row of a tile: `row` counts inside the tile.
void Emitter::emitEpilogue(const Stage &stage, const Tile &tile, Value row,
                           std::vector<Value> index) {
  int64_t most = tile.vectors(stage), together = 1;
  // What follows products is one long chain of operations: two vectors hide each other's waiting.
  const Dim &columns = stage.shape.back();
  if (most * stage.lanes % kLoopLanes == 0 && columns.isConstant() &&
      columns.constant() % kLoopLanes == 0)
    together = kLoopLanes / stage.lanes;
  auto type = VectorType::get({together * stage.lanes}, f32_);
  int64_t across = static_cast<int64_t>(stage.accumulators.size()) * most;
  Value sums = bytes(tile.sums, mul(row, constant(across * stage.lanes * 4)));
  Value column = mul(tile.panels.front(), constant(stage.lanes * stage.tileVectors));
  auto vectorAt = [&](Value v, Value at) {
    tilePlace_ = {&tile, add(tile.first, row), mul(v, constant(stage.lanes))};
    std::vector<Value> accumulators;
    for (size_t a = 0; a < stage.accumulators.size(); ++a) {
      Value from = bytes(sums, static_cast<int64_t>(a) * most * stage.lanes * 4);
      accumulators.push_back(loadAs(type, bytes(from, mul(v, constant(stage.lanes * 4))), 4));
      if (const Accumulator &of = stage.accumulators[a]; of.product->leavesOutZeros)
        accumulators.back() = withoutZeros(stage, of, index, at, accumulators.back());
    }
    writeVector(stage, index, at, std::move(accumulators));
  };
  if (most == together) {
    vectorAt(constant(0), column);
    return;
  }
  Value left = arith::SubIOp::create(b, extent(stage.shape.back()), column);
  Value vectors =
      arith::DivSIOp::create(b, add(left, constant(stage.lanes - 1)), constant(stage.lanes));
  loop(constant(0), minimum(vectors, constant(most)), together,
       [&](Value v) { vectorAt(v, add(column, mul(v, constant(stage.lanes)))); });
}

/// What follows the products of a tile: `indexOfRow` takes a row's number inside of it.
void Emitter::emitEpilogues(const Stage &stage, const Tile &tile, EnterRow indexOfRow) {
  if (onlyStores(stage, tile.vectors(stage)) && !flushes(stage))
    return;
  emitApart([&] {
    loop(constant(0), tile.rows, 1, [&](Value row) {
      std::vector<Value> index = indexOfRow(row);
      emitEpilogue(stage, tile, row, std::move(index));
    });
  });
}

/// Emits code that becomes a function of its own. Epilogues are full of constants, for which the
/// register allocator would push accumulators out of the loops over k that stand in the same
/// function.
void Emitter::emitApart(llvm::function_ref<void()> body) {
  auto region = scf::ExecuteRegionOp::create(b, TypeRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&region.getRegion().emplaceBlock());
  body();
  scf::YieldOp::create(b);
  apart_.push_back(region);
}

void Emitter::moveApart(scf::ExecuteRegionOp region) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(region.getRegion(), used);
  SmallVector<Value> given;
  for (Value value : used)
    if (!value.getDefiningOp<arith::ConstantOp>())
      given.push_back(value);

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module_.getBody());
  auto function = func::FuncOp::create(b, kernel_.symbol + ".epilogue" + std::to_string(moved_++),
                                       b.getFunctionType(TypeRange(ValueRange(given)), {}));
  function.setPrivate();
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  IRMapping map;
  map.map(given, entry->getArguments());
  for (Value value : used)
    if (Operation *constant = value.getDefiningOp<arith::ConstantOp>())
      b.clone(*constant, map);
  for (Operation &op : region.getRegion().front().without_terminator())
    b.clone(op, map);
  func::ReturnOp::create(b);
  b.setInsertionPoint(region);
  func::CallOp::create(b, function, given);
  region.erase();
}

} // namespace sheaf::kernels::cpu
