//===- ProgramGenLists.cpp - Lists and loops of Programs ------------------===//

#include "compiler/frontend/ProgramGenImpl.h"

namespace sheaf {

using namespace mlir;

Value ProgramGenerator::genBuiltin(const typed::BuiltinExpr &expr) {
  using typed::Builtin;
  auto type = [&] { return mlirType(expr.type); };
  auto listType = [&] { return cast<ir::ListType>(type()); };
  switch (expr.builtin) {
  case Builtin::Map:
  case Builtin::Fold:
  case Builtin::Scan:
  case Builtin::Filter:
    if (isStatic(expr.args.back()->type))
      return genLayerLoop(expr, genStatic(*expr.args.back()));
    return genLoop(expr);
  case Builtin::Loop:
    return genTailLoop(expr);
  case Builtin::Zip:
  case Builtin::ZipShortest: {
    SmallVector<Value> lists;
    SmallVector<Type> elements;
    for (const typed::Expr *arg : expr.args) {
      lists.push_back(gen(*arg));
      elements.push_back(cast<ir::ListType>(lists.back().getType()).getElement());
    }
    if (expr.builtin == Builtin::ZipShortest) {
      Value shortest = ir::LenOp::create(b, lists.front());
      for (Value list : ArrayRef(lists).drop_front())
        shortest = arith::MinSIOp::create(b, shortest, ir::LenOp::create(b, list));
      for (Value &list : lists)
        list = ir::ListSliceOp::create(b, list, constInt(0), shortest);
    }
    return ir::ZipOp::create(b, ir::ListType::get(&context, TupleType::get(&context, elements)),
                             lists);
  }
  case Builtin::Range: {
    Value low = gen(*expr.args[0]);
    return ir::RangeOp::create(b, type(), low, gen(*expr.args[1]));
  }
  case Builtin::Enumerate: {
    Value list = gen(*expr.args[0]);
    Value indices = ir::RangeOp::create(b, ir::ListType::get(&context, b.getI64Type()), constInt(0),
                                        ir::LenOp::create(b, list));
    Type element =
        TupleType::get(&context, {b.getI64Type(), cast<ir::ListType>(list.getType()).getElement()});
    return ir::ZipOp::create(b, ir::ListType::get(&context, element), ValueRange{indices, list});
  }
  case Builtin::Reverse:
    return ir::ReverseOp::create(b, gen(*expr.args[0]));
  case Builtin::Len: {
    if (!isStatic(expr.args[0]->type))
      return ir::LenOp::create(b, gen(*expr.args[0]));
    StaticValue layers = genStatic(*expr.args[0]);
    if (stopped)
      return placeholder(type());
    return withLayer(layers, type(), [&](const StaticCode &code) {
      return constInt(static_cast<int64_t>(code.options.size()));
    });
  }
  case Builtin::Append: {
    Value list = genAs(*expr.args[0], type());
    return ir::AppendOp::create(b, list, genAs(*expr.args[1], listType().getElement()));
  }
  case Builtin::Concat: {
    Value list = genAs(*expr.args[0], type());
    for (size_t i = 1; i < expr.args.size(); ++i)
      list = ir::ListConcatOp::create(b, list, genAs(*expr.args[i], type()));
    return list;
  }
  case Builtin::Cons: {
    Value head = genAs(*expr.args[0], listType().getElement());
    return ir::ConsOp::create(b, head, genAs(*expr.args[1], type()));
  }
  case Builtin::ListGet: {
    Value list = gen(*expr.args[0]);
    return ir::ListGetOp::create(b, cast<ir::ListType>(list.getType()).getElement(), list,
                                 gen(*expr.args[1]));
  }
  case Builtin::ListSlice: {
    Value list = gen(*expr.args[0]);
    Value low = expr.args[1] ? gen(*expr.args[1]) : constInt(0);
    Value high = expr.args[2] ? gen(*expr.args[2]) : ir::LenOp::create(b, list).getResult();
    return ir::ListSliceOp::create(b, list, low, high);
  }
  case Builtin::Rows: {
    Value tensor = gen(*expr.args[0]);
    auto from = cast<RankedTensorType>(tensor.getType());
    // Numbers of a vector do not lie like rows: each becomes a row of one, and then a number.
    bool isVector = from.getRank() == 1;
    if (isVector) {
      tensor = ops::applyOne(b, "expand_dims", tensor, {{"axis", int64_t{1}}});
      from = cast<RankedTensorType>(tensor.getType());
    }
    Type row = RankedTensorType::get(from.getShape().drop_front(), from.getElementType(),
                                     from.getEncoding());
    auto rows = ir::RowsOp::create(b, ir::ListType::get(&context, row), tensor);
    if (!isVector)
      return rows;
    Type number = RankedTensorType::get({}, from.getElementType(), from.getEncoding());
    auto map = ir::MapOp::create(b, ir::ListType::get(&context, number), rows);
    RegionScope scope(*this);
    Block &body = map.getBody().emplaceBlock();
    Value element = body.addArgument(row, b.getLoc());
    b.setInsertionPointToStart(&body);
    ir::YieldOp::create(b, ops::applyOne(b, "squeeze", element, {{"axis", int64_t{0}}}));
    return map;
  }
  case Builtin::Read:
    return ir::ReadOp::create(b, type(), gen(*expr.args[0]), /*at=*/Value());
  case Builtin::Emit: {
    Value value = gen(*expr.args[0]);
    if (!stopped)
      ir::EmitOp::create(b, coerce(value, emitted), emitted);
    return ir::TupleOp::create(b, type(), ValueRange());
  }
  }
  return placeholder(type());
}

Value ProgramGenerator::genLoop(const typed::BuiltinExpr &expr) {
  using typed::Builtin;
  const typed::Expr &function = *expr.args[0];
  bool hasInit = expr.builtin == Builtin::Fold || expr.builtin == Builtin::Scan;
  Type type = mlirType(expr.type);
  Type accumulator = expr.builtin == Builtin::Fold   ? type
                     : expr.builtin == Builtin::Scan ? cast<ir::ListType>(type).getElement()
                                                     : Type();
  Value init = hasInit ? genAs(*expr.args[1], accumulator) : Value();
  Value list = gen(*expr.args.back());
  if (stopped)
    return placeholder(type);
  Type element = cast<ir::ListType>(list.getType()).getElement();
  if (expr.builtin == Builtin::Filter)
    type = list.getType();
  Operation *loop;
  switch (expr.builtin) {
  case Builtin::Map:
    loop = ir::MapOp::create(b, type, list);
    break;
  case Builtin::Filter:
    loop = ir::FilterOp::create(b, type, list);
    break;
  case Builtin::Fold:
    loop = ir::FoldOp::create(b, type, init, list);
    break;
  default:
    loop = ir::ScanOp::create(b, type, init, list);
    break;
  }
  RegionScope scope(*this);
  Block &body = loop->getRegion(0).emplaceBlock();
  std::vector<Value> args;
  if (hasInit)
    args.push_back(body.addArgument(accumulator, b.getLoc()));
  args.push_back(body.addArgument(element, b.getLoc()));
  b.setInsertionPointToStart(&body);
  Value number = frame->key ? body.addArgument(b.getI64Type(), b.getLoc()) : Value();
  Value result = applyFunction(function, args, {}, splitKey(expr, number));
  if (number && number.use_empty())
    body.eraseArgument(body.getNumArguments() - 1);
  Type wanted = hasInit                           ? accumulator
                : expr.builtin == Builtin::Filter ? Type(b.getI1Type())
                                                  : cast<ir::ListType>(type).getElement();
  ir::YieldOp::create(b, coerce(result, wanted));
  return loop->getResult(0);
}

/// The fields of a tuple, or the value alone.
SmallVector<Value> ProgramGenerator::fieldsOf(Value value) {
  auto type = dyn_cast<TupleType>(value.getType());
  if (!type)
    return {value};
  SmallVector<Value> fields;
  for (unsigned i = 0; i < type.size(); ++i)
    fields.push_back(get(value, i));
  return fields;
}

/// A function of the Program that calls itself last, as one would be written.
Value ProgramGenerator::genTailLoop(const typed::BuiltinExpr &expr) {
  Type type = mlirType(expr.type);
  // What the functions capture may have its extents from the start value.
  Value start = genAs(*expr.args[2], type);
  StaticValue condition = genStatic(*expr.args[0]), step = genStatic(*expr.args[1]);
  if (stopped)
    return placeholder(type);
  std::string key = fmt::format("{} {} #{} #{} {}", fmt::ptr(&expr), fmt::ptr(frame->subst),
                                condition.code->id, step.code->id, type.getAsOpaquePointer());
  auto [it, inserted] = loopsByKey.try_emplace(key);
  if (inserted) {
    LoopInstance &instance = loops.emplace_back();
    it->second = &instance;
    instance.expr = &expr;
    instance.subst = frame->subst;
    instance.origin = frame->origin;
    instance.condition = condition.code;
    instance.step = step.code;
    instance.hasKey = condition.code->draws || step.code->draws;
    SmallVector<Type> inputs;
    if (instance.hasKey)
      inputs.append(2, b.getI64Type());
    for (const StaticCode *code : {condition.code, step.code})
      inputs.append(code->valueTypes.begin(), code->valueTypes.end());
    if (auto fields = dyn_cast<TupleType>(type))
      inputs.append(fields.begin(), fields.end());
    else
      inputs.push_back(type);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module->getBody());
    std::string name = "loop";
    if (frame->origin)
      name = frame->origin->func.getSymName().str() + "." + name;
    instance.func =
        func::FuncOp::create(b, uniqueSymbol(name), FunctionType::get(&context, inputs, {type}));
    instance.func.setPrivate();
    pending.push_back([this, &instance] { generateTailLoop(instance); });
  }
  func::FuncOp func = it->second->func;
  SmallVector<Value> operands;
  if (it->second->hasKey)
    operands.append({frame->key, constInt(0)});
  operands.append(condition.values.begin(), condition.values.end());
  operands.append(step.values.begin(), step.values.end());
  operands.append(fieldsOf(start));
  return func::CallOp::create(b, func, operands).getResult(0);
}

void ProgramGenerator::generateTailLoop(LoopInstance &instance) {
  Frame body;
  body.subst = instance.subst;
  body.origin = instance.origin;
  Frame *outer = std::exchange(frame, &body);
  At at(*this, instance.expr->range);
  Block *block = instance.func.addEntryBlock();
  b.setInsertionPointToStart(block);
  unsigned next = 0;
  Value round, key;
  if (instance.hasKey) {
    frame->key = block->getArgument(next++);
    round = block->getArgument(next++);
    key = splitKey(*instance.expr, round);
  }
  auto closure = [&](const StaticCode *code) {
    StaticValue value{code, {}};
    for (size_t i = 0; i < valueCount(*code); ++i)
      value.values.push_back(block->getArgument(next++));
    return value;
  };
  StaticValue condition = closure(instance.condition), step = closure(instance.step);
  Type type = instance.func.getResultTypes()[0];
  ArrayRef<BlockArgument> fields = block->getArguments().drop_front(next);
  auto whole = [&] {
    return isa<TupleType>(type) ? tuple({fields.begin(), fields.end()}) : Value(fields[0]);
  };
  Value carried = whole();
  Value goesOn = callClosure(condition, {carried}, {}, b.getI1Type(), key);
  Value result = genBranches(
      goesOn, type,
      [&] {
        SmallVector<Value> operands(block->getArguments().take_front(next));
        if (round)
          operands[1] = arith::AddIOp::create(b, round, constInt(1));
        operands.append(fieldsOf(callClosure(step, {carried}, {}, type, key)));
        return func::CallOp::create(b, instance.func, operands).getResult(0);
      },
      whole); // made anew: what runs in every round makes no tuple
  func::ReturnOp::create(b, result);
  frame = outer;
}

/// Layers are known here, so a loop over them is written out.
Value ProgramGenerator::genLayerLoop(const typed::BuiltinExpr &expr, const StaticValue &layers) {
  using typed::Builtin;
  Type type = mlirType(expr.type);
  if (stopped)
    return placeholder(type);
  const typed::Expr &function = *expr.args[0];
  auto keyOfLayer = [&](size_t number) {
    return frame->key ? splitKey(expr, constInt(static_cast<int64_t>(number))) : Value();
  };
  return withLayer(layers, type, [&](const StaticCode &code) -> Value {
    if (expr.builtin == Builtin::Map) {
      SmallVector<Value> elements;
      for (const StaticCode *layer : code.options)
        elements.push_back(coerce(
            applyFunction(function, {}, {StaticValue{layer, {}}}, keyOfLayer(elements.size())),
            cast<ir::ListType>(type).getElement()));
      return ir::ListMakeOp::create(b, type, elements);
    }
    bool scan = expr.builtin == Builtin::Scan;
    Type accumulator = scan ? cast<ir::ListType>(type).getElement() : type;
    Value value = genAs(*expr.args[1], accumulator);
    SmallVector<Value> values;
    for (const StaticCode *layer : code.options) {
      value = coerce(
          applyFunction(function, {value}, {StaticValue{layer, {}}}, keyOfLayer(values.size())),
          accumulator);
      values.push_back(value);
    }
    if (!scan)
      return value;
    return ir::ListMakeOp::create(b, type, values);
  });
}

} // namespace sheaf
