#include "runtime/io/text.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace sheaf::io {

SourceText readSource(const std::string &path) {
  bool standardInput = path == "-";
  SourceText source{standardInput ? "<stdin>" : path, {}};
  int fd = standardInput ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw NotReadable(path, std::strerror(errno));
  struct stat info;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
    source.text.reserve(static_cast<size_t>(info.st_size) + (size_t{1} << 16));
  size_t used = 0;
  int error = 0;
  for (;;) {
    // Grow by what was reserved first, so that a regular file is read in one piece.
    size_t room = std::max<size_t>(source.text.capacity() - used, size_t{1} << 16);
    source.text.resize(used + room);
    ssize_t got = ::read(fd, source.text.data() + used, room);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      error = errno;
    if (got <= 0)
      break;
    used += static_cast<size_t>(got);
  }
  if (!standardInput)
    ::close(fd);
  if (error)
    throw NotReadable(path, std::strerror(error));
  source.text.resize(used);
  return source;
}

std::string_view withoutByteOrderMark(std::string_view text) {
  if (text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  return text;
}

TextPlace PlaceFinder::at(size_t offset) {
  offset = std::min(offset, text_.size());
  if (offset < lineBegin_) {
    lineBegin_ = 0;
    line_ = 1;
  }
  for (;;) {
    size_t end = text_.find('\n', lineBegin_);
    if (end >= offset) // npos, too
      break;
    lineBegin_ = end + 1;
    ++line_;
  }
  size_t begin = lineBegin_;
  if (begin == 0)
    begin = text_.size() - withoutByteOrderMark(text_).size();
  return {line_, static_cast<int64_t>(offset - std::min(begin, offset)) + 1};
}

void requireUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    // Eight bytes of ASCII at once, none of them NUL.
    uint64_t eight;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      constexpr uint64_t kHigh = 0x8080808080808080, kOnes = 0x0101010101010101;
      if (((eight | (eight - kOnes)) & kHigh) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    if (text[at] == '\0')
      throw TextError{at, "a NUL byte: files are UTF-8 (UTF-16 has such bytes: 'iconv -f UTF-16 -t "
                          "UTF-8' converts it)"};
    size_t length = utf8Length(text.substr(at));
    if (length == 0)
      throw TextError{at, fmt::format("invalid UTF-8 ({}): 'iconv -f LATIN1 -t UTF-8' converts a "
                                      "file of another encoding, such as Latin-1",
                                      quoted(text.substr(at, 1)))};
    at += length;
  }
}

void requireEightBit(const SourceText &source) {
  std::string_view text = source.text;
  bool isUtf16 = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
  bool isUtf32 = text.starts_with(std::string_view("\xFF\xFE\0\0", 4)) ||
                 text.starts_with(std::string_view("\0\0\xFE\xFF", 4));
  if (isUtf16 || isUtf32)
    failAt(source.name, 1, 1,
           fmt::format("this is UTF-{0}, and files are UTF-8: 'iconv -f UTF-{0} -t UTF-8' converts "
                       "it",
                       isUtf32 ? 32 : 16));
}

LineReader::LineReader(std::string_view text) : rest_(withoutByteOrderMark(text)) {}

bool LineReader::next(std::string_view &line) {
  if (rest_.empty())
    return false;
  ++number_;
  size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  return true;
}

void failAt(const std::string &name, int64_t line, int64_t column, const std::string &message) {
  throw PlacedError({name, line, column}, message);
}

size_t utf8Length(std::string_view text) {
  if (text.empty())
    return 0;
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80)
    return 1;
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length)
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F))
    return 0;
  return length;
}

std::string quoted(std::string_view text, size_t limit) {
  std::string out = "'";
  while (!text.empty()) {
    if (out.size() > limit) {
      out += "...";
      break;
    }
    size_t length = utf8Length(text);
    unsigned char c = static_cast<unsigned char>(text[0]);
    if (length == 0 || c < 0x20 || c == 0x7F) {
      out += c == '\t' ? "\\t" : c == '\n' ? "\\n" : fmt::format("\\x{:02X}", c);
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + "'";
}

bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool isBlank(std::string_view text) {
  for (char c : text)
    if (!isSpace(c))
      return false;
  return true;
}

std::string plural(int64_t n, const char *noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string contentHash(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (char c : bytes)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", h);
}

namespace {

[[noreturn]] void failToWrite(const std::string &name) {
  throw UserError(fmt::format("cannot write '{}': {}", name, std::strerror(errno)));
}

} // namespace

void writeAll(int file, std::string_view bytes, const std::string &name) {
  while (!bytes.empty()) {
    ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      failToWrite(name);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void writeFile(const std::string &path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush())
    failToWrite(path);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat info;
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0)
      failToWrite(path_);
    return;
  }
  // O_EXCL decides between writers; the number only makes a second try rare.
  for (int attempt = 0; attempt < 100 && fd_ < 0; ++attempt) {
    temporary_ = fmt::format("{}.tmp{}-{}", path_, ::getpid(), attempt);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST)
      break;
  }
  if (fd_ < 0) {
    temporary_.clear();
    failToWrite(path_);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0)
    ::close(fd_);
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
}

void AtomicFile::flush() {
  writeAll(fd_, buffer_, path_);
  buffer_.clear();
}

void AtomicFile::write(const void *data, size_t size) {
  constexpr size_t kPiece = size_t{1} << 20;
  const char *from = static_cast<const char *>(data);
  while (size > 0) {
    size_t n = std::min(size, kPiece - buffer_.size());
    buffer_.append(from, n);
    from += n;
    size -= n;
    if (buffer_.size() == kPiece)
      flush();
  }
}

void AtomicFile::commit() {
  flush();
  if (temporary_.empty()) // a device or pipe: it has no whole
    return;
  if (::fsync(fd_) != 0)
    failToWrite(path_);
  int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0)
    failToWrite(path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    failToWrite(path_);
  temporary_.clear();
  // The rename itself must survive a crash too; not every file system can sync a directory.
  size_t slash = path_.rfind('/');
  std::string directory = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  int directoryFd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directoryFd >= 0) {
    ::fsync(directoryFd);
    ::close(directoryFd);
  }
}

void AtomicFile::removeLeftovers(const std::string &directory) {
  std::error_code error;
  std::vector<std::filesystem::path> leftovers;
  for (const auto &entry : std::filesystem::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    size_t at = name.rfind(".tmp");
    int process = 0, attempt = 0, read = 0;
    if (at == std::string::npos ||
        std::sscanf(name.c_str() + at, ".tmp%d-%d%n", &process, &attempt, &read) != 2 ||
        at + static_cast<size_t>(read) != name.size())
      continue;
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH)
      leftovers.push_back(entry.path());
  }
  for (const std::filesystem::path &path : leftovers)
    std::filesystem::remove(path, error);
}

} // namespace sheaf::io
