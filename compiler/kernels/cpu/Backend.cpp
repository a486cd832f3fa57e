//===- Backend.cpp - The back end for processors --------------------------===//

#include "compiler/kernels/Backend.h"

#include "compiler/kernels/cpu/Cpu.h"
#include "compiler/kernels/cpu/Dispatch.h"
#include "compiler/target/Target.h"
#include "runtime/cpu/native.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <fmt/format.h>

using namespace mlir;

namespace sheaf::kernels::cpu {

llvm::ArrayRef<Switch> switches() {
  static constexpr Switch all[] = {
      {"fuse", "computes operators of a block in registers, one after the other"},
      {"merge", "computes products over the same input as one"},
      {"panels", "packs weights into panels for the register tile"},
      {kSerpentineSwitch, "walks weights last panel to first at every other launch"},
      {"lying-operands",
       "one row reads a right operand where it lies, not with rows for columns or rounded first"},
      {"flat-rows", "products run over the rows of all records, not record by record"},
      {"pack-matrices", "packs operands of large products of the instances' own matrices"},
      {"row-blocks",
       "scores, and what is made of them row by row, are there for a few rows at a time"},
      {"skip-unseen", "of these rows only columns that the mask lets one of them see are computed"},
      {"share-temporaries", "temporaries of a kernel that never live at once share memory"},
      {kGeneratedSwitch, "generated code computes products that a library would take as well",
       true},
      {"onednn", "oneDNN may compute products (--numeric-class any)", true},
      {"libxsmm", "libxsmm may compute products (--numeric-class any)", true},
      {"openblas", "OpenBLAS may compute products (--numeric-class any)", true},
  };
  return all;
}

std::string describeCode(ir::BlockOp block, const rt::Target &target,
                         const std::set<std::string> &without, NumericClass numericClass) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << target.architecture << ' ' << target.cpu << ' ' << llvm::join(target.features, ",") << ' '
      << target.lanes << ' ' << target.registers << ' ' << target.fma << target.f16 << target.bf16
      << target.tiles << ' ' << target.caches.l1 << ' ' << target.caches.l2;
  for (const Switch &entry : switches())
    if (without.contains(std::string(entry.name)))
      out << " without " << entry.name;
  out << describeLibraries(numericClass);
  out << '\n';
  OwningOpRef<ir::BlockOp> unnamed(block.clone());
  unnamed->setSymName("block");
  unnamed->print(out, OpPrintingFlags().useLocalScope());
  return text;
}

namespace {

/// Kernels for a processor, which need not be that of the host code.
class CpuGenerator final : public Generator {
public:
  CpuGenerator(const BackendOptions &options, const rt::Target *own)
      : options_(options), target_(own ? *own : options.processor) {
    if (own)
      compiler_ = std::make_shared<const driver::CompilerFactory>(driver::compilersFor(*own));
  }

  std::string describeCode(ir::BlockOp block) const override {
    return cpu::describeCode(block, target_, options_.without, options_.numericClass);
  }
  Kernel plan(ir::BlockOp block, const Tuning &tuning) const override {
    return planKernel(block, target_, options_.without, tuning, options_.numericClass);
  }

  void describe(const Kernel &kernel, llvm::function_ref<uint32_t(uint32_t)> param,
                rt::Model &model, rt::KernelDesc &desc) const override {
    const KernelCode &planned = codeOf(kernel);
    rt::CpuKernel code = planned;
    for (rt::WeightUse &use : code.weights) {
      if (use.kind == rt::WeightUse::Raw)
        use.param = param(use.param);
      for (rt::PackView &view : use.views)
        for (rt::PackSegment &segment : view.segments)
          segment.param = param(segment.param);
    }
    desc.weights = rt::weightReads(code, model.params);
    rt::CpuCode &all = rt::cpuCode(model);
    all.tiles |= planned.tiles;
    all.kernels.push_back(std::move(code));
  }
  void setCode(rt::Model &model, size_t kernel, const void *address) const override {
    rt::cpuCode(model).kernels[kernel].fn =
        reinterpret_cast<rt::KernelFn>(const_cast<void *>(address));
  }
  std::string describeLayout(const Kernel &kernel) const override;
  std::string numerics(const rt::Model &model, bool bf16) const override {
    std::string products = target_.fma ? "fma" : "multiply-add";
    if (bf16)
      products += rt::cpuCode(model).tiles ? ", bf16 tiles" : ", bf16 pairs";
    return products;
  }
  void addRuntimeKernels(rt::Model &model) const override {
    rt::addNativeKernels(model, target_.fma, !options_.without.contains(kSerpentineSwitch));
  }

  OwningOpRef<ModuleOp> emit(llvm::ArrayRef<Kernel> kernels, MLIRContext &context) const override {
    return emitKernels(kernels, target_, context);
  }
  driver::CodeModule lower(ModuleOp kernels) const override {
    driver::CodeModule code;
    code.context = std::make_unique<llvm::LLVMContext>();
    code.module = lowerKernels(kernels, target_, *code.context);
    code.compiler = compiler_;
    return code;
  }

  void checkRunsHere() const override { target::checkRunsHere(target_); }

private:
  const BackendOptions options_;
  const rt::Target &target_;
  std::shared_ptr<const driver::CompilerFactory> compiler_; ///< null: that of host code
};

std::string CpuGenerator::describeLayout(const Kernel &kernel) const {
  const KernelCode &code = codeOf(kernel);
  std::string text =
      fmt::format("{} bytes of scratch a thread, {} panels\n", code.scratchBytes, code.panels);
  for (const rt::WeightUse &use : code.weights)
    text += use.kind == rt::WeightUse::Raw ? "weight: as it is\n"
            : use.kind == rt::WeightUse::Foreign
                ? fmt::format("weight: {} columns in the form of {}, {} views\n", use.width,
                              use.library->name, use.views.size())
                : fmt::format("weight: {} columns in panels of {} x {} lanes, {} views\n",
                              use.width, use.vectors, use.lanes, use.views.size());
  return text;
}

class CpuBackend final : public Backend {
public:
  std::string_view name() const override { return "cpu"; }
  std::string_view description() const override {
    return "Processors, x86-64 and AArch64; --target-cpu says which.";
  }
  std::string onThisMachine() const override {
    rt::Target target = target::detect("host");
    return fmt::format("{}, {} f32 a vector, {} vector registers", target.cpu, target.lanes,
                       target.registers);
  }
  llvm::ArrayRef<Switch> switches() const override { return cpu::switches(); }
  std::unique_ptr<Generator> begin(const BackendOptions &options) const override {
    return generator(options, nullptr);
  }
};

} // namespace

std::unique_ptr<Generator> generator(const BackendOptions &options, const rt::Target *own) {
  return std::make_unique<CpuGenerator>(options, own);
}

const Backend &backend() {
  static const CpuBackend backend;
  return backend;
}

} // namespace sheaf::kernels::cpu
