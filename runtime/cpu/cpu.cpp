#include "runtime/cpu/cpu.h"

#include "runtime/cpu/cpu_tables.h"

#include <algorithm>
#include <map>

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

namespace sheaf::rt {

namespace {

/// A register of cpuid, 0 where the processor has no such leaf: beyond its last leaf some give what
/// stands in that one.
uint32_t read(const Machine::Cpuid &cpuid, uint32_t leaf, uint32_t subleaf, Register where) {
  constexpr uint32_t extended = 0x80000000, withSubleaves = 7;
  if (leaf > cpuid(leaf & extended, 0)[Eax] ||
      (leaf == withSubleaves && subleaf > cpuid(leaf, 0)[Eax]))
    return 0;
  return cpuid(leaf, subleaf)[where];
}

template <typename Features, typename Holds>
std::vector<std::string_view> namesWhere(const Features &features, Holds holds) {
  std::vector<std::string_view> names, lacking;
  for (const auto &feature : features)
    (holds(feature) ? names : lacking).push_back(feature.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (std::string_view name : lacking)
    std::erase(names, name);
  return names;
}

} // namespace

std::vector<std::string_view> knownFeatures(std::string_view architecture) {
  auto all = [](const auto &) { return true; };
  if (architecture == kX86_64)
    return namesWhere(x86Features(), all);
  return architecture == kAArch64 ? namesWhere(aarch64Features(), all)
                                  : std::vector<std::string_view>();
}

Machine Machine::x86_64(const Cpuid &cpuid, const std::function<uint64_t()> &xcr0) {
  constexpr uint32_t osxsave = 1u << 27;
  uint64_t saved = read(cpuid, 1, 0, Ecx) & osxsave ? xcr0() : 0;
  Machine machine;
  machine.architecture_ = kX86_64;
  machine.features_ = namesWhere(x86Features(), [&](const X86Feature &f) {
    return (read(cpuid, f.leaf, f.subleaf, f.where) & f.bits) >= f.least &&
           (saved & f.state) == f.state;
  });
  return machine;
}

Machine Machine::aarch64(uint64_t hwcap, uint64_t hwcap2) {
  Machine machine;
  machine.architecture_ = kAArch64;
  machine.features_ = namesWhere(aarch64Features(), [&](const AArch64Feature &f) {
    return (hwcap & f.hwcap) == f.hwcap && (hwcap2 & f.hwcap2) == f.hwcap2;
  });
  return machine;
}

bool Machine::has(std::string_view feature) const {
  return std::binary_search(features_.begin(), features_.end(), feature);
}

const Machine &thisMachine() {
#if defined(__x86_64__)
  static const Machine machine = [] {
    // A hypervisor takes microseconds to answer, so each leaf is asked for once.
    std::map<std::pair<uint32_t, uint32_t>, std::array<uint32_t, 4>> known;
    auto cpuid = [&](uint32_t leaf, uint32_t subleaf) {
      auto [entry, isNew] = known.try_emplace({leaf, subleaf});
      std::array<uint32_t, 4> &r = entry->second;
      if (isNew)
        __cpuid_count(leaf, subleaf, r[Eax], r[Ebx], r[Ecx], r[Edx]);
      return r;
    };
    auto xcr0 = [] {
      uint32_t low, high;
      asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      return uint64_t(high) << 32 | low;
    };
    return Machine::x86_64(cpuid, xcr0);
  }();
#else
  static const Machine machine = Machine::aarch64(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#endif
  return machine;
}

std::optional<std::string> missingFeature(std::span<const std::string> features,
                                          const Machine &machine) {
  auto missing = std::find_if_not(features.begin(), features.end(),
                                  [&](const std::string &name) { return machine.has(name); });
  return missing == features.end() ? std::nullopt : std::optional(*missing);
}

} // namespace sheaf::rt
