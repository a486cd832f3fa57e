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
/// Of the file's form. Files of other versions are refused.
constexpr uint32_t kVersion = 2;
/// Of what generated code and the runtime agree on (runtime/model/abi.h, layout.h, the meaning of
/// Model). To be raised when that changes so that older code does not run any more.
constexpr uint32_t kAbi = 2;
constexpr uint64_t kHeaderBytes = 64;

/// Packed weights begin at multiples of so many bytes.
constexpr uint64_t kPackedPage = 4096;

/// Bytes of the file; of code and parameters from a multiple of its architecture's rt::codePage()
/// on.
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

/// Code of one back end for one kind of machine, with weights as it reads them. A file has one or
/// several; who opens it takes the first that its device and machine can run.
struct CodeSection {
  static constexpr const char *kImage = "image";

  std::string backend;       ///< that made it: `cpu`
  std::string form = kImage; ///< of the code and of `body`
  rt::Target target;         ///< what the code was made for and needs
  /// Numeric class (docs/numerics.md): `fma`, or `multiply-add` for CPUs without it; with products
  /// in bf16 also `bf16 pairs` or `bf16 tiles`. Results have the same bits on machines that run
  /// code of one class.
  std::string numerics;
  bool isBf16() const { return numerics.find("bf16") != std::string::npos; }
  std::vector<Library> libraries;
  std::string body; ///< more of it, as those know who know the form: of kImage a message, ImageBody
  Section code;     ///< of kImage: rt::LoadedCode::image()
  Section packed;   ///< weights as its kernels read them, in the order of its code
};

/// What a section of the form kImage says, beside the form of its kernels (rt::CpuCode): of host
/// code and kernels for one processor.
struct ImageBody {
  rt::CodeLayout layout;
  Functions functions;
  std::vector<PackedRange> packed;
  bool serpentine = false; ///< of a model for training: rt::addNativeKernels()
};

struct Description {
  std::string producer; ///< for people
  uint32_t abi = kAbi;
  rt::Model model; ///< without code addresses; its code is that of the section that was taken
  std::vector<VocabularyDesc> vocabularies;
  std::vector<CodeSection> sections;
  Section paramSection; ///< the parameters in row layout

  size_t taken = 0; ///< which section `image` and the model's code are of
  ImageBody image;

  const CodeSection &code() const { return sections.at(taken); }
  CodeSection &code() { return sections.at(taken); }
  const rt::Target &target() const { return code().target; }
};

} // namespace sheaf::artefact

#endif // SHEAF_RUNTIME_ARTEFACT_FORMAT_H
