//===- Caches.cpp - The caches of this machine ----------------------------===//
#include "compiler/target/Caches.h"

#include <charconv>
#include <fstream>
#include <unistd.h>

namespace sheaf::target {

namespace {

std::string lineOf(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// `48K`, `2M`: 0 for anything else.
int64_t sizeIn(const std::string &text) {
  int64_t size = 0;
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, size);
  if (error != std::errc() || end - rest != 1 || size <= 0 || size > (1 << 20))
    return 0;
  return *rest == 'K' ? size << 10 : *rest == 'M' ? size << 20 : 0;
}

} // namespace

rt::CacheSizes cachesIn(const std::string &directory) {
  constexpr int most = 8;
  rt::CacheSizes caches;
  for (int i = 0; i < most; ++i) {
    std::string cache = directory + "/index" + std::to_string(i) + "/";
    std::string level = lineOf(cache + "level");
    if (lineOf(cache + "type") == "Instruction")
      continue;
    if (level == "1")
      caches.l1 = sizeIn(lineOf(cache + "size"));
    if (level == "2")
      caches.l2 = sizeIn(lineOf(cache + "size"));
  }
  return caches;
}

rt::CacheSizes cachesOfThisMachine() {
  // The C library knows those of x86 only.
  rt::CacheSizes caches{sysconf(_SC_LEVEL1_DCACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE)};
  if (caches.l1 <= 0 || caches.l2 <= 0) {
    rt::CacheSizes others = cachesIn("/sys/devices/system/cpu/cpu0/cache");
    caches.l1 = caches.l1 > 0 ? caches.l1 : others.l1;
    caches.l2 = caches.l2 > 0 ? caches.l2 : others.l2;
  }
  return caches;
}

} // namespace sheaf::target
