//===- FoldConstants.cpp - Constant tensors become parameters -------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/passes/Pass.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

class ConstantFolder {
public:
  ConstantFolder(ModuleOp module, PassContext &context)
      : module_(module), symbols_(module), context_(context) {}

  void run() {
    SmallVector<ir::ApplyOp> fills;
    module_.walk([&](ir::ApplyOp apply) {
      if (valueOf(apply))
        fills.push_back(apply);
    });
    for (ir::ApplyOp fill : fills)
      replaceHostUses(fill);
  }

private:
  /// The value of all elements when `apply` is a constant tensor of constant extents.
  static std::optional<double> valueOf(ir::ApplyOp apply) {
    auto *fill = batchRule<ops::Fill>(apply);
    if (!fill || fill->kind != ops::Fill::Constant || apply.getNumResults() != 1 ||
        !cast<RankedTensorType>(apply.getResult(0).getType()).hasStaticShape())
      return std::nullopt;
    Attribute value = apply.getAttrs().get("value");
    if (auto number = dyn_cast_or_null<FloatAttr>(value))
      return number.getValueAsDouble();
    if (auto number = dyn_cast_or_null<IntegerAttr>(value))
      return static_cast<double>(number.getInt());
    return std::nullopt;
  }

  /// Tensor code makes the constant inside its kernel; everyone else takes the parameter's row.
  void replaceHostUses(ir::ApplyOp fill) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : fill.getResult(0).getUses())
      if (!isTensorCode(use.getOwner()))
        uses.push_back(&use);
    if (uses.empty())
      return;
    auto type = cast<RankedTensorType>(fill.getResult(0).getType());
    FlatSymbolRefAttr param = paramFor(fill, type, *valueOf(fill));
    OpBuilder builder(fill);
    Value ref = ir::ParamRefOp::create(builder, fill.getLoc(), type, param);
    for (OpOperand *use : uses)
      use->set(ref);
    context_.remark(fill.getLoc(), fill.getOp() + " is the constant " + param.getValue());
    if (fill->use_empty())
      fill.erase();
  }

  FlatSymbolRefAttr paramFor(ir::ApplyOp fill, RankedTensorType type, double value) {
    Attribute bits = Builder(fill).getF64FloatAttr(value); // tells -0.0 from 0.0
    ir::ParamOp &param = params_[{type, bits}];
    if (!param) {
      std::string name = "constant";
      for (int64_t extent : type.getShape())
        name += "_" + std::to_string(extent);
      OpBuilder builder = OpBuilder::atBlockBegin(module_.getBody());
      param = ir::ParamOp::create(builder, fill.getLoc(), name, type, "constant",
                                  builder.getF64ArrayAttr({value}));
      param->setAttr("sheaf.synthetic", builder.getUnitAttr());
      symbols_.insert(param);
    }
    return FlatSymbolRefAttr::get(param.getSymNameAttr());
  }

  ModuleOp module_;
  SymbolTable symbols_;
  PassContext &context_;
  llvm::DenseMap<std::pair<Type, Attribute>, ir::ParamOp> params_;
};

LogicalResult foldConstants(ModuleOp module, PassContext &context) {
  ConstantFolder(module, context).run();
  return success();
}

} // namespace

PassRecord foldConstantsPass() {
  return {.name = "fold-constants",
          .description =
              "Constant tensors that are used outside of tensor code (the first state of a fold, a "
              "field of a data value) become synthetic parameters: rows that exist before any "
              "instance, so that nothing is recorded for them.",
          .run = foldConstants};
}

} // namespace sheaf::passes
