//===- Extents.cpp - Per-instance extents from shape rules ----------------===//

#include "compiler/analysis/Extents.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Op.h"
#include "compiler/ops/Verify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Quotients that are not polynomials get a symbol, and are remembered.
struct Oracle : ops::LenientOracle {
  std::optional<Dim> quotient(const Dim &a, const Dim &b) const override {
    auto exact = a.dividedBy(b);
    if (exact || (a.isConstant() && b.isConstant()))
      return exact;
    std::string name = "(" + a.str() + ")/(" + b.str() + ")";
    quotients[name] = {a, b};
    return Dim::symbol(name);
  }
  mutable std::map<std::string, std::pair<Dim, Dim>> quotients;
};

class Materialiser {
public:
  Materialiser(OpBuilder &builder, ir::ApplyOp apply) : builder_(builder), apply_(apply) {}

  /// The extent as the shape rule gives it; nullopt when the rule does not apply.
  std::optional<Dim> extent(const ops::Op &record, unsigned result, unsigned axis) {
    auto taken = ops::takeApart(record, apply_.getOperandTypes(), apply_.getAttrs(),
                                apply_.getResultTypes());
    auto *parts = std::get_if<ops::ApplyParts>(&taken);
    if (!parts)
      return std::nullopt;
    for (auto [i, operand] : llvm::enumerate(parts->operands))
      if (auto *tensor = std::get_if<ops::TensorType>(&operand.type); tensor && !operand.isList)
        for (auto [a, dim] : llvm::enumerate(tensor->dims))
          if (!dim.isConstant())
            dim = symbolFor(i, a);
    for (const auto &given : parts->extents) {
      ops::Attr &attr = parts->attrs[given.param];
      Dim symbol = symbolFor(given.operand, std::nullopt);
      if (given.position)
        std::get<std::vector<Dim>>(attr)[*given.position] = symbol;
      else
        attr = symbol;
    }
    ops::ShapeResult shape = record.shape(parts->operands, parts->attrs, oracle_);
    if (!shape.error.empty() || result >= shape.types.size() ||
        axis >= shape.types[result].dims.size())
      return std::nullopt;
    return shape.types[result].dims[axis];
  }

  /// Whether all that an extent is made of is at hand.
  bool known(const Dim &dim) {
    return llvm::all_of(dim.symbols(), [&](const std::string &symbol) {
      auto quotient = oracle_.quotients.find(symbol);
      if (quotient != oracle_.quotients.end())
        return known(quotient->second.first) && known(quotient->second.second);
      return sources_.contains(symbol);
    });
  }

  /// What an extent is, if it is no more than one operand's.
  std::optional<ExtentSource> source(const Dim &dim) const {
    std::vector<std::string> symbols = dim.symbols();
    if (symbols.size() != 1 || !(dim == Dim::symbol(symbols.front())))
      return std::nullopt;
    auto it = sources_.find(symbols.front());
    return it == sources_.end() ? std::nullopt
                                : std::optional(ExtentSource{it->second.first, it->second.second});
  }

  /// Horner's scheme over one symbol after the other.
  Value emit(const Dim &dim) {
    if (dim.isConstant())
      return arith::ConstantOp::create(builder_, apply_.getLoc(),
                                       builder_.getI64IntegerAttr(dim.constant()));
    std::string symbol = dim.symbols().front();
    Dim rest = dim.substitute([&](const std::string &name) {
      return name == symbol ? std::optional(Dim(0)) : std::nullopt;
    });
    Dim factor = *(dim - rest).dividedBy(Dim::symbol(symbol));
    Location loc = apply_.getLoc();
    Value product = emitSymbol(symbol);
    if (factor != Dim(1))
      product = arith::MulIOp::create(builder_, loc, product, emit(factor));
    if (rest == Dim(0))
      return product;
    return arith::AddIOp::create(builder_, loc, product, emit(rest));
  }

private:
  /// An axis of a tensor operand, or an operand that is an extent itself.
  using Source = std::pair<unsigned, std::optional<unsigned>>;

  Dim symbolFor(unsigned operand, std::optional<unsigned> axis) {
    std::string name = std::to_string(operand) + (axis ? "." + std::to_string(*axis) : "");
    sources_[name] = {operand, axis};
    return Dim::symbol(name);
  }

  Value emitSymbol(const std::string &symbol) {
    Location loc = apply_.getLoc();
    if (auto it = oracle_.quotients.find(symbol); it != oracle_.quotients.end()) {
      Value numerator = emit(it->second.first), denominator = emit(it->second.second);
      return ir::DivOp::create(builder_, loc, numerator, denominator);
    }
    auto [operand, axis] = sources_.find(symbol)->second;
    Value value = apply_.getOperand(operand);
    return axis ? ir::DimOp::create(builder_, loc, value, builder_.getI64IntegerAttr(*axis))
                : value;
  }

  OpBuilder &builder_;
  ir::ApplyOp apply_;
  Oracle oracle_;
  std::map<std::string, Source> sources_;
};

} // namespace

Value materialiseExtent(OpBuilder &builder, ir::ApplyOp apply, unsigned result, unsigned axis) {
  const ops::Op *record = operatorOf(apply);
  if (!record)
    return {};
  if (takesList(apply)) {
    // `stack`: as many rows as the list has elements.
    auto attr = dyn_cast_or_null<IntegerAttr>(apply.getAttrs().get("axis"));
    if (apply.getNumOperands() != 1 || (attr ? attr.getInt() : 0) != static_cast<int64_t>(axis))
      return {};
    return ir::LenOp::create(builder, apply.getLoc(), builder.getI64Type(), apply.getOperand(0));
  }
  Materialiser materialiser(builder, apply);
  std::optional<Dim> extent = materialiser.extent(*record, result, axis);
  return extent && materialiser.known(*extent) ? materialiser.emit(*extent) : Value();
}

std::optional<ExtentSource> extentSource(ir::ApplyOp apply, unsigned result, unsigned axis) {
  const ops::Op *record = operatorOf(apply);
  if (!record || takesList(apply))
    return std::nullopt;
  OpBuilder builder(apply);
  Materialiser materialiser(builder, apply);
  std::optional<Dim> extent = materialiser.extent(*record, result, axis);
  return extent ? materialiser.source(*extent) : std::nullopt;
}

Value ExtentChains::shorten(ir::DimOp dim) {
  Place place{dim.getTensor(), static_cast<unsigned>(dim.getAxis())};
  SmallVector<std::pair<Value, unsigned>> passed;
  while (place.axis) {
    if (auto known = ends_.find({place.value, *place.axis}); known != ends_.end()) {
      place = known->second;
      break;
    }
    std::optional<Place> before = stepBack(place.value, *place.axis);
    if (!before)
      break;
    passed.push_back({place.value, *place.axis});
    place = *before;
  }
  for (auto &each : passed)
    ends_[each] = place;
  if (passed.empty() && place.value == dim.getTensor())
    return dim;
  OpBuilder builder(dim);
  Value extent = place.value;
  if (place.axis)
    extent = ir::DimOp::create(builder, dim.getLoc(), place.value,
                               builder.getI64IntegerAttr(*place.axis));
  dim.getResult().replaceAllUsesWith(extent);
  dim.erase();
  return extent;
}

std::optional<ExtentChains::Place> ExtentChains::stepBack(Value tensor, unsigned axis) {
  if (!cast<RankedTensorType>(tensor.getType()).isDynamicDim(axis))
    return std::nullopt;
  auto apply = tensor.getDefiningOp<ir::ApplyOp>();
  if (!apply)
    return std::nullopt;
  auto source = extentSource(apply, cast<OpResult>(tensor).getResultNumber(), axis);
  if (!source)
    return std::nullopt;
  return Place{apply.getOperand(source->operand), source->axis};
}

} // namespace sheaf::passes
