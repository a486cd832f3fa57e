//===- Log.cpp - Whether SQLite's log is whole ----------------------------===//
#include "compiler/store/Log.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <span>
#include <vector>

namespace sheaf::store {

namespace {

using LogBytes = std::span<const uint8_t>;

constexpr size_t kHeader = 32, kFrameHeader = 24;
constexpr uint32_t kMagic = 0x377f0682; ///< one more: sums are of words with the high byte first

uint32_t word(LogBytes bytes, size_t at, bool highFirst = true) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= uint32_t{bytes[at + i]} << 8 * (highFirst ? 3 - i : i);
  return value;
}

/// Whether the sum that stands at a place goes on, by these bytes, from the one before.
class Sum {
public:
  Sum(bool highFirst, uint32_t even, uint32_t odd)
      : highFirst_(highFirst), even_(even), odd_(odd) {}

  Sum &add(LogBytes bytes) {
    for (size_t at = 0; at < bytes.size(); at += 8) {
      even_ += word(bytes, at, highFirst_) + odd_;
      odd_ += word(bytes, at + 4, highFirst_) + even_;
    }
    return *this;
  }
  bool is(LogBytes bytes, size_t at) const {
    return even_ == word(bytes, at) && odd_ == word(bytes, at + 4);
  }

private:
  bool highFirst_;
  uint32_t even_, odd_;
};

std::vector<uint8_t> contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<uint8_t> content(file ? static_cast<size_t>(file.tellg()) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char *>(content.data()), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<size_t>(file.gcount()));
  return content;
}

} // namespace

bool isDamagedLog(const std::string &path) {
  std::vector<uint8_t> content = contentOf(path);
  LogBytes log(content);
  if (log.size() < kHeader)
    return false;
  uint32_t magic = word(log, 0), page = word(log, 8);
  bool highFirst = magic == kMagic + 1;
  if ((magic != kMagic && !highFirst) || page < 512 || page % 8 != 0 ||
      !Sum(highFirst, 0, 0).add(log.first(kHeader - 8)).is(log, kHeader - 8))
    return true;
  // Each generation of the log has salts of its own.
  LogBytes salts = log.subspan(16, 8), before = log.subspan(kHeader - 8, 8);
  bool isReached = true;
  for (log = log.subspan(kHeader); log.size() >= kFrameHeader + page;
       log = log.subspan(kFrameHeader + page)) {
    bool goesOn = std::ranges::equal(log.subspan(8, 8), salts) &&
                  Sum(highFirst, word(before, 0), word(before, 4))
                      .add(log.first(8))
                      .add(log.subspan(kFrameHeader, page))
                      .is(log, 16);
    isReached &= goesOn;
    // What a killed process left, and another began to write over, ends no transaction.
    bool endsTransaction = word(log, 4) != 0;
    if (!isReached && goesOn && endsTransaction)
      return true;
    before = log.subspan(16, 8);
  }
  return false;
}

} // namespace sheaf::store
