//===- EmitSelection.cpp - The places of elements in order ----------------===//

#include "compiler/kernels/cpu/Emitter.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// Whether c is greater than a; NaN is greater than every number.
Value isGreater(ImplicitLocOpBuilder &b, Value c, Value a) {
  if (!isa<FloatType>(getElementTypeOrSelf(a.getType())))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, c, a);
  // `ugt` also holds when one is NaN: not when that one is a.
  Value more = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, c, a);
  Value isNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, a, a);
  return arith::AndIOp::create(b, more, isNumber);
}

} // namespace

/// A row of a tensor in memory, and the places of its elements that are the result.
struct Emitter::RowOfPlaces {
  Emitter &emitter;
  const Buffer &from, &to;
  Value row, out;

  Value elementAt(Value i) const {
    Value offset = emitter.mul(i, emitter.constant(bytesOf(from.dtype)));
    return emitter.toLanes(emitter.loadElement(from, emitter.bytes(row, offset)), from.dtype);
  }
  Value slot(Value p) const {
    return emitter.bytes(out, emitter.mul(p, emitter.constant(bytesOf(to.dtype))));
  }
  Value placeAt(Value p) const {
    Value stored = emitter.loadAs(emitter.b.getI32Type(), slot(p), 4);
    return arith::ExtSIOp::create(emitter.b, emitter.i64_, stored);
  }
  void setPlace(Value p, Value i) const {
    Value number = arith::TruncIOp::create(emitter.b, emitter.b.getI32Type(), i);
    LLVM::StoreOp::create(emitter.b, number, slot(p), 4);
  }
};

/// The row at the place of the axes before the last.
Emitter::RowOfPlaces Emitter::rowOfPlaces(const Stage &stage, Place &place) {
  const Root &root = stage.roots.front();
  const Buffer &from = *plan_.bufferOf.lookup(root.value.getDefiningOp()->getOperand(0));
  place.index.push_back(constant(0));
  Value row = address(from, place.index), out = address(*root.buffer, place.index);
  place.index.pop_back();
  return {*this, from, *root.buffer, row, out};
}

/// One pass over a row. The places found so far stand in the result, best first, and what comes
/// later is put after its equals; a vector whose elements are no better than the last of k places
/// costs one comparison.
void Emitter::selectTop(const Stage &stage) {
  const Root &root = stage.roots.front();
  auto apply = root.value.getDefiningOp<ir::ApplyOp>();
  Value operand = apply.getOperand(0);
  const Buffer &from = *plan_.bufferOf.lookup(operand);
  const std::vector<Dim> &space = plan_.shapes->of(operand);
  Value most = constant(apply.getAttrs().getAs<IntegerAttr>("k").getInt());
  Value lastPlace = add(most, constant(-1));
  int64_t size = bytesOf(from.dtype);
  laneExtent_ = space.back();
  auto less = [&](Value a, Value c) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, a, c);
  };

  Place place;
  nest(ArrayRef(space).drop_back(), place.index, [&] {
    RowOfPlaces places = rowOfPlaces(stage, place);
    auto elementAt = [&](Value i) { return places.elementAt(i); };
    auto placeAt = [&](Value p) { return places.placeAt(p); };
    auto setPlace = [&](Value p, Value i) { places.setPlace(p, i); };
    auto choose = [&](Value condition, Type type, llvm::function_ref<Value()> then,
                      llvm::function_ref<Value()> otherwise) -> Value {
      auto branch = scf::IfOp::create(b, TypeRange{type}, condition, true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(branch.thenBlock());
      scf::YieldOp::create(b, then());
      b.setInsertionPointToEnd(branch.elseBlock());
      scf::YieldOp::create(b, otherwise());
      return branch.getResult(0);
    };
    /// Puts element i, which is x, among the places; gives what an element must exceed from now on.
    auto insert = [&](Value i, Value x, Value bound) {
      auto shift = scf::WhileOp::create(b, TypeRange{i64_}, ValueRange{minimum(i, lastPlace)});
      {
        OpBuilder::InsertionGuard guard(b);
        Value p = b.createBlock(&shift.getBefore(), {}, i64_, b.getLoc())->getArgument(0);
        Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, p, constant(0));
        Value goesOn = choose(
            isFirst, b.getI1Type(),
            [&]() -> Value { return arith::ConstantIntOp::create(b, b.getI1Type(), 0); },
            [&] { return isGreater(b, x, elementAt(placeAt(add(p, constant(-1))))); });
        scf::ConditionOp::create(b, goesOn, p);
        p = b.createBlock(&shift.getAfter(), {}, i64_, b.getLoc())->getArgument(0);
        Value before = add(p, constant(-1));
        setPlace(p, placeAt(before));
        scf::YieldOp::create(b, before);
      }
      setPlace(shift.getResult(0), i);
      return choose(
          less(i, lastPlace), bound.getType(), [&] { return bound; },
          [&] { return elementAt(placeAt(lastPlace)); });
    };

    Value count = extent(space.back());
    // The first k elements are put in whatever the bound is.
    Value bound = arith::ConstantOp::create(b, b.getZeroAttr(laneType(from.dtype)));
    auto columns = scf::ForOp::create(b, constant(0), count, constant(kLoopLanes), bound);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(columns.getBody());
    Value column = columns.getInductionVar(), outerBound = columns.getRegionIterArg(0);
    auto stored = VectorType::get({kLoopLanes}, storageType(from.dtype));
    Value lanes =
        toLanes(loadAs(stored, bytes(places.row, mul(column, constant(size))), size), from.dtype);
    place.index.push_back(column);
    place.lanesAxis = static_cast<int>(place.index.size()) - 1;
    Value better = arith::AndIOp::create(b, isGreater(b, lanes, splat(outerBound, kLoopLanes)),
                                         inRange(place));
    place.lanesAxis = -1;
    place.index.pop_back();
    Value any = vector::ReductionOp::create(b, vector::CombiningKind::OR, better);
    any = arith::OrIOp::create(b, any, less(column, most));
    Value next = choose(
        any, bound.getType(),
        [&]() -> Value {
          Value end = minimum(add(column, constant(kLoopLanes)), count);
          auto each = scf::ForOp::create(b, column, end, constant(1), outerBound);
          OpBuilder::InsertionGuard inner(b);
          b.setInsertionPointToEnd(each.getBody());
          Value i = each.getInductionVar(), held = each.getRegionIterArg(0);
          Value x = elementAt(i);
          Value enters = arith::OrIOp::create(b, less(i, most), isGreater(b, x, held));
          scf::YieldOp::create(b, choose(
                                      enters, bound.getType(), [&] { return insert(i, x, held); },
                                      [&] { return held; }));
          return each.getResult(0);
        },
        [&] { return outerBound; });
    scf::YieldOp::create(b, next);
  });
}

/// Heap sort of the places, in place. Of equal elements the lower place comes first, so there is
/// one order, and it does not matter that heap sort keeps none.
void Emitter::sortPlaces(const Stage &stage) {
  auto apply = stage.roots.front().value.getDefiningOp<ir::ApplyOp>();
  bool descending = apply.getAttrs().getAs<IntegerAttr>("descending").getInt() != 0;
  const std::vector<Dim> &space = plan_.shapes->of(apply.getOperand(0));
  auto less = [&](Value a, Value c) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, a, c);
  };
  auto both = [&](Value a, Value c) -> Value { return arith::AndIOp::create(b, a, c); };

  Place place;
  nest(ArrayRef(space).drop_back(), place.index, [&] {
    RowOfPlaces places = rowOfPlaces(stage, place);
    Value count = extent(space.back());
    /// Whether the element at i comes before the one at j.
    auto isBefore = [&](Value i, Value j) -> Value {
      Value x = places.elementAt(i), y = places.elementAt(j);
      if (descending)
        std::swap(x, y);
      Value isLess = isGreater(b, y, x), isMore = isGreater(b, x, y);
      Value no = arith::ConstantIntOp::create(b, b.getI1Type(), 0);
      Value isEarlier = arith::SelectOp::create(b, isMore, no, less(i, j));
      return arith::OrIOp::create(b, isLess, isEarlier);
    };
    /// Puts the place that stands at `top` where it belongs among those below it, before `end`.
    auto sift = [&](Value top, Value end) {
      Value moving = places.placeAt(top), last = add(end, constant(-1));
      ValueRange holes = loopWhile(
          {top, top},
          [&](ValueRange state) {
            Value left = add(mul(state[0], constant(2)), constant(1));
            Value first = minimum(left, last), second = minimum(add(left, constant(1)), last);
            Value a = places.placeAt(first), c = places.placeAt(second);
            Value isSecond = isBefore(a, c);
            Value child = arith::SelectOp::create(b, isSecond, second, first);
            Value later = arith::SelectOp::create(b, isSecond, c, a);
            Value goesOn = both(less(left, end), isBefore(moving, later));
            scf::ConditionOp::create(b, goesOn, ValueRange{state[0], child});
          },
          [&](ValueRange state) {
            places.setPlace(state[0], places.placeAt(state[1]));
            scf::YieldOp::create(b, ValueRange{state[1], state[1]});
          });
      places.setPlace(holes[0], moving);
    };
    loop(constant(0), count, 1, [&](Value i) { places.setPlace(i, i); });
    Value half = arith::DivSIOp::create(b, count, constant(2));
    loop(constant(0), half, 1, [&](Value i) {
      Value back = arith::SubIOp::create(b, add(half, constant(-1)), i);
      sift(back, count);
    });
    loop(constant(1), count, 1, [&](Value done) {
      Value end = arith::SubIOp::create(b, count, done);
      Value greatest = places.placeAt(constant(0));
      places.setPlace(constant(0), places.placeAt(end));
      places.setPlace(end, greatest);
      sift(constant(0), end);
    });
  });
}

} // namespace sheaf::kernels::cpu
