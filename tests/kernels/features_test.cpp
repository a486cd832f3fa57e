// What LLVM is given of a processor, over every processor and feature that it names, on machines
// that are made up of what cpuid says, or of Linux' words for AArch64: never more than a machine
// can be asked for, and for a machine itself never more than it has.
#include "compiler/target/Caches.h"
#include "compiler/target/Features.h"
#include "compiler/target/Target.h"
#include "runtime/cpu/cpu.h"
#include "runtime/model/error.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/AArch64TargetParser.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

using namespace sheaf;

namespace {

using Names = std::set<std::string>;

struct Leaf {
  uint32_t leaf, subleaf;
  std::array<uint32_t, 4> registers; ///< EAX, EBX, ECX, EDX
};

struct X86Host {
  const char *name;
  uint64_t xcr0;
  std::vector<Leaf> leaves;
};

/// As Intel's processors answer: beyond the last leaf with that one, to what they lack with zeros.
rt::Machine machineOf(const X86Host &host) {
  auto find = [&](uint32_t leaf, uint32_t subleaf) -> std::array<uint32_t, 4> {
    for (const Leaf &entry : host.leaves)
      if (entry.leaf == leaf && entry.subleaf == subleaf)
        return entry.registers;
    return {};
  };
  auto cpuid = [&](uint32_t leaf, uint32_t subleaf) {
    uint32_t first = leaf & 0x80000000, last = find(first, 0)[0];
    return leaf <= last || first ? find(leaf, subleaf) : find(last, subleaf);
  };
  return rt::Machine::x86_64(cpuid, [&] { return host.xcr0; });
}

constexpr Leaf intel(uint32_t last) { return {0, 0, {last, 0x756e6547, 0x6c65746e, 0x49656e69}}; }
constexpr Leaf amd(uint32_t last) { return {0, 0, {last, 0x68747541, 0x444d4163, 0x69746e65}}; }
constexpr uint64_t kSse = 0x3, kAvx = 0x7, kAvx512 = 0x2e7, kAmx = 0x602e7, kApx = 0xe02e7;

const X86Host kGraniteRapids = {"Granite Rapids",
                                kAmx,
                                {intel(0x24),
                                 {1, 0, {0x000a06d1, 0, 0x7ffefbff, 0xbfebfbff}},
                                 {7, 0, {2, 0xf3bfbfef, 0xfb417fee, 0xffdd4432}},
                                 {7, 1, {0x00201c30, 0, 0, 0x00084000}},
                                 {0xd, 0, {0x000602e7, 0x2b00, 0x2b00, 0}},
                                 {0x1e, 0, {0, 0x4010, 0, 0}},
                                 {0x24, 0, {0, 0x00070001, 0, 0}},
                                 {0x80000000, 0, {0x80000008, 0, 0, 0}},
                                 {0x80000001, 0, {0, 0, 0x00000121, 0x2c100800}}}};
/// The same as a hypervisor shows it that knows no AMX: as family 6, model 167.
const X86Host kWithoutAmx = {"a hypervisor that hides AMX",
                             kAvx512,
                             {intel(0x24),
                              {1, 0, {0x000a0671, 0, 0xfffefbff, 0xbfebfbff}},
                              {7, 0, {2, 0xf3bfbfef, 0xfb417fee, 0xfc9d4432}},
                              {7, 1, {0x00001c30, 0, 0, 0x00084000}},
                              {0x24, 0, {0, 0x00070001, 0, 0}},
                              {0x80000000, 0, {0x80000008, 0, 0, 0}},
                              {0x80000001, 0, {0, 0, 0x00000121, 0x2c100800}}}};
/// It hides a part of AVX10, but neither its bit nor its version.
const X86Host kWithoutFp16 = {"a hypervisor that hides half precision",
                              kAvx512,
                              {intel(0x24),
                               {1, 0, {0x000a0671, 0, 0xfffefbff, 0xbfebfbff}},
                               {7, 0, {2, 0xf3bfbfef, 0xfb417fee, 0xfc1d4432}},
                               {7, 1, {0x00001c30, 0, 0, 0x00084000}},
                               {0x24, 0, {0, 0x00070001, 0, 0}},
                               {0x80000000, 0, {0x80000008, 0, 0, 0}},
                               {0x80000001, 0, {0, 0, 0x00000121, 0x2c100800}}}};
/// It ends at leaf 0xd, but leaves the bit of AVX10. What stands in the last leaf is no version.
const X86Host kFewLeaves = {"a hypervisor that hides leaves",
                            kAmx,
                            {intel(0xd),
                             {1, 0, {0x000a06d1, 0, 0xfffefbff, 0xbfebfbff}},
                             {7, 0, {0, 0xf3bfbfef, 0xfb417fee, 0xffdd4432}},
                             {7, 1, {0x00201c30, 0, 0, 0x00084000}},
                             {0xd, 0, {0x000602e7, 0x2b00, 0x2b00, 0}},
                             {0xd, 1, {0x1f, 0x2b00, 0, 0}},
                             {0x80000000, 0, {0x80000008, 0, 0, 0}},
                             {0x80000001, 0, {0, 0, 0x00000121, 0x2c100800}}}};
/// A system that does not save the registers of AVX.
const X86Host kOldSystem = {"a system without AVX", kSse, kGraniteRapids.leaves};
const X86Host kDiamondRapids = {"Diamond Rapids",
                                kApx,
                                {intel(0x24),
                                 {1, 0, {0x00400f10, 0, 0x7ffefbff, 0xbfebfbff}},
                                 {7, 0, {2, 0xf3bfbfef, 0xfb417fee, 0xffdd4432}},
                                 {7, 1, {0x80a01cb7, 0, 0, 0x00284530}},
                                 {0x1e, 0, {1, 0x4010, 0, 0}},
                                 {0x1e, 1, {0x000001df, 0, 0, 0}},
                                 {0x24, 0, {0, 0x00070002, 0, 0}},
                                 {0x80000000, 0, {0x80000008, 0, 0, 0}},
                                 {0x80000001, 0, {0, 0, 0x00000121, 0x2c100800}}}};
const X86Host kZen5 = {"Zen 5",
                       kAvx512,
                       {amd(0x10),
                        {1, 0, {0x00b00f21, 0, 0x7efa320b, 0x178bfbff}},
                        {7, 0, {1, 0xf1bf97a9, 0x00405fce, 0x10000110}},
                        {7, 1, {0x00000030, 0, 0, 0}},
                        {0x80000000, 0, {0x80000028, 0, 0, 0}},
                        {0x80000001, 0, {0, 0, 0x75c237ff, 0x2fd3fbff}}}};
const X86Host kPiledriver = {"family 15h, Piledriver",
                             kAvx,
                             {amd(0xd),
                              {1, 0, {0x00600f20, 0, 0x3e98320b, 0x178bfbff}},
                              {7, 0, {0, 0x00000008, 0, 0}},
                              {0x80000000, 0, {0x8000001e, 0, 0, 0}},
                              {0x80000001, 0, {0, 0, 0x01ebbfff, 0x2fd3fbff}}}};
/// With products of FMA4 only.
const X86Host kBulldozer = {"family 15h, Bulldozer",
                            kAvx,
                            {amd(0xd),
                             {1, 0, {0x00600f12, 0, 0x1e98220b, 0x178bfbff}},
                             {0x80000000, 0, {0x8000001e, 0, 0, 0}},
                             {0x80000001, 0, {0, 0, 0x01c9bfff, 0x2fd3fbff}}}};
const X86Host kGoldmont = {"an Atom without AVX",
                           kSse,
                           {intel(0x15),
                            {1, 0, {0x000506c9, 0, 0x4ff8ebbf, 0xbfebfbff}},
                            {7, 0, {0, 0x2294e283, 0, 0}},
                            {0x80000000, 0, {0x80000008, 0, 0, 0}},
                            {0x80000001, 0, {0, 0, 0x00000101, 0x2c100800}}}};
/// The last leaf has bits where leaf 7 would have AVX-512.
const X86Host kWestmere = {"before leaf 0xd",
                           0,
                           {intel(0x6),
                            {1, 0, {0x000206c2, 0, 0x029ee3ff, 0xbfebfbff}},
                            {6, 0, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
                            {0x80000000, 0, {0x80000008, 0, 0, 0}},
                            {0x80000001, 0, {0, 0, 0x00000001, 0x2c100800}}}};

const X86Host *const x86Hosts[] = {&kGraniteRapids, &kWithoutAmx,    &kWithoutFp16, &kFewLeaves,
                                   &kOldSystem,     &kDiamondRapids, &kZen5,        &kPiledriver,
                                   &kBulldozer,     &kGoldmont,      &kWestmere};

struct AArch64Host {
  const char *name;
  uint64_t hwcap, hwcap2;
};
const AArch64Host aarch64Hosts[] = {
    {"Cortex-A53", 0xff, 0},
    {"Neoverse N1", 0x119fff, 0},
    {"Neoverse V1", 0xefffffff, 0x1f3ff},
    {"Neoverse V2 whose vectors of any length are hidden", 0xefbfffff & ~(1u << 22), 0x1c181},
    {"all bits", ~uint64_t(0), ~uint64_t(0)},
    {"no bits", 0, 0},
};

std::vector<std::pair<std::string, rt::Machine>> madeUpMachines() {
  std::vector<std::pair<std::string, rt::Machine>> all;
  for (const X86Host *host : x86Hosts)
    all.emplace_back(host->name, machineOf(*host));
  for (const AArch64Host &host : aarch64Hosts)
    all.emplace_back(host.name, rt::Machine::aarch64(host.hwcap, host.hwcap2));
  std::mt19937 random(1);
  for (int i = 0; i < 24; ++i) {
    // Any bits at all: each with a chance of one half, three quarters, or one quarter.
    auto any = [&] {
      auto a = static_cast<uint32_t>(random()), b = static_cast<uint32_t>(random());
      return i % 3 == 0 ? a : i % 3 == 1 ? a | b : a & b;
    };
    X86Host host{"", any() | uint64_t(any()) << 32, {{0, 0, {0x24, 0, 0, 0}}}};
    host.leaves.push_back({0x80000000, 0, {0x80000008, 0, 0, 0}});
    for (auto [leaf, subleaf] :
         {std::pair(1u, 0u), {7u, 0u}, {7u, 1u}, {0x1eu, 1u}, {0x24u, 0u}, {0x80000001u, 0u}})
      host.leaves.push_back({leaf, subleaf, {any(), any(), any(), any()}});
    all.emplace_back("random " + std::to_string(i), machineOf(host));
    all.emplace_back(
        "random words " + std::to_string(i),
        rt::Machine::aarch64(any() | uint64_t(any()) << 32, any() | uint64_t(any()) << 32));
  }
  return all;
}

llvm::Triple tripleOf(std::string_view architecture) {
  return llvm::Triple(std::string(architecture) + "-unknown-linux-gnu");
}

std::vector<std::string> processors(const llvm::Triple &triple) {
  std::vector<std::string> names = {"", "a name that LLVM does not know"};
  for (const llvm::SubtargetSubTypeKV &cpu :
       target::subtarget(triple, {})->getAllProcessorDescriptions())
    names.emplace_back(cpu.Key);
  return names;
}

Names enabled(const llvm::MCSubtargetInfo &info) {
  Names names;
  for (const llvm::SubtargetFeatureKV &feature : info.getEnabledProcessorFeatures())
    names.insert(feature.Key);
  return names;
}

/// What LLVM calls part of an instruction set, and not of tuning.
Names instructionSets(const llvm::Triple &triple) {
  Names names;
  if (triple.isAArch64()) {
    for (const llvm::AArch64::ExtensionInfo &extension : llvm::AArch64::Extensions)
      if (extension.PosTargetFeature.starts_with("+"))
        names.insert(extension.PosTargetFeature.drop_front().str());
    return names;
  }
  llvm::SmallVector<llvm::StringRef> cpus, features;
  llvm::X86::fillValidCPUArchList(cpus, /*Only64Bit=*/true);
  for (llvm::StringRef cpu : cpus)
    llvm::X86::getFeaturesForCPU(cpu, features);
  for (llvm::StringRef feature : features)
    names.insert(feature.str());
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    names.insert(feature.first().str());
  return names;
}

std::string list(const Names &names) {
  std::string text;
  for (const std::string &name : names)
    text += " " + name;
  return text;
}

Names difference(const Names &a, const Names &b) {
  Names rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(rest, rest.end()));
  return rest;
}

Names namesOf(const auto &range) { return Names(range.begin(), range.end()); }

/// LLVM's code generators use these on demand only, by intrinsics that nothing here calls, or they
/// are of the system; APX, whose registers a system must save, is left alone.
const Names kOnDemandX86 = {
    "aes",         "ccmp",   "cf",        "cldemote", "clflushopt", "clwb",      "clzero",
    "cmpccxadd",   "crc32",  "egpr",      "enqcmd",   "fsgsbase",   "hreset",    "invpcid",
    "kl",          "lwp",    "movdir64b", "movdiri",  "movrs",      "mwaitx",    "ndd",
    "nf",          "pclmul", "pconfig",   "pku",      "ppx",        "prefetchi", "ptwrite",
    "push2pop2",   "raoint", "rdpid",     "rdpru",    "rdrnd",      "rdseed",    "rtm",
    "serialize",   "sgx",    "sha",       "sha512",   "shstk",      "sm3",       "sm4",
    "tsxldtrk",    "uintr",  "usermsr",   "vaes",     "vpclmulqdq", "waitpkg",   "wbnoinvd",
    "widekl",      "xsave",  "xsavec",    "xsaveopt", "xsaves",     "zu",        "avx10.1-512",
    "avx10.2-512", "evex512"};
/// The same of AArch64. What streaming vectors and matrices have, what came after 2022, and the
/// exclusive or of three are left alone.
const Names kOnDemandAArch64 = {"aes",
                                "am",
                                "amvs",
                                "brbe",
                                "bti",
                                "btie",
                                "ccdp",
                                "ccidx",
                                "ccpp",
                                "chk",
                                "clrbhb",
                                "cmh",
                                "cmpbr",
                                "cpa",
                                "crypto",
                                "d128",
                                "dit",
                                "ecv",
                                "ete",
                                "f16f32dot",
                                "f16f32mm",
                                "f16mm",
                                "f32mm",
                                "f64mm",
                                "f8f16mm",
                                "f8f32mm",
                                "faminmax",
                                "fgt",
                                "fp8",
                                "fp8dot2",
                                "fp8dot4",
                                "fp8fma",
                                "fpac",
                                "fprcvt",
                                "gcie",
                                "gcs",
                                "hbc",
                                "hcx",
                                "ite",
                                "lor",
                                "ls64",
                                "lscp",
                                "lse128",
                                "lsfe",
                                "lsui",
                                "lut",
                                "mec",
                                "mops-go",
                                "mpam",
                                "mpamv2",
                                "mte",
                                "mtetc",
                                "nmi",
                                "nv",
                                "occmo",
                                "pan",
                                "pan-rwv",
                                "pauth",
                                "pauth-lr",
                                "pcdphint",
                                "perfmon",
                                "poe2",
                                "pops",
                                "predres",
                                "prfm-slc-target",
                                "rand",
                                "ras",
                                "rasv2",
                                "rme",
                                "sb",
                                "sel2",
                                "sha2",
                                "sha3",
                                "sm4",
                                "sme",
                                "sme-b16b16",
                                "sme-f16f16",
                                "sme-f64f64",
                                "sme-f8f16",
                                "sme-f8f32",
                                "sme-fa64",
                                "sme-i16i64",
                                "sme-lutv2",
                                "sme-mop4",
                                "sme-tmop",
                                "sme2",
                                "sme2p1",
                                "sme2p2",
                                "sme2p3",
                                "spe",
                                "spe-eef",
                                "specres2",
                                "specrestrict",
                                "ssbs",
                                "ssve-aes",
                                "ssve-bitperm",
                                "ssve-fexpa",
                                "ssve-fp8dot2",
                                "ssve-fp8dot4",
                                "ssve-fp8fma",
                                "sve-aes",
                                "sve-aes2",
                                "sve-b16b16",
                                "sve-b16mm",
                                "sve-bfscale",
                                "sve-bitperm",
                                "sve-f16f32mm",
                                "sve-sha3",
                                "sve-sm4",
                                "sve2-aes",
                                "sve2-bitperm",
                                "sve2-sha3",
                                "sve2-sm4",
                                "sve2p2",
                                "sve2p3",
                                "tev",
                                "the",
                                "tlb-rmi",
                                "tlbid",
                                "tlbiw",
                                "tracev8.4",
                                "trbe",
                                "uaops",
                                "vh",
                                "wfxt",
                                "xs"};

TEST(Features, EveryNameOfLlvmHasARowOrIsUsedOnDemandOnly) {
  for (std::string_view architecture : {rt::kX86_64, rt::kAArch64}) {
    llvm::Triple triple = tripleOf(architecture);
    Names rest = difference(instructionSets(triple), namesOf(rt::knownFeatures(architecture)));
    rest = difference(rest, enabled(*target::subtarget(triple, {})));
    rest = difference(rest, triple.isAArch64() ? kOnDemandAArch64 : kOnDemandX86);
    EXPECT_TRUE(rest.empty()) << "runtime/cpu/cpu_tables.cpp has no row for" << list(rest)
                              << " of LLVM's; are they used on demand only?";
  }
}

TEST(Features, EveryRowIsAFeatureOfLlvm) {
  for (std::string_view architecture : {rt::kX86_64, rt::kAArch64}) {
    llvm::Triple triple = tripleOf(architecture);
    Names known;
    for (const llvm::SubtargetFeatureKV &feature :
         target::subtarget(triple, {})->getAllProcessorFeatures())
      known.insert(feature.Key);
    EXPECT_EQ(list(difference(namesOf(rt::knownFeatures(architecture)), known)), "");
  }
}

/// Whatever LLVM calls the processor, a machine is asked for nothing that it lacks.
TEST(Features, AMachineHasWhatItsCodeUses) {
  for (const auto &[name, machine] : madeUpMachines()) {
    llvm::Triple triple = tripleOf(machine.architecture());
    // The least processor of LLVM's stands for every one that runs 64-bit code.
    Names base = enabled(*target::subtarget(triple, {}));
    Names had = namesOf(machine.features()), sets = instructionSets(triple);
    for (const std::string &cpu : processors(triple)) {
      rt::Target target = target::ofMachine(machine, cpu);
      EXPECT_FALSE(rt::missingFeature(target.features, machine)) << name << " as " << cpu;
      Names used = enabled(*target::subtarget(triple, target.features, target.tuning));
      Names beyond = difference(difference(used, base), had);
      std::erase_if(beyond, [&](const std::string &feature) { return !sets.contains(feature); });
      EXPECT_TRUE(beyond.empty()) << name << " as " << cpu << ":" << list(beyond);
      EXPECT_EQ(list(difference(namesOf(target.features), used)), "") << name << " as " << cpu;
    }
  }
}

/// Code for a processor by its name asks a machine for nothing that it cannot be asked for.
TEST(Features, ProcessorsByNameUseWhatMachinesCanBeAskedFor) {
  for (std::string_view architecture : {rt::kX86_64, rt::kAArch64}) {
    llvm::Triple triple = tripleOf(architecture);
    Names known = namesOf(rt::knownFeatures(architecture)), sets = instructionSets(triple);
    Names base = enabled(*target::subtarget(triple, {}));
    for (const std::string &cpu : processors(triple)) {
      if (!target::isProcessor(triple, cpu))
        continue;
      std::vector<std::string> features = target::featuresOf(triple, cpu);
      Names used = enabled(*target::subtarget(triple, features, target::tuningFor(triple, cpu)));
      Names beyond = difference(difference(used, base), known);
      std::erase_if(beyond, [&](const std::string &feature) { return !sets.contains(feature); });
      EXPECT_TRUE(beyond.empty()) << cpu << ":" << list(beyond);
      // And no less than LLVM knows of it.
      std::unique_ptr<llvm::MCSubtargetInfo> whole = target::subtarget(triple, {});
      whole->setDefaultFeatures(cpu, cpu, "");
      Names lost;
      for (const std::string &feature : enabled(*whole))
        if (known.contains(feature) && !used.contains(feature))
          lost.insert(feature);
      EXPECT_TRUE(lost.empty()) << cpu << " lost" << list(lost);
    }
  }
}

/// Each feature that LLVM names, switched on beside what a machine has.
TEST(Features, NoFeatureIsUsedThatTheMachineLacks) {
  for (const auto &[name, machine] : madeUpMachines()) {
    llvm::Triple triple = tripleOf(machine.architecture());
    Names base = enabled(*target::subtarget(triple, {}));
    for (const llvm::SubtargetFeatureKV &feature :
         target::subtarget(triple, {})->getAllProcessorFeatures()) {
      std::vector<std::string> one{feature.Key};
      bool had = machine.has(feature.Key);
      EXPECT_EQ(!rt::missingFeature(one, machine), had) << name << ", " << feature.Key;
      // What LLVM takes it to imply must be there as well.
      std::vector<std::string> kept = target::withoutUnmet(triple, one);
      Names implied = difference(enabled(*target::subtarget(triple, one)), base);
      implied.erase(feature.Key);
      EXPECT_EQ(kept.empty(), !implied.empty()) << feature.Key;
    }
  }
}

void expectHas(const X86Host &host, const std::string &cpu, Names lacks, Names more) {
  rt::Machine machine = machineOf(host);
  Names named = namesOf(target::featuresOf(tripleOf(rt::kX86_64), cpu));
  Names expected = difference(named, lacks);
  expected.merge(more);
  rt::Target target = target::ofMachine(machine, cpu);
  EXPECT_EQ(list(namesOf(target.features)), list(expected)) << host.name;
}

/// By what LLVM says of the processor that each machine is.
TEST(Features, MachinesHaveWhatTheirProcessorsHave) {
  expectHas(kGraniteRapids, "graniterapids", {}, {"avx10.1"});
  expectHas(kWithoutAmx, "graniterapids", {"amx-bf16", "amx-fp16", "amx-int8", "amx-tile"},
            {"avx10.1"});
  expectHas(kWithoutFp16, "graniterapids",
            {"amx-bf16", "amx-fp16", "amx-int8", "amx-tile", "avx512fp16"}, {});
  expectHas(kFewLeaves, "sapphirerapids", {"avx512bf16", "avxvnni"}, {});
  expectHas(kOldSystem, "goldmont", {}, {"adx", "bmi", "bmi2", "lzcnt", "gfni"});
  expectHas(kDiamondRapids, "diamondrapids", {}, {});
  expectHas(kZen5, "znver5", {}, {});
  expectHas(kPiledriver, "bdver2", {}, {});
  expectHas(kBulldozer, "bdver1", {}, {});
  expectHas(kGoldmont, "goldmont", {}, {});
  expectHas(kWestmere, "westmere", {}, {});
}

TEST(Features, WhatCodeIsMadeOfFollowsTheMachine) {
  auto target = [](const X86Host &host, const char *cpu) {
    return target::ofMachine(machineOf(host), cpu);
  };
  rt::Target hidden = target(kWithoutAmx, "rocketlake");
  EXPECT_EQ(hidden.lanes, 16);
  EXPECT_TRUE(hidden.bf16);
  EXPECT_FALSE(hidden.tiles);
  EXPECT_TRUE(target(kGraniteRapids, "graniterapids").tiles);
  EXPECT_EQ(target(kOldSystem, "graniterapids").lanes, 4);
  EXPECT_FALSE(target(kOldSystem, "graniterapids").fma);
  EXPECT_EQ(target(kPiledriver, "bdver2").lanes, 8);
  EXPECT_TRUE(target(kPiledriver, "bdver2").fma);
  EXPECT_FALSE(target(kBulldozer, "bdver1").fma);
  EXPECT_EQ(target(kGoldmont, "goldmont").lanes, 4);
}

/// What is not given is asked of this machine for `host` alone.
TEST(Features, SizesOfCachesFollowTheCpuThatIsNamed) {
  rt::CacheSizes wide{32 << 10, 1 << 20}, narrow{32 << 10, 512 << 10}, given{48 << 10, 2 << 20};
  EXPECT_EQ(target::detect("x86-64-v4").caches, wide);
  EXPECT_EQ(target::detect("x86-64-v3").caches, narrow);
  EXPECT_EQ(target::detect("aarch64").caches, narrow);
  EXPECT_EQ(target::detect("x86-64-v3", given).caches, given);
  EXPECT_EQ(target::detect("x86-64-v3", {0, given.l2}).caches,
            (rt::CacheSizes{narrow.l1, given.l2}));
  EXPECT_EQ(target::detect("host", given).caches, given);
  rt::CacheSizes here = target::detect("host").caches, asked = target::cachesOfThisMachine();
  EXPECT_GT(here.l1, 0);
  EXPECT_GT(here.l2, 0);
  if (asked.l2 > 0) {
    EXPECT_EQ(here.l2, asked.l2);
  }
}

TEST(Features, CachesAreFoundAsLinuxDescribesThem) {
  std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "sheaf-caches";
  auto describe = [&](const std::string &index, const char *level, const char *type,
                      const char *size) {
    std::filesystem::create_directories(directory / index);
    std::ofstream(directory / index / "level") << level << "\n";
    std::ofstream(directory / index / "type") << type << "\n";
    std::ofstream(directory / index / "size") << size << "\n";
  };
  describe("index0", "1", "Data", "48K");
  describe("index1", "1", "Instruction", "64K");
  describe("index2", "2", "Unified", "2048K");
  describe("index3", "3", "Unified", "32M");
  EXPECT_EQ(target::cachesIn(directory), (rt::CacheSizes{48 << 10, 2 << 20}));
  describe("index2", "2", "Unified", "much");
  EXPECT_EQ(target::cachesIn(directory), (rt::CacheSizes{48 << 10, 0}));
  std::filesystem::remove_all(directory);
  EXPECT_EQ(target::cachesIn(directory), rt::CacheSizes());
}

TEST(Features, CodeForThisMachineRunsOnIt) {
  EXPECT_NO_THROW(target::checkRunsHere(target::detect("host")));
}

} // namespace
