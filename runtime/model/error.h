//===- error.h - The three kinds of errors ----------------------*- C++ -*-===//
//
// Thrown at API level only, never through generated code or a host stack.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_ERROR_H
#define SHEAF_RUNTIME_MODEL_ERROR_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace sheaf {

/// What a user gave is wrong: a program, a file, an option. The message is complete: with file and
/// line where there is one.
class UserError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Where something is wrong with what a user gave.
struct ErrorPlace {
  std::string file;
  int64_t line = 0, column = 0; ///< from 1, columns in bytes; 0: not known
  int64_t instance = -1;        ///< of data, from 0; -1: none
  std::string field = {};       ///< in it, as a path: `$.words[2]`
};

/// An error in a file: what() is `FILE:LINE:COLUMN: FIELD: MESSAGE`, of these what is known, or a
/// text that names the file in its own way.
class PlacedError : public UserError {
public:
  PlacedError(ErrorPlace place, const std::string &message)
      : PlacedError(place, message, textOf(place) + message) {}
  PlacedError(ErrorPlace place, const std::string &message, const std::string &text)
      : UserError(text), place_(std::move(place)), message_(message) {}

  const ErrorPlace &place() const { return place_; }
  const std::string &message() const { return message_; }

private:
  static std::string textOf(const ErrorPlace &place) {
    std::string text = place.file;
    for (int64_t number : {place.line, place.column})
      if (number > 0)
        text += ":" + std::to_string(number);
    return text + ": " + (place.field.empty() ? "" : place.field + ": ");
  }

  ErrorPlace place_;
  std::string message_;
};

/// A file that cannot be opened or read; `why` as the system says.
class NotReadable : public PlacedError {
public:
  NotReadable(const std::string &file, const std::string &why)
      : PlacedError({file}, "cannot be read: " + why, "cannot read '" + file + "': " + why) {}
  /// One that comes from the compiler's library.
  NotReadable(const std::string &text, const ErrorPlace &place, const std::string &message)
      : PlacedError(place, message, text) {}
};

/// What is to be done at one time needs more memory than it may take; less at one time may do.
class OutOfMemory : public UserError {
public:
  using UserError::UserError;
};

/// One instance could not be computed: a failed check, an index out of range, too deep a
/// recursion, too little memory. what() begins with the instance; message() does not.
class RunError : public std::runtime_error {
public:
  enum class Cause : uint8_t {
    Program, ///< the program and the data: it fails wherever it runs
    Limit,   ///< a bound of this run, such as that of the recursion's depth
    Memory,  ///< others left the instance too little memory; alone it may do (but in an engine)
    // Of instances that an engine runs (engine.h).
    Deadline, ///< it did not end in time
    Cancelled ///< whoever asked for it did not want it any more
  };
  RunError(int64_t instance, const std::string &message, Cause cause = Cause::Program,
           int64_t column = 0)
      : std::runtime_error("instance " + std::to_string(instance) + ": " + message),
        instance_(instance), message_(message), cause_(cause), column_(column) {}

  /// Instance::index of the instance that failed.
  int64_t instance() const { return instance_; }
  /// With the file and line of the program that it begins with, where one is to blame.
  const std::string &message() const { return message_; }
  /// In that line, from 1; 0: not known.
  int64_t column() const { return column_; }
  Cause cause() const { return cause_; }
  bool outOfMemory() const { return cause_ == Cause::Memory; }

private:
  int64_t instance_;
  std::string message_;
  Cause cause_;
  int64_t column_;
};

/// A promise inside Sheaf is broken: a bug of ours, never of the user.
class InternalError : public std::logic_error {
public:
  explicit InternalError(const std::string &message)
      : std::logic_error("internal error: " + message) {}
};

} // namespace sheaf

#endif // SHEAF_RUNTIME_MODEL_ERROR_H
