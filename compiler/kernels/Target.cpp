//===- Target.cpp - The machine that code is made for ---------------------===//

#include "compiler/kernels/Features.h"
#include "compiler/kernels/Kernels.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/tiles.h"
#include "runtime/model/error.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace sheaf::kernels {

namespace {

/// The systems that code is made for beside this one.
constexpr const char *kTriples[] = {"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"};

/// A name of ours for any AArch64 processor: LLVM calls the least of each architecture `generic`.
constexpr llvm::StringLiteral kAnyAArch64 = "aarch64";

void describeX86(const llvm::MCSubtargetInfo &info, Target &target) {
  target.fma = info.checkFeatures("+fma");
  target.f16 = info.checkFeatures("+f16c");
  target.bf16 = info.checkFeatures("+avx512bf16");
  target.tiles = info.checkFeatures("+amx-bf16");
  if (info.checkFeatures("+avx512f")) {
    target.lanes = 16;
    target.registers = 32;
    target.halves = target.cpu == "znver4";
  } else if (info.checkFeatures("+avx")) {
    target.lanes = 8;
    target.registers = 16;
  } else {
    target.lanes = 4;
    target.registers = 16;
  }
}

/// Every processor of it has vectors of four (Advanced SIMD). What sums pairs of bf16 products
/// there (BFDOT) rounds otherwise than the chain of sums that is promised, so nothing uses it.
void describeAArch64(Target &target) {
  target.lanes = 4;
  target.registers = 32;
}

Target describe(const llvm::Triple &triple, const std::string &cpu,
                std::vector<std::string> features) {
  Target target;
  target.triple = triple.str();
  target.cpu = cpu;
  target.tuning = tuningFor(triple, cpu);
  target.features = std::move(features);
  if (triple.isAArch64())
    describeAArch64(target);
  else
    describeX86(*subtarget(triple, target.features), target);
  return target;
}

/// Nothing when LLVM knows no processor of that name that runs code of the triple.
std::optional<Target> describeNamed(const std::string &triple, const std::string &cpu) {
  llvm::Triple parsed(triple);
  if (!isProcessor(parsed, cpu))
    return std::nullopt;
  return describe(parsed, cpu, featuresOf(parsed, cpu));
}

/// A processor by its name: of this machine's architecture, else of another.
std::optional<Target> describeNamed(const std::string &cpu) {
  if (cpu == kAnyAArch64)
    return describeNamed(kTriples[1], "generic");
  std::optional<Target> target = describeNamed(llvm::sys::getProcessTriple(), cpu);
  for (const char *triple : kTriples)
    if (!target)
      target = describeNamed(triple, cpu);
  return target;
}

} // namespace

Target targetOf(const rt::Machine &machine, const std::string &cpu) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  if (std::string_view(triple.getArchName()) != machine.architecture())
    triple = llvm::Triple(kTriples[machine.architecture() == rt::kAArch64]);
  std::vector<std::string> features(machine.features().begin(), machine.features().end());
  return describe(triple, isProcessor(triple, cpu) ? cpu : leastProcessor(triple),
                  withoutUnmet(triple, std::move(features)));
}

Target detectTarget(const std::string &cpu) {
  if (cpu == "host") {
    Target target = targetOf(rt::thisMachine(), llvm::sys::getHostCPUName().str());
    target.tiles = target.tiles && rt::allowTiles();
    return target;
  }
  // What another machine's system allows is seen there, when its sessions begin.
  if (std::optional<Target> target = describeNamed(cpu))
    return *target;
  throw UserError("unknown CPU '" + cpu +
                  "' for --target-cpu (try host, x86-64-v4, x86-64-v3, x86-64-v2 or aarch64)");
}

Target targetWithFeatures(const std::vector<std::string> &features) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  Target target = describe(triple, leastProcessor(triple), features);
  target.tiles = target.tiles && rt::allowTiles();
  return target;
}

} // namespace sheaf::kernels
