//===- MemoryFormula.h - What a mini-batch takes at most --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_MEMORYFORMULA_H
#define SHEAF_COMPILER_DRIVER_MEMORYFORMULA_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sheaf::driver {

/// Something of an instance that memory depends on.
struct InstanceSize {
  enum Kind {
    Argument, ///< of the entry's arguments
    Calls,    ///< of a recursion whose end depends on what is computed
    Unknown   ///< nothing bounds it
  } kind = Argument;
  std::vector<std::string> names; ///< by which it is asked for, the usual one first; Unknown: none
  std::string what;               ///< for people: `the length of 'words'`
  std::string place;              ///< file:line:column; empty: that of the entry
  std::string group;              ///< of several: they come to a number of this name together
};

/// A product of sizes and a number.
struct SizeTerm {
  double factor = 0;
  std::vector<size_t> sizes; ///< indices into MemoryFormula::sizes, with multiplicity
};
using SizeSum = std::vector<SizeTerm>;

/// What an instance makes of a kernel's records, at most.
struct KernelMemory {
  size_t kernel = 0; ///< index into Model::kernels
  SizeSum records;
  SizeSum rows;       ///< bytes of their results
  SizeSum tables;     ///< bytes of tables of the lists that they take
  SizeSum scratch;    ///< bytes of temporaries of the neediest
  SizeSum largest;    ///< bytes of the results of one record
  bool exact = false; ///< each takes as many
};

/// Upper bounds of what inference takes.
struct MemoryFormula {
  uint64_t weights = 0, packed = 0; ///< bytes
  uint64_t folded = 0;              ///< bytes while what depends on weights alone is computed
  uint64_t scratch = 0;             ///< bytes a thread, beside KernelMemory::scratch
  uint64_t frameBytes = 0;          ///< of the host stack, of one call
  bool reads = false;               ///< instances wait for tensors, so all are under way at once

  // Of one instance.
  std::vector<InstanceSize> sizes;
  std::vector<KernelMemory> kernels;
  SizeSum inputs; ///< bytes of rows of its arguments' tensors
  SizeSum grown;  ///< bytes of rows of tensors that grow
  SizeSum heap;   ///< bytes of lists and data
  SizeSum frames; ///< calls that are open at one time

  /// What a run may use again where memory is short (docs/design/memory-bounds.md).
  bool usesAgain = false;
  SizeSum live;    ///< tensors that are needed at one time if each record runs when it is made
  SizeSum results; ///< tensors of the result
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_MEMORYFORMULA_H
