//===- LiveTensors.cpp - Tensors that are needed at one time --------------===//

#include "compiler/analysis/LiveTensors.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/SizeWalk.h"
#include "compiler/ops/Op.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>

using namespace mlir;

namespace sheaf::passes {
namespace {

/// It is counted by whoever runs the block: an element, the fields of a data value.
bool isCounted(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  return isa<ir::MapOp, ir::FilterOp, ir::MatchOp>(parent) ||
         (isa<ir::FoldOp, ir::ScanOp>(parent) && argument.getArgNumber() > 0);
}

/// Operands that an operation takes over.
OperandRange takenOver(Operation &op) {
  if (isa<func::CallOp>(op))
    return op.getOperands();
  return op.getOperands().take_front(isa<ir::FoldOp, ir::ScanOp>(op) ? 1 : 0);
}

/// Its results are counted in it, until it has ended.
bool countsResults(Operation &op) {
  return isa<func::CallOp, scf::IfOp, ir::MatchOp, ir::FoldOp>(op);
}

/// A part of another tensor's rows.
Value ownerOf(Value value) {
  while (auto apply = value.getDefiningOp<ir::ApplyOp>()) {
    auto *address = batchRule<ops::HostAddress>(apply);
    if (!address || address->kind == ops::HostAddress::Rows)
      break;
    value = apply.getOperand(0);
  }
  return value;
}

} // namespace

void LiveTensors::add(Value value, std::vector<unsigned> &parts) {
  add(value, {}, value.getType(), parts);
}

void LiveTensors::add(Value value, SmallVector<unsigned, 2> way, Type type,
                      std::vector<unsigned> &parts) {
  for (;;) {
    Value owner = way.empty() ? ownerOf(value) : value;
    if (owner != value) {
      value = owner;
      type = value.getType();
    }
    if (auto get = value.getDefiningOp<ir::GetOp>()) {
      way.insert(way.begin(), static_cast<unsigned>(get.getIndex()));
      value = get.getTuple();
    } else if (auto tuple = value.getDefiningOp<ir::TupleOp>(); tuple && !way.empty()) {
      value = tuple.getFields()[way.front()];
      way.erase(way.begin());
    } else {
      break;
    }
  }
  if (auto fields = dyn_cast<TupleType>(type)) {
    for (auto [i, field] : llvm::enumerate(fields.getTypes())) {
      SmallVector<unsigned, 2> inner = way;
      inner.push_back(static_cast<unsigned>(i));
      add(value, std::move(inner), field, parts);
    }
    return;
  }
  if (!isa<RankedTensorType, ir::ListType, ir::DataType>(type) ||
      value.getParentBlock() != &block_ || value.getDefiningOp<ir::ParamRefOp>())
    return;
  if (auto argument = dyn_cast<BlockArgument>(value); argument && isCounted(argument))
    return;
  auto same = llvm::find_if(
      parts_, [&](const Part &part) { return part.whole == value && part.way == way; });
  parts.push_back(static_cast<unsigned>(same - parts_.begin()));
  if (same == parts_.end())
    parts_.push_back({value, std::move(way), type});
}

LiveTensors::LiveTensors(Block &block) : block_(block) {
  // Of each operation: the parts that it makes, takes over, and uses besides.
  struct Uses {
    std::vector<unsigned> made, taken, used;
  };
  std::vector<Uses> uses;
  for (Operation &op : block) {
    Uses &own = uses.emplace_back();
    OperandRange taken = takenOver(op);
    for (OpOperand &operand : op.getOpOperands())
      add(operand.get(), operand.getOperandNumber() < taken.size() ? own.taken : own.used);
    for (Region &region : op.getRegions())
      region.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          add(operand, own.used);
      });
    if (!countsResults(op))
      for (Value result : op.getResults())
        add(result, own.made);
    matters_.push_back(isa<ir::RecordOp, ir::JoinedOp, ir::ApplyOp, func::CallOp>(op) ||
                       op.getNumRegions() > 0 || op.hasTrait<OpTrait::IsTerminator>());
  }
  std::vector<size_t> first(parts_.size()), last(parts_.size());
  for (unsigned part = 0; part < parts_.size(); ++part) {
    Operation *maker = parts_[part].whole.getDefiningOp();
    size_t at = 0;
    for (Operation &op : block) {
      ++at;
      if (&op == maker)
        first[part] = at; // after it
    }
  }
  for (size_t at = 0; at < uses.size(); ++at)
    for (const auto *parts : {&uses[at].made, &uses[at].taken, &uses[at].used})
      for (unsigned part : *parts)
        last[part] = std::max(last[part], at);
  for (size_t at = 0; at < uses.size(); ++at) {
    std::vector<unsigned> &needed = at_.emplace_back(uses[at].made);
    needed.insert(needed.end(), uses[at].used.begin(), uses[at].used.end());
    for (unsigned part = 0; part < parts_.size(); ++part)
      if (first[part] <= at && last[part] > at)
        needed.push_back(part);
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  }
}

//===----------------------------------------------------------------------===//
// How many they hold
//===----------------------------------------------------------------------===//

const LiveTensors &SizeWalk::liveIn(Block &block) {
  auto it = live_.find(&block);
  return it == live_.end() ? live_.try_emplace(&block, block).first->second : it->second;
}

Bound SizeWalk::tensorsAt(const LiveTensors &live, size_t at) {
  Bound all;
  for (unsigned number : live.at(at)) {
    const LiveTensors::Part &part = live.part(number);
    if (!holdsTensors(part.type))
      continue;
    if (auto argument = dyn_cast<BlockArgument>(part.whole);
        argument && argument.getOwner() == inputs_)
      continue;
    const SizeValue *value = &of(part.whole);
    for (unsigned field : part.way)
      if (value->kind == SizeValue::Tuple)
        value = &value->parts[field];
    all += tensorsIn(*value, part.type);
  }
  return all;
}

Bound SizeWalk::tensorsIn(const SizeValue &value, Type type) {
  if (value.kind == SizeValue::Never || !holdsTensors(type))
    return Bound();
  if (isa<RankedTensorType>(type))
    return Bound(1);
  Bound all;
  if (auto list = dyn_cast<ir::ListType>(type); list && value.kind == SizeValue::List) {
    if (value.isWhole) {
      for (const SizeValue &element : value.parts)
        all += tensorsIn(element, list.getElement());
      return all;
    }
    std::optional<SizeValue> element = elementOf(value);
    return element ? sumOf(tensorsIn(*element, list.getElement()), value.number.most, value.sums,
                           symbols_)
                   : all;
  }
  if (auto tuple = dyn_cast<TupleType>(type); tuple && value.kind == SizeValue::Tuple) {
    for (auto [part, field] : llvm::zip_equal(value.parts, tuple.getTypes()))
      all += tensorsIn(part, field);
    return all;
  }
  auto data = dyn_cast<ir::DataType>(type);
  if (data && value.kind == SizeValue::Data) {
    auto declaration = symbolTable_.lookup<ir::DataOp>(data.getName().getAttr());
    for (auto [part, ctor] :
         llvm::zip_equal(value.parts, declaration.getCtors().getAsRange<ir::CtorAttr>())) {
      Bound fields;
      if (part.kind != SizeValue::Never)
        for (auto [own, field] :
             llvm::zip_equal(part.parts, ctor.getFieldTypes().getAsValueRange<TypeAttr>()))
          fields += tensorsIn(own, field);
      all = Bound::max(all, fields);
    }
    return all;
  }
  // Those of a data value that came with the instance were there before.
  if (data && value.kind == SizeValue::Tree && value.tree)
    return all;
  return Bound::symbol(symbols_.unknown(module_.getLoc(), "tensors in what the program makes"));
}

bool SizeWalk::holdsTensors(Type type) {
  auto [it, isNew] = holdsTensors_.try_emplace(type, false);
  if (isNew)
    it->second = sheaf::passes::holdsTensors(type, module_);
  return it->second;
}

} // namespace sheaf::passes
