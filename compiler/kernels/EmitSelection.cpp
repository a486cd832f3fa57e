//===- EmitSelection.cpp - The places of the greatest elements ------------===//

#include "compiler/kernels/Emitter.h"

using namespace mlir;

namespace sheaf::kernels {
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

/// One pass over a row. The places found so far stand in the result, best first, and what comes
/// later is put behind its equals; a vector whose elements are no better than the last of k places
/// costs one comparison.
void Emitter::selectTop(const Stage &stage) {
  const Root &root = stage.roots.front();
  auto apply = root.value.getDefiningOp<ir::ApplyOp>();
  Value operand = apply.getOperand(0);
  const Buffer &from = *plan_.bufferOf.lookup(operand);
  const std::vector<Dim> &space = plan_.shapes->of(operand);
  Value most = constant(apply.getAttrs().getAs<IntegerAttr>("k").getInt());
  Value lastPlace = add(most, constant(-1));
  int64_t size = bytesOf(from.dtype), placeSize = bytesOf(root.buffer->dtype);
  laneExtent_ = space.back();
  auto less = [&](Value a, Value c) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, a, c);
  };

  Place place;
  nest(ArrayRef(space).drop_back(), place.index, [&] {
    place.index.push_back(constant(0));
    Value row = address(from, place.index), out = address(*root.buffer, place.index);
    place.index.pop_back();
    auto elementAt = [&](Value i) {
      return toLanes(loadElement(from, bytes(row, mul(i, constant(size)))), from.dtype);
    };
    auto slot = [&](Value p) { return bytes(out, mul(p, constant(placeSize))); };
    auto placeAt = [&](Value p) -> Value {
      return arith::ExtSIOp::create(b, i64_, loadAs(b.getI32Type(), slot(p), 4));
    };
    auto setPlace = [&](Value p, Value i) {
      Value number = arith::TruncIOp::create(b, b.getI32Type(), i);
      LLVM::StoreOp::create(b, number, slot(p), 4);
    };
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
        toLanes(loadAs(stored, bytes(row, mul(column, constant(size))), size), from.dtype);
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

} // namespace sheaf::kernels
