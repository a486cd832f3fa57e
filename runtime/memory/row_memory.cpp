#include "runtime/memory/row_memory.h"

#include <cstring>

#include <sys/mman.h>

namespace sheaf::rt {

namespace {
/// Ids are non-negative 32-bit numbers, so that generated code may extend them either way.
constexpr uint64_t kMostGranules = uint64_t(1) << 31;
/// After the last row: kernels read whole vectors, beyond the end of a row's last slice, too.
constexpr uint64_t kReadBeyond = 1;
} // namespace

HostRows::HostRows(uint32_t paramGranules, uint64_t reserveBytes,
                   const std::optional<FileRange> &params)
    : space_(std::min(reserveBytes, kMostGranules * kGranuleBytes) + kReadBeyond * kGranuleBytes,
             (uint64_t(paramGranules) + 1 + kReadBeyond) * kGranuleBytes, "rows") {
  // Kernels gather rows from everywhere: on small pages many of their reads miss the TLB.
  madvise(space_.data(), space_.size(), MADV_HUGEPAGE);
  if (params)
    space_.map(*params, uint64_t(paramGranules) * kGranuleBytes);
}

uint64_t HostRows::capacity() const { return space_.size() / kGranuleBytes - kReadBeyond; }

void HostRows::fill(const RowRange &rows, uint8_t byte) {
  memset(space_.data() + rows.begin * kGranuleBytes, byte, rows.granules * kGranuleBytes);
}

void HostRows::release(const RowRange &rows) {
  uint64_t end = rows.end() == capacity() ? space_.size() : rows.end() * kGranuleBytes;
  space_.release(rows.begin * kGranuleBytes, end);
}

RowPages *HostRows::pages() {
  if (!pages_)
    pages_ = HostPages::make(space_.data());
  return pages_->get();
}

} // namespace sheaf::rt
