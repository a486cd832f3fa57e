//===- Target.cpp - The machine that code is made for ---------------------===//
#include "compiler/target/Target.h"

#include "compiler/target/Caches.h"
#include "compiler/target/Features.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/tiles.h"
#include "runtime/model/error.h"

#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <optional>

namespace sheaf::target {

namespace {

/// The systems that code is made for beside this one.
constexpr const char *kTriples[] = {"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"};

/// A name of ours for any AArch64 processor: LLVM calls the least of each architecture `generic`.
constexpr llvm::StringLiteral kAnyAArch64 = "aarch64";

llvm::Triple tripleOf(std::string_view architecture) {
  llvm::Triple here(llvm::sys::getProcessTriple());
  return std::string_view(here.getArchName()) == architecture
             ? here
             : llvm::Triple(kTriples[architecture == rt::kAArch64]);
}

rt::Target describe(const llvm::Triple &triple, const std::string &cpu,
                    std::vector<std::string> features) {
  rt::Target target;
  target.architecture = triple.getArchName();
  target.cpu = cpu;
  target.tuning = tuningFor(triple, cpu);
  target.features = std::move(features);
  target.derive();
  target.caches = target.defaultCaches();
  return target;
}

/// Nothing when LLVM knows no processor of that name that runs code of the triple.
std::optional<rt::Target> describeNamed(const std::string &triple, const std::string &cpu) {
  llvm::Triple parsed(triple);
  if (!isProcessor(parsed, cpu))
    return std::nullopt;
  return describe(parsed, cpu, featuresOf(parsed, cpu));
}

/// A processor by its name: of this machine's architecture, else of another.
std::optional<rt::Target> describeNamed(const std::string &cpu) {
  if (cpu == kAnyAArch64)
    return describeNamed(kTriples[1], "generic");
  std::optional<rt::Target> target = describeNamed(llvm::sys::getProcessTriple(), cpu);
  for (const char *triple : kTriples)
    if (!target)
      target = describeNamed(triple, cpu);
  return target;
}

/// Those that are known.
void take(rt::CacheSizes &caches, const rt::CacheSizes &known) {
  if (known.l1 > 0)
    caches.l1 = known.l1;
  if (known.l2 > 0)
    caches.l2 = known.l2;
}

/// What keeps the target's code from running here: empty when nothing does.
std::string obstacle(const rt::Target &target) {
  if (target.architecture != rt::kArchitecture)
    return std::string("which is ") + rt::kArchitecture + ", not " + target.architecture;
  std::optional<std::string> feature = rt::missingFeature(target.features);
  return feature ? "which has no " + *feature : "";
}

} // namespace

llvm::Triple tripleOf(const rt::Target &target) { return tripleOf(target.architecture); }

rt::Target ofMachine(const rt::Machine &machine, const std::string &cpu) {
  llvm::Triple triple = tripleOf(machine.architecture());
  std::vector<std::string> features(machine.features().begin(), machine.features().end());
  return describe(triple, isProcessor(triple, cpu) ? cpu : leastProcessor(triple),
                  withoutUnmet(triple, std::move(features)));
}

rt::Target detect(const std::string &cpu, rt::CacheSizes given) {
  if (cpu == "host") {
    rt::Target target = ofMachine(rt::thisMachine(), llvm::sys::getHostCPUName().str());
    target.tiles = target.tiles && rt::allowTiles();
    take(target.caches, cachesOfThisMachine());
    take(target.caches, given);
    return target;
  }
  // What another machine's system allows is seen there, when its sessions begin.
  if (std::optional<rt::Target> target = describeNamed(cpu)) {
    take(target->caches, given);
    return *target;
  }
  throw UserError("unknown CPU '" + cpu +
                  "' for --target-cpu (try host, x86-64-v4, x86-64-v3, x86-64-v2 or aarch64)");
}

void checkRunsHere(const rt::Target &target) {
  if (std::string why = obstacle(target); !why.empty())
    throw UserError("code for CPU '" + target.cpu + "' cannot run on this machine, " + why);
}

bool runsHere(const rt::Target &target) { return obstacle(target).empty(); }

} // namespace sheaf::target
