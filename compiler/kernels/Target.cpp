//===- Target.cpp - The machine that code is made for ---------------------===//

#include "compiler/kernels/Kernels.h"
#include "runtime/error.h"
#include "runtime/tiles.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

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

/// What code may use on a processor. Nothing when LLVM knows none of that name that runs code of
/// the triple.
std::optional<Target> describe(const std::string &triple, const std::string &cpu,
                               const std::string &features) {
  initialiseTargets();
  Target target;
  target.triple = triple;
  target.cpu = cpu;
  target.features = features;
  std::string error;
  llvm::Triple parsed(triple);
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(parsed, error);
  if (!llvmTarget || (!parsed.isX86() && !parsed.isAArch64()))
    throw InternalError("no code generator for " + triple + ": " + error);
  // Asked without a CPU first: for an unknown one LLVM prints warnings.
  std::unique_ptr<llvm::MCSubtargetInfo> any(llvmTarget->createMCSubtargetInfo(parsed, "", ""));
  std::unique_ptr<llvm::MCSubtargetInfo> info;
  if (any && any->isCPUStringValid(target.cpu))
    info.reset(llvmTarget->createMCSubtargetInfo(parsed, target.cpu, target.features));
  // LLVM's names for X86 include those of processors that have no 64-bit mode.
  if (!info || (parsed.isX86() && !info->checkFeatures("+64bit")))
    return std::nullopt;
  if (parsed.isAArch64())
    describeAArch64(target);
  else
    describeX86(*info, target);
  return target;
}

std::optional<Target> describeHost() {
  std::string features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") +
                feature.first().str();
  return describe(llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(), features);
}

/// A processor by its name: of this machine's architecture, else of another.
std::optional<Target> describeNamed(const std::string &cpu) {
  if (cpu == kAnyAArch64)
    return describe(kTriples[1], "generic", "");
  std::optional<Target> target = describe(llvm::sys::getProcessTriple(), cpu, "");
  for (const char *triple : kTriples)
    if (!target)
      target = describe(triple, cpu, "");
  return target;
}

} // namespace

void initialiseTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

Target detectTarget(const std::string &cpu) {
  bool host = cpu == "host";
  std::optional<Target> target = host ? describeHost() : describeNamed(cpu);
  if (!target)
    throw UserError("unknown CPU '" + cpu +
                    "' for --target-cpu (try host, x86-64-v4, x86-64-v3, x86-64-v2 or aarch64)");
  // What another machine's system allows is seen there, when its sessions begin.
  target->tiles = target->tiles && (!host || rt::allowTiles());
  return *target;
}

Target targetWithFeatures(const std::vector<std::string> &features) {
  std::string all;
  for (const std::string &feature : features)
    all += (all.empty() ? "+" : ",+") + feature;
  std::optional<Target> target = describe(llvm::sys::getProcessTriple(), "generic", all);
  if (!target)
    throw InternalError("LLVM knows no generic processor");
  target->tiles = target->tiles && rt::allowTiles();
  return *target;
}

} // namespace sheaf::kernels
