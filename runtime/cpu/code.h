//===- code.h - Generated code in memory ------------------------*- C++ -*-===//
//
// The one way in which generated code comes into a process, whether it was compiled a moment ago or
// lies in a file. A code image is three ranges of whole pages, one after the other:
//
//   code        executable, never writable
//   constants   read only
//   addresses   filled in here, then read only: first one word for each import, then words that
//               hold addresses of the image itself
//
// The image is position independent; all else in it is relative.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_CPU_CODE_H
#define SHEAF_RUNTIME_CPU_CODE_H

#include "runtime/cpu/cpu.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::rt {

/// Ranges of an image begin at multiples of this, so that they are whole pages: Linux has pages of
/// 4, 16 or 64 KB on AArch64.
constexpr uint64_t codePage(std::string_view architecture) {
  return architecture == "aarch64" ? 65536 : 4096;
}
/// That of this library's own architecture.
constexpr uint64_t kCodePage = codePage(kArchitecture);

/// The word at offset `at` of the image, among the addresses, is to hold the image's address plus
/// `target`.
struct CodeRelocation {
  uint32_t at = 0;
  uint32_t target = 0;
};

struct CodeLayout {
  uint64_t codeBytes = 0, constantBytes = 0, addressBytes = 0; ///< multiples of kCodePage
  std::vector<std::string> imports; ///< what the first words of the addresses are addresses of
  std::vector<CodeRelocation> relocations;

  uint64_t bytes() const { return codeBytes + constantBytes + addressBytes; }
  uint64_t addressBegin() const { return codeBytes + constantBytes; }
  /// Whether an instruction may stand there.
  bool isCode(uint64_t offset) const { return offset < codeBytes; }

  /// What is wrong with it, if anything: sizes, relocations outside of the addresses, targets
  /// outside of the image, names that importAddress() does not know.
  std::optional<std::string> problem() const;
};

/// The function or C library function that generated code calls by this name; null when there is
/// none. The list is in code.cpp and is a part of the ABI.
const void *importAddress(std::string_view name);

/// An image that can be run. Its pages are shared with other processes as far as they come from a
/// file: all but the addresses.
class LoadedCode {
public:
  /// Copies `image`, which has layout.bytes() bytes. The layout must have no problem(). Throws
  /// UserError when the machine refuses the memory.
  LoadedCode(CodeLayout layout, std::span<const uint8_t> image);
  /// Maps the image at `offset` (a multiple of kCodePage) of an open file, which is large enough.
  LoadedCode(CodeLayout layout, int file, uint64_t offset);
  ~LoadedCode();
  LoadedCode(const LoadedCode &) = delete;
  LoadedCode &operator=(const LoadedCode &) = delete;

  const CodeLayout &layout() const { return layout_; }
  const uint8_t *base() const { return base_; }
  uint64_t offsetOf(const void *address) const {
    return static_cast<uint64_t>(static_cast<const uint8_t *>(address) - base_);
  }
  /// The image with zeros for what was filled in: the same bytes wherever it is loaded.
  std::vector<uint8_t> image() const;

private:
  void reserve();
  /// Fills in the addresses and gives the pages their final protection.
  void finish(bool protectAll);

  CodeLayout layout_;
  uint8_t *base_ = nullptr;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_CODE_H
