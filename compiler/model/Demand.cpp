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
  // A kernel that stands in for others belongs to one of them.
  program.walk([&](ir::JoinedOp joined) {
    demanded[instances.of(joined)] = demanded[instances.of(joined.getRecord())];
  });
  return demanded;
}

} // namespace sheaf::host
