//===- text.h - Text files, lines, and errors in them -----------*- C++ -*-===//
//
// What all readers of text share: a file as one string, its lines, and messages that name the
// place. Columns are counted in bytes from 1.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_TEXT_H
#define SHEAF_RUNTIME_IO_TEXT_H

#include "runtime/model/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sheaf::io {

/// A whole text and the name that messages use for it.
struct SourceText {
  std::string name;
  std::string text;
};

/// Reads a file, or standard input for `-`. Throws UserError with the system's reason.
SourceText readSource(const std::string &path);

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// The text after its byte order mark, if it begins with one.
std::string_view withoutByteOrderMark(std::string_view text);

/// Where the offset of a text stands. Lines and columns count from 1; a byte order mark is no part
/// of the first line.
struct TextPlace {
  int64_t line, column;
};
/// Finds places of one text, in any order; going on from the last one takes no longer than the text
/// between the two.
class PlaceFinder {
public:
  explicit PlaceFinder(std::string_view text) : text_(text) {}
  TextPlace at(size_t offset);

private:
  std::string_view text_;
  size_t lineBegin_ = 0; ///< of the line of the last place
  int64_t line_ = 1;
};

/// Throws TextError at the first byte that no UTF-8 text holds: one of an invalid sequence, or NUL.
void requireUtf8(std::string_view text);
/// Throws UserError for a text of two or four bytes a character, by how it begins. What else is no
/// UTF-8 is told of lines.
void requireEightBit(const SourceText &source);

/// The lines of a text without their ends (`\n` or `\r\n`); a byte order mark at the start is not
/// part of the first line. The views point into the text.
class LineReader {
public:
  explicit LineReader(std::string_view text);

  /// False at the end of the text.
  bool next(std::string_view &line);

  /// The number of the line last read, from 1.
  int64_t number() const { return number_; }

private:
  std::string_view rest_;
  int64_t number_ = 0;
};

/// An error at a byte of one piece of text, thrown by parsers that do not know where that text
/// comes from and caught by those that do.
struct TextError {
  size_t offset;
  std::string message;
  std::string field = {}; ///< ErrorPlace::field
  /// As it is told.
  std::string text() const { return field.empty() ? message : field + ": " + message; }
};

/// Throws PlacedError "name:line:column: message" (the column is left out when it is 0).
[[noreturn]] void failAt(const std::string &name, int64_t line, int64_t column,
                         const std::string &message);

/// The text in single quotes for a message: cut after about `limit` bytes (never inside a UTF-8
/// sequence), control characters and invalid UTF-8 as \xNN.
std::string quoted(std::string_view text, size_t limit = 40);

/// Bytes of the valid UTF-8 sequence at the start of `text`, or 0 when there is none.
size_t utf8Length(std::string_view text);

/// Blank means space, tab, and the other ASCII white space.
bool isSpace(char c);
bool isBlank(std::string_view text);

/// "1 word", "2 words".
std::string plural(int64_t n, const char *noun);

/// 64-bit FNV-1a in 16 hexadecimal digits: tells contents apart that were not made to be taken for
/// each other.
std::string contentHash(std::string_view bytes);

/// Writes all of it. Throws UserError with the system's reason and `name`.
void writeAll(int file, std::string_view bytes, const std::string &name);
/// Makes a file of this text, in the place of an older one. Throws UserError with the system's
/// reason. What must not be found half written is an AtomicFile's.
void writeFile(const std::string &path, std::string_view text);

/// Writes a whole file so that it is either complete or not there: a temporary file beside it,
/// fsync, rename. A device or pipe of that name is written to as it is, and stays. Throws UserError
/// with the system's reason.
class AtomicFile {
public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(const void *data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Puts the file in place. Without it the destructor removes what was written.
  void commit();

  /// Removes the temporary files of a directory that processes which are no more left behind.
  static void removeLeftovers(const std::string &directory);

private:
  void flush();

  std::string path_;
  std::string temporary_;
  std::string buffer_;
  int fd_ = -1;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_TEXT_H
