//===- BlockShapes.cpp - Extents in a block -------------------------------===//
#include "compiler/kernels/plan/BlockShapes.h"

#include "compiler/ops/Verify.h"
#include "runtime/model/error.h"

using namespace mlir;

namespace sheaf::kernels {
namespace {

using Equalities = std::vector<std::pair<Dim, Dim>>;

/// Block code has passed the checker: extents are equal unless they are different numbers. Takes
/// note of those that shape rules ask to be equal.
struct Oracle final : ops::LenientOracle {
  explicit Oracle(Equalities &equalities) : equalities(equalities) {}
  bool same(const Dim &a, const Dim &b) const override {
    if (!LenientOracle::same(a, b))
      return false;
    if (a != b)
      equalities.push_back({a, b});
    return true;
  }
  Equalities &equalities;
};

/// The number of the argument that a symbol is of, and the axis.
std::pair<int, int> placeOf(const std::string &symbol) {
  size_t dot = symbol.find('.');
  return {std::stoi(symbol), dot == std::string::npos ? -1 : std::stoi(symbol.substr(dot + 1))};
}

/// A symbol that something which is 0 makes equal to what the others come to: of the last argument,
/// if there are several.
std::optional<std::pair<std::string, Dim>> solve(const Dim &zero) {
  std::optional<std::pair<std::string, Dim>> found;
  for (const std::string &symbol : zero.symbols()) {
    Dim alone = Dim::symbol(symbol), rest = zero.substitute([&](const std::string &name) {
      return name == symbol ? std::optional(Dim(0)) : std::nullopt;
    });
    std::optional<Dim> factor = (zero - rest).dividedBy(alone);
    if (Dim::symbol(symbol).isFresh() || !factor || !factor->isConstant())
      continue;
    std::optional<Dim> value = (Dim(0) - rest).dividedBy(*factor);
    if (value && (!found || placeOf(found->first) < placeOf(symbol)))
      found = {symbol, *value};
  }
  return found;
}

/// The extents of an operator's results, by its shape rule on the operands' extents.
std::vector<ops::TensorType> infer(ir::ApplyOp apply, const ops::Op &record,
                                   llvm::function_ref<std::vector<Dim>(Value)> shapeOf,
                                   llvm::function_ref<Dim(Value)> scalarOf,
                                   Equalities &equalities) {
  auto taken =
      ops::takeApart(record, apply->getOperandTypes(), apply.getAttrs(), apply->getResultTypes());
  if (auto *error = std::get_if<std::string>(&taken))
    throw InternalError("\"" + apply.getOp().str() + "\": " + *error);
  auto &parts = std::get<ops::ApplyParts>(taken);
  for (auto [i, operand] : llvm::enumerate(parts.operands))
    if (auto *tensor = std::get_if<ops::TensorType>(&operand.type); tensor && !operand.isList)
      tensor->dims = shapeOf(apply.getOperand(i));
  for (const auto &extent : parts.extents) {
    Dim value = scalarOf(apply.getOperand(extent.operand));
    if (extent.position)
      std::get<std::vector<Dim>>(parts.attrs[extent.param])[*extent.position] = value;
    else
      parts.attrs[extent.param] = value;
  }
  return record.shape(parts.operands, parts.attrs, Oracle(equalities)).types;
}

} // namespace

BlockShapes::BlockShapes(ir::BlockOp block) {
  for (bool isNew = true; isNew;) {
    Equalities equalities;
    inferAll(block, equalities);
    isNew = false;
    for (auto &[a, b] : equalities)
      isNew |= tie(a, b);
  }
}

Dim BlockShapes::symbol(const std::string &name) const {
  auto tied = tied_.find(name);
  return tied == tied_.end() ? Dim::symbol(name) : tied->second;
}

/// Two extents are equal: true if that was not known.
bool BlockShapes::tie(const Dim &a, const Dim &b) {
  auto known = [&](const std::string &name) { return std::optional(symbol(name)); };
  auto solved = solve(a.substitute(known) - b.substitute(known));
  if (!solved)
    return false;
  for (auto &[name, dim] : tied_)
    dim = dim.substitute([&, name = solved->first](const std::string &other) {
      return other == name ? std::optional(solved->second) : std::nullopt;
    });
  tied_.insert(std::move(*solved));
  return true;
}

void BlockShapes::inferAll(ir::BlockOp block, std::vector<std::pair<Dim, Dim>> &equalities) {
  shapes_.clear();
  Block &body = block.getBody().front();
  auto symbolOf = [](BlockArgument arg) { return std::to_string(arg.getArgNumber()); };
  auto shapeOf = [&](Value value) -> std::vector<Dim> { return shapes_.lookup(value); };

  for (BlockArgument arg : body.getArguments()) {
    std::vector<Dim> dims;
    Type tensor = arg.getType();
    if (auto list = dyn_cast<ir::ListType>(tensor))
      tensor = list.getElement(); // all have the same constant extents
    if (auto type = dyn_cast<RankedTensorType>(tensor))
      for (auto [axis, extent] : llvm::enumerate(type.getShape()))
        dims.push_back(ShapedType::isDynamic(extent)
                           ? symbol(symbolOf(arg) + "." + std::to_string(axis))
                           : Dim(extent));
    shapes_[arg] = std::move(dims);
  }

  // Host scalars that give extents: arguments, extents of tensors, and sums and products of them.
  llvm::DenseMap<Value, Dim> scalars;
  auto scalarOf = [&](Value value) -> Dim {
    if (auto arg = dyn_cast<BlockArgument>(value))
      return symbol(symbolOf(arg));
    auto it = scalars.find(value);
    return it == scalars.end() ? Dim::fresh() : it->second;
  };

  for (Operation &op : body.without_terminator()) {
    if (auto dim = dyn_cast<ir::DimOp>(op)) {
      scalars[dim.getResult()] = shapeOf(dim.getTensor())[dim.getAxis()];
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto number = dyn_cast<IntegerAttr>(constant.getValue()))
        scalars[constant.getResult()] = Dim(number.getInt());
    } else if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
      Dim a = scalarOf(op.getOperand(0)), b = scalarOf(op.getOperand(1));
      scalars[op.getResult(0)] = isa<arith::AddIOp>(op)   ? a + b
                                 : isa<arith::SubIOp>(op) ? a - b
                                                          : a * b;
    }
    auto apply = dyn_cast<ir::ApplyOp>(op);
    if (!apply)
      continue;
    const ops::Op *record = ops::OpTable::get().find(apply.getOp());
    if (!record)
      throw InternalError("no operator " + apply.getOp().str());
    bool allStatic = llvm::all_of(
        apply->getResultTypes(), [](Type t) { return cast<RankedTensorType>(t).hasStaticShape(); });
    std::vector<ops::TensorType> inferred;
    if (!allStatic)
      inferred = infer(apply, *record, shapeOf, scalarOf, equalities);
    for (auto [i, result] : llvm::enumerate(apply->getResults())) {
      std::vector<Dim> dims;
      for (auto [axis, extent] :
           llvm::enumerate(cast<RankedTensorType>(result.getType()).getShape())) {
        dims.push_back(ShapedType::isDynamic(extent) ? inferred.at(i).dims.at(axis) : Dim(extent));
        if (llvm::any_of(dims.back().symbols(),
                         [](const std::string &symbol) { return Dim::symbol(symbol).isFresh(); }))
          throw InternalError("extent " + std::to_string(axis) + " of \"" + apply.getOp().str() +
                              "\" does not follow from the arguments of its block");
      }
      shapes_[result] = std::move(dims);
    }
  }
}

} // namespace sheaf::kernels
