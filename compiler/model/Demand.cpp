#include "compiler/model/Demand.h"

#include "compiler/analysis/RecordFlow.h"

using namespace mlir;

namespace sheaf::host {

std::vector<bool> demandedKernels(ModuleOp program, const KernelInstances &instances) {
  passes::RecordFlow flow(program);
  llvm::BitVector sites = flow.demanded();
  std::vector<bool> demanded(instances.all().size());
  for (auto [number, site] : llvm::enumerate(flow.sites()))
    if (sites[number])
      demanded[site.role.empty() ? instances.of(cast<ir::RecordOp>(site.op))
                                 : instances.of(site.op, site.role)] = true;
  return demanded;
}

} // namespace sheaf::host
