//===- line_input.cpp - Standard input, line by line ----------------------===//
#include "tools/sheaf/line_input.h"

#include "runtime/io/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace sheaf::tool {

LineInput::LineInput() : quit_(eventfd(0, EFD_CLOEXEC)) {}

LineInput::~LineInput() { ::close(quit_); }

void LineInput::close() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(quit_, &one, sizeof one);
}

bool LineInput::next() {
  do {
    size_t looked = next_, end;
    while ((end = text_.find('\n', looked)) == std::string::npos) {
      looked = text_.size() - next_;
      // All of the text may be asked for until the first line was taken.
      if (any_) {
        text_.erase(0, next_);
        next_ = 0;
      }
      looked += next_;
      if (!readMore())
        break;
    }
    if (end == std::string::npos && next_ == text_.size())
      return false;
    begin_ = next_;
    next_ = end == std::string::npos ? text_.size() : end + 1;
    size_ = (end == std::string::npos ? text_.size() : end) - begin_;
    if (size_ > 0 && text_[begin_ + size_ - 1] == '\r')
      --size_;
    if (++number_ == 1) {
      size_t without = io::withoutByteOrderMark(line()).size();
      begin_ += size_ - without;
      size_ = without;
    }
  } while (io::isBlank(line()));
  any_ = true;
  return true;
}

std::string LineInput::whole() {
  while (readMore()) {
  }
  return std::move(text_);
}

bool LineInput::readMore() {
  constexpr size_t kMost = size_t(1) << 16;
  while (!ended_) {
    pollfd both[2] = {{STDIN_FILENO, POLLIN, 0}, {quit_, POLLIN, 0}};
    if (poll(both, 2, -1) < 0 && errno == EINTR)
      continue;
    if (both[1].revents) {
      ended_ = true;
      text_.resize(next_); // half a line is none
      return false;
    }
    size_t before = text_.size();
    text_.resize(before + kMost);
    ssize_t got = ::read(STDIN_FILENO, text_.data() + before, kMost);
    text_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0)
      return true;
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    ended_ = true;
    if (got < 0)
      throw UserError(fmt::format("cannot read '-': {}", std::strerror(errno)));
  }
  return false;
}

} // namespace sheaf::tool
