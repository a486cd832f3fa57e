//===- Relocations.cpp - How an architecture's code names places ----------===//
#include "compiler/codegen/Relocations.h"

#include "runtime/cpu/code.h"
#include "runtime/model/error.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#include <array>
#include <string>

namespace sheaf::driver {

namespace {

using llvm::support::endian::read32le;
using llvm::support::endian::write32le;
using llvm::support::endian::write64le;

/// The distance from `at` to `target`, which an instruction has `Bits` bits for.
template <unsigned Bits> int64_t distance(uint64_t at, uint64_t target) {
  auto value = static_cast<int64_t>(target - at);
  if (!llvm::isInt<Bits>(value))
    throw InternalError("a relocation of generated code does not fit " + std::to_string(Bits) +
                        " bits");
  return value;
}

[[noreturn]] void unknownRelocation(uint32_t type) {
  throw InternalError("generated code has a relocation of type " + std::to_string(type));
}

class X86 final : public Architecture {
  Asks asks(uint32_t type) const override {
    switch (type) {
    case llvm::ELF::R_X86_64_PC32:
    case llvm::ELF::R_X86_64_PC64:
      return Asks::Place;
    case llvm::ELF::R_X86_64_PLT32:
      return Asks::Call;
    case llvm::ELF::R_X86_64_GOTPCREL:
    case llvm::ELF::R_X86_64_GOTPCRELX:
    case llvm::ELF::R_X86_64_REX_GOTPCRELX:
      return Asks::Word;
    case llvm::ELF::R_X86_64_64:
      return Asks::Address;
    default:
      return Asks::Nothing;
    }
  }
  void apply(uint32_t type, std::span<uint8_t> image, uint64_t at, uint64_t target) const override {
    if (type == llvm::ELF::R_X86_64_PC64)
      write64le(image.data() + at, target - at);
    else
      write32le(image.data() + at, static_cast<uint32_t>(distance<32>(at, target)));
  }

  // jmp *word(%rip)
  static constexpr std::array<uint8_t, 8> kStub = {0xFF, 0x25, 0, 0, 0, 0, 0xCC, 0xCC};
  std::span<const uint8_t> stub() const override { return kStub; }
  void fillStub(std::span<uint8_t> image, uint64_t at, uint64_t word) const override {
    apply(llvm::ELF::R_X86_64_PC32, image, at + 2, word - 4);
  }

  uint8_t filler() const override { return 0xCC; } // int3
  uint64_t page() const override { return rt::codePage("x86_64"); }
};

/// An image begins with a page, so pages of places in it are as far apart as in memory.
class AArch64 final : public Architecture {
  Asks asks(uint32_t type) const override {
    switch (type) {
    case llvm::ELF::R_AARCH64_PREL32:
    case llvm::ELF::R_AARCH64_PREL64:
    case llvm::ELF::R_AARCH64_ADR_PREL_PG_HI21:
      return Asks::Place;
    case llvm::ELF::R_AARCH64_CALL26:
    case llvm::ELF::R_AARCH64_JUMP26:
      return Asks::Call;
    case llvm::ELF::R_AARCH64_ADR_GOT_PAGE:
    case llvm::ELF::R_AARCH64_LD64_GOT_LO12_NC:
      return Asks::Word;
    case llvm::ELF::R_AARCH64_ABS64:
      return Asks::Address;
    default:
      return offsetShift(type) ? Asks::Place : Asks::Nothing;
    }
  }
  void apply(uint32_t type, std::span<uint8_t> image, uint64_t at, uint64_t target) const override {
    uint8_t *bytes = image.data() + at;
    switch (type) {
    case llvm::ELF::R_AARCH64_PREL32:
      write32le(bytes, static_cast<uint32_t>(distance<32>(at, target)));
      return;
    case llvm::ELF::R_AARCH64_PREL64:
      write64le(bytes, target - at);
      return;
    case llvm::ELF::R_AARCH64_CALL26:
    case llvm::ELF::R_AARCH64_JUMP26:
      setField(bytes, static_cast<uint64_t>(distance<28>(at, target)) >> 2, 26, 0);
      return;
    case llvm::ELF::R_AARCH64_ADR_PREL_PG_HI21:
    case llvm::ELF::R_AARCH64_ADR_GOT_PAGE: {
      uint64_t pages =
          static_cast<uint64_t>(distance<33>(at & ~kOffsetMask, target & ~kOffsetMask)) >> 12;
      setField(bytes, pages, 2, 29);
      setField(bytes, pages >> 2, 19, 5);
      return;
    }
    default:
      break;
    }
    std::optional<unsigned> shift = offsetShift(type);
    if (!shift)
      unknownRelocation(type);
    uint64_t offset = target & kOffsetMask;
    if (offset & ((uint64_t(1) << *shift) - 1))
      throw InternalError("generated code takes its data from where it is not aligned");
    setField(bytes, offset >> *shift, 12, 10);
  }

  // adrp x16, word; ldr x16, [x16, word]; br x16; udf #0
  static constexpr std::array<uint8_t, 16> kStub = {0x10, 0,    0,    0x90, 0x10, 0x02, 0x40, 0xF9,
                                                    0,    0x02, 0x1F, 0xD6, 0,    0,    0,    0};
  std::span<const uint8_t> stub() const override { return kStub; }
  void fillStub(std::span<uint8_t> image, uint64_t at, uint64_t word) const override {
    apply(llvm::ELF::R_AARCH64_ADR_GOT_PAGE, image, at, word);
    apply(llvm::ELF::R_AARCH64_LD64_GOT_LO12_NC, image, at + 4, word);
  }

  uint8_t filler() const override { return 0; } // udf #0
  uint64_t page() const override { return rt::codePage("aarch64"); }

  /// The part of an address that `adrp` leaves out.
  static constexpr uint64_t kOffsetMask = 0xFFF;

  /// For instructions that add it: by how much their operand is scaled.
  static std::optional<unsigned> offsetShift(uint32_t type) {
    switch (type) {
    case llvm::ELF::R_AARCH64_ADD_ABS_LO12_NC:
    case llvm::ELF::R_AARCH64_LDST8_ABS_LO12_NC:
      return 0;
    case llvm::ELF::R_AARCH64_LDST16_ABS_LO12_NC:
      return 1;
    case llvm::ELF::R_AARCH64_LDST32_ABS_LO12_NC:
      return 2;
    case llvm::ELF::R_AARCH64_LDST64_ABS_LO12_NC:
    case llvm::ELF::R_AARCH64_LD64_GOT_LO12_NC:
      return 3;
    case llvm::ELF::R_AARCH64_LDST128_ABS_LO12_NC:
      return 4;
    default:
      return std::nullopt;
    }
  }
  static void setField(uint8_t *instruction, uint64_t value, unsigned bits, unsigned at) {
    auto mask = static_cast<uint32_t>(((uint64_t(1) << bits) - 1) << at);
    write32le(instruction,
              (read32le(instruction) & ~mask) | (static_cast<uint32_t>(value << at) & mask));
  }
};

} // namespace

const Architecture &Architecture::ofMachine(unsigned machine) {
  static const X86 x86;
  static const AArch64 aarch64;
  switch (machine) {
  case llvm::ELF::EM_X86_64:
    return x86;
  case llvm::ELF::EM_AARCH64:
    return aarch64;
  default:
    throw InternalError("code of another machine: " + std::to_string(machine));
  }
}

} // namespace sheaf::driver
