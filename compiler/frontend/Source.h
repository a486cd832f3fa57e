//===- Source.h - Source text and positions in it -------------*- C++ -*-===//
//
// Source text and positions in it.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_SOURCE_H
#define SHEAF_COMPILER_FRONTEND_SOURCE_H

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

/// A half-open span of byte offsets into the text of a model; it lies in one of its files.
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

/// One file's text with its line table. Offsets are those of the source that it is part of; what
/// lies beyond the end means the end.
class SourceText {
public:
  SourceText(std::string name, std::string text, uint32_t begin)
      : fileName(std::move(name)), contents(std::move(text)), first(begin) {
    lineStarts.push_back(0);
    for (size_t i = 0; i < contents.size(); ++i)
      if (contents[i] == '\n')
        lineStarts.push_back(i + 1);
  }

  const std::string &name() const { return fileName; }
  std::string_view text() const { return contents; }
  /// The offset of its first byte.
  uint32_t begin() const { return first; }
  size_t lineCount() const { return lineStarts.size(); }

  /// The text that a range covers.
  std::string_view slice(SourceRange range) const {
    size_t from = within(range.begin);
    return text().substr(from, std::max(within(range.end), from) - from);
  }

  /// The line, counted from 1, that holds an offset.
  uint32_t lineOf(uint32_t offset) const {
    auto after = std::upper_bound(lineStarts.begin(), lineStarts.end(), within(offset));
    return static_cast<uint32_t>(after - lineStarts.begin());
  }

  /// The offset at which a line, counted from 1, begins.
  uint32_t lineBegin(uint32_t line) const {
    return first + static_cast<uint32_t>(lineStarts[line - 1]);
  }

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
    size_t end = within(offset);
    uint32_t column = 1;
    for (size_t i = lineStarts[line - 1]; i < end; ++i)
      if ((static_cast<unsigned char>(contents[i]) & 0xC0) != 0x80)
        ++column;
    return {line, column};
  }

  /// A `use` of the text: where the file's name stands, and what it stands for.
  struct Use {
    SourceRange range;
    std::optional<size_t> file; ///< among the source's files
    std::string problem;        ///< why there is none
  };
  std::vector<Use> uses;

private:
  size_t within(uint32_t offset) const {
    return std::min<size_t>(offset - std::min(offset, first), contents.size());
  }

  std::string fileName;
  std::string contents;
  uint32_t first;
  std::vector<size_t> lineStarts;
};

/// What a name after `use` stands for.
struct UsedFile {
  std::string name; ///< for messages; two uses of one file give the same
  std::string text;
  std::string problem; ///< why it cannot be used; empty: it can
};

/// Finds the file that a file, known by its name, uses by another name.
using FileResolver = std::function<UsedFile(const std::string &used, const std::string &by)>;

struct Syntax;

/// The text of a model: its file, and all files that it uses, each once. They lie one after the
/// other in one space of offsets, the model's own file from 0, so a range tells its file.
class SourceFile {
public:
  /// Without a resolver nothing can be used. It is called here, never later.
  SourceFile(std::string name, std::string text, const FileResolver &resolver = {});

  /// What the text says (Parser.h), parsed when it is first asked for, from any thread. Not of a
  /// Program.
  std::shared_ptr<const Syntax> syntax() const;
  /// Whether it is a Program as text, as `--emit=program` prints it, which its beginning tells.
  bool isProgram() const { return beginsAsProgram; }

  /// The model's own file.
  const std::string &name() const { return texts.front().name(); }
  std::string_view text() const { return texts.front().text(); }

  /// The model's own file first, then those that it uses, in the order in which they are met.
  const std::deque<SourceText> &files() const { return texts; }
  /// The number of the file that holds an offset.
  size_t numberOf(uint32_t offset) const {
    auto after = std::upper_bound(texts.begin(), texts.end(), offset,
                                  [](uint32_t at, const SourceText &t) { return at < t.begin(); });
    return static_cast<size_t>(after - texts.begin()) - 1;
  }
  const SourceText &fileOf(uint32_t offset) const { return texts[numberOf(offset)]; }
  /// The file of this name, or null.
  const SourceText *find(std::string_view name) const {
    for (const SourceText &text : texts)
      if (text.name() == name)
        return &text;
    return nullptr;
  }

  std::string_view slice(SourceRange range) const { return fileOf(range.begin).slice(range); }
  LineColumn lineColumn(uint32_t offset) const { return fileOf(offset).lineColumn(offset); }

private:
  struct Parsed;

  std::deque<SourceText> texts;
  bool beginsAsProgram;
  std::shared_ptr<Parsed> parsed; ///< shared by copies
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_SOURCE_H
