// A second back end, in the command: kernels planned for vectors of half as many lanes and as many
// registers, beside host code for this processor. It is made of what Cpu.h offers, and the command
// learns of it by the table alone. SHEAF_TARGET names what is taken instead of the default.
#include "compiler/backends/Backends.h"
#include "compiler/kernels/Backend.h"
#include "compiler/kernels/cpu/Cpu.h"
#include "tools/sheaf/hooks.h"

#include <cstdlib>

namespace sheaf::kernels {

namespace {

/// Which changes no bit: sums of a numeric class do not follow from the width of vectors.
rt::Target narrowed(rt::Target target) {
  if (target.lanes > 4) {
    target.lanes /= 2;
    target.registers = 16;
    target.halves = target.bf16 = false;
  }
  return target;
}

class NarrowGenerator final : public Generator {
public:
  explicit NarrowGenerator(const BackendOptions &options)
      : target_(narrowed(options.processor)), cpu_(cpu::generator(options, &target_)) {}

  std::string describeCode(ir::BlockOp block) const override { return cpu_->describeCode(block); }
  Kernel plan(ir::BlockOp block, const Tuning &tuning) const override {
    Kernel kernel = cpu_->plan(block, tuning);
    kernel.remarks.push_back("planned for narrow vectors");
    return kernel;
  }
  void describe(const Kernel &kernel, llvm::function_ref<uint32_t(uint32_t)> param,
                rt::Model &model, rt::KernelDesc &desc) const override {
    cpu_->describe(kernel, param, model, desc);
  }
  void setCode(rt::Model &model, size_t kernel, const void *address) const override {
    cpu_->setCode(model, kernel, address);
  }
  std::string describeLayout(const Kernel &kernel) const override {
    return cpu_->describeLayout(kernel);
  }
  std::string numerics(const rt::Model &model, bool bf16) const override {
    return cpu_->numerics(model, bf16);
  }
  void addRuntimeKernels(rt::Model &model) const override { cpu_->addRuntimeKernels(model); }
  mlir::OwningOpRef<mlir::ModuleOp> emit(llvm::ArrayRef<Kernel> kernels,
                                         mlir::MLIRContext &context) const override {
    return cpu_->emit(kernels, context);
  }
  driver::CodeModule lower(mlir::ModuleOp kernels) const override { return cpu_->lower(kernels); }
  void checkRunsHere() const override { cpu_->checkRunsHere(); }

private:
  const rt::Target target_;
  const std::unique_ptr<Generator> cpu_;
};

class NarrowBackend final : public Backend {
public:
  std::string_view name() const override { return "narrow"; }
  std::string_view description() const override { return "Half of a processor's vectors."; }
  std::string onThisMachine() const override { return "wherever cpu is"; }
  llvm::ArrayRef<Switch> switches() const override {
    static constexpr Switch all[] = {{"fuse", "as for processors"}, {"nothing", "changes nothing"}};
    return all;
  }
  std::unique_ptr<Generator> begin(const BackendOptions &options) const override {
    return std::make_unique<NarrowGenerator>(options);
  }
};

const bool added = [] {
  static const NarrowBackend narrow;
  backends::add(narrow);
  tool::changeOptions = [](driver::CompileOptions &options) {
    const char *name = std::getenv("SHEAF_TARGET");
    if (name && options.target == driver::targets().front().name)
      options.target = name;
  };
  return true;
}();

} // namespace

} // namespace sheaf::kernels
