//===- options.h - Structs that grow ----------------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_OPTIONS_H
#define SHEAF_RUNTIME_API_OPTIONS_H

#include "runtime/api/handles.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sheaf::api {

/// No struct will ever be as large: a size that is beyond was never set.
inline constexpr size_t kMostOptionBytes = 4096;

/// What known() does with any struct: copies `size` bytes to where `knownSize` are zero.
void copyKnown(const void *options, size_t size, void *copy, size_t knownSize, size_t alignment,
               const char *type);

/// What a caller that was compiled with an older or a newer header gives. Members that it does not
/// know are zero; those that this library does not know must be. All zero when `options` is null.
/// Throws Invalid.
template <typename Options> Options known(const Options *options, const char *type) {
  static_assert(std::is_trivially_copyable_v<Options> && std::is_standard_layout_v<Options> &&
                offsetof(Options, size) == 0);
  Options copy{};
  if (options)
    copyKnown(options, options->size, &copy, sizeof copy, alignof(Options), type);
  copy.size = sizeof copy;
  return copy;
}

/// Fills in a struct whose size the caller has set. Members that this library lacks are zero.
template <typename Told> void tell(Told told, Told &out, const char *type) {
  size_t size = out.size;
  if (size < sizeof(size_t) || size > kMostOptionBytes || size % alignof(Told) != 0)
    throw Invalid(std::string(type) + ".size is " + std::to_string(size) +
                  ": set it to sizeof(sheaf_" + type + ")");
  told.size = size;
  auto *bytes = reinterpret_cast<unsigned char *>(&out);
  std::memcpy(bytes, &told, std::min(size, sizeof told));
  if (size > sizeof told)
    std::memset(bytes + sizeof told, 0, size - sizeof told);
}

/// A number of an options struct; 0: the default.
inline int64_t countOf(uint64_t number, int64_t byDefault = 0) {
  return number ? static_cast<int64_t>(std::min<uint64_t>(number, INT64_MAX)) : byDefault;
}

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_OPTIONS_H
