//===- row_pages.h - Pages that stand at several addresses ------*- C++ -*-===//
//
// Tensors that begin with the same rows may have them in the same memory, where the machine's
// tables of addresses can show one page at several places: each tensor is one run of addresses
// still. Pages have numbers of their own; which rows they stand for is decided here page by page.
// A processor does it by mappings of one file in memory; a GPU has the same by cuMemCreate and
// cuMemMap.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MEMORY_ROW_PAGES_H
#define SHEAF_RUNTIME_MEMORY_ROW_PAGES_H

#include <cstdint>
#include <memory>

namespace sheaf::rt {

/// All ranges begin and end at pages; `at` is a granule of the row space.
class RowPages {
public:
  virtual ~RowPages() = default;
  RowPages(const RowPages &) = delete;
  RowPages &operator=(const RowPages &) = delete;

  virtual uint64_t pageGranules() const = 0;

  /// The machine has so many mappings at most: whether there may be `count` more, until they are
  /// given back.
  virtual bool take(uint64_t count) = 0;
  virtual void giveBack(uint64_t count) = 0;

  /// From now on pages [page, page + pages) stand at `at`, and what stood there is lost there.
  /// Those that were never shown hold nothing yet. False when the machine refuses it.
  virtual bool show(uint64_t at, uint64_t page, uint64_t pages, bool mayWrite) = 0;
  /// Nothing stands there: it may be read, as what lies beside rows may, but not written.
  virtual void hide(uint64_t at, uint64_t pages) = 0;
  /// There is memory of its own, as of all rows. False when the machine refuses it.
  virtual bool restore(uint64_t at, uint64_t pages) = 0;
  /// Gives the memory of pages back that stand nowhere, and never will.
  virtual void drop(uint64_t page, uint64_t pages) = 0;

protected:
  RowPages() = default;
};

/// Pages of a file that is nowhere but in memory.
class HostPages final : public RowPages {
public:
  /// For rows from this address on, a page's; null when the machine offers no such file, or would
  /// promise memory only that it has.
  static std::unique_ptr<HostPages> make(uint8_t *rows);
  ~HostPages() override;

  uint64_t pageGranules() const override;
  bool take(uint64_t count) override;
  void giveBack(uint64_t count) override;
  bool show(uint64_t at, uint64_t page, uint64_t pages, bool mayWrite) override;
  void hide(uint64_t at, uint64_t pages) override;
  bool restore(uint64_t at, uint64_t pages) override;
  void drop(uint64_t page, uint64_t pages) override;

private:
  HostPages(uint8_t *rows, int file) : rows_(rows), file_(file) {}

  uint8_t *rows_;
  int file_;
  uint64_t taken_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_ROW_PAGES_H
