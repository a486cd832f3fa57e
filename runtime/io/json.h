//===- json.h - A pull parser for JSON --------------------------*- C++ -*-===//
//
// Reads one JSON document (RFC 8259) event by event, in memory that grows with the nesting, one
// bit a level, and never with machine recursion. Beyond the RFC it reads the bare numbers NaN,
// Infinity and -Infinity, which Python writes.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_JSON_H
#define SHEAF_RUNTIME_IO_JSON_H

#include "runtime/io/text.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::io {

enum class JsonEvent : uint8_t {
  BeginObject,
  EndObject,
  BeginArray,
  EndArray,
  Key,
  String,
  Number,
  True,
  False,
  Null,
  End ///< after the document; only blanks may follow it
};

/// All functions throw TextError (offset in the text) when the text is not JSON: bad syntax, bad
/// escapes, invalid UTF-8, a lone surrogate, nesting beyond `maxDepth`.
class JsonPull {
public:
  explicit JsonPull(std::string_view text, size_t maxDepth = SIZE_MAX);

  JsonEvent next();
  /// The event that next() will return; text(), offset() already speak of it.
  JsonEvent peek();

  /// Key, String: the decoded text. Number: its characters. Valid until the next event.
  std::string_view text() const { return value_; }
  /// Where the current event begins.
  size_t offset() const { return offset_; }
  /// Where what has been read ends.
  size_t end() const { return at_; }
  /// String: whether text() is a part of the source (no escapes), so that offsets in it are true.
  bool isVerbatim() const { return verbatim_; }
  /// Open objects and arrays.
  size_t depth() const { return stack_.size(); }
  /// Reads on to the end of the value whose first event was just returned.
  void skip(JsonEvent first);

private:
  JsonEvent read();
  JsonEvent value();
  JsonEvent open(bool object);
  JsonEvent close(bool object);
  JsonEvent word(std::string_view text, JsonEvent event);
  void string();
  void number();
  uint32_t hex4(size_t at) const;
  void skipSpace();
  [[noreturn]] void fail(size_t offset, std::string message) const;
  [[noreturn]] void unexpected(const char *expected) const;

  std::string_view source_;
  size_t at_ = 0;
  size_t offset_ = 0;
  size_t maxDepth_;
  std::string_view value_;
  std::string decoded_;
  std::vector<bool> stack_; ///< true: object
  enum State : uint8_t { Start, First, AfterValue, AfterKey } state_ = Start;
  bool verbatim_ = false;
  bool peeked_ = false;
  JsonEvent event_ = JsonEvent::End;
};

/// For messages: "a string 'x'", "a number 1.5", "an object", "null", "the end of the line".
std::string describeEvent(JsonEvent event, std::string_view text);

/// The text as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
void appendJsonString(std::string &out, std::string_view text);

/// The integer that a JSON number denotes, if it is one that fits (1, -3; also 1.0 and 1e3).
bool parseInteger(std::string_view number, int64_t &value);

/// The nearest double (float) of a JSON number; a number too small is 0. False when it is too
/// large. NaN, Infinity and -Infinity are read too.
bool parseDouble(std::string_view number, double &value);
bool parseFloat(std::string_view number, float &value);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_JSON_H
