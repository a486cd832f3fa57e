//===- format.h - What an artefact file holds -------------------*- C++ -*-===//
//
// A file is a header of 64 bytes, the description (one message of numbered fields, encode.h and
// fields.h) and sections that begin at multiples of a page and are mapped as they are:
//
//   bytes 0-7    "\x89SHEAFC\n"
//         8-11   version of the format (u32)        12-15  0
//         16-23  bytes of the file (u64)            24-31  bytes of the description, from byte 64
//         32-39  checksum of the description        40-55  0
//         56-63  checksum of bytes 0-55
//
// All numbers are little endian; checksums are XXH3, 64 bits. Between sections are zeros.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_ARTEFACT_FORMAT_H
#define SHEAF_RUNTIME_ARTEFACT_FORMAT_H

#include "runtime/cpu/code.h"
#include "runtime/cpu/kernel_code.h"
#include "runtime/cpu/target.h"
#include "runtime/model/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sheaf::artefact {

constexpr char kMagic[8] = {'\x89', 'S', 'H', 'E', 'A', 'F', 'C', '\n'};
/// Of the file's form. Files of all versions up to this one can be read.
constexpr uint32_t kVersion = 1;
/// Of what generated code and the runtime agree on (runtime/model/abi.h, layout.h, the meaning of
/// Model). To be raised when that changes so that older code does not run any more.
constexpr uint32_t kAbi = 1;
constexpr uint64_t kHeaderBytes = 64;

/// Bytes of the file, from a multiple of its architecture's rt::codePage() on.
struct Section {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;
};

/// A library beside this one that blocks of the model call.
struct Library {
  std::string name, version;
};

/// A vocabulary that token types name.
struct VocabularyDesc {
  std::string name; ///< empty: of `token`
  int64_t size = 0;
  std::string hash; ///< io::Vocabulary::hash()
  std::string text; ///< the words as a vocabulary's file; empty when it has none
};

/// A packed copy of weights: bytes of the section `packed`.
struct PackedRange {
  uint64_t offset = 0, bytes = 0;
};

/// The functions of generated code, as offsets in its image.
struct Functions {
  uint64_t entry = 0;
  std::optional<uint64_t> foldWeights;
  std::vector<uint64_t> kernels;
};

struct Description {
  std::string producer; ///< for people
  uint32_t abi = kAbi;
  rt::Target target; ///< what the code was made for and needs
  /// Numeric class (docs/numerics.md): `fma`, or `multiply-add` for CPUs without it; with products
  /// in bf16 also `bf16 pairs` or `bf16 tiles`. Results have the same bits on machines that run
  /// code of one class.
  std::string numerics;
  std::vector<Library> libraries;
  rt::CodeLayout code;
  Functions functions;
  rt::Model model; ///< without code addresses
  std::vector<VocabularyDesc> vocabularies;
  std::vector<PackedRange> packed;
  bool serpentine = false; ///< of a model for training: rt::addNativeKernels()
  Section codeSection;     ///< the image
  Section paramSection;    ///< the parameters in row layout
  Section packedSection;   ///< in the order of rt::PackedWeights
};

} // namespace sheaf::artefact

#endif // SHEAF_RUNTIME_ARTEFACT_FORMAT_H
