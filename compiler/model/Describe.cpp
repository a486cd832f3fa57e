//===- Describe.cpp - A program with blocks as rt::Model ------------------===//
#include "compiler/model/Describe.h"

#include "compiler/kernels/Backend.h"
#include "compiler/model/Demand.h"
#include "compiler/model/Gradients.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace sheaf::host {

namespace {

/// The number of a parameter in the model, by its name.
class ParamNumbers {
public:
  explicit ParamNumbers(llvm::ArrayRef<rt::ParamDesc> params) {
    for (auto [number, param] : llvm::enumerate(params))
      numbers_[param.name] = static_cast<uint32_t>(number);
  }
  uint32_t of(mlir::FlatSymbolRefAttr param) const { return numbers_.at(param.getValue().str()); }

private:
  std::map<std::string, uint32_t> numbers_;
};

using KernelOf = llvm::DenseMap<mlir::Operation *, const kernels::Kernel *>;

KernelOf kernelsByBlock(llvm::ArrayRef<kernels::Kernel> kernels) {
  KernelOf kernelOf;
  for (const kernels::Kernel &kernel : kernels) {
    ir::BlockOp block = kernel.block;
    kernelOf[block.getOperation()] = &kernel;
  }
  return kernelOf;
}

rt::KernelDesc describeKernel(const KernelInstance &instance, const kernels::Kernel &kernel) {
  rt::KernelDesc desc;
  desc.layout = kernel.layout;
  desc.phase = instance.phase;
  desc.family = instance.family;
  desc.joined = instance.joined;
  desc.words = 0;
  for (const rt::RecordWord &word : desc.layout)
    desc.words += word.words();
  desc.temporaries = !kernel.temporaries.empty();
  desc.flop = kernel.flop;
  desc.bytes = kernel.bytes;
  desc.results = recordResults(kernel);
  desc.resultRows = recordResultRows(kernel);
  return desc;
}

void describeGradients(const DescribedProgram &program, const KernelOf &kernelOf,
                       const ParamNumbers &params, rt::Model &model) {
  llvm::ArrayRef<KernelInstance> instances = program.instances.all();
  model.gradients.resize(program.instances.recorded());
  for (unsigned i = 0; i < program.instances.recorded(); ++i) {
    std::optional<unsigned> back = program.instances.backwardOf(i);
    if (!back)
      continue;
    ir::BlockOp block = instances[i].block, backward = instances[*back].block;
    std::vector<uint32_t> weights;
    for (mlir::FlatSymbolRefAttr weight : instances[i].weights)
      weights.push_back(params.of(weight));
    model.gradients[i] = describeGradient(*kernelOf.at(block.getOperation()),
                                          *kernelOf.at(backward.getOperation()), weights);
    model.gradients[i].kernel = *back;
    backward.getBody().walk([&](ir::ApplyOp apply) {
      for (mlir::Type type : apply.getOperandTypes())
        model.f16 |= mlir::getElementTypeOrSelf(type).isF16();
    });
  }
}

} // namespace

std::vector<size_t> describeProgram(const DescribedProgram &program, rt::Model &model) {
  ModelTypes types = describeEntry(program.blocks, program.entry);
  ParamLayout layout = layoutParams(program.blocks);
  model.types = std::move(types.types);
  model.entry = std::move(types.entry);
  model.params = std::move(layout.params);
  model.paramGranules = layout.granules;
  model.depthBits = rt::depthBits(program.instances.phases());
  model.training = program.training;

  ParamNumbers params(model.params);
  KernelOf kernelOf = kernelsByBlock(program.kernels);
  std::vector<size_t> numbers;
  for (const KernelInstance &instance : program.instances.all()) {
    ir::BlockOp block = instance.block;
    const kernels::Kernel &kernel = *kernelOf.at(block.getOperation());
    numbers.push_back(static_cast<size_t>(&kernel - program.kernels.data()));
    rt::KernelDesc desc = describeKernel(instance, kernel);
    program.generator.describe(
        kernel, [&](uint32_t weight) { return params.of(instance.weights.at(weight)); }, model,
        desc);
    model.kernels.push_back(std::move(desc));
  }
  if (program.training)
    describeGradients(program, kernelOf, params, model);
  mlir::ModuleOp blocks = program.blocks;
  for (auto func : blocks.getOps<mlir::func::FuncOp>())
    if (auto folded = func->getAttrOfType<mlir::ArrayAttr>(ir::kFoldedAttr))
      for (auto param : folded.getAsRange<mlir::FlatSymbolRefAttr>())
        model.folded.push_back(params.of(param));
  return numbers;
}

void describeHost(const DescribedProgram &program, const HostFacts &facts, rt::Model &model) {
  model.messages = facts.messages;
  model.messageColumns = facts.messageColumns;
  model.chainedLists = facts.chainedLists;
  model.reads = model.furtherStacks = facts.reads;
  model.readPlaces = facts.readPlaces;
  if (!model.reads)
    return;
  model.roots = describeRoots(program.blocks, facts.roots, model.types);
  model.rootsHoldAll = true;
  std::vector<bool> demanded = demandedKernels(program.blocks, program.instances);
  for (auto [kernel, isDemanded] : llvm::zip(model.kernels, demanded))
    kernel.deferred = !isDemanded;
}

} // namespace sheaf::host
