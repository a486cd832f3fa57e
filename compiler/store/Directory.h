//===- Directory.h - Whom a directory of code belongs to --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_STORE_DIRECTORY_H
#define SHEAF_COMPILER_STORE_DIRECTORY_H

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <sys/types.h>

namespace sheaf::store {

/// Why a store is not used.
class Refused : public std::runtime_error {
public:
  Refused(const std::string &message, bool distrusted)
      : std::runtime_error(message), distrusted(distrusted) {}
  bool distrusted; ///< another user could have put code there
};

/// Sees to it that the directory is there and that nobody but this user can write to it; makes it
/// with mode 0700. Throws Refused.
void prepareDirectory(const std::string &directory);

/// Which file lies at a path.
using FileId = std::pair<dev_t, ino_t>;

/// The file at a path, if there is one. Throws Refused for one that is not a plain file of this
/// user that nobody else can write to.
std::optional<FileId> trustedFile(const std::string &path);

/// A file that processes lock, together or alone. The lock ends with the object.
class FileLock {
public:
  /// Makes the file if need be. Throws Refused.
  explicit FileLock(const std::string &path);
  ~FileLock();
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;

  /// False when other processes did not let go in that time; then nothing is locked.
  bool together(std::chrono::milliseconds patience);
  bool alone(std::chrono::milliseconds patience);

private:
  bool lock(int operation, std::chrono::milliseconds patience);

  int file_ = -1;
};

} // namespace sheaf::store

#endif // SHEAF_COMPILER_STORE_DIRECTORY_H
