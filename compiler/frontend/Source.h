//===- Source.h - Source text and positions in it -------------*- C++ -*-===//
//
// Source text and positions in it.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_SOURCE_H
#define SHEAF_COMPILER_FRONTEND_SOURCE_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

/// A half-open span of byte offsets into one source file.
struct SourceRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  bool operator==(const SourceRange &) const = default;
};

/// The smallest range that covers both.
inline SourceRange join(SourceRange a, SourceRange b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// A position as people count it: both from 1, the column in code points (a tab is one column).
struct LineColumn {
  uint32_t line = 1;
  uint32_t column = 1;

  bool operator==(const LineColumn &) const = default;
};

/// The text of one model file with its line table. Offsets beyond the end mean the end.
class SourceFile {
public:
  SourceFile(std::string name, std::string text)
      : fileName(std::move(name)), contents(std::move(text)) {
    lineStarts.push_back(0);
    for (size_t i = 0; i < contents.size(); ++i)
      if (contents[i] == '\n')
        lineStarts.push_back(i + 1);
  }

  const std::string &name() const { return fileName; }
  std::string_view text() const { return contents; }
  size_t lineCount() const { return lineStarts.size(); }

  /// The text that a range covers.
  std::string_view slice(SourceRange range) const {
    size_t begin = std::min<size_t>(range.begin, contents.size());
    size_t end = std::clamp<size_t>(range.end, begin, contents.size());
    return text().substr(begin, end - begin);
  }

  /// The line, counted from 1, that holds an offset.
  uint32_t lineOf(uint32_t offset) const {
    auto after = std::upper_bound(lineStarts.begin(), lineStarts.end(), size_t{offset});
    return static_cast<uint32_t>(after - lineStarts.begin());
  }

  /// The offset at which a line, counted from 1, begins.
  uint32_t lineBegin(uint32_t line) const { return static_cast<uint32_t>(lineStarts[line - 1]); }

  /// A line, counted from 1, without its line ending.
  std::string_view lineText(uint32_t line) const {
    size_t begin = lineStarts[line - 1];
    size_t end = line < lineStarts.size() ? lineStarts[line] - 1 : contents.size();
    if (end > begin && contents[end - 1] == '\r')
      --end;
    return text().substr(begin, end - begin);
  }

  LineColumn lineColumn(uint32_t offset) const {
    uint32_t line = lineOf(offset);
    size_t end = std::min<size_t>(offset, contents.size());
    uint32_t column = 1;
    for (size_t i = lineBegin(line); i < end; ++i)
      if ((static_cast<unsigned char>(contents[i]) & 0xC0) != 0x80)
        ++column;
    return {line, column};
  }

private:
  std::string fileName;
  std::string contents;
  std::vector<size_t> lineStarts;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_SOURCE_H
