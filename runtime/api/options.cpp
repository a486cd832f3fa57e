// Structs that grow.
#include "runtime/api/options.h"

using namespace sheaf;
using namespace sheaf::api;

void api::copyKnown(const void *options, size_t size, void *copy, size_t knownSize,
                    size_t alignment, const char *type) {
  // Structs have grown by whole words, but never in the middle of a member.
  if (size < sizeof(size_t) || size > kMostOptionBytes || size % alignment != 0)
    throw Invalid("options.size is " + std::to_string(size) + ": set it to sizeof(" + type + ")");
  const auto *bytes = static_cast<const unsigned char *>(options);
  if (size > knownSize)
    if (std::any_of(bytes + knownSize, bytes + size, [](unsigned char b) { return b != 0; }))
      throw Invalid(std::string("a member of ") + type +
                    " is set that this library does not know: it is " + sheaf_version() +
                    ", older than the caller's header");
  std::memcpy(copy, bytes, std::min(size, knownSize));
}
