//===- line_input.h - Standard input, line by line --------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_LINE_INPUT_H
#define SHEAF_TOOLS_SHEAF_LINE_INPUT_H

#include <cstdint>
#include <string>
#include <string_view>

namespace sheaf::tool {

/// Gives each line as soon as it has come. One at a time.
class LineInput {
public:
  /// As messages call it.
  static constexpr const char *kName = "<stdin>";

  LineInput();
  ~LineInput();
  LineInput(const LineInput &) = delete;
  LineInput &operator=(const LineInput &) = delete;

  /// Waits for the next line that is not blank. False at the end, and once it is closed. Throws
  /// UserError with the system's reason.
  bool next();
  /// Without its end and the byte order mark; valid until the next call.
  std::string_view line() const { return std::string_view(text_).substr(begin_, size_); }
  int64_t number() const { return number_; }

  /// After the first line at most: the whole text, which is read to its end.
  std::string whole();
  /// What has been read by now, as far as it is kept.
  std::string_view soFar() const { return text_; }

  /// From any thread: next() waits no longer.
  void close();

private:
  bool readMore();

  std::string text_;
  size_t begin_ = 0, size_ = 0; ///< of the line
  size_t next_ = 0;             ///< where the one after it begins
  int64_t number_ = 0;
  bool any_ = false;   ///< next() has given a line
  bool ended_ = false; ///< nothing more will come
  int quit_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_LINE_INPUT_H
