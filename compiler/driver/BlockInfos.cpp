//===- BlockInfos.cpp - Kernels as people want to know them ---------------===//
#include "compiler/driver/Attribution.h"
#include "compiler/driver/Pipeline.h"
#include "compiler/ir/Place.h"
#include "compiler/ir/Program.h"
#include "compiler/model/KernelInstances.h"

#include <fmt/format.h>

#include <map>

namespace sheaf::driver {

namespace {

/// What share of a kernel's work each line has.
std::vector<LineShare> shareLines(const kernels::Kernel &kernel) {
  std::map<std::string, double> byPlace;
  double sum = 0;
  for (const auto &[op, work] : kernel.work) {
    byPlace[ir::placeOf(op->getLoc())] += work;
    sum += work;
  }
  std::vector<LineShare> lines;
  for (const auto &[place, work] : byPlace)
    if (work > 0)
      lines.push_back({place, work / sum});
  if (lines.empty())
    lines.push_back({ir::placeOf(kernel.block->getLoc()), 1});
  llvm::sort(lines.begin(), lines.end(), [](const LineShare &a, const LineShare &b) {
    return std::pair(-a.share, a.place) < std::pair(-b.share, b.place);
  });
  return lines;
}

/// What the tuner's choice came to.
std::string describeTuned(const TunedKernel &tuned) {
  if (tuned.tuning == kernels::Tuning())
    return "tuned: no tile was clearly faster than this one, the default";
  return fmt::format("tuned: this was {:.2f} times as fast as the default ({:.2f} to {:.2f})",
                     tuned.ratio, tuned.low, tuned.high);
}

} // namespace

/// Also gives kernels their names and places.
void Compilation::describeBlocks(const host::KernelInstances &instances) {
  Attribution attribution(*blocks, options_.entry);
  llvm::DenseMap<mlir::Operation *, int> instancesOf;
  for (auto [i, instance] : llvm::enumerate(instances.all())) {
    ir::BlockOp block = instance.block;
    const kernels::Kernel &kernel = kernels[kernelNumbers_[i]];
    rt::KernelDesc &desc = model.kernels[i];
    BlockInfo info;
    // A block that is called with other weights is a kernel of its own.
    int number = ++instancesOf[block.getOperation()];
    info.symbol = block.getSymName().str() + (number > 1 ? "#" + std::to_string(number) : "");
    info.parts = attribution.partsOf(instance, kernel);
    desc.name = info.name = attribution.nameOf(instance, kernel, info.parts);
    desc.source = info.place = ir::placeOf(block.getLoc());
    for (mlir::FlatSymbolRefAttr weight : instance.weights)
      info.weights.push_back(weight.getValue().str());
    block.getBody().walk([&](ir::ApplyOp apply) { info.operators.push_back(apply.getOp().str()); });
    info.remarks = kernel.remarks;
    if (instance.joined)
      info.remarks.push_back("runs only where rows of what was hoisted do not fit in memory");
    for (const kernels::ProductDispatch &product : kernel.dispatch)
      info.dispatch.push_back({ir::placeOf(product.where), product.what, product.verdicts});
    info.tiling = kernel.tiling;
    info.tuningKey = stored_->tuningKey(descriptions_[kernelNumbers_[i]]);
    if (std::optional<TunedKernel> tuned = stored_->tuned(info.tuningKey)) {
      info.tuned = true;
      info.remarks.push_back(describeTuned(*tuned));
    }
    info.lines = shareLines(kernel);
    double work = 0;
    for (const auto &[op, amount] : kernel.work)
      work += amount;
    info.productWork = work > 0 ? kernel.productWork / work : 0;
    info.productForm = kernel.productForm;
    if (model.reads)
      info.remarks.push_back(desc.deferred ? "no read depends on it: runs when all are walked"
                                           : "runs when instances wait for a read");
    blockInfos.push_back(std::move(info));
  }
}

void Compilation::describeRuntimeKernels() {
  for (size_t i = blockInfos.size(); i < model.kernels.size(); ++i) {
    BlockInfo info;
    info.name = info.symbol = model.kernels[i].name;
    info.parts.push_back({"", {}, 1});
    info.place = model.kernels[i].source;
    blockInfos.push_back(std::move(info));
  }
}

} // namespace sheaf::driver
