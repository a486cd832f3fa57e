//===- EmitScalars.cpp - Scalars, tuples and data -------------------------===//

#include "compiler/host/Emitter.h"

#include "runtime/model/error.h"
#include "runtime/model/keys.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sheaf::host {
namespace {

llvm::CmpInst::Predicate predicateOf(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return llvm::CmpInst::ICMP_EQ;
  case arith::CmpIPredicate::ne:
    return llvm::CmpInst::ICMP_NE;
  case arith::CmpIPredicate::slt:
    return llvm::CmpInst::ICMP_SLT;
  case arith::CmpIPredicate::sle:
    return llvm::CmpInst::ICMP_SLE;
  case arith::CmpIPredicate::sgt:
    return llvm::CmpInst::ICMP_SGT;
  case arith::CmpIPredicate::sge:
    return llvm::CmpInst::ICMP_SGE;
  case arith::CmpIPredicate::ult:
    return llvm::CmpInst::ICMP_ULT;
  case arith::CmpIPredicate::ule:
    return llvm::CmpInst::ICMP_ULE;
  case arith::CmpIPredicate::ugt:
    return llvm::CmpInst::ICMP_UGT;
  case arith::CmpIPredicate::uge:
    return llvm::CmpInst::ICMP_UGE;
  }
  return llvm::CmpInst::ICMP_EQ;
}

llvm::CmpInst::Predicate predicateOf(arith::CmpFPredicate predicate) {
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return llvm::CmpInst::FCMP_FALSE;
  case arith::CmpFPredicate::OEQ:
    return llvm::CmpInst::FCMP_OEQ;
  case arith::CmpFPredicate::OGT:
    return llvm::CmpInst::FCMP_OGT;
  case arith::CmpFPredicate::OGE:
    return llvm::CmpInst::FCMP_OGE;
  case arith::CmpFPredicate::OLT:
    return llvm::CmpInst::FCMP_OLT;
  case arith::CmpFPredicate::OLE:
    return llvm::CmpInst::FCMP_OLE;
  case arith::CmpFPredicate::ONE:
    return llvm::CmpInst::FCMP_ONE;
  case arith::CmpFPredicate::ORD:
    return llvm::CmpInst::FCMP_ORD;
  case arith::CmpFPredicate::UEQ:
    return llvm::CmpInst::FCMP_UEQ;
  case arith::CmpFPredicate::UGT:
    return llvm::CmpInst::FCMP_UGT;
  case arith::CmpFPredicate::UGE:
    return llvm::CmpInst::FCMP_UGE;
  case arith::CmpFPredicate::ULT:
    return llvm::CmpInst::FCMP_ULT;
  case arith::CmpFPredicate::ULE:
    return llvm::CmpInst::FCMP_ULE;
  case arith::CmpFPredicate::UNE:
    return llvm::CmpInst::FCMP_UNE;
  case arith::CmpFPredicate::UNO:
    return llvm::CmpInst::FCMP_UNO;
  case arith::CmpFPredicate::AlwaysTrue:
    return llvm::CmpInst::FCMP_TRUE;
  }
  return llvm::CmpInst::FCMP_FALSE;
}

bool isScalar(Type type) { return type.isInteger(64) || type.isInteger(1) || type.isF64(); }

} // namespace

/// Integers wrap around; a shift by 64 or more, which LLVM leaves open, gives what shifting out all
/// bits gives.
bool FunctionEmitter::emitArith(Operation *op) {
  if (op->getNumResults() != 1)
    return false;
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Slots slots, yes = as(select.getTrueValue(), select.getType()),
                 no = as(select.getFalseValue(), select.getType());
    for (auto [a, b] : llvm::zip(yes, no))
      slots.push_back(b_.CreateSelect(one(select.getCondition()), a, b));
    set(select, slots);
    return true;
  }
  if (!isScalar(op->getResult(0).getType()))
    return false;
  SmallVector<llvm::Value *> in;
  for (Value operand : op->getOperands()) {
    if (!isScalar(operand.getType()))
      return false;
    in.push_back(one(operand));
  }
  auto binary = [&](llvm::Intrinsic::ID id) { return b_.CreateBinaryIntrinsic(id, in[0], in[1]); };
  using V = llvm::Value *;
  llvm::Value *out =
      llvm::TypeSwitch<Operation *, V>(op)
          .Case([&](arith::ConstantOp c) -> V {
            if (auto number = dyn_cast<IntegerAttr>(c.getValue()))
              return llvm::ConstantInt::get(m_.context, number.getValue());
            return llvm::ConstantFP::get(m_.context, cast<FloatAttr>(c.getValue()).getValue());
          })
          .Case([&](arith::AddIOp) -> V { return b_.CreateAdd(in[0], in[1]); })
          .Case([&](arith::SubIOp) -> V { return b_.CreateSub(in[0], in[1]); })
          .Case([&](arith::MulIOp) -> V { return b_.CreateMul(in[0], in[1]); })
          .Case([&](arith::AndIOp) -> V { return b_.CreateAnd(in[0], in[1]); })
          .Case([&](arith::OrIOp) -> V { return b_.CreateOr(in[0], in[1]); })
          .Case([&](arith::XOrIOp) -> V { return b_.CreateXor(in[0], in[1]); })
          .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>([&](Operation *op) -> V {
            llvm::Value *most = llvm::ConstantInt::get(in[1]->getType(), 63);
            llvm::Value *inRange = b_.CreateICmpULE(in[1], most);
            llvm::Value *by = b_.CreateSelect(inRange, in[1], most);
            if (isa<arith::ShRSIOp>(op))
              return b_.CreateAShr(in[0], by);
            llvm::Value *shifted =
                isa<arith::ShLIOp>(op) ? b_.CreateShl(in[0], by) : b_.CreateLShr(in[0], by);
            return b_.CreateSelect(inRange, shifted,
                                   llvm::Constant::getNullValue(in[0]->getType()));
          })
          .Case([&](arith::MaxSIOp) -> V { return binary(llvm::Intrinsic::smax); })
          .Case([&](arith::MinSIOp) -> V { return binary(llvm::Intrinsic::smin); })
          .Case([&](arith::MaxUIOp) -> V { return binary(llvm::Intrinsic::umax); })
          .Case([&](arith::MinUIOp) -> V { return binary(llvm::Intrinsic::umin); })
          .Case([&](arith::CmpIOp cmp) -> V {
            return b_.CreateICmp(predicateOf(cmp.getPredicate()), in[0], in[1]);
          })
          .Case([&](arith::CmpFOp cmp) -> V {
            return b_.CreateFCmp(predicateOf(cmp.getPredicate()), in[0], in[1]);
          })
          .Case([&](arith::AddFOp) -> V { return b_.CreateFAdd(in[0], in[1]); })
          .Case([&](arith::SubFOp) -> V { return b_.CreateFSub(in[0], in[1]); })
          .Case([&](arith::MulFOp) -> V { return b_.CreateFMul(in[0], in[1]); })
          .Case([&](arith::DivFOp) -> V { return b_.CreateFDiv(in[0], in[1]); })
          .Case([&](arith::RemFOp) -> V { return b_.CreateFRem(in[0], in[1]); })
          .Case([&](arith::NegFOp) -> V { return b_.CreateFNeg(in[0]); })
          .Case([&](arith::MaximumFOp) -> V { return binary(llvm::Intrinsic::maximum); })
          .Case([&](arith::MinimumFOp) -> V { return binary(llvm::Intrinsic::minimum); })
          .Case([&](arith::MaxNumFOp) -> V { return binary(llvm::Intrinsic::maxnum); })
          .Case([&](arith::MinNumFOp) -> V { return binary(llvm::Intrinsic::minnum); })
          .Case([&](arith::ExtUIOp) -> V { return b_.CreateZExt(in[0], b_.getInt64Ty()); })
          .Case([&](arith::ExtSIOp) -> V { return b_.CreateSExt(in[0], b_.getInt64Ty()); })
          .Case([&](arith::TruncIOp) -> V { return b_.CreateTrunc(in[0], b_.getInt1Ty()); })
          .Case([&](arith::SIToFPOp) -> V { return b_.CreateSIToFP(in[0], b_.getDoubleTy()); })
          .Case([&](arith::UIToFPOp) -> V { return b_.CreateUIToFP(in[0], b_.getDoubleTy()); })
          .Default([](Operation *) -> V { return nullptr; });
  if (!out)
    return false;
  set(op->getResult(0), {out});
  return true;
}

bool FunctionEmitter::emitMath(Operation *op) {
  auto id = llvm::TypeSwitch<Operation *, std::optional<llvm::Intrinsic::ID>>(op)
                .Case([](math::AbsFOp) { return llvm::Intrinsic::fabs; })
                .Case([](math::SqrtOp) { return llvm::Intrinsic::sqrt; })
                .Case([](math::FloorOp) { return llvm::Intrinsic::floor; })
                .Case([](math::CeilOp) { return llvm::Intrinsic::ceil; })
                .Case([](math::TruncOp) { return llvm::Intrinsic::trunc; })
                .Case([](math::ExpOp) { return llvm::Intrinsic::exp; })
                .Case([](math::LogOp) { return llvm::Intrinsic::log; })
                .Case([](math::SinOp) { return llvm::Intrinsic::sin; })
                .Case([](math::CosOp) { return llvm::Intrinsic::cos; })
                .Case([](math::TanhOp) { return llvm::Intrinsic::tanh; })
                .Case([](math::PowFOp) { return llvm::Intrinsic::pow; })
                .Default([](Operation *) { return std::nullopt; });
  if (!id || !op->getResult(0).getType().isF64())
    return false;
  SmallVector<llvm::Value *> in;
  for (Value operand : op->getOperands())
    in.push_back(one(operand));
  set(op->getResult(0), {b_.CreateIntrinsic(*id, {b_.getDoubleTy()}, in)});
  return true;
}

void FunctionEmitter::emitConvert(ir::ConvertOp op) {
  Type from = op.getValue().getType(), to = op.getType();
  llvm::Value *value = one(op.getValue());
  llvm::Type *type = slotTypes(to, m_.context).front();
  if (from.isF64() && to.isInteger(1))
    value = b_.CreateFCmpUNE(value, llvm::ConstantFP::get(type->getContext(), llvm::APFloat(0.0)));
  else if (from.isF64() && !to.isF64())
    // Numbers beyond the range give its ends, NaN gives 0.
    value = b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, value->getType()}, {value});
  else if (to.isF64() && from.isInteger(1))
    value = b_.CreateUIToFP(value, type);
  else if (to.isF64() && !from.isF64())
    value = b_.CreateSIToFP(value, type);
  else if (to.isInteger(1) && !from.isInteger(1))
    value = b_.CreateICmpNE(value, i64(0));
  else if (from.isInteger(1) && !to.isInteger(1))
    value = b_.CreateZExt(value, type);
  set(op, {value});
}

void FunctionEmitter::emitDivision(Operation *op) {
  llvm::Value *lhs = one(op->getOperand(0)), *rhs = one(op->getOperand(1));
  bool isDiv = isa<ir::DivOp>(op);
  require(b_.CreateICmpNE(rhs, i64(0)), op->getLoc(),
          isDiv ? "{0} is divided by zero" : "the remainder of {0} by zero is taken", lhs);
  // The least int divided by -1 has no quotient that fits: it wraps around instead of trapping.
  llvm::Value *minusOne = b_.CreateICmpEQ(rhs, i64(-1));
  llvm::Value *divisor = b_.CreateSelect(minusOne, i64(1), rhs);
  llvm::Value *result =
      isDiv ? b_.CreateSelect(minusOne, b_.CreateNeg(lhs), b_.CreateSDiv(lhs, divisor))
            : b_.CreateSRem(lhs, divisor);
  set(op->getResult(0), {result});
}

/// rt::splitKey
void FunctionEmitter::emitSplitKey(ir::SplitKeyOp op) {
  auto number = [&](uint64_t value) { return b_.getInt64(value); };
  auto split = [&](llvm::Value *key, llvm::Value *by) {
    llvm::Value *next = b_.CreateMul(b_.CreateAdd(by, number(1)), number(rt::kKeyIncrement));
    llvm::Value *z = b_.CreateAdd(key, next);
    for (unsigned i = 0; i < 2; ++i)
      z = b_.CreateMul(b_.CreateXor(z, b_.CreateLShr(z, rt::kKeyShifts[i])),
                       number(rt::kKeyFactors[i]));
    return b_.CreateXor(z, b_.CreateLShr(z, rt::kKeyShifts[2]));
  };
  llvm::Value *key = split(one(op.getKey()), number(op.getSite()));
  if (op.getIndex())
    key = split(key, one(op.getIndex()));
  set(op, {key});
}

void FunctionEmitter::emitTuple(ir::TupleOp op) {
  Slots slots;
  for (auto [field, type] : llvm::zip(op.getFields(), cast<TupleType>(op.getType()).getTypes()))
    slots.append(as(field, type));
  set(op, slots);
}

void FunctionEmitter::emitGet(ir::GetOp op) {
  ArrayRef<llvm::Value *> slots = slots_.find(op.getTuple())->second;
  auto fields = cast<TupleType>(op.getTuple().getType()).getTypes();
  int64_t first = 0;
  for (Type field : fields.take_front(op.getIndex()))
    first += slotCount(field);
  set(op, Slots(slots.slice(first, slotCount(fields[op.getIndex()]))));
}

void FunctionEmitter::emitConstruct(ir::ConstructOp op) {
  if (op.getFields().empty())
    return set(op, {m_.emptyConstructor(op.getCtor())});
  auto data = SymbolTable::lookupNearestSymbolFrom<ir::DataOp>(op, op.getType().getName());
  auto ctor = cast<ir::CtorAttr>(data.getCtors()[op.getCtor()]);
  Slots slots{i64(op.getCtor())};
  for (auto [field, type] :
       llvm::zip(op.getFields(), ctor.getFieldTypes().getAsValueRange<TypeAttr>()))
    slots.append(as(field, type));
  llvm::Value *memory =
      callRuntime("sheaf_alloc", b_.getPtrTy(), static_cast<llvm::Value *>(i64(slots.size())));
  store(memory, slots);
  set(op, {memory});
}

void FunctionEmitter::emitDim(ir::DimOp op) {
  auto type = cast<RankedTensorType>(op.getTensor().getType());
  set(op, {extents(type, slots_.find(op.getTensor())->second)[op.getAxis()]});
}

void FunctionEmitter::emitEmit(ir::EmitOp op) {
  Slots slots = as(op.getValue(), op.getType());
  llvm::Value *memory = temporary(std::max<int64_t>(1, static_cast<int64_t>(slots.size())));
  store(memory, slots);
  callRuntime("sheaf_emit", b_.getVoidTy(), memory);
}

} // namespace sheaf::host
