//===- Target.cpp - The machine that code is made for ---------------------===//

#include "compiler/kernels/Kernels.h"
#include "runtime/error.h"
#include "runtime/tiles.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

namespace sheaf::kernels {

Target detectTarget(const std::string &cpu) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  Target target;
  target.cpu = cpu == "host" ? llvm::sys::getHostCPUName().str() : cpu;
  if (cpu == "host")
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      target.features += (target.features.empty() ? "" : ",") +
                         std::string(feature.second ? "+" : "-") + feature.first().str();

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
    throw UserError("unknown CPU '" + cpu +
                    "' for --target-cpu (try host, x86-64-v4, x86-64-v3 or "
                    "x86-64-v2)");

  target.fma = info->checkFeatures("+fma");
  target.f16 = info->checkFeatures("+f16c");
  target.bf16 = info->checkFeatures("+avx512bf16");
  // What another machine's system allows is seen there, when its sessions begin.
  target.tiles = info->checkFeatures("+amx-bf16") && (cpu != "host" || rt::allowTiles());
  if (info->checkFeatures("+avx512f")) {
    target.lanes = 16;
    target.registers = 32;
  } else if (info->checkFeatures("+avx")) {
    target.lanes = 8;
    target.registers = 16;
  } else {
    target.lanes = 4;
    target.registers = 16;
  }
  return target;
}

} // namespace sheaf::kernels
