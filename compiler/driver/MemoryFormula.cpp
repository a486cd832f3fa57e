//===- MemoryFormula.cpp - What a mini-batch takes at most ----------------===//

#include "compiler/driver/MemoryFormula.h"

#include "compiler/analysis/MemoryBound.h"
#include "compiler/driver/Pipeline.h"
#include "compiler/model/KernelInstances.h"
#include "compiler/ops/Op.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <numeric>

namespace sheaf::driver {

namespace {

passes::RecordMemory memoryOf(const kernels::Kernel &kernel) {
  auto tensors = [](const std::vector<kernels::RecordBuffer> &buffers) {
    std::vector<passes::RecordMemory::Tensor> all;
    for (const kernels::RecordBuffer &buffer : buffers)
      all.push_back({buffer.shape, kernels::bytesOf(buffer.dtype)});
    return all;
  };
  return {tensors(kernel.results), tensors(kernel.temporaries)};
}

/// Sizes that occur in sums, numbered anew.
class Sizes {
public:
  Sizes(const passes::SizeSymbols &symbols, std::vector<InstanceSize> &sizes)
      : symbols_(symbols), sizes_(sizes) {
    // Whatever may be asked for, whether anything depends on it or not.
    for (unsigned i = 0; i < symbols.all().size(); ++i)
      if (symbols[i].kind == passes::SizeSymbol::Size ||
          symbols[i].kind == passes::SizeSymbol::Calls)
        numberOf(i);
  }

  SizeSum sumOf(const passes::Bound &bound) {
    SizeSum sum;
    for (const auto &[term, factor] : bound.terms()) {
      SizeTerm &own = sum.emplace_back();
      own.factor = factor;
      for (unsigned symbol : term)
        own.sizes.push_back(numberOf(symbol));
    }
    return sum;
  }

private:
  size_t numberOf(unsigned symbol) {
    if (symbols_[symbol].kind == passes::SizeSymbol::Length)
      return numberOf(symbols_[symbol].calls);
    auto [it, isNew] = numbers_.try_emplace(symbol, sizes_.size());
    if (!isNew)
      return it->second;
    const passes::SizeSymbol &own = symbols_[symbol];
    InstanceSize &size = sizes_.emplace_back();
    size.what = own.what;
    size.place = own.place;
    size.group = own.group;
    switch (own.kind) {
    case passes::SizeSymbol::Size:
      size.kind = InstanceSize::Argument;
      break;
    case passes::SizeSymbol::Calls:
      size.kind = InstanceSize::Calls;
      break;
    default:
      size.kind = InstanceSize::Unknown;
    }
    if (!own.name.empty())
      size.names.push_back(own.name);
    for (const std::string &name : own.names)
      if (std::find(size.names.begin(), size.names.end(), name) == size.names.end())
        size.names.push_back(name);
    return it->second;
  }

  const passes::SizeSymbols &symbols_;
  std::vector<InstanceSize> &sizes_;
  std::map<unsigned, size_t> numbers_;
};

} // namespace

MemoryFormula Compilation::memoryFormula(const std::map<std::string, double> &most) const {
  mlir::ModuleOp module = *blocks;
  host::KernelInstances instances(module);
  passes::RecordingKernels recording;
  for (size_t i = 0; i < instances.recorded(); ++i)
    recording.kernels.push_back(memoryOf(kernels[kernelNumbers_[i]]));
  recording.numberOf = [&](mlir::Operation *op, llvm::StringRef role) {
    if (auto record = mlir::dyn_cast<ir::RecordOp>(op))
      return instances.of(record);
    if (auto joined = mlir::dyn_cast<ir::JoinedOp>(op))
      return instances.of(joined);
    return instances.of(op, role);
  };
  passes::MemoryBound bound = passes::boundMemory(module, options_.entry, recording, most);

  MemoryFormula formula;
  Sizes sizes(bound.symbols, formula.sizes);
  for (const auto &[number, use] : bound.use.kernels)
    formula.kernels.push_back({number, sizes.sumOf(use.records), sizes.sumOf(use.rowBytes),
                               sizes.sumOf(use.tableBytes), sizes.sumOf(use.scratch),
                               sizes.sumOf(use.largest), use.exact});
  formula.inputs = sizes.sumOf(bound.inputBytes);
  formula.grown = sizes.sumOf(bound.use.grownBytes);
  formula.heap = sizes.sumOf(bound.use.heapBytes);
  formula.frames = sizes.sumOf(bound.use.frames);
  formula.weights = uint64_t(model.paramGranules) * rt::kGranuleBytes;
  if (model.code) {
    rt::PackedBytes packed = model.code->packedBytes(model);
    formula.packed = std::accumulate(packed.always.begin(), packed.always.end(), packed.joined);
    formula.scratch = model.code->scratchBytes();
  }
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    if (!func->hasAttr(ir::kFoldedAttr))
      continue;
    passes::MemoryUseBound use = passes::boundMemory(module, func.getName(), recording).use;
    passes::Bound bytes = use.heapBytes + use.grownBytes;
    for (const auto &[number, kernel] : use.kernels)
      bytes += kernel.rowBytes + kernel.tableBytes;
    formula.folded = static_cast<uint64_t>(bytes.constant().value_or(0));
  }
  formula.frameBytes = model.frameBytes;
  formula.reads = model.reads;
  formula.usesAgain = !model.reads && !model.entry.emits;
  formula.live = sizes.sumOf(bound.use.live);
  formula.results = sizes.sumOf(bound.results);
  return formula;
}

} // namespace sheaf::driver
