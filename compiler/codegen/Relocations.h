//===- Relocations.h - How an architecture's code names places --*- C++ -*-===//
#ifndef SHEAF_COMPILER_CODEGEN_RELOCATIONS_H
#define SHEAF_COMPILER_CODEGEN_RELOCATIONS_H

#include <cstdint>
#include <span>
#include <vector>

namespace sheaf::driver {

/// What a linker must know of an architecture (the ELF supplements of its ABI).
class Architecture {
public:
  /// Of an ELF object's `e_machine`. Throws InternalError for one that no code is made for.
  static const Architecture &ofMachine(unsigned machine);

  virtual ~Architecture() = default;

  /// What a relocation asks for.
  enum class Asks : uint8_t {
    Nothing, ///< not one that generated code has
    Place,   ///< where its symbol lies, as seen from where the relocation stands
    Call,    ///< the same, of a function; a stub that jumps there will do
    Word,    ///< where a word lies that holds the symbol's address
    Address  ///< the symbol's address
  };
  virtual Asks asks(uint32_t type) const = 0;

  /// Makes the bytes at offset `at` of an image refer to offset `target` of it, for every type but
  /// those that ask for an address. Throws InternalError when `target` is too far.
  virtual void apply(uint32_t type, std::span<uint8_t> image, uint64_t at,
                     uint64_t target) const = 0;

  /// Code that jumps to the address that a word holds, with nothing filled in.
  virtual std::span<const uint8_t> stub() const = 0;
  /// Makes the stub at offset `at` of an image use the word at `word`.
  virtual void fillStub(std::span<uint8_t> image, uint64_t at, uint64_t word) const = 0;

  /// Lies between functions, where nothing is ever run; a trap all the same.
  virtual uint8_t filler() const = 0;
  /// Ranges of an image begin at multiples of this (rt::codePage).
  virtual uint64_t page() const = 0;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_CODEGEN_RELOCATIONS_H
