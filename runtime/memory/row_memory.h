//===- row_memory.h - Where rows lie ----------------------------*- C++ -*-===//
//
// Rows have a range of addresses on the host, with granule 0 at host(). Where kernels run on the
// host they use these rows themselves. A device with a memory of its own has the same granules
// there, and the host's range holds what was written to it and what was copied out.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MEMORY_ROW_MEMORY_H
#define SHEAF_RUNTIME_MEMORY_ROW_MEMORY_H

#include "runtime/memory/memory.h"
#include "runtime/memory/row_pages.h"
#include "runtime/model/layout.h"

#include <optional>

namespace sheaf::rt {

/// Granules [begin, begin + granules) of the row space.
struct RowRange {
  uint64_t begin = 0, granules = 0;
  uint64_t end() const { return begin + granules; }
};

/// Appends a range, or lengthens the last one if it ends there.
inline void appendRange(std::vector<RowRange> &ranges, const RowRange &range) {
  if (!ranges.empty() && ranges.back().end() == range.begin)
    ranges.back().granules += range.granules;
  else
    ranges.push_back(range);
}

class RowMemory {
public:
  virtual ~RowMemory() = default;
  RowMemory(const RowMemory &) = delete;
  RowMemory &operator=(const RowMemory &) = delete;

  /// Granule 0, as the host sees it; and how many there are.
  virtual uint8_t *host() const = 0;
  virtual uint64_t capacity() const = 0;

  /// These come after all that was asked of the rows before.
  virtual void fill(const RowRange &rows, uint8_t byte) = 0;
  /// Gives memory back: what these rows hold is lost.
  virtual void release(const RowRange &rows) = 0;
  /// Lets the host see rows as they are. Returns when it does.
  virtual void copyOut(const RowRange &rows) = 0;

  /// How rows come to have pages in common; null: they cannot.
  virtual RowPages *pages() { return nullptr; }

protected:
  RowMemory() = default;
};

/// A range of the host's addresses that has memory where it is touched.
class HostRows final : public RowMemory {
public:
  /// `params`: where the first `paramGranules` lie ready, if they do. Throws UserError when the
  /// machine refuses the addresses.
  HostRows(uint32_t paramGranules, uint64_t reserveBytes,
           const std::optional<FileRange> &params = std::nullopt);

  uint8_t *host() const override { return space_.data(); }
  uint64_t capacity() const override;
  void fill(const RowRange &rows, uint8_t byte) override;
  void release(const RowRange &rows) override;
  void copyOut(const RowRange &) override {}
  RowPages *pages() override;

private:
  Reservation space_;
  std::optional<std::unique_ptr<HostPages>> pages_; ///< made when they are first asked for
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_ROW_MEMORY_H
