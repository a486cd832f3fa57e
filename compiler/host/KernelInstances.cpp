//===- KernelInstances.cpp ------------------------------------------------===//

#include "compiler/host/KernelInstances.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace sheaf::host {

KernelInstances::KernelInstances(ModuleOp module) : module_(module) {
  ArrayAttr none = ArrayAttr::get(module.getContext(), {});
  for (auto func : module.getOps<func::FuncOp>())
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto record = dyn_cast<ir::RecordOp>(op))
        add({record.getBlockAttr(), record.getWeights()});
      if (!isa<ir::ApplyOp>(op))
        return;
      for (StringRef name : {"sheaf.copy", "sheaf.arrange"})
        if (auto block = op->getAttrOfType<FlatSymbolRefAttr>(name))
          add({block, none});
    });
}

void KernelInstances::add(Key key) {
  if (!numbers_.try_emplace(key, instances_.size()).second)
    return;
  KernelInstance instance;
  instance.block =
      cast<ir::BlockOp>(SymbolTable::lookupSymbolIn(module_, cast<FlatSymbolRefAttr>(key.first)));
  for (auto weight : cast<ArrayAttr>(key.second).getAsRange<FlatSymbolRefAttr>())
    instance.weights.push_back(weight);
  instances_.push_back(std::move(instance));
}

unsigned KernelInstances::of(ir::RecordOp record) const {
  return numbers_.lookup({record.getBlockAttr(), record.getWeights()});
}

unsigned KernelInstances::of(FlatSymbolRefAttr block) const {
  return numbers_.lookup({block, ArrayAttr::get(block.getContext(), {})});
}

} // namespace sheaf::host
