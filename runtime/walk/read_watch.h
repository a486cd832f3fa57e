//===- read_watch.h - Who follows what instances read -----------*- C++ -*-===//
//
// A session that is given one tells it every number that host code reads from a tensor, and what
// counts as read is what it answers; else a read costs a comparison more. Reads come by threads of
// control: an instance is one, and so is each call that may run beside the one that makes it, in
// the order of the program, whatever ran when.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_READ_WATCH_H
#define SHEAF_RUNTIME_WALK_READ_WATCH_H

#include "runtime/model/layout.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace sheaf::rt {

struct LoggedRead {
  uint32_t place; ///< an index into Model::readPlaces
  Slot value;     ///< the bits of an f64; an int; a bool as 0 or 1
};

class ReadWatch {
public:
  virtual ~ReadWatch() = default;

  /// How many instances have begun.
  virtual size_t instances() const = 0;
  /// All but the first so many, which had ended before the others began, will begin again.
  virtual void keep(size_t instances) = 0;
  /// The thread of control of the next instance.
  virtual uint32_t begin() = 0;
  /// The thread of control of an instance that begins again, by the one that it had.
  virtual uint32_t beginAgain(uint32_t thread) = 0;
  /// Whether an instance with this thread of control may read what is not known when it begins
  /// again.
  virtual bool knowsMore(uint32_t thread) const = 0;
  /// Whether host code makes a call by sheaf_fork() and not itself: what counts, where the session
  /// would answer `forks`.
  virtual bool asked(uint32_t thread, bool forks) = 0;
  /// A call that it makes so now, on whatever stack.
  virtual uint32_t fork(uint32_t parent) = 0;
  /// What counts as read; nothing when that is not known.
  virtual std::optional<Slot> read(uint32_t thread, LoggedRead read) = 0;
  /// It has come to its end, and did not fail.
  virtual void end(uint32_t thread) = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_READ_WATCH_H
