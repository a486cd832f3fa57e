//===- ProgramGenTypes.cpp - Types and extents of Programs ----------------===//

#include "compiler/frontend/ProgramGenImpl.h"
#include "compiler/ops/Build.h"

#include <fmt/format.h>

namespace sheaf {

using namespace mlir;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

mlir::Type ProgramGenerator::mlirType(TypeRef type, const Subst &subst) {
  type = types.resolve(type);
  switch (type->kind) {
  case TypeKind::Int:
    return b.getI64Type();
  case TypeKind::Float:
    return b.getF64Type();
  case TypeKind::Bool:
    return b.getI1Type();
  case TypeKind::Token:
    return ir::TokenType::get(&context, type->name);
  case TypeKind::Tensor: {
    SmallVector<int64_t> shape;
    for (const Dim &dim : type->tensor.dims) {
      std::optional<int64_t> extent = staticDim(dim, subst);
      if (extent && *extent < 0) {
        refuse({}, fmt::format("the extent '{}' is {} here", types.dims.print(dim), *extent));
        extent = std::nullopt;
      }
      shape.push_back(extent.value_or(ShapedType::kDynamic));
    }
    Attribute vocab;
    if (type->tensor.vocab)
      vocab = str(*type->tensor.vocab);
    return RankedTensorType::get(shape, ops::elementType(&context, type->tensor.dtype), vocab);
  }
  case TypeKind::Tuple: {
    SmallVector<Type> fields;
    for (TypeRef field : type->args)
      fields.push_back(mlirType(field, subst));
    return TupleType::get(&context, fields);
  }
  case TypeKind::List:
    return ir::ListType::get(&context, mlirType(type->element(), subst));
  case TypeKind::Data: {
    std::vector<Type> args;
    for (TypeRef arg : type->args)
      args.push_back(mlirType(arg, subst));
    return dataType(*type->data, args);
  }
  case TypeKind::Parameter:
    if (auto it = subst.typeArgs.find(type); it != subst.typeArgs.end())
      return it->second;
    return b.getI64Type();
  case TypeKind::Variable:
    // Nothing told what it is, so there are no such values: the element type of `[]`, say.
  case TypeKind::Error:
  case TypeKind::Function:
  case TypeKind::Layer:
    return b.getI64Type();
  }
  return b.getI64Type();
}

std::string ProgramGenerator::typeText(Type type) const {
  if (type.isInteger(64))
    return "int";
  if (type.isF64())
    return "float";
  if (type.isInteger(1))
    return "bool";
  if (auto token = dyn_cast<ir::TokenType>(type))
    return token.getVocab().empty() ? "token" : fmt::format("token<{}>", token.getVocab().str());
  if (auto list = dyn_cast<ir::ListType>(type))
    return fmt::format("list<{}>", typeText(list.getElement()));
  if (auto data = dyn_cast<ir::DataType>(type))
    return data.getName().getValue().str();
  if (auto tuple = dyn_cast<TupleType>(type)) {
    std::string text = "(";
    for (auto [i, field] : llvm::enumerate(tuple.getTypes()))
      text += (i ? ", " : "") + typeText(field);
    return text + ")";
  }
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    std::string text;
    if (auto vocab = ir::tokenVocab(tensor))
      text = vocab->empty() ? "token" : fmt::format("token<{}>", vocab->str());
    else
      text = ops::dtypeName(ops::dtypeOf(tensor.getElementType()).value_or(ops::DType::F32));
    text += "[";
    for (auto [i, extent] : llvm::enumerate(tensor.getShape()))
      text += (i ? ", " : "") +
              (ShapedType::isDynamic(extent) ? std::string("?") : std::to_string(extent));
    return text + "]";
  }
  return "?";
}

mlir::Type ProgramGenerator::dataType(const DataInfo &data, const std::vector<Type> &args) {
  std::string name = data.name;
  for (size_t i = 0; i < args.size(); ++i)
    name += (i ? ", " : "<") + typeText(args[i]);
  if (!args.empty())
    name += ">";
  auto [it, inserted] = dataByKey.try_emplace(name);
  if (!inserted)
    return it->second;
  name = uniqueSymbol(name);
  auto type = ir::DataType::get(&context, FlatSymbolRefAttr::get(&context, name));
  it->second = type;

  Subst subst;
  for (size_t i = 0; i < args.size(); ++i)
    subst.typeArgs.emplace(data.typeParams[i], args[i]);
  SmallVector<Attribute> ctors, lengths;
  bool hasLengths = false;
  for (const DataInfo::Constructor &ctor : data.constructors) {
    SmallVector<Attribute> names, fieldTypes;
    for (const DataInfo::Field &field : ctor.fields) {
      names.push_back(str(field.name));
      fieldTypes.push_back(TypeAttr::get(mlirType(field.type, subst)));
      hasLengths |= listLengths(field.type, subst, lengths);
    }
    ctors.push_back(ir::CtorAttr::get(&context, str(ctor.name), ArrayAttr::get(&context, names),
                                      ArrayAttr::get(&context, fieldTypes)));
  }
  OpBuilder builder(&context);
  if (lastData)
    builder.setInsertionPointAfter(lastData);
  else
    builder.setInsertionPointToStart(module->getBody());
  lastData = ir::DataOp::create(builder, locOf(data.decl->name.range), name,
                                ArrayAttr::get(&context, ctors));
  if (hasLengths)
    lastData->setAttr("sheaf.lengths", ArrayAttr::get(&context, lengths));
  return type;
}

bool ProgramGenerator::listLengths(TypeRef type, const Subst &subst,
                                   SmallVector<Attribute> &lengths) {
  type = types.resolve(type);
  bool any = false;
  if (type->is(TypeKind::List)) {
    const Dim *length = type->length();
    std::optional<int64_t> value = length ? staticDim(*length, subst) : std::nullopt;
    lengths.push_back(str(value    ? std::to_string(*value)
                          : length ? types.dims.print(*length)
                                   : std::string("?")));
    any = length;
  }
  // What a type parameter stands for has lists of any length, but they count.
  if (type->is(TypeKind::Parameter))
    if (auto it = subst.typeArgs.find(type); it != subst.typeArgs.end())
      Type(it->second).walk([&](ir::ListType) { lengths.push_back(str("?")); });
  if (!type->is(TypeKind::Data))
    for (TypeRef arg : type->args)
      any |= listLengths(arg, subst, lengths);
  return any;
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

std::optional<int64_t> ProgramGenerator::staticDim(const Dim &dim, const Subst &subst) const {
  if (isUnknown(dim))
    return std::nullopt;
  const DimContext &dims = types.dims;
  Dim value = dims.substitute(dims.resolve(dim), [&](const std::string &symbol) {
    auto it = subst.dims.find(symbol);
    return it == subst.dims.end() ? std::nullopt : std::optional<Dim>(Dim(it->second));
  });
  return dims.value(value);
}

Value ProgramGenerator::constInt(int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

Value ProgramGenerator::constBool(bool value) {
  return arith::ConstantOp::create(b, b.getBoolAttr(value));
}

OpFoldResult ProgramGenerator::extent(const Dim &dim) {
  if (std::optional<int64_t> value = staticDim(dim))
    return b.getI64IntegerAttr(*value);
  return dimValue(dim);
}

Value ProgramGenerator::dimValue(const Dim &written) {
  if (std::optional<int64_t> value = staticDim(written))
    return constInt(*value);
  Dim dim = types.dims.resolve(written);
  Value sum;
  for (const auto &[monomial, coefficient] : dim.terms()) {
    Value product;
    int64_t factor = coefficient;
    for (const std::string &symbol : monomial) {
      if (std::optional<int64_t> known = staticDim(Dim::symbol(symbol))) {
        factor *= *known;
        continue;
      }
      Value value = symbolValue(symbol);
      product = product ? arith::MulIOp::create(b, product, value).getResult() : value;
    }
    if (!product)
      product = constInt(factor);
    else if (factor != 1)
      product = arith::MulIOp::create(b, product, constInt(factor));
    sum = sum ? arith::AddIOp::create(b, sum, product).getResult() : product;
  }
  return sum ? sum : constInt(0);
}

Value ProgramGenerator::symbolValue(const std::string &symbol) {
  if (auto it = frame->dims.find(symbol); it != frame->dims.end()) {
    DimSource &source = it->second;
    if (source.value)
      return source.value;
    // Made where the holder is, so that all later uses see it.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(source.holder);
    source.value = extentOf(follow(source.holder, source.path), source.axis);
    return source.value;
  }
  const auto &quotients = types.dims.quotients();
  if (auto it = quotients.find(symbol); it != quotients.end()) {
    DimContext::Quotient quotient = it->second;
    Value a = dimValue(quotient.numerator), d = dimValue(quotient.denominator);
    std::optional<int64_t> x = staticDim(quotient.numerator), y = staticDim(quotient.denominator);
    if (!quotient.remainder && x && y && *y != 0 && *y != -1 && *x % *y != 0)
      return refuse(b.getI64Type(),
                    fmt::format("{} leaves a remainder ({} / {}), but an extent must be divided "
                                "exactly",
                                types.dims.plainNames(symbol), *x, *y));
    Value rest = ir::RemOp::create(b, a, d);
    if (quotient.remainder)
      return rest;
    Value exact = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest, constInt(0));
    auto check = ir::CheckOp::create(
        b, exact,
        fmt::format("{} leaves a remainder, but an extent must be divided exactly",
                    types.dims.plainNames(symbol)));
    return guarded(check, ir::DivOp::create(b, a, d));
  }
  return refuse(
      b.getI64Type(),
      fmt::format("the value of the extent '{}' is not known here", types.dims.plainNames(symbol)),
      "pass it as an int");
}

Value ProgramGenerator::extentOf(Value holder, unsigned axis) {
  auto tensor = dyn_cast<RankedTensorType>(holder.getType());
  if (!tensor)
    return ir::LenOp::create(b, holder);
  if (!tensor.isDynamicDim(axis))
    return constInt(tensor.getDimSize(axis));
  return ir::DimOp::create(b, holder, static_cast<uint64_t>(axis));
}

Value ProgramGenerator::follow(Value value, const std::vector<unsigned> &path) {
  for (unsigned index : path)
    value = get(value, index);
  return value;
}

void ProgramGenerator::bindOpened(Value value, const std::vector<typed::OpenedDim> &opened) {
  for (const typed::OpenedDim &dim : opened)
    frame->dims[dim.symbol] = {{}, value, dim.path, dim.axis};
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

Value ProgramGenerator::tuple(std::vector<Value> fields) {
  SmallVector<Type> fieldTypes;
  for (Value field : fields)
    fieldTypes.push_back(field.getType());
  return ir::TupleOp::create(b, TupleType::get(&context, fieldTypes), fields);
}

Value ProgramGenerator::get(Value tuple, unsigned index) {
  // What a tuple was just made of needs no operation.
  if (auto made = tuple.getDefiningOp<ir::TupleOp>();
      made && made.getFields()[index].getType() == cast<TupleType>(tuple.getType()).getType(index))
    return made.getFields()[index];
  return ir::GetOp::create(b, cast<TupleType>(tuple.getType()).getType(index), tuple,
                           static_cast<uint64_t>(index));
}

Value ProgramGenerator::coerce(Value value, Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  auto fromTensor = dyn_cast<RankedTensorType>(from), toTensor = dyn_cast<RankedTensorType>(type);
  if (fromTensor && toTensor && fromTensor.getElementType() == toTensor.getElementType() &&
      fromTensor.getEncoding() == toTensor.getEncoding() &&
      succeeded(verifyCompatibleShape(fromTensor, toTensor))) {
    // A field of a tuple may say less, or more, of its extents than the value that fills it.
    Value holder = ir::TupleOp::create(b, TupleType::get(&context, {type}), value);
    return ir::GetOp::create(b, type, holder, static_cast<uint64_t>(0));
  }
  auto fromTuple = dyn_cast<TupleType>(from), toTuple = dyn_cast<TupleType>(type);
  if (fromTuple && toTuple && fromTuple.size() == toTuple.size()) {
    SmallVector<Value> fields;
    for (unsigned i = 0; i < toTuple.size(); ++i)
      fields.push_back(coerce(get(value, i), toTuple.getType(i)));
    return ir::TupleOp::create(b, toTuple, fields);
  }
  auto fromList = dyn_cast<ir::ListType>(from), toList = dyn_cast<ir::ListType>(type);
  if (fromList && toList) {
    if (auto made = value.getDefiningOp<ir::ListMakeOp>(); made && made.getElements().empty())
      return ir::ListMakeOp::create(b, type, ValueRange{});
    auto map = ir::MapOp::create(b, type, value);
    RegionScope scope(*this);
    Block &body = map.getBody().emplaceBlock();
    Value element = body.addArgument(fromList.getElement(), b.getLoc());
    b.setInsertionPointToStart(&body);
    ir::YieldOp::create(b, coerce(element, toList.getElement()));
    return map;
  }
  return refuse(type,
                fmt::format("a '{}' would have to become a '{}' here, but values of data types "
                            "are not converted",
                            typeText(from), typeText(type)),
                "write the extent that changes as '?' in the type");
}

} // namespace sheaf
