#include "runtime/io/crc32c.h"

#include <array>
#include <cstring>

namespace sheaf::io {

namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

/// [0]: of one byte; [t]: of one byte that t zeros follow.
constexpr Tables makeTables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t t = 1; t < 8; ++t)
      tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 255];
  return tables;
}
constexpr Tables kTables = makeTables();

} // namespace

uint32_t crc32c(const void *data, size_t size, uint32_t before) {
  const auto *p = static_cast<const uint8_t *>(data);
  uint32_t crc = ~before;
  for (; size >= 8; size -= 8, p += 8) {
    uint32_t next = 0;
    for (size_t i = 0; i < 4; ++i)
      next ^= kTables[7 - i][p[i] ^ ((crc >> (8 * i)) & 255)] ^ kTables[3 - i][p[4 + i]];
    crc = next;
  }
  for (; size > 0; --size, ++p)
    crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 255];
  return ~crc;
}

} // namespace sheaf::io
