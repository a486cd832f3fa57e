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

namespace sheaf {

/// What a user gave is wrong: a program, a file, an option. The message is complete: with file and
/// line where there is one.
class UserError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
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
  RunError(int64_t instance, const std::string &message, Cause cause = Cause::Program)
      : std::runtime_error("instance " + std::to_string(instance) + ": " + message),
        instance_(instance), message_(message), cause_(cause) {}

  /// Instance::index of the instance that failed.
  int64_t instance() const { return instance_; }
  const std::string &message() const { return message_; }
  Cause cause() const { return cause_; }
  bool outOfMemory() const { return cause_ == Cause::Memory; }

private:
  int64_t instance_;
  std::string message_;
  Cause cause_;
};

/// A promise inside Sheaf is broken: a bug of ours, never of the user.
class InternalError : public std::logic_error {
public:
  explicit InternalError(const std::string &message)
      : std::logic_error("internal error: " + message) {}
};

} // namespace sheaf

#endif // SHEAF_RUNTIME_MODEL_ERROR_H
