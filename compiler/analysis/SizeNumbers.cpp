//===- SizeNumbers.cpp - Ints and bools, with bounds ------------------===//

#include "compiler/analysis/SizeWalk.h"

#include "compiler/analysis/KnownValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace sheaf::passes {
namespace {

SizeNumber boolNumber(std::optional<bool> known) {
  return known ? SizeNumber::exactly(*known) : SizeNumber{0, Bound(1)};
}

SizeNumber product(const SizeNumber &a, const SizeNumber &b, const SizeNumber &unknown) {
  if (a.least < 0 && b.least < 0)
    return unknown;
  // With one of them negative it is no more than nothing.
  int64_t least = INT64_MIN;
  if (a.least < 0 || b.least < 0)
    return {least, a.most * b.most};
  if (__builtin_mul_overflow(a.least, b.least, &least))
    least = INT64_MAX;
  return {least, a.most * b.most};
}

/// Of a choice between two ints by comparing them: whether it takes the one that is less.
std::optional<bool> takesLess(arith::SelectOp select) {
  auto cmp = select.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!cmp)
    return std::nullopt;
  using P = arith::CmpIPredicate;
  P predicate = cmp.getPredicate();
  bool below = predicate == P::slt || predicate == P::sle;
  if (!below && predicate != P::sgt && predicate != P::sge)
    return std::nullopt;
  Value low = below ? cmp.getLhs() : cmp.getRhs(), high = below ? cmp.getRhs() : cmp.getLhs();
  if (select.getTrueValue() == low && select.getFalseValue() == high)
    return true;
  if (select.getTrueValue() == high && select.getFalseValue() == low)
    return false;
  return std::nullopt;
}

bool isLarger(arith::SelectOp select) { return takesLess(select) == false; }

SizeNumber larger(const SizeNumber &a, const SizeNumber &b) {
  return {std::max(a.least, b.least), Bound::max(a.most, b.most)};
}

} // namespace

bool isSmaller(arith::SelectOp select) { return takesLess(select) == true; }

SizeNumber SizeWalk::smaller(const SizeNumber &a, const SizeNumber &b) const {
  bool first = symbols_.mostOf(a) <= symbols_.mostOf(b);
  return {std::min(a.least, b.least), first ? a.most : b.most};
}

SizeValue SizeWalk::compare(Operation *op) {
  auto cmp = cast<arith::CmpIOp>(op);
  auto answer = [](std::optional<bool> known) { return numberValue(boolNumber(known)); };
  if (!isa<IntegerType>(cmp.getLhs().getType()))
    return answer({});
  // Two that are one, where it is known which of two a value is.
  auto chosen = [&](Value value) {
    while (auto select = value.getDefiningOp<arith::SelectOp>()) {
      auto condition = env_->find(select.getCondition());
      std::optional<int64_t> known =
          condition == env_->end() ? std::nullopt : condition->second.number.exact();
      if (!known)
        break;
      value = *known ? select.getTrueValue() : select.getFalseValue();
    }
    return value;
  };
  if (chosen(cmp.getLhs()) == chosen(cmp.getRhs()))
    return answer(arith::applyCmpPredicate(cmp.getPredicate(), APInt(64, 0), APInt(64, 0)));
  const SizeNumber &a = of(cmp.getLhs()).number, &b = of(cmp.getRhs()).number;
  // For numbers from 0 on both ways of comparing are one.
  using P = arith::CmpIPredicate;
  P predicate = cmp.getPredicate();
  bool isUnsigned =
      predicate == P::ult || predicate == P::ule || predicate == P::ugt || predicate == P::uge;
  if (isUnsigned && (a.least < 0 || b.least < 0))
    return answer({});
  auto below = [&](const SizeNumber &x, const SizeNumber &y) -> std::optional<bool> {
    if (y.least != INT64_MIN && symbols_.mostOf(x) < y.least)
      return true;
    if (x.least != INT64_MIN && x.least >= symbols_.mostOf(y))
      return false;
    return std::nullopt;
  };
  auto negated = [](std::optional<bool> known) {
    return known ? std::optional(!*known) : std::nullopt;
  };
  std::optional<bool> equal;
  if (a.exact() && b.exact())
    equal = *a.exact() == *b.exact();
  else if (below(a, b) == true || below(b, a) == true)
    equal = false;
  switch (predicate) {
  case P::eq:
    return answer(equal);
  case P::ne:
    return answer(negated(equal));
  case P::slt:
  case P::ult:
    return answer(below(a, b));
  case P::sge:
  case P::uge:
    return answer(negated(below(a, b)));
  case P::sgt:
  case P::ugt:
    return answer(below(b, a));
  case P::sle:
  case P::ule:
    return answer(negated(below(b, a)));
  }
  return answer({});
}

bool SizeWalk::visitArithmetic(Operation *op) {
  Dialect *dialect = op->getDialect();
  bool isInt = op->getNumResults() == 1 && isa<IntegerType>(op->getResult(0).getType());
  if (!isa<arith::ArithDialect>(dialect) && !isa<ir::DivOp, ir::RemOp, ir::SplitKeyOp>(op))
    return false;
  if (isa<arith::CmpIOp>(op)) {
    set(op->getResult(0), compare(op));
    return true;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    std::optional<int64_t> known = of(select.getCondition()).number.exact();
    SizeValue a = of(select.getTrueValue()), b = of(select.getFalseValue());
    SizeValue either = known ? (*known ? a : b) : joined(a, b);
    if (!known && isSmaller(select))
      either = numberValue(smaller(a.number, b.number));
    else if (!known && isLarger(select))
      either = numberValue(larger(a.number, b.number));
    set(op->getResult(0), std::move(either));
    return true;
  }
  if (!isInt) {
    set(op->getResult(0), {});
    return true;
  }
  if (std::optional<int64_t> number = intConstant(op->getResult(0))) {
    set(op->getResult(0),
        numberValue(op->getResult(0).getType().isInteger(1) ? *number != 0 : *number));
    return true;
  }
  auto operand = [&](unsigned i) -> const SizeNumber & { return of(op->getOperand(i)).number; };
  SizeNumber unknown =
      this->unknown(op->getResult(0).getType(), op->getLoc(), "a number that is computed here")
          .number;
  std::optional<int64_t> right =
      op->getNumOperands() == 2 ? intConstant(op->getOperand(1)) : std::nullopt;
  SizeNumber result = unknown;
  bool isBool = op->getResult(0).getType().isInteger(1);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](arith::AddIOp) {
        if (right && *right < 0 && *right > INT32_MIN)
          result = {leastSum(operand(0).least, *right),
                    operand(0).most.less(static_cast<double>(-*right))};
        else
          result = sum(operand(0), operand(1));
      })
      .Case([&](arith::SubIOp) {
        const SizeNumber &b = operand(1);
        if (b.least == INT64_MIN || b.least < INT32_MIN)
          return;
        int64_t most = symbols_.mostOf(b);
        result.least = most < INT32_MAX ? leastSum(operand(0).least, -most) : INT64_MIN;
        double taken = static_cast<double>(b.least);
        result.most = taken >= 0 ? operand(0).most.less(taken) : operand(0).most + Bound(-taken);
      })
      .Case([&](arith::MulIOp) { result = product(operand(0), operand(1), unknown); })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([&](auto) { result = larger(operand(0), operand(1)); })
      .Case([&](arith::MinSIOp) { result = smaller(operand(0), operand(1)); })
      .Case<arith::AndIOp, arith::OrIOp, arith::XOrIOp>([&](auto) {
        if (!isBool)
          return;
        std::optional<int64_t> a = operand(0).exact(), b = operand(1).exact();
        std::optional<bool> known;
        if (a && b)
          known = isa<arith::AndIOp>(op) ? *a && *b : isa<arith::OrIOp>(op) ? *a || *b : *a != *b;
        else if (isa<arith::AndIOp>(op) && (a == 0 || b == 0))
          known = false;
        else if (isa<arith::OrIOp>(op) && (a == 1 || b == 1))
          known = true;
        result = boolNumber(known);
      })
      .Case([&](arith::ExtUIOp) { result = operand(0); })
      .Case([&](ir::DivOp) {
        if (!right || *right <= 0) {
          if (operand(0).least >= 0)
            result = {INT64_MIN, operand(0).most};
          return;
        }
        result.least = operand(0).least == INT64_MIN ? INT64_MIN : operand(0).least / *right;
        result.most = operand(0).most * Bound(1 / static_cast<double>(*right));
        if (std::optional<double> most = result.most.constant())
          result.most = Bound(std::floor(*most));
      })
      .Case([&](ir::RemOp) {
        if (right && *right != 0 && *right != INT64_MIN) {
          int64_t most = std::abs(*right) - 1;
          result = {operand(0).least >= 0 ? 0 : -most, Bound(static_cast<double>(most))};
        } else if (operand(0).least >= 0) {
          result = {0, operand(0).most};
        }
      });
  set(op->getResult(0), numberValue(std::move(result)));
  return true;
}

} // namespace sheaf::passes
