//===- Records.cpp - What the records of a block hold, and what they cost -===//

#include "compiler/kernels/plan/Planner.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace sheaf::kernels {

void Planner::recordLayout() {
  RecordPlan &records = plan_->records;
  for (BlockArgument arg :
       block_.getBody().front().getArguments().take_front(block_.getNumArgs())) {
    std::string name = "arg" + std::to_string(arg.getArgNumber());
    plan_->argumentWords.push_back(records.words);
    if (auto type = dyn_cast<RankedTensorType>(arg.getType())) {
      std::vector<int64_t> shape;
      for (int64_t extent : type.getShape())
        shape.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
      rt::DType dtype = runtimeType(dtypeOf(arg));
      records.layout.push_back({rt::RecordWord::Row, name, std::move(shape), dtype});
      for (unsigned i = 0; i < type.getNumDynamicDims(); ++i)
        records.layout.push_back({rt::RecordWord::Extent, name + "." + std::to_string(i)});
      records.words += 1 + static_cast<uint32_t>(type.getNumDynamicDims());
    } else if (auto list = dyn_cast<ir::ListType>(arg.getType())) {
      auto element = cast<RankedTensorType>(list.getElement());
      records.layout.push_back(
          {rt::RecordWord::List, name, element.getShape().vec(), runtimeType(dtypeOf(arg))});
      records.layout.push_back({rt::RecordWord::Extent, name + ".0"});
      records.words += 2;
    } else {
      records.layout.push_back(
          {arg.getType().isF64() ? rt::RecordWord::Float : rt::RecordWord::Int, name});
      records.words += 2;
    }
  }
  records.layout.push_back({rt::RecordWord::Out, "out"});
  ++records.words;
}

void Planner::countWork() {
  RecordPlan &records = plan_->records;
  // Words of the symbols that BlockShapes makes; an extent fits the low word of an int.
  std::map<std::string, uint32_t> wordOf;
  for (BlockArgument arg :
       block_.getBody().front().getArguments().take_front(block_.getNumArgs())) {
    std::string name = std::to_string(arg.getArgNumber());
    uint32_t word = plan_->argumentWords[arg.getArgNumber()];
    wordOf[name] = word;
    if (auto type = dyn_cast<RankedTensorType>(arg.getType()))
      for (unsigned axis = 0; axis < type.getRank(); ++axis)
        if (type.isDynamicDim(axis))
          wordOf[name + "." + std::to_string(axis)] = ++word;
    if (isa<ir::ListType>(arg.getType()))
      wordOf[name + ".0"] = word + 1;
  }
  auto add = [&](std::vector<rt::FlopTerm> &terms, const Dim &amount) {
    for (auto &[symbols, coefficient] : amount.terms()) {
      rt::FlopTerm term{static_cast<double>(coefficient), {}};
      for (const std::string &symbol : symbols)
        term.extentWords.push_back(wordOf.at(symbol));
      terms.push_back(std::move(term));
    }
  };
  auto elements = [](const std::vector<Dim> &shape) {
    Dim product = 1;
    for (const Dim &extent : shape)
      product = product * extent;
    return product;
  };
  // Only how the lines of a kernel compare depends on what an unknown extent is taken for.
  auto estimate = [](const Dim &amount) {
    double sum = 0;
    for (auto &[symbols, coefficient] : amount.terms())
      sum += static_cast<double>(coefficient) * std::pow(16.0, static_cast<double>(symbols.size()));
    return sum;
  };
  for (BlockArgument arg : block_.getBody().front().getArguments().take_front(block_.getNumArgs()))
    if (isa<RankedTensorType>(arg.getType()))
      add(records.bytes, elements(shape(arg)) * Dim(bytesOf(dtypeOf(arg))));
    else if (isa<ir::ListType>(arg.getType()))
      add(records.bytes,
          elements(shape(arg)) * lengthOf(arg.getArgNumber()) * Dim(bytesOf(dtypeOf(arg))));
  for (const RecordBuffer &result : records.results)
    add(records.bytes, elements(result.shape) * Dim(bytesOf(result.dtype)));
  for (Operation &op : block_.getBody().front().without_terminator()) {
    auto apply = dyn_cast<ir::ApplyOp>(op);
    if (!apply)
      continue;
    Role role = roleOf(apply->getResult(0));
    if (role == Role::View)
      continue;
    if (role != Role::Product && role != Role::Dot) {
      // An activation takes about ten instructions an element; what only moves or adds, fewer.
      Value over = role == Role::Reduction ? apply.getOperand(0) : apply->getResult(0);
      Dim amount = elements(shape(over));
      if (role == Role::Fold)
        amount = amount * lengthOf(cast<BlockArgument>(apply.getOperand(1)).getArgNumber());
      double each = role == Role::Elementwise ? 8 : role == Role::Reduction ? 4 : 2;
      records.work.push_back({&op, each * estimate(amount)});
      continue;
    }
    Dim flop = Dim(2) * shape(apply.getOperand(0)).back();
    for (const Dim &extent : shape(apply->getResult(0)))
      flop = flop * extent;
    add(records.flop, flop);
    records.work.push_back({&op, estimate(flop)});
    records.productWork += estimate(flop);
    records.alongRowsWork += role == Role::Dot ? estimate(flop) : 0;
  }
}

} // namespace sheaf::kernels
