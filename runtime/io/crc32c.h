//===- crc32c.h - Castagnoli's checksum -------------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_IO_CRC32C_H
#define SHEAF_RUNTIME_IO_CRC32C_H

#include <cstddef>
#include <cstdint>

namespace sheaf::io {

/// CRC-32C (RFC 3720, appendix B.4) of bytes; `before` is that of what comes before them, so that
/// parts give the same as the whole.
uint32_t crc32c(const void *data, size_t size, uint32_t before = 0);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_CRC32C_H
