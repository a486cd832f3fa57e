//===- Scalar.cpp - Arithmetic on host scalars ----------------------------===//

#include "compiler/ops/Reference.h"
#include "compiler/oracle/Compute.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/TypeSwitch.h"

namespace sheaf::oracle {
namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::Operation;

bool holds(arith::CmpIPredicate predicate, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return x < y;
  case arith::CmpIPredicate::ule:
    return x <= y;
  case arith::CmpIPredicate::ugt:
    return x > y;
  case arith::CmpIPredicate::uge:
    return x >= y;
  }
  return false;
}

bool holds(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return a == b;
  case P::ONE:
    return a < b || a > b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::UEQ:
    return unordered || a == b;
  case P::UNE:
    return unordered || a != b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  }
  return false;
}

int64_t divide(int64_t a, int64_t b) {
  if (b == 0)
    throw Failure{"division by zero"};
  // The quotient of the least int and -1 wraps.
  return b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
}

int64_t remainder(int64_t a, int64_t b) {
  if (b == 0)
    throw Failure{"division by zero"};
  return b == -1 ? 0 : a % b;
}

/// A double rounded to what a float of this type can hold.
double roundTo(double x, mlir::Type type) {
  llvm::APFloat value(x);
  bool losesInfo;
  const auto &semantics = mlir::cast<mlir::FloatType>(type).getFloatSemantics();
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

std::optional<double> floats(Operation *op, llvm::ArrayRef<Value> operands) {
  auto x = [&](size_t i) { return std::get<double>(operands[i]); };
  return llvm::TypeSwitch<Operation *, std::optional<double>>(op)
      .Case<arith::AddFOp>([&](auto) { return x(0) + x(1); })
      .Case<arith::SubFOp>([&](auto) { return x(0) - x(1); })
      .Case<arith::MulFOp>([&](auto) { return x(0) * x(1); })
      .Case<arith::DivFOp>([&](auto) { return x(0) / x(1); })
      .Case<arith::RemFOp>([&](auto) { return std::fmod(x(0), x(1)); })
      .Case<arith::NegFOp>([&](auto) { return -x(0); })
      .Case<arith::MaximumFOp>([&](auto) { return ops::maximumOf(x(0), x(1)); })
      .Case<arith::MinimumFOp>([&](auto) { return ops::minimumOf(x(0), x(1)); })
      .Case<arith::MaxNumFOp>([&](auto) { return std::fmax(x(0), x(1)); })
      .Case<arith::MinNumFOp>([&](auto) { return std::fmin(x(0), x(1)); })
      .Case<arith::SIToFPOp>([&](auto) { return static_cast<double>(toInt(operands[0])); })
      .Case<arith::UIToFPOp>(
          [&](auto) { return static_cast<double>(static_cast<uint64_t>(toInt(operands[0]))); })
      .Case<math::ExpOp>([&](auto) { return std::exp(x(0)); })
      .Case<math::LogOp>([&](auto) { return std::log(x(0)); })
      .Case<math::SqrtOp>([&](auto) { return std::sqrt(x(0)); })
      .Case<math::TanhOp>([&](auto) { return std::tanh(x(0)); })
      .Case<math::SinOp>([&](auto) { return std::sin(x(0)); })
      .Case<math::CosOp>([&](auto) { return std::cos(x(0)); })
      .Case<math::FloorOp>([&](auto) { return std::floor(x(0)); })
      .Case<math::CeilOp>([&](auto) { return std::ceil(x(0)); })
      .Case<math::AbsFOp>([&](auto) { return std::fabs(x(0)); })
      .Case<math::ErfOp>([&](auto) { return std::erf(x(0)); })
      .Case<arith::ExtFOp>([&](auto) { return x(0); })
      .Case<arith::TruncFOp>([&](auto op) { return roundTo(x(0), op.getType()); })
      .Case<math::PowFOp>([&](auto) { return std::pow(x(0), x(1)); })
      .Default([](auto) { return std::nullopt; });
}

std::optional<int64_t> ints(Operation *op, llvm::ArrayRef<Value> operands) {
  auto x = [&](size_t i) { return toInt(operands[i]); };
  auto bits = [&](size_t i) { return static_cast<uint64_t>(toInt(operands[i])); };
  auto wrapped = [](uint64_t v) { return static_cast<int64_t>(v); };
  return llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case<arith::AddIOp>([&](auto) { return wrapped(bits(0) + bits(1)); })
      .Case<arith::SubIOp>([&](auto) { return wrapped(bits(0) - bits(1)); })
      .Case<arith::MulIOp>([&](auto) { return wrapped(bits(0) * bits(1)); })
      .Case<arith::DivSIOp>([&](auto) { return divide(x(0), x(1)); })
      .Case<arith::RemSIOp>([&](auto) { return remainder(x(0), x(1)); })
      .Case<arith::AndIOp>([&](auto) { return x(0) & x(1); })
      .Case<arith::OrIOp>([&](auto) { return x(0) | x(1); })
      .Case<arith::XOrIOp>([&](auto) { return x(0) ^ x(1); })
      .Case<arith::MaxSIOp>([&](auto) { return std::max(x(0), x(1)); })
      .Case<arith::MinSIOp>([&](auto) { return std::min(x(0), x(1)); })
      .Case<math::AbsIOp>([&](auto) { return x(0) < 0 ? wrapped(-bits(0)) : x(0); })
      .Case<arith::CmpIOp>([&](auto cmp) { return holds(cmp.getPredicate(), x(0), x(1)); })
      .Case<arith::CmpFOp>([&](auto cmp) {
        return holds(cmp.getPredicate(), std::get<double>(operands[0]),
                     std::get<double>(operands[1]));
      })
      .Case<arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp>([&](auto) { return x(0); })
      .Case<arith::ExtSIOp>([&](auto ext) {
        // An i1 holds 0 or -1 as a signed int.
        return ext.getIn().getType().isInteger(1) ? -x(0) : x(0);
      })
      .Case<arith::FPToSIOp>(
          [&](auto) { return ops::truncateToInt(std::get<double>(operands[0]), ops::DType::I64); })
      .Default([](auto) { return std::nullopt; });
}

} // namespace

int64_t toInt(const Value &value) {
  if (auto *flag = std::get_if<bool>(&value))
    return *flag;
  return std::get<int64_t>(value);
}

Value fromElement(double element, mlir::Type type) {
  if (type.isF64())
    return element;
  if (type.isInteger(1))
    return element != 0;
  return static_cast<int64_t>(element);
}

Value fromInt(int64_t value, mlir::Type type) {
  if (type.isInteger(1))
    return (value & 1) != 0;
  if (type.isInteger(32))
    return static_cast<int64_t>(static_cast<int32_t>(value));
  return value;
}

std::optional<Value> computeScalar(Operation *op, llvm::ArrayRef<Value> operands) {
  if (auto constant = mlir::dyn_cast<arith::ConstantOp>(op)) {
    mlir::Type type = constant.getType();
    if (auto number = mlir::dyn_cast<mlir::FloatAttr>(constant.getValue()))
      return number.getValueAsDouble();
    if (auto number = mlir::dyn_cast<mlir::IntegerAttr>(constant.getValue()))
      return fromInt(type.isInteger(1) ? number.getValue().getZExtValue()
                                       : number.getValue().getSExtValue(),
                     type);
    return std::nullopt;
  }
  if (mlir::isa<arith::SelectOp>(op))
    return toInt(operands[0]) ? operands[1] : operands[2];
  if (auto value = floats(op, operands))
    return *value;
  if (auto value = ints(op, operands))
    return fromInt(*value, op->getResult(0).getType());
  return std::nullopt;
}

} // namespace sheaf::oracle
