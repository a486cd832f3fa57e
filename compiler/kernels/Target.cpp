//===- Target.cpp - The machine that code is made for ---------------------===//

#include "compiler/kernels/Kernels.h"
#include "runtime/error.h"
#include "runtime/tiles.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

namespace sheaf::kernels {

namespace {

/// What code may use on a processor. Nothing when LLVM does not know its name.
std::optional<Target> describe(const std::string &cpu, const std::string &features) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  Target target;
  target.cpu = cpu;
  target.features = features;
  std::string error;
  llvm::Triple triple(llvm::sys::getProcessTriple());
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    throw InternalError("no code generator for " + triple.str() + ": " + error);
  // Asked without a CPU first: for an unknown one LLVM prints warnings.
  std::unique_ptr<llvm::MCSubtargetInfo> any(llvmTarget->createMCSubtargetInfo(triple, "", ""));
  std::unique_ptr<llvm::MCSubtargetInfo> info;
  if (any && any->isCPUStringValid(target.cpu))
    info.reset(llvmTarget->createMCSubtargetInfo(triple, target.cpu, target.features));
  if (!info)
    return std::nullopt;
  target.fma = info->checkFeatures("+fma");
  target.f16 = info->checkFeatures("+f16c");
  target.bf16 = info->checkFeatures("+avx512bf16");
  target.tiles = info->checkFeatures("+amx-bf16");
  if (info->checkFeatures("+avx512f")) {
    target.lanes = 16;
    target.registers = 32;
    target.halves = cpu == "znver4";
  } else if (info->checkFeatures("+avx")) {
    target.lanes = 8;
    target.registers = 16;
  } else {
    target.lanes = 4;
    target.registers = 16;
  }
  return target;
}

} // namespace

Target detectTarget(const std::string &cpu) {
  bool host = cpu == "host";
  std::string features;
  if (host)
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") +
                  feature.first().str();
  std::optional<Target> target = describe(host ? llvm::sys::getHostCPUName().str() : cpu, features);
  if (!target)
    throw UserError("unknown CPU '" + cpu +
                    "' for --target-cpu (try host, x86-64-v4, x86-64-v3 or "
                    "x86-64-v2)");
  // What another machine's system allows is seen there, when its sessions begin.
  target->tiles = target->tiles && (!host || rt::allowTiles());
  return *target;
}

Target targetWithFeatures(const std::vector<std::string> &features) {
  std::string all;
  for (const std::string &feature : features)
    all += (all.empty() ? "+" : ",+") + feature;
  std::optional<Target> target = describe("generic", all);
  if (!target)
    throw InternalError("LLVM knows no generic processor");
  target->tiles = target->tiles && rt::allowTiles();
  return *target;
}

} // namespace sheaf::kernels
