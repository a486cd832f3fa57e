//===- ProgramGenExprs.cpp - Expressions of Programs ----------------------===//

#include "compiler/frontend/ProgramGenImpl.h"
#include "compiler/ir/Guards.h"
#include "compiler/ops/Build.h"
#include "compiler/ops/Verify.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <fmt/format.h>

namespace sheaf {

using namespace mlir;

Value ProgramGenerator::gen(const typed::Expr &expr) {
  if (stopped)
    return placeholder(mlirType(expr.type));
  At at(*this, expr.range);
  return genInner(expr);
}

Value ProgramGenerator::genInner(const typed::Expr &expr) {
  switch (expr.kind) {
  case typed::ExprKind::Number:
    return genNumber(expr.to<typed::NumberExpr>());
  case typed::ExprKind::Bool:
    return constBool(expr.to<typed::BoolExpr>().value);
  case typed::ExprKind::Local:
    return genLocal(expr.to<typed::LocalExpr>());
  case typed::ExprKind::DimValue:
    return dimValue(expr.to<typed::DimValueExpr>().dim);
  case typed::ExprKind::Param:
    return genParam(expr.to<typed::ParamExpr>());
  case typed::ExprKind::Constant:
    return genConstant(expr.to<typed::ConstantExpr>());
  case typed::ExprKind::Call:
    return genCall(expr.to<typed::CallExpr>());
  case typed::ExprKind::Apply:
    return genApply(expr.to<typed::ApplyExpr>());
  case typed::ExprKind::Scalar:
    return genScalar(expr.to<typed::ScalarExpr>());
  case typed::ExprKind::Builtin:
    return genBuiltin(expr.to<typed::BuiltinExpr>());
  case typed::ExprKind::Construct: {
    const auto &construct = expr.to<typed::ConstructExpr>();
    Type type = mlirType(expr.type);
    TypeRef source = types.resolve(expr.type);
    std::map<TypeRef, TypeRef> params;
    for (size_t i = 0; i < source->args.size(); ++i)
      params.emplace(source->data->typeParams[i], source->args[i]);
    SmallVector<Value> fields;
    for (size_t i = 0; i < construct.args.size(); ++i) {
      TypeRef field =
          types.substitute(source->data->constructors[construct.constructor].fields[i].type, params,
                           [](const std::string &) { return std::nullopt; });
      fields.push_back(genAs(*construct.args[i], mlirType(field)));
    }
    return ir::ConstructOp::create(b, type, static_cast<uint64_t>(construct.constructor), fields);
  }
  case typed::ExprKind::Tuple: {
    std::vector<Value> fields;
    for (const typed::Expr *element : expr.to<typed::TupleExpr>().elements)
      fields.push_back(gen(*element));
    return tuple(std::move(fields));
  }
  case typed::ExprKind::List: {
    auto type = cast<ir::ListType>(mlirType(expr.type));
    SmallVector<Value> elements;
    for (const typed::Expr *element : expr.to<typed::ListExpr>().elements)
      elements.push_back(genAs(*element, type.getElement()));
    return ir::ListMakeOp::create(b, type, elements);
  }
  case typed::ExprKind::Block:
    return genBlock(expr.to<typed::BlockExpr>());
  case typed::ExprKind::If:
    return genIf(expr.to<typed::IfExpr>());
  case typed::ExprKind::Match:
    return genMatch(expr.to<typed::MatchExpr>());
  case typed::ExprKind::Open: {
    Value inner = gen(*expr.to<typed::OpenExpr>().inner);
    bindOpened(inner, expr.to<typed::OpenExpr>().opened);
    return inner;
  }
  default:
    // Functions and layers are no values; `genStatic` is for them.
    return refuse(mlirType(expr.type), "a function or layer cannot be used as a value here");
  }
}

Value ProgramGenerator::genNumber(const typed::NumberExpr &expr) {
  if (types.resolve(expr.type)->is(TypeKind::Float))
    return arith::ConstantOp::create(b, b.getF64FloatAttr(expr.number));
  return constInt(expr.integer);
}

Value ProgramGenerator::genLocal(const typed::LocalExpr &expr) {
  if (auto it = frame->values.find(expr.variable); it != frame->values.end())
    return it->second;
  return refuse(mlirType(expr.type),
                fmt::format("'{}' cannot be used as a value here", expr.variable->name));
}

Value ProgramGenerator::genParam(const typed::ParamExpr &expr) {
  auto refer = [&](const LayerInstance *layer) -> Value {
    Subst subst;
    if (layer)
      subst.dims = layer->symbols;
    std::string name = layer ? layer->path.name + "." + expr.param->name : expr.param->name;
    return ir::ParamRefOp::create(b, mlirType(expr.param->type, subst),
                                  FlatSymbolRefAttr::get(&context, name));
  };
  if (!expr.layer)
    return refer(nullptr);
  StaticValue layer = genStatic(*expr.layer);
  if (stopped)
    return placeholder(mlirType(expr.type));
  return withLayer(layer, mlirType(expr.type),
                   [&](const StaticCode &code) { return refer(code.layer); });
}

Value ProgramGenerator::genConstant(const typed::ConstantExpr &expr) {
  auto generate = [&](const LayerInstance *layer) {
    Frame letFrame;
    Subst subst;
    subst.self = layer;
    if (layer)
      subst.dims = layer->symbols;
    letFrame.subst = &substs.emplace_back(std::move(subst));
    letFrame.origin = frame->origin;
    Frame *outer = std::exchange(frame, &letFrame);
    Value value = gen(*expr.let->value);
    value = coerce(value, mlirType(expr.let->type));
    frame = outer;
    return value;
  };
  if (!expr.layer)
    return generate(nullptr);
  StaticValue layer = genStatic(*expr.layer);
  if (stopped)
    return placeholder(mlirType(expr.type));
  return withLayer(layer, mlirType(expr.type),
                   [&](const StaticCode &code) { return generate(code.layer); });
}

//===----------------------------------------------------------------------===//
// Host scalars
//===----------------------------------------------------------------------===//

Value ProgramGenerator::genCompare(typed::ScalarOp op, Value lhs, Value rhs) {
  using typed::ScalarOp;
  if (isa<ir::TokenType>(lhs.getType())) {
    lhs = ir::ConvertOp::create(b, b.getI64Type(), lhs);
    rhs = ir::ConvertOp::create(b, b.getI64Type(), rhs);
  }
  if (lhs.getType().isF64()) {
    static const std::map<ScalarOp, arith::CmpFPredicate> predicates = {
        {ScalarOp::Eq, arith::CmpFPredicate::OEQ}, {ScalarOp::Ne, arith::CmpFPredicate::UNE},
        {ScalarOp::Lt, arith::CmpFPredicate::OLT}, {ScalarOp::Le, arith::CmpFPredicate::OLE},
        {ScalarOp::Gt, arith::CmpFPredicate::OGT}, {ScalarOp::Ge, arith::CmpFPredicate::OGE}};
    return arith::CmpFOp::create(b, predicates.at(op), lhs, rhs);
  }
  static const std::map<ScalarOp, arith::CmpIPredicate> predicates = {
      {ScalarOp::Eq, arith::CmpIPredicate::eq},  {ScalarOp::Ne, arith::CmpIPredicate::ne},
      {ScalarOp::Lt, arith::CmpIPredicate::slt}, {ScalarOp::Le, arith::CmpIPredicate::sle},
      {ScalarOp::Gt, arith::CmpIPredicate::sgt}, {ScalarOp::Ge, arith::CmpIPredicate::sge}};
  return arith::CmpIOp::create(b, predicates.at(op), lhs, rhs);
}

/// `&&` and `||` leave out their right side where the left decides.
Value ProgramGenerator::genLogic(const typed::ScalarExpr &expr) {
  bool isAnd = expr.op == typed::ScalarOp::And;
  Value lhs = gen(*expr.operands[0]);
  auto rhs = [&] { return gen(*expr.operands[1]); };
  auto decided = [&] { return constBool(!isAnd); };
  if (isAnd)
    return genBranches(lhs, b.getI1Type(), rhs, decided);
  return genBranches(lhs, b.getI1Type(), decided, rhs);
}

/// The check counts where the value is needed, and not otherwise: it is no `check` of the program.
Value ProgramGenerator::guarded(ir::CheckOp check, Value value) {
  Operation *made = value.getDefiningOp();
  if (!made->hasAttr(ir::kGuardAttr))
    made->setAttr(ir::kGuardAttr, b.getI64IntegerAttr(++guardCount));
  check->setAttr(ir::kGuardAttr, made->getAttr(ir::kGuardAttr));
  return value;
}

/// That an int is a number of the vocabulary, as far as the program says how large that is.
ir::CheckOp ProgramGenerator::checkToken(Value number, ir::TokenType type) {
  std::string vocab = type.getVocab().str();
  std::string dimName = vocab.empty() ? "vocab" : vocab + "_vocab";
  auto dim = llvm::find_if(checked.dims, [&](const DeclaredDim &d) { return d.name == dimName; });
  bool isKnown = dim != checked.dims.end() && dim->value;
  int64_t size = isKnown ? *dim->value : int64_t{1} << 31;
  Value inRange = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number, constInt(size));
  return ir::CheckOp::create(
      b, inRange,
      fmt::format("{{0}} is not one of the numbers 0 to {} of '{}'{}", size - 1,
                  vocab.empty() ? "token" : "token<" + vocab + ">",
                  isKnown ? fmt::format(" (dim '{}' is {})", dimName, size) : ""),
      number);
}

Value ProgramGenerator::genScalar(const typed::ScalarExpr &expr) {
  using typed::ScalarOp;
  if (expr.op == ScalarOp::And || expr.op == ScalarOp::Or)
    return genLogic(expr);
  Value x = gen(*expr.operands[0]);
  Value y = expr.operands.size() > 1 ? gen(*expr.operands[1]) : Value();
  bool isFloat = x.getType().isF64();
  auto negate = [&](Value value) -> Value {
    if (isFloat)
      return arith::NegFOp::create(b, value);
    return arith::SubIOp::create(b, constInt(0), value);
  };
  // A comparison with NaN does not hold, so that y was chosen: right when y is the NaN.
  auto keepNaN = [&](Value chosen) -> Value {
    if (!isFloat)
      return chosen;
    return arith::SelectOp::create(b, genCompare(ScalarOp::Ne, x, x), x, chosen);
  };
  switch (expr.op) {
  case ScalarOp::Neg:
    return negate(x);
  case ScalarOp::Not:
    return arith::XOrIOp::create(b, x, constBool(true));
  case ScalarOp::Add:
    return isFloat ? arith::AddFOp::create(b, x, y).getResult()
                   : arith::AddIOp::create(b, x, y).getResult();
  case ScalarOp::Sub:
    return isFloat ? arith::SubFOp::create(b, x, y).getResult()
                   : arith::SubIOp::create(b, x, y).getResult();
  case ScalarOp::Mul:
    return isFloat ? arith::MulFOp::create(b, x, y).getResult()
                   : arith::MulIOp::create(b, x, y).getResult();
  case ScalarOp::Div:
    return isFloat ? arith::DivFOp::create(b, x, y).getResult()
                   : ir::DivOp::create(b, x, y).getResult();
  case ScalarOp::Mod:
    return ir::RemOp::create(b, x, y);
  case ScalarOp::FloorDiv:
  case ScalarOp::FloorMod: {
    bool isDiv = expr.op == ScalarOp::FloorDiv;
    Value quotient = isDiv ? ir::DivOp::create(b, x, y).getResult() : Value();
    Value rest =
        isDiv ? arith::SubIOp::create(b, x, arith::MulIOp::create(b, quotient, y)).getResult()
              : ir::RemOp::create(b, x, y).getResult();
    Value zero = constInt(0);
    Value differ = arith::XOrIOp::create(b, genCompare(ScalarOp::Lt, rest, zero),
                                         genCompare(ScalarOp::Lt, y, zero));
    Value down = arith::AndIOp::create(b, genCompare(ScalarOp::Ne, rest, zero), differ);
    Value rounded = isDiv ? quotient : rest;
    Value lower = isDiv ? arith::SubIOp::create(b, quotient, constInt(1)).getResult()
                        : arith::AddIOp::create(b, rest, y).getResult();
    return arith::SelectOp::create(b, down, lower, rounded);
  }
  case ScalarOp::Min:
    return keepNaN(arith::SelectOp::create(b, genCompare(ScalarOp::Lt, x, y), x, y));
  case ScalarOp::Max:
    return keepNaN(arith::SelectOp::create(b, genCompare(ScalarOp::Gt, x, y), x, y));
  case ScalarOp::Abs: {
    if (isFloat)
      return math::AbsFOp::create(b, x);
    Value zero = constInt(0);
    return arith::SelectOp::create(b, genCompare(ScalarOp::Lt, x, zero), negate(x), x);
  }
  case ScalarOp::Sqrt:
    return math::SqrtOp::create(b, x);
  case ScalarOp::Exp:
    return math::ExpOp::create(b, x);
  case ScalarOp::Log:
    return math::LogOp::create(b, x);
  case ScalarOp::Pow:
    return math::PowFOp::create(b, x, y);
  case ScalarOp::Floor:
    return math::FloorOp::create(b, x);
  case ScalarOp::Ceil:
    return math::CeilOp::create(b, x);
  case ScalarOp::Convert: {
    Type type = mlirType(expr.type);
    if (type == x.getType())
      return x;
    if (auto token = dyn_cast<ir::TokenType>(type)) {
      if (!x.getType().isInteger(64))
        x = ir::ConvertOp::create(b, b.getI64Type(), x);
      ir::CheckOp check = checkToken(x, token);
      return guarded(check, ir::ConvertOp::create(b, type, x));
    }
    return ir::ConvertOp::create(b, type, x);
  }
  default:
    return genCompare(expr.op, x, y);
  }
}

/// The value of an int expression that is known here.
std::optional<int64_t> ProgramGenerator::staticInt(const typed::Expr &expr) const {
  if (const auto *number = expr.as<typed::NumberExpr>())
    return types.resolve(number->type)->is(TypeKind::Float) ? std::nullopt
                                                            : std::optional(number->integer);
  if (const auto *dim = expr.as<typed::DimValueExpr>())
    return staticDim(dim->dim);
  if (const auto *local = expr.as<typed::LocalExpr>())
    return local->variable->dim ? staticDim(*local->variable->dim) : std::nullopt;
  const auto *scalar = expr.as<typed::ScalarExpr>();
  if (!scalar || scalar->operands.empty())
    return std::nullopt;
  std::vector<Dim> operands;
  for (const typed::Expr *operand : scalar->operands) {
    std::optional<int64_t> value = staticInt(*operand);
    if (!value)
      return std::nullopt;
    operands.push_back(Dim(*value));
  }
  std::optional<Dim> result;
  switch (scalar->op) {
  case typed::ScalarOp::Neg:
    result = Dim(0) - operands[0];
    break;
  case typed::ScalarOp::Add:
    result = operands[0] + operands[1];
    break;
  case typed::ScalarOp::Sub:
    result = operands[0] - operands[1];
    break;
  case typed::ScalarOp::Mul:
    result = operands[0] * operands[1];
    break;
  case typed::ScalarOp::Div:
    if (operands[1].constant() > 0)
      result = Dim(operands[0].constant() / operands[1].constant());
    break;
  case typed::ScalarOp::Mod:
    if (operands[1].constant() > 0)
      result = Dim(operands[0].constant() % operands[1].constant());
    break;
  case typed::ScalarOp::FloorDiv:
    if (operands[1].constant() != 0)
      result = Dim(floorQuotient(operands[0].constant(), operands[1].constant()));
    break;
  case typed::ScalarOp::FloorMod:
    if (operands[1].constant() != 0)
      result = Dim(floorRemainder(operands[0].constant(), operands[1].constant()));
    break;
  default:
    break;
  }
  if (!result || !result->isConstant())
    return std::nullopt;
  return result->constant();
}

std::optional<bool> ProgramGenerator::staticBool(const typed::Expr &expr) const {
  using typed::ScalarOp;
  if (const auto *literal = expr.as<typed::BoolExpr>())
    return literal->value;
  const auto *scalar = expr.as<typed::ScalarExpr>();
  if (!scalar)
    return std::nullopt;
  if (scalar->op == ScalarOp::Not) {
    std::optional<bool> operand = staticBool(*scalar->operands[0]);
    return operand ? std::optional(!*operand) : std::nullopt;
  }
  if (scalar->op == ScalarOp::And || scalar->op == ScalarOp::Or) {
    bool deciding = scalar->op == ScalarOp::Or;
    std::optional<bool> lhs = staticBool(*scalar->operands[0]);
    std::optional<bool> rhs = staticBool(*scalar->operands[1]);
    if (lhs == deciding)
      return deciding;
    if (lhs && rhs)
      return *rhs;
    return std::nullopt;
  }
  if (scalar->operands.size() != 2)
    return std::nullopt;
  std::optional<int64_t> x = staticInt(*scalar->operands[0]), y = staticInt(*scalar->operands[1]);
  if (!x || !y)
    return std::nullopt;
  switch (scalar->op) {
  case ScalarOp::Eq:
    return *x == *y;
  case ScalarOp::Ne:
    return *x != *y;
  case ScalarOp::Lt:
    return *x < *y;
  case ScalarOp::Le:
    return *x <= *y;
  case ScalarOp::Gt:
    return *x > *y;
  case ScalarOp::Ge:
    return *x >= *y;
  default:
    return std::nullopt;
  }
}

/// Whether one of the `a == b` that a condition asks for is known not to hold.
bool ProgramGenerator::breaksEquality(const typed::Expr &condition) const {
  const auto *scalar = condition.as<typed::ScalarExpr>();
  if (!scalar)
    return false;
  if (scalar->op == typed::ScalarOp::And)
    return breaksEquality(*scalar->operands[0]) || breaksEquality(*scalar->operands[1]);
  return scalar->op == typed::ScalarOp::Eq && staticBool(condition) == false;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value ProgramGenerator::genApply(const typed::ApplyExpr &expr) {
  using ops::ParamKind;
  const ops::Op &op = *expr.op;
  // New extents are known once the results are there.
  auto nameExtents = [&](ArrayRef<Value> results) {
    for (size_t i = 0; i < results.size(); ++i)
      for (size_t axis = 0; axis < expr.results[i].dims.size(); ++axis) {
        const Dim &dim = expr.results[i].dims[axis];
        if (std::optional<std::string> symbol = dim.asSymbol(); symbol && dim.isFresh())
          frame->dims.try_emplace(*symbol,
                                  DimSource{{}, results[i], {}, static_cast<unsigned>(axis)});
      }
  };
  if (op.trainingOnly && !draws.draws(op)) {
    Value unchanged = gen(*expr.operands[0]);
    nameExtents(unchanged);
    return unchanged;
  }
  for (const auto &[symbol, value] : expr.extents)
    frame->dims[symbol] = known(gen(*value));
  SmallVector<Value> operands;
  for (const typed::Expr *operand : expr.operands)
    operands.push_back(gen(*operand));
  if (stopped)
    return placeholder(mlirType(expr.type));

  std::vector<ops::OperandType> operandTypes;
  for (Value operand : operands)
    operandTypes.push_back(ops::operandType(operand.getType()));
  // Which parameter each operand belongs to: only one takes several.
  size_t single = 0;
  for (const ops::Param &param : op.params)
    single += param.kind == ParamKind::Tensor || param.kind == ParamKind::Index ||
              param.kind == ParamKind::List;
  size_t next = 0;
  for (const ops::Param &param : op.params) {
    size_t count = param.kind == ParamKind::Tensors ? operands.size() - single
                   : param.kind == ParamKind::Tensor || param.kind == ParamKind::Index ||
                           param.kind == ParamKind::List
                       ? 1
                       : 0;
    bool promotes = param.kind == ParamKind::Tensor || param.kind == ParamKind::Tensors;
    for (; count > 0; --count, ++next)
      if (promotes && !operandTypes[next].tensor())
        operands[next] = ops::promote(b, operands[next], op.promoted(operandTypes, next));
  }

  if (op.draws())
    operands.push_back(splitKey(expr));

  ops::CallArgs args;
  for (const auto &[name, attr] : expr.attrs) {
    if (const auto *integer = std::get_if<int64_t>(&attr))
      args.emplace(name, *integer);
    else if (const auto *number = std::get_if<double>(&attr))
      args.emplace(name, *number);
    else if (const auto *dim = std::get_if<Dim>(&attr))
      args.emplace(name, extent(*dim));
    else {
      std::vector<ops::Extent> extents;
      for (const Dim &dim : std::get<std::vector<Dim>>(attr))
        extents.push_back(extent(dim));
      args.emplace(name, std::move(extents));
    }
  }
  if (stopped)
    return placeholder(mlirType(expr.type));
  // The elements of a list tell the extents that are not static: without elements nothing does.
  SmallVector<ir::CheckOp> checks;
  bool hasList = false;
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    auto list = dyn_cast<ir::ListType>(operands[i].getType());
    hasList |= static_cast<bool>(list);
    if (!list || cast<RankedTensorType>(list.getElement()).hasStaticShape())
      continue;
    const Dim *length = types.resolve(expr.operands[i]->type)->length();
    if ((length ? staticDim(*length) : std::nullopt) > 0)
      continue;
    Value count = ir::LenOp::create(b, operands[i]);
    checks.push_back(ir::CheckOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::ne, count, constInt(0)),
        fmt::format("'{}' of an empty list: nothing tells the extents of its elements", op.name)));
  }
  // The checker knew less of the extents than is known of this call's.
  if (std::string error = ops::misfit(op.name, operands, args); !error.empty())
    return refuse(mlirType(expr.type), error + ", in one of the calls of this function");
  SmallVector<Value> results = ops::apply(b, op.name, operands, args);
  for (ir::CheckOp check : checks)
    guarded(check, results.front());
  // The type of a list in a Program does not say how many elements it has.
  for (size_t i = 0; hasList && i < results.size(); ++i) {
    auto type = cast<RankedTensorType>(results[i].getType());
    SmallVector<int64_t> shape(type.getShape());
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (std::optional<int64_t> extent = staticDim(expr.results[i].dims[axis]))
        shape[axis] = *extent;
    results[i] =
        coerce(results[i], RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  }
  nameExtents(results);
  if (results.size() == 1)
    return results.front();
  return tuple({results.begin(), results.end()});
}

//===----------------------------------------------------------------------===//
// Blocks and branches
//===----------------------------------------------------------------------===//

Value ProgramGenerator::genBlock(const typed::BlockExpr &expr) {
  for (const typed::Stmt &stmt : expr.stmts) {
    if (stopped)
      break;
    if (!stmt.pattern) {
      Value condition = gen(*stmt.value);
      At at(*this, stmt.range);
      if (breaksEquality(*stmt.value)) {
        // What follows relies on it, and would not even have fitting shapes.
        refuse({}, fmt::format("this check never holds in one of the calls of this function: {}",
                               stmt.message));
        break;
      }
      ir::CheckOp::create(b, condition, stmt.message);
      continue;
    }
    if (isStatic(stmt.type)) {
      if (stmt.pattern->variable)
        frame->statics[stmt.pattern->variable] = genStatic(*stmt.value);
      continue;
    }
    Value value = gen(*stmt.value);
    if (stopped)
      break;
    bindPattern(*stmt.pattern, coerce(value, mlirType(stmt.type)));
  }
  return gen(*expr.result);
}

Value ProgramGenerator::genBranches(Value condition, Type type,
                                    const std::function<Value()> &thenBranch,
                                    const std::function<Value()> &elseBranch) {
  auto op = scf::IfOp::create(b, TypeRange{type}, condition, /*withElseRegion=*/true);
  auto fill = [&](Block *block, const std::function<Value()> &branch) {
    RegionScope scope(*this);
    b.setInsertionPointToEnd(block);
    Value value = branch();
    scf::YieldOp::create(b, coerce(value, type));
  };
  fill(op.thenBlock(), thenBranch);
  fill(op.elseBlock(), elseBranch);
  return op.getResult(0);
}

Value ProgramGenerator::genIf(const typed::IfExpr &expr) {
  // A branch that cannot be taken may not even have fitting shapes.
  if (std::optional<bool> known = staticBool(*expr.condition))
    return genAs(*known ? *expr.thenExpr : *expr.elseExpr, mlirType(expr.type));
  Value condition = gen(*expr.condition);
  return genBranches(
      condition, mlirType(expr.type), [&] { return gen(*expr.thenExpr); },
      [&] { return gen(*expr.elseExpr); });
}

} // namespace sheaf
