//===- Features.cpp - What LLVM may use of a processor --------------------===//
#include "compiler/target/Features.h"

#include "runtime/cpu/cpu.h"
#include "runtime/model/error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"

#include <mutex>

namespace sheaf::target {

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

const llvm::Target &codeGenerator(const llvm::Triple &triple) {
  initialiseTargets();
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target || (triple.getArch() != llvm::Triple::x86_64 && !triple.isAArch64()))
    throw InternalError("no code generator for " + triple.str() + ": " + error);
  return *target;
}

const char *leastProcessor(const llvm::Triple &triple) {
  return triple.isX86() ? "x86-64" : "generic";
}

std::string featureString(const std::vector<std::string> &features) {
  std::string text;
  for (const std::string &feature : features)
    text += (text.empty() ? "+" : ",+") + feature;
  return text;
}

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(const llvm::Triple &triple,
                                                 const std::vector<std::string> &features,
                                                 const std::string &tuning) {
  const char *least = leastProcessor(triple);
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      codeGenerator(triple).createMCSubtargetInfo(triple, least, ""));
  info->setDefaultFeatures(least, tuning.empty() ? least : tuning, featureString(features));
  return info;
}

static llvm::StringSet<> enabled(const llvm::MCSubtargetInfo &info) {
  llvm::StringSet<> names;
  for (const llvm::SubtargetFeatureKV &feature : info.getEnabledProcessorFeatures())
    names.insert(feature.Key);
  return names;
}

bool isProcessor(const llvm::Triple &triple, const std::string &cpu) {
  std::unique_ptr<llvm::MCSubtargetInfo> info = subtarget(triple, {});
  if (cpu.empty() || !info->isCPUStringValid(cpu))
    return false;
  // LLVM's names for X86 include those of processors that have no 64-bit mode.
  info->setDefaultFeatures(cpu, cpu, "");
  return !triple.isX86() || info->checkFeatures("+64bit");
}

std::string tuningFor(const llvm::Triple &triple, const std::string &cpu) {
  std::string least = leastProcessor(triple);
  if (!isProcessor(triple, cpu))
    return least;
  llvm::StringSet<> tuned = enabled(*subtarget(triple, {}, cpu));
  std::unique_ptr<llvm::MCSubtargetInfo> info = subtarget(triple, {});
  llvm::StringSet<> base = enabled(*info);
  info->setDefaultFeatures(cpu, least, "");
  llvm::StringSet<> whole = enabled(*info);
  bool brings = llvm::any_of(tuned.keys(), [&](llvm::StringRef name) {
    return !base.contains(name) && whole.contains(name);
  });
  return brings ? least : cpu;
}

std::vector<std::string> featuresOf(const llvm::Triple &triple, const std::string &cpu) {
  std::unique_ptr<llvm::MCSubtargetInfo> info = subtarget(triple, {});
  info->setDefaultFeatures(cpu, cpu, "");
  llvm::StringSet<> all = enabled(*info);
  std::vector<std::string> features;
  for (std::string_view known : rt::knownFeatures(triple.getArchName()))
    if (all.contains(known))
      features.emplace_back(known);
  return withoutUnmet(triple, std::move(features));
}

std::vector<std::string> withoutUnmet(const llvm::Triple &triple,
                                      std::vector<std::string> features) {
  std::unique_ptr<llvm::MCSubtargetInfo> info = subtarget(triple, {});
  llvm::StringSet<> met = enabled(*info);
  met.insert_range(features);
  const char *least = leastProcessor(triple);
  // Each is asked for alone: together one would bring what another lacks.
  llvm::erase_if(features, [&](const std::string &name) {
    info->setDefaultFeatures(least, least, "+" + name);
    return llvm::any_of(enabled(*info).keys(),
                        [&](llvm::StringRef implied) { return !met.contains(implied); });
  });
  llvm::sort(features);
  return features;
}

} // namespace sheaf::target
