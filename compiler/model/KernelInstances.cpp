//===- KernelInstances.cpp ------------------------------------------------===//

#include "compiler/model/KernelInstances.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace sheaf::host {
namespace {

unsigned phaseOf(Operation *op, const Twine &attribute) {
  auto phase = op->getAttrOfType<IntegerAttr>(attribute.str());
  return phase ? static_cast<unsigned>(phase.getInt()) : 0;
}

} // namespace

KernelInstances::KernelInstances(ModuleOp module) : module_(module) {
  for (auto func : module.getOps<func::FuncOp>())
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto record = dyn_cast<ir::RecordOp>(op))
        instances_[add(keyOf(record))].sites.push_back(op);
      if (!isa<ir::ApplyOp>(op))
        return;
      for (StringRef role : {"sheaf.copy", "sheaf.arrange"})
        if (op->hasAttr(role))
          instances_[add(keyOf(op, role))].sites.push_back(op);
    });
  // After all others, whose numbers do not depend on them.
  for (auto func : module.getOps<func::FuncOp>())
    func.walk<WalkOrder::PreOrder>([&](ir::JoinedOp joined) {
      KernelInstance &instance = instances_[add(keyOf(joined))];
      instance.sites.push_back(joined);
      instance.joined = true;
    });
  recorded_ = instances_.size();
  for (size_t i = 0; i < recorded_; ++i)
    if (std::optional<Key> key = keyOfBackward(instances_[i])) {
      KernelInstance &back = instances_[add(*key)];
      llvm::append_range(back.sites, std::vector(instances_[i].sites));
    }
}

unsigned KernelInstances::add(Key key) {
  unsigned number = instances_.size();
  if (auto [it, isNew] = numbers_.try_emplace(key, number); !isNew)
    return it->second;
  auto [block, weights] = key.first;
  KernelInstance instance;
  instance.block =
      cast<ir::BlockOp>(SymbolTable::lookupSymbolIn(module_, cast<FlatSymbolRefAttr>(block)));
  for (auto weight : cast<ArrayAttr>(weights).getAsRange<FlatSymbolRefAttr>())
    instance.weights.push_back(weight);
  instance.phase = key.second;
  instance.family = families_.try_emplace(key.first, number).first->second;
  phases_ = std::max(phases_, instance.phase + 1);
  instances_.push_back(std::move(instance));
  return number;
}

KernelInstances::Key KernelInstances::keyOf(ir::RecordOp record) {
  return {{record.getBlockAttr(), record.getWeights()}, phaseOf(record, "sheaf.phase")};
}

KernelInstances::Key KernelInstances::keyOf(ir::JoinedOp joined) {
  return {{joined.getBlockAttr(), joined.getWeights()}, phaseOf(joined, "sheaf.phase")};
}

std::optional<KernelInstances::Key> KernelInstances::keyOfBackward(const KernelInstance &forward) {
  ir::BlockOp block = forward.block;
  auto back = block->getAttrOfType<FlatSymbolRefAttr>("sheaf.gradient");
  if (!back)
    return std::nullopt;
  SmallVector<Attribute> weights(forward.weights.begin(), forward.weights.end());
  return Key{{back, ArrayAttr::get(back.getContext(), weights)}, 0};
}

std::optional<unsigned> KernelInstances::backwardOf(unsigned instance) const {
  std::optional<Key> key = keyOfBackward(instances_[instance]);
  return key ? std::optional(numbers_.lookup(*key)) : std::nullopt;
}

KernelInstances::Key KernelInstances::keyOf(Operation *op, StringRef role) {
  return {{op->getAttrOfType<FlatSymbolRefAttr>(role), ArrayAttr::get(op->getContext(), {})},
          phaseOf(op, role + ".phase")};
}

unsigned KernelInstances::of(ir::RecordOp record) const { return numbers_.lookup(keyOf(record)); }

unsigned KernelInstances::of(ir::JoinedOp joined) const { return numbers_.lookup(keyOf(joined)); }

unsigned KernelInstances::of(Operation *op, StringRef role) const {
  return numbers_.lookup(keyOf(op, role));
}

} // namespace sheaf::host
