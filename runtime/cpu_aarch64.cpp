#include "runtime/cpu.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <asm/hwcap.h>
#include <sys/auxv.h>

namespace sheaf::rt {

namespace {

/// A bit of what Linux tells of the processor (Documentation/arch/arm64/elf_hwcaps.rst).
struct Feature {
  std::string_view name;
  unsigned long word; ///< AT_HWCAP or AT_HWCAP2
  unsigned long bits;
};

// Those that the headers of an older Linux lack; the numbers are part of its interface.
constexpr unsigned long kSve2p1 = 1UL << 36, kCssc = 1UL << 34, kLrcpc3 = 1UL << 46,
                        kMops = 1UL << 43;

constexpr std::array kFeatures = {
    Feature{"altnzcv", AT_HWCAP2, HWCAP2_FLAGM2},
    Feature{"bf16", AT_HWCAP2, HWCAP2_BF16},
    Feature{"complxnum", AT_HWCAP, HWCAP_FCMA},
    Feature{"crc", AT_HWCAP, HWCAP_CRC32},
    Feature{"cssc", AT_HWCAP2, kCssc},
    Feature{"dotprod", AT_HWCAP, HWCAP_ASIMDDP},
    Feature{"flagm", AT_HWCAP, HWCAP_FLAGM},
    Feature{"fp-armv8", AT_HWCAP, HWCAP_FP},
    Feature{"fp16fml", AT_HWCAP, HWCAP_ASIMDFHM},
    Feature{"fptoint", AT_HWCAP2, HWCAP2_FRINT},
    Feature{"fullfp16", AT_HWCAP, HWCAP_FPHP | HWCAP_ASIMDHP},
    Feature{"i8mm", AT_HWCAP2, HWCAP2_I8MM},
    Feature{"jsconv", AT_HWCAP, HWCAP_JSCVT},
    Feature{"lse", AT_HWCAP, HWCAP_ATOMICS},
    Feature{"lse2", AT_HWCAP, HWCAP_USCAT},
    Feature{"mops", AT_HWCAP2, kMops},
    Feature{"neon", AT_HWCAP, HWCAP_ASIMD},
    Feature{"rcpc", AT_HWCAP, HWCAP_LRCPC},
    Feature{"rcpc-immo", AT_HWCAP, HWCAP_ILRCPC},
    Feature{"rcpc3", AT_HWCAP2, kLrcpc3},
    Feature{"rdm", AT_HWCAP, HWCAP_ASIMDRDM},
    Feature{"sve", AT_HWCAP, HWCAP_SVE},
    Feature{"sve2", AT_HWCAP2, HWCAP2_SVE2},
    Feature{"sve2p1", AT_HWCAP2, kSve2p1},
};

bool has(const Feature &feature) {
  return (getauxval(feature.word) & feature.bits) == feature.bits;
}

} // namespace

bool hasFeature(std::string_view name) {
  auto known = std::find_if(kFeatures.begin(), kFeatures.end(),
                            [&](const Feature &feature) { return feature.name == name; });
  return known != kFeatures.end() && has(*known);
}

} // namespace sheaf::rt
