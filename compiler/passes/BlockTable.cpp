//===- BlockTable.cpp - The blocks of a module ----------------------------===//

#include "compiler/passes/BlockTable.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Make.h"
#include "runtime/model/layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sheaf::passes {

void eraseUnused(ir::BlockOp block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block.getBody().front())))
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty())
      op.erase();
}

ir::BlockOp BlockTable::intern(ir::BlockOp block, StringRef function) {
  ++uses_;
  std::string key;
  llvm::raw_string_ostream stream(key);
  block.setSymName("block");
  block->print(stream, OpPrintingFlags().assumeVerified().useLocalScope());
  auto [it, isNew] = blocks_.try_emplace(key, block);
  if (!isNew) {
    block.erase();
    return it->second;
  }
  std::string name = function.str() + "." + std::to_string(perFunction_[function]++);
  block.setSymName(name);
  auto functions = module_.getOps<func::FuncOp>();
  symbols_.insert(block, functions.empty() ? module_.getBody()->end()
                                           : Block::iterator(*functions.begin()));
  return block;
}

void BlockTable::recordFill(Operation *fill, StringRef function) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : fill->getUses())
    if (!isTensorCode(use.getOwner()))
      uses.push_back(&use);
  if (uses.empty())
    return;

  Location loc = fill->getLoc();
  OpBuilder builder(fill->getContext());
  auto block = ir::BlockOp::create(builder, loc, "block", 0);
  Block &body = block.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  IRMapping map;
  SmallVector<Value> args;
  for (Value operand : fill->getOperands()) {
    if (map.contains(operand))
      continue;
    if (auto constant = operand.getDefiningOp<arith::ConstantOp>()) {
      builder.clone(*constant, map);
    } else {
      map.map(operand, body.addArgument(operand.getType(), loc));
      args.push_back(operand);
    }
  }
  block.setNumArgs(args.size());
  ir::YieldOp::create(builder, loc, builder.clone(*fill, map)->getResults());

  builder.setInsertionPoint(fill);
  auto record =
      ir::RecordOp::create(builder, loc, fill->getResultTypes(),
                           intern(block, function).getSymName(), args, builder.getArrayAttr({}));
  for (OpOperand *use : uses)
    use->set(record->getResult(0));
}

FlatSymbolRefAttr
BlockTable::unaryBlock(Location loc, RankedTensorType type, StringRef function,
                       llvm::function_ref<Value(ImplicitLocOpBuilder &, Value)> body) {
  ImplicitLocOpBuilder builder(loc, type.getContext());
  auto block = ir::BlockOp::create(builder, "block", 1);
  Block &content = block.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&content);
  Value result = body(builder, content.addArgument(type, loc));
  ir::YieldOp::create(builder, result);
  return FlatSymbolRefAttr::get(intern(block, function).getSymNameAttr());
}

void BlockTable::attachRowCopy(ir::ApplyOp apply, StringRef function) {
  constexpr int64_t kWords = rt::kGranuleBytes / rt::dtypeBytes(rt::DType::I32);
  auto granules = RankedTensorType::get({ShapedType::kDynamic, kWords},
                                        IntegerType::get(apply.getContext(), 32));
  apply->setAttr("sheaf.copy", unaryBlock(apply.getLoc(), granules, function,
                                          [](ImplicitLocOpBuilder &b, Value x) {
                                            return ops::makeReshaped(b, x, ops::extentsOf(b, x));
                                          }));
}

void BlockTable::attachCopy(ir::ApplyOp apply, StringRef function) {
  Location loc = apply.getLoc();
  auto element =
      cast<RankedTensorType>(cast<ir::ListType>(apply.getOperand(0).getType()).getElement());
  auto axisAttr = apply.getAttrs().getAs<IntegerAttr>("axis");
  int64_t axis = axisAttr ? axisAttr.getInt() : 0;

  // Kernels write results of operators only, so the copy is a reshape.
  apply->setAttr("sheaf.copy",
                 unaryBlock(loc, element, function, [](ImplicitLocOpBuilder &b, Value x) {
                   return ops::makeReshaped(b, x, ops::extentsOf(b, x));
                 }));

  // Elements become whole rows of a tensor whose first axis counts them.
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  llvm::append_range(shape, element.getShape());
  if (element.getRank() == 0)
    shape.push_back(1);
  auto rows = RankedTensorType::get(shape, element.getElementType(), element.getEncoding());
  apply->setAttr("sheaf.rows", TypeAttr::get(rows));
  if (axis == 0 && element.getRank() > 0)
    return;
  apply->setAttr("sheaf.arrange",
                 unaryBlock(loc, rows, function, [&](ImplicitLocOpBuilder &b, Value x) {
                   if (element.getRank() == 0)
                     return ops::makeReshaped(b, x, {ops::extentOf(b, x, 0)});
                   for (int64_t i = 0; i < axis; ++i)
                     x = ops::makeTransposed(b, x, i, i + 1);
                   return x;
                 }));
}

} // namespace sheaf::passes
