#include "runtime/memory/row_pages.h"

#include "runtime/memory/memory.h"
#include "runtime/model/layout.h"

#include <atomic>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace sheaf::rt {

namespace {

/// Far more than all pages that are ever made: numbers are not used again.
constexpr off_t kFileBytes = off_t(1) << 62;

uint64_t systemNumber(const char *path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t number;
  return file >> number ? number : otherwise;
}

/// A mapping lies between two others at worst, and the process needs some for all else.
uint64_t mostMappings() {
  static const uint64_t most = systemNumber("/proc/sys/vm/max_map_count", 65530) / 4;
  return most;
}

/// The limit is the process's, whoever has sessions in it.
std::atomic<uint64_t> &mappings() {
  static std::atomic<uint64_t> count = 0;
  return count;
}

} // namespace

std::unique_ptr<HostPages> HostPages::make(uint8_t *rows) {
  // Where the system counts what is promised, touching a page of a file may fail, by a signal; as
  // does making a file longer than files may be.
  rlimit limit{};
  if (systemNumber("/proc/sys/vm/overcommit_memory", 0) == 2 ||
      getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
    return nullptr;
  int file = memfd_create("sheaf rows", MFD_CLOEXEC);
  if (file < 0)
    return nullptr;
  std::unique_ptr<HostPages> pages(new HostPages(rows, file));
  return ftruncate(file, kFileBytes) == 0 ? std::move(pages) : nullptr;
}

HostPages::~HostPages() {
  mappings() -= taken_;
  close(file_);
}

uint64_t HostPages::pageGranules() const { return pageBytes() / kGranuleBytes; }

bool HostPages::take(uint64_t count) {
  if (mappings().fetch_add(count) + count > mostMappings()) {
    mappings() -= count;
    return false;
  }
  taken_ += count;
  return true;
}

void HostPages::giveBack(uint64_t count) {
  mappings() -= count;
  taken_ -= count;
}

bool HostPages::show(uint64_t at, uint64_t page, uint64_t pages, bool mayWrite) {
  // Who shows what is there reads it soon: all pages at once take less than a fault for each few.
  return mmap(rows_ + at * kGranuleBytes, pages * pageBytes(),
              mayWrite ? PROT_READ | PROT_WRITE : PROT_READ,
              MAP_SHARED | MAP_FIXED | (mayWrite ? 0 : MAP_POPULATE), file_,
              static_cast<off_t>(page * pageBytes())) != MAP_FAILED;
}

void HostPages::hide(uint64_t at, uint64_t pages) {
  // Should it fail, what stood there can be read until something else is shown.
  mmap(rows_ + at * kGranuleBytes, pages * pageBytes(), PROT_READ,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool HostPages::restore(uint64_t at, uint64_t pages) {
  void *rows = rows_ + at * kGranuleBytes;
  if (mmap(rows, pages * pageBytes(), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  madvise(rows, pages * pageBytes(), MADV_HUGEPAGE); // as all rows (HostRows)
  return true;
}

void HostPages::drop(uint64_t page, uint64_t pages) {
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(page * pageBytes()), static_cast<off_t>(pages * pageBytes()));
}

} // namespace sheaf::rt
