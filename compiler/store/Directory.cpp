//===- Directory.cpp - Whom a directory of code belongs to ----------------===//
#include "compiler/store/Directory.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace sheaf::store {

namespace {

[[noreturn]] void refuse(const std::string &path, int error) {
  throw Refused(path + ": " + std::strerror(error), /*distrusted=*/false);
}

void checkOwner(const std::string &path, const struct stat &status) {
  if (status.st_uid != geteuid())
    throw Refused(path + " belongs to another user", /*distrusted=*/true);
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    throw Refused(path + " can be written by other users", /*distrusted=*/true);
}

} // namespace

void prepareDirectory(const std::string &directory) {
  struct stat status{};
  std::vector<fs::path> missing;
  fs::path path = fs::absolute(directory).lexically_normal();
  if (!path.has_filename())
    path = path.parent_path();
  for (fs::path at = path; stat(at.c_str(), &status) != 0; at = at.parent_path()) {
    if (errno != ENOENT || at == at.parent_path())
      refuse(directory, errno);
    missing.push_back(at);
  }
  // A directory of root's in the home of a user who called sudo would lock that user out.
  if (!missing.empty() && status.st_uid != geteuid() && !(status.st_mode & S_ISVTX))
    throw Refused(missing.back().parent_path().string() + " belongs to another user",
                  /*distrusted=*/false);
  for (auto at = missing.rbegin(); at != missing.rend(); ++at)
    if (mkdir(at->c_str(), S_IRWXU) != 0 && errno != EEXIST)
      refuse(directory, errno);
  if (stat(path.c_str(), &status) != 0)
    refuse(directory, errno);
  if (!S_ISDIR(status.st_mode))
    refuse(directory, ENOTDIR);
  checkOwner(directory, status);
}

std::optional<FileId> trustedFile(const std::string &path) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT)
      return std::nullopt;
    refuse(path, errno);
  }
  checkOwner(path, status);
  if (!S_ISREG(status.st_mode))
    throw Refused(path + " is no plain file", /*distrusted=*/true);
  return FileId{status.st_dev, status.st_ino};
}

FileLock::FileLock(const std::string &path)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR)) {
  if (file_ < 0)
    refuse(path, errno);
}

FileLock::~FileLock() { close(file_); }

bool FileLock::lock(int operation, std::chrono::milliseconds patience) {
  auto end = std::chrono::steady_clock::now() + patience;
  while (flock(file_, operation | LOCK_NB) != 0) {
    // Not every file system has locks.
    if (errno != EWOULDBLOCK && errno != EINTR)
      throw Refused(std::string("it cannot be locked: ") + std::strerror(errno), /*loud=*/false);
    if (std::chrono::steady_clock::now() >= end) {
      flock(file_, LOCK_UN);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

bool FileLock::together(std::chrono::milliseconds patience) { return lock(LOCK_SH, patience); }
bool FileLock::alone(std::chrono::milliseconds patience) { return lock(LOCK_EX, patience); }

} // namespace sheaf::store
