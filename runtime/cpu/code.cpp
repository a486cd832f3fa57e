#include "runtime/cpu/code.h"

#include "runtime/model/abi.h"
#include "runtime/model/error.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include <sys/mman.h>

namespace sheaf::rt {

namespace {

struct Import {
  std::string_view name;
  const void *address;
};

template <typename F> const void *addressOf(F *function) {
  return reinterpret_cast<const void *>(function);
}

using Math1 = double (*)(double);
using Math1f = float (*)(float);
using Math2 = double (*)(double, double);
using Math2f = float (*)(float, float);
using Math3 = double (*)(double, double, double);
using Math3f = float (*)(float, float, float);

/// In order of the names. LLVM's code generator turns intrinsics and large copies into calls of the
/// C library, so those stand here too.
std::span<const Import> imports() {
  static const std::vector<Import> sorted = [] {
#define SHEAF_MATH(KIND, NAME)                                                                     \
  {#NAME, addressOf(static_cast<KIND>(&std::NAME))},                                               \
      {#NAME "f", addressOf(static_cast<KIND##f>(&std::NAME))}
    std::vector<Import> all = {
        {"sheaf_record", addressOf(&sheaf_record)},
        {"sheaf_record_once", addressOf(&sheaf_record_once)},
        {"sheaf_record_once2", addressOf(&sheaf_record_once2)},
        {"sheaf_record_once4", addressOf(&sheaf_record_once4)},
        {"sheaf_temporaries", addressOf(&sheaf_temporaries)},
        {"sheaf_alloc", addressOf(&sheaf_alloc)},
        {"sheaf_list_new", addressOf(&sheaf_list_new)},
        {"sheaf_list_cons", addressOf(&sheaf_list_cons)},
        {"sheaf_list_append", addressOf(&sheaf_list_append)},
        {"sheaf_list_concat", addressOf(&sheaf_list_concat)},
        {"sheaf_list_slice", addressOf(&sheaf_list_slice)},
        {"sheaf_list_reverse", addressOf(&sheaf_list_reverse)},
        {"sheaf_list_flat", addressOf(&sheaf_list_flat)},
        {"sheaf_list_rows", addressOf(&sheaf_list_rows)},
        {"sheaf_append_rows", addressOf(&sheaf_append_rows)},
        {"sheaf_fail", addressOf(&sheaf_fail)},
        {"sheaf_deepen", addressOf(&sheaf_deepen)},
        {"sheaf_go_on", addressOf(&sheaf_go_on)},
        {"sheaf_more_steps", addressOf(&sheaf_more_steps)},
        {"sheaf_more_rounds", addressOf(&sheaf_more_rounds)},
        {"sheaf_wait", addressOf(&sheaf_wait)},
        {"sheaf_read", addressOf(&sheaf_read)},
        {"sheaf_note_read", addressOf(&sheaf_note_read)},
        {"sheaf_emit", addressOf(&sheaf_emit)},
        {"sheaf_forks", addressOf(&sheaf_forks)},
        {"sheaf_fork", addressOf(&sheaf_fork)},
        {"sheaf_fork_behind", addressOf(&sheaf_fork_behind)},
        {"sheaf_join", addressOf(&sheaf_join)},
        {"memcpy", addressOf(static_cast<void *(*)(void *, const void *, size_t)>(&std::memcpy))},
        {"memmove", addressOf(static_cast<void *(*)(void *, const void *, size_t)>(&std::memmove))},
        {"memset", addressOf(static_cast<void *(*)(void *, int, size_t)>(&std::memset))},
        SHEAF_MATH(Math1, exp),
        SHEAF_MATH(Math1, exp2),
        SHEAF_MATH(Math1, log),
        SHEAF_MATH(Math1, log2),
        SHEAF_MATH(Math1, log10),
        SHEAF_MATH(Math1, sin),
        SHEAF_MATH(Math1, cos),
        SHEAF_MATH(Math1, tan),
        SHEAF_MATH(Math1, tanh),
        SHEAF_MATH(Math1, sqrt),
        SHEAF_MATH(Math1, erf),
        SHEAF_MATH(Math1, floor),
        SHEAF_MATH(Math1, ceil),
        SHEAF_MATH(Math1, trunc),
        SHEAF_MATH(Math1, round),
        SHEAF_MATH(Math1, rint),
        SHEAF_MATH(Math1, nearbyint),
        SHEAF_MATH(Math2, pow),
        SHEAF_MATH(Math2, fmod),
        SHEAF_MATH(Math3, fma),
    };
#undef SHEAF_MATH
    std::sort(all.begin(), all.end(),
              [](const Import &a, const Import &b) { return a.name < b.name; });
    return all;
  }();
  return sorted;
}

} // namespace

const void *importAddress(std::string_view name) {
  std::span<const Import> all = imports();
  auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const Import &entry, std::string_view what) { return entry.name < what; });
  return found != all.end() && found->name == name ? found->address : nullptr;
}

std::optional<std::string> CodeLayout::problem() const {
  constexpr uint64_t most = uint64_t(1) << 30; // code is addressed with 32 bits
  for (uint64_t size : {codeBytes, constantBytes, addressBytes})
    if (size % kCodePage != 0 || size > most)
      return "a size of " + std::to_string(size) + " bytes";
  if (bytes() == 0)
    return "no code";
  if (imports.size() > addressBytes / sizeof(uint64_t))
    return "more imports than addresses";
  uint64_t firstWord = addressBegin() + imports.size() * sizeof(uint64_t);
  for (const CodeRelocation &relocation : relocations)
    if (relocation.at % sizeof(uint64_t) != 0 || relocation.at < firstWord ||
        relocation.at + sizeof(uint64_t) > bytes() || relocation.target >= bytes())
      return "a relocation at " + std::to_string(relocation.at) + " to " +
             std::to_string(relocation.target);
  for (const std::string &name : imports)
    if (!importAddress(name))
      return "code that calls '" + name + "', which this runtime does not have";
  return std::nullopt;
}

void LoadedCode::reserve() {
  void *p =
      mmap(nullptr, layout_.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    throw UserError("the machine refuses " + std::to_string(layout_.bytes() >> 10) +
                    " KB of memory for code");
  base_ = static_cast<uint8_t *>(p);
}

LoadedCode::LoadedCode(CodeLayout layout, std::span<const uint8_t> image)
    : layout_(std::move(layout)) {
  reserve();
  std::memcpy(base_, image.data(), layout_.bytes());
  finish(/*protectAll=*/true);
}

LoadedCode::LoadedCode(CodeLayout layout, int file, uint64_t offset) : layout_(std::move(layout)) {
  reserve();
  auto map = [&](uint64_t begin, uint64_t bytes, int protection) {
    if (bytes && mmap(base_ + begin, bytes, protection, MAP_PRIVATE | MAP_FIXED, file,
                      static_cast<off_t>(offset + begin)) == MAP_FAILED) {
      munmap(base_, layout_.bytes());
      throw UserError(std::string("the machine does not map code from a file: ") +
                      std::strerror(errno));
    }
  };
  map(0, layout_.codeBytes, PROT_READ | PROT_EXEC);
  map(layout_.codeBytes, layout_.constantBytes, PROT_READ);
  map(layout_.addressBegin(), layout_.addressBytes, PROT_READ | PROT_WRITE);
  finish(/*protectAll=*/false);
}

LoadedCode::~LoadedCode() { munmap(base_, layout_.bytes()); }

void LoadedCode::finish(bool protectAll) {
  auto *words = reinterpret_cast<uint64_t *>(base_ + layout_.addressBegin());
  for (const std::string &name : layout_.imports)
    *words++ = std::bit_cast<uint64_t>(importAddress(name));
  for (const CodeRelocation &relocation : layout_.relocations) {
    uint64_t address = std::bit_cast<uint64_t>(base_ + relocation.target);
    std::memcpy(base_ + relocation.at, &address, sizeof address);
  }
  auto protect = [&](uint64_t begin, uint64_t bytes, int protection) {
    if (bytes && mprotect(base_ + begin, bytes, protection) != 0) {
      int error = errno;
      munmap(base_, layout_.bytes());
      throw UserError(std::string("the machine does not make code executable: ") +
                      std::strerror(error));
    }
  };
  if (protectAll) {
    protect(0, layout_.codeBytes, PROT_READ | PROT_EXEC);
    protect(layout_.codeBytes, layout_.constantBytes, PROT_READ);
  }
  protect(layout_.addressBegin(), layout_.addressBytes, PROT_READ);
  // What was written as data: some processors, those of AArch64 among them, do not see to it.
  __builtin___clear_cache(reinterpret_cast<char *>(base_),
                          reinterpret_cast<char *>(base_ + layout_.codeBytes));
}

std::vector<uint8_t> LoadedCode::image() const {
  std::vector<uint8_t> bytes(base_, base_ + layout_.bytes());
  std::memset(bytes.data() + layout_.addressBegin(), 0, layout_.imports.size() * sizeof(uint64_t));
  for (const CodeRelocation &relocation : layout_.relocations)
    std::memset(bytes.data() + relocation.at, 0, sizeof(uint64_t));
  return bytes;
}

} // namespace sheaf::rt
