//===- Program.cpp - Verifiers and folders of the Program dialect ---------===//

#include "compiler/ir/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sheaf::ir;

#include "compiler/ir/ProgramDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/ir/ProgramTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/ir/ProgramAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/ir/ProgramOps.cpp.inc"

void SheafDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/ir/ProgramTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/ir/ProgramAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/ir/ProgramOps.cpp.inc"
      >();
}

/// A division by what may be zero has the effect of MayFail.
static void
divisionEffects(Value divisor,
                SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (!matchPattern(divisor, m_NonZero()))
    effects.emplace_back(MemoryEffects::Write::get());
}

void DivOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  divisionEffects(getRhs(), effects);
}

void RemOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  divisionEffects(getRhs(), effects);
}

bool sheaf::ir::takesKey(Operation *function) {
  auto entry = cast<FunctionOpInterface>(function);
  return entry.getNumArguments() && entry.getArgAttr(0, kKeyAttr);
}

std::optional<Type> sheaf::ir::emittedType(Operation *function) {
  auto type = function->getAttrOfType<TypeAttr>(kEmitsAttr);
  return type ? std::optional(type.getValue()) : std::nullopt;
}

SmallVector<std::string, 2> sheaf::ir::pathOf(Location location) {
  SmallVector<Location> inwards;
  while (auto call = dyn_cast<CallSiteLoc>(location)) {
    inwards.push_back(call.getCaller());
    location = call.getCallee();
  }
  inwards.push_back(location);
  SmallVector<std::string, 2> path;
  for (Location each : llvm::reverse(inwards))
    if (auto at = each->findInstanceOf<FileLineColLoc>())
      path.push_back(
          (at.getFilename().getValue() + ":" + Twine(at.getLine()) + ":" + Twine(at.getColumn()))
              .str());
  return path;
}

std::string sheaf::ir::pathText(ArrayRef<std::string> path) { return llvm::join(path, "<"); }

std::string sheaf::ir::nameOf(Operation *function) {
  if (auto name = dyn_cast<NameLoc>(function->getLoc()))
    return name.getName().str();
  return SymbolTable::getSymbolName(function).str();
}

Location sheaf::ir::inlinedAt(Location inner, Operation *callee, Location call) {
  return CallSiteLoc::get(inner,
                          NameLoc::get(StringAttr::get(inner.getContext(), nameOf(callee)), call));
}

SmallVector<std::string, 4> sheaf::ir::inlinedInto(Location location) {
  SmallVector<std::string, 4> names;
  while (auto call = dyn_cast<CallSiteLoc>(location)) {
    if (auto name = dyn_cast<NameLoc>(call.getCaller()))
      names.push_back(name.getName().str());
    location = call.getCallee();
  }
  return names;
}

std::optional<StringRef> sheaf::ir::tokenVocab(RankedTensorType type) {
  if (auto vocab = dyn_cast_or_null<StringAttr>(type.getEncoding()))
    return vocab.getValue();
  return std::nullopt;
}

namespace {

bool isHostScalar(Type t) {
  return t.isInteger(64) || t.isF64() || t.isInteger(1) || isa<TokenType>(t);
}

/// Values may stand where a type of the same form with `?` extents is asked for.
bool fits(Type value, Type place) {
  if (value == place)
    return true;
  auto a = dyn_cast<RankedTensorType>(value), b = dyn_cast<RankedTensorType>(place);
  return a && b && a.getElementType() == b.getElementType() &&
         succeeded(verifyCompatibleShape(a, b));
}

LogicalResult verifyFields(Operation *op, TypeRange values, TypeRange places, StringRef what) {
  if (values.size() != places.size())
    return op->emitOpError() << what << " has " << places.size() << " fields, not "
                             << values.size();
  for (auto [i, value, place] : llvm::enumerate(values, places))
    if (!fits(value, place))
      return op->emitOpError() << "field " << i << " of " << what << " is " << place << ", not "
                               << value;
  return success();
}

LogicalResult verifyYield(Operation *op, Region &region, TypeRange types) {
  auto yield = dyn_cast<YieldOp>(region.front().getTerminator());
  if (!yield)
    return op->emitOpError("a region must end in sheaf.yield");
  return verifyFields(op, yield.getOperandTypes(), types, "the yielded result");
}

} // namespace

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

LogicalResult DataOp::verify() {
  llvm::SmallSet<StringRef, 8> names;
  for (auto ctor : getCtors().getAsRange<CtorAttr>()) {
    if (ctor.getFieldNames().size() != ctor.getFieldTypes().size())
      return emitOpError() << "constructor " << ctor.getName()
                           << " has unequal numbers of field names and types";
    if (!names.insert(ctor.getName().getValue()).second)
      return emitOpError() << "constructor " << ctor.getName() << " is declared twice";
  }
  return success();
}

LogicalResult ParamOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError("a parameter's extents must be constants");
  return success();
}

LogicalResult ParamRefOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto param = symbols.lookupNearestSymbolFrom<ParamOp>(*this, getParamAttr());
  if (!param)
    return emitOpError() << "no parameter named " << getParamAttr();
  if (param.getType() != getType())
    return emitOpError() << "the parameter's type is " << param.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

LogicalResult ApplyOp::verify() {
  const auto *rules = getOperation()->getDialect()->getRegisteredInterface<ApplyRules>();
  std::string error = rules ? rules->errorOf(*this) : "no operators are registered";
  if (!error.empty())
    return emitOpError() << "\"" << getOp() << "\": " << error;
  return success();
}

LogicalResult DimOp::verify() {
  int64_t rank = cast<RankedTensorType>(getTensor().getType()).getRank();
  if (getAxis() >= static_cast<uint64_t>(rank))
    return emitOpError() << "axis " << getAxis() << " of a tensor of rank " << rank;
  return success();
}

LogicalResult GhostOp::verify() {
  if (static_cast<int64_t>(getDepths()) < 1 || static_cast<int64_t>(getDepths()) > INT32_MAX)
    return emitOpError("is not later by a positive number of depths");
  return success();
}

LogicalResult ReadOp::verify() {
  auto type = cast<RankedTensorType>(getTensor().getType());
  Type element = type.getElementType(), result = getType();
  if (auto list = dyn_cast<ListType>(result)) {
    if (type.getRank() != 1 || getAt())
      return emitOpError() << "reads all elements of a tensor of one axis, not " << type;
    result = list.getElement();
  } else if (getAt()) {
    if (type.getRank() != 1)
      return emitOpError() << "reads an element of a tensor of one axis, not " << type;
  } else if (!llvm::all_of(type.getShape(), [](int64_t extent) { return extent == 1; })) {
    return emitOpError() << "reads a tensor of one element, not " << type;
  }
  bool ok = isa<FloatType>(element) ? result.isF64()
            : element.isInteger(1)  ? result.isInteger(1)
            : tokenVocab(type)      ? isa<TokenType>(result)
                                    : result.isInteger(64);
  return ok ? success() : emitOpError() << "gives no " << result;
}

//===----------------------------------------------------------------------===//
// Host values
//===----------------------------------------------------------------------===//

LogicalResult ConvertOp::verify() {
  if (!isHostScalar(getValue().getType()) || !isHostScalar(getType()))
    return emitOpError("converts between host scalars only");
  return success();
}

LogicalResult TupleOp::verify() {
  return verifyFields(*this, getFields().getTypes(), cast<TupleType>(getType()).getTypes(),
                      "the tuple");
}

LogicalResult GetOp::verify() {
  auto tuple = cast<TupleType>(getTuple().getType());
  if (getIndex() >= tuple.size())
    return emitOpError() << "field " << getIndex() << " of a tuple of " << tuple.size();
  if (tuple.getType(getIndex()) != getType())
    return emitOpError() << "the field's type is " << tuple.getType(getIndex());
  return success();
}

OpFoldResult GetOp::fold(FoldAdaptor) {
  if (auto tuple = getTuple().getDefiningOp<TupleOp>()) {
    Value field = tuple.getFields()[getIndex()];
    if (field.getType() == getType())
      return field;
  }
  return {};
}

LogicalResult ConstructOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto data = symbols.lookupNearestSymbolFrom<DataOp>(*this, getType().getName());
  if (!data)
    return emitOpError() << "no data type named " << getType().getName();
  if (getCtor() >= data.getCtors().size())
    return emitOpError() << "constructor " << getCtor() << " of " << data.getCtors().size();
  auto ctor = cast<CtorAttr>(data.getCtors()[getCtor()]);
  SmallVector<Type> types(ctor.getFieldTypes().getAsValueRange<TypeAttr>());
  return verifyFields(*this, getFields().getTypes(), types, ctor.getName().getValue());
}

LogicalResult MatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto data = symbols.lookupNearestSymbolFrom<DataOp>(*this, getScrutinee().getType().getName());
  if (!data)
    return emitOpError() << "no data type named " << getScrutinee().getType().getName();
  size_t cases = getCases().size(), ctors = data.getCtors().size();
  if (getArms().size() != cases && getArms().size() != cases + 1)
    return emitOpError() << getArms().size() << " regions for " << cases << " cases";
  if (cases < ctors && getArms().size() == cases)
    return emitOpError("does not cover every constructor");
  llvm::SmallSet<int64_t, 8> seen;
  for (auto [i, region] : llvm::enumerate(getArms())) {
    SmallVector<Type> fields;
    if (i < cases) {
      int64_t index = getCases()[i];
      if (index < 0 || index >= static_cast<int64_t>(ctors) || !seen.insert(index).second)
        return emitOpError() << "case " << index << " is repeated or names no constructor";
      auto ctor = cast<CtorAttr>(data.getCtors()[index]);
      fields.assign(ctor.getFieldTypes().getAsValueRange<TypeAttr>().begin(),
                    ctor.getFieldTypes().getAsValueRange<TypeAttr>().end());
    }
    if (region.getArgumentTypes() != TypeRange(fields))
      return emitOpError() << "the arguments of region " << i
                           << " are not the fields of its constructor";
    if (failed(verifyYield(*this, region, getResultTypes())))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

LogicalResult ListMakeOp::verify() {
  for (Type type : getElements().getTypes())
    if (!fits(type, getType().getElement()))
      return emitOpError() << "an element is " << type << ", not " << getType().getElement();
  return success();
}

LogicalResult ListGetOp::verify() {
  if (getType() != getList().getType().getElement())
    return emitOpError() << "the element type is " << getList().getType().getElement();
  return success();
}

/// A loop's body takes `arguments`, perhaps the element's number, and yields a `result`.
static LogicalResult verifyLoop(Operation *op, TypeRange arguments, Type result) {
  Region &body = op->getRegion(0);
  TypeRange given = body.getArgumentTypes();
  if (given.size() == arguments.size() + 1 && given.back().isInteger(64))
    given = given.drop_back();
  if (given != arguments)
    return op->emitOpError("the arguments of its body are not what it runs over");
  return verifyYield(op, body, result);
}

LogicalResult MapOp::verify() {
  auto result = dyn_cast<ListType>(getType());
  if (!result)
    return emitOpError("gives a list");
  return verifyLoop(*this, getList().getType().getElement(), result.getElement());
}

LogicalResult FilterOp::verify() {
  if (getType() != getList().getType())
    return emitOpError("gives a list of the same type");
  return verifyLoop(*this, getList().getType().getElement(), IntegerType::get(getContext(), 1));
}

LogicalResult FoldOp::verify() {
  Type state = getType();
  if (!fits(getInit().getType(), state))
    return emitOpError("starts with another type than it gives");
  return verifyLoop(*this, {state, getList().getType().getElement()}, state);
}

LogicalResult ScanOp::verify() {
  auto result = dyn_cast<ListType>(getType());
  if (!result || !fits(getInit().getType(), result.getElement()))
    return emitOpError("gives a list of its states");
  Type state = result.getElement();
  return verifyLoop(*this, {state, getList().getType().getElement()}, state);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LogicalResult BlockOp::verify() {
  Block &body = getBody().front();
  if (getNumArgs() > body.getNumArguments())
    return emitOpError("has fewer arguments than num_args");
  if (!isa<YieldOp>(body.getTerminator()))
    return emitOpError("must end in sheaf.yield");
  for (Operation &op : body.without_terminator())
    if (!isa<ApplyOp, DimOp, ConvertOp>(op) && op.getDialect()->getNamespace() != "arith")
      return op.emitOpError("cannot stand in a block");
  return success();
}

/// Whether a block takes these arguments and weights, and gives these results.
template <typename Op>
static LogicalResult verifyTakes(Op op, ValueRange args, SymbolTableCollection &symbols) {
  auto block = symbols.lookupNearestSymbolFrom<BlockOp>(op, op.getBlockAttr());
  if (!block)
    return op.emitOpError() << "no block named " << op.getBlockAttr();
  Block &body = block.getBody().front();
  if (args.size() != block.getNumArgs() ||
      args.size() + op.getWeights().size() != body.getNumArguments())
    return op.emitOpError("the numbers of arguments and weights are not the block's");
  if (failed(verifyFields(op, args.getTypes(),
                          TypeRange(body.getArgumentTypes()).take_front(args.size()),
                          op.getBlock())))
    return failure();
  for (auto [weight, arg] : llvm::zip(op.getWeights().template getAsRange<FlatSymbolRefAttr>(),
                                      body.getArguments().drop_front(args.size()))) {
    auto param = symbols.lookupNearestSymbolFrom<ParamOp>(op, weight);
    if (!param)
      return op.emitOpError() << "no parameter named " << weight;
    if (param.getType() != arg.getType())
      return op.emitOpError() << "parameter " << weight << " is " << param.getType();
  }
  return verifyFields(op, op.getResultTypes(), body.getTerminator()->getOperandTypes(),
                      op.getBlock());
}

LogicalResult RecordOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyTakes(*this, getArgs(), symbols);
}

RecordOp JoinedOp::getRecord() { return getInputs().front().getDefiningOp<RecordOp>(); }

LogicalResult JoinedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  RecordOp record = getInputs().empty() ? RecordOp() : getRecord();
  if (!record || getInputs().size() < getNumResults() ||
      ValueRange(getInputs()).take_front(getNumResults()) != ValueRange(record.getResults()))
    return emitOpError("does not begin with the results of a record");
  return verifyTakes(*this, getArgs(), symbols);
}
