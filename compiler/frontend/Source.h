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

  /// A file whose text nobody has, only places in it: lines of `gridColumns` bytes. What stands
  /// further to the right is taken to stand in the last.
  SourceText(std::string name, uint32_t begin) : fileName(std::move(name)), first(begin) {}

  static constexpr uint32_t gridColumns = 512;

  const std::string &name() const { return fileName; }
  /// Whether its text is there.
  bool isSeen() const { return !lineStarts.empty(); }
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
    if (!isSeen())
      return (offset - std::min(offset, first)) / gridColumns + 1;
    auto after = std::upper_bound(lineStarts.begin(), lineStarts.end(), within(offset));
    return static_cast<uint32_t>(after - lineStarts.begin());
  }

  /// The offset at which a line, counted from 1, begins.
  uint32_t lineBegin(uint32_t line) const {
    if (!isSeen())
      return first + (line - 1) * gridColumns;
    return first + static_cast<uint32_t>(lineStarts[line - 1]);
  }

  /// A line, counted from 1, without its line ending.
  std::string_view lineText(uint32_t line) const {
    if (!isSeen())
      return {};
    size_t begin = lineStarts[line - 1];
    size_t end = line < lineStarts.size() ? lineStarts[line] - 1 : contents.size();
    if (end > begin && contents[end - 1] == '\r')
      --end;
    return text().substr(begin, end - begin);
  }

  LineColumn lineColumn(uint32_t offset) const {
    uint32_t line = lineOf(offset);
    if (!isSeen())
      return {line, offset - std::min(offset, lineBegin(line)) + 1};
    size_t end = within(offset);
    uint32_t column = 1;
    for (size_t i = lineStarts[line - 1]; i < end; ++i)
      if ((static_cast<unsigned char>(contents[i]) & 0xC0) != 0x80)
        ++column;
    return {line, column};
  }

  /// The offset of a place; of one beyond the end the end.
  uint32_t offsetOf(LineColumn place) const;

  /// A `use` of the text: where the file's name stands, and what it stands for.
  struct Use {
    SourceRange range;
    std::optional<size_t> file; ///< by SourceFile::file()
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

/// A model: its file, and all files that it uses, each once. They lie one after the other in one
/// space of offsets, the model's own file from 0, so a range tells its file. One that was built
/// (Builder.h) has the files of who built it in the place of its own.
class SourceFile {
public:
  /// Without a resolver nothing can be used. It is called here, never later.
  SourceFile(std::string name, std::string text, const FileResolver &resolver = {});

  /// What was built: its places are in `hosts`, and the files after those are used.
  SourceFile(std::deque<SourceText> texts, size_t hosts, std::shared_ptr<const Syntax> syntax);

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
  /// How many files the model is made of: its own, and those that it uses.
  size_t fileCount() const { return texts.size() - hosts + 1; }
  /// The file of a number; of the model's own, 0, the first that it was built in.
  const SourceText &file(size_t number) const { return texts[number ? number + hosts - 1 : 0]; }
  /// The number of the file that what stands at an offset belongs to.
  size_t numberOf(uint32_t offset) const {
    size_t at = textAt(offset);
    return at < hosts ? 0 : at - hosts + 1;
  }
  const SourceText &fileOf(uint32_t offset) const { return texts[textAt(offset)]; }
  /// Whether what stands there is written in the language.
  bool isWritten(uint32_t offset) const { return !isBuilt || textAt(offset) >= hosts; }
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

  size_t textAt(uint32_t offset) const {
    auto after = std::upper_bound(texts.begin(), texts.end(), offset,
                                  [](uint32_t at, const SourceText &t) { return at < t.begin(); });
    return static_cast<size_t>(after - texts.begin()) - 1;
  }

  std::deque<SourceText> texts;
  size_t hosts = 1; ///< the first of the texts, where the model's own part stands
  bool isBuilt = false;
  bool beginsAsProgram;
  std::shared_ptr<Parsed> parsed; ///< shared by copies
};

/// What a text uses, and where it says so.
using UsedNames = std::vector<std::pair<SourceRange, std::string>>;

/// Adds the files that the first of the texts uses, and those that they use. The first `hosts`
/// texts are one file of the model; those that are added begin at `begin` or after the last.
void addUsedFiles(std::deque<SourceText> &texts, size_t hosts, uint32_t begin, UsedNames first,
                  const FileResolver &resolver);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_SOURCE_H
