#include "tools/sheaf/progress.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sheaf::tool {

using Clock = std::chrono::steady_clock;

/// The one whose line is on the terminal.
static Progress *shown = nullptr;

Progress::Progress(std::string title, int64_t total)
    : title_(std::move(title)), total_(total), onTerminal_(::isatty(STDERR_FILENO)),
      // Short work shows nothing at all.
      next_(Clock::now() + std::chrono::milliseconds(300)) {
  const char *wanted = std::getenv("SHEAF_PROGRESS");
  onTerminal_ &= std::string_view(wanted ? wanted : "") != "never";
  everyStep_ = std::string_view(wanted ? wanted : "") == "always";
}

Progress::~Progress() {
  if (shown == this)
    clear();
}

void Progress::clear() {
  if (!shown)
    return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown = nullptr;
}

std::string Progress::line(const std::string &title, int64_t done, int64_t total, int width,
                           const std::string &more) {
  if (total <= 0)
    return fmt::format("{} {}{}", title, done, more).substr(0, static_cast<size_t>(width));
  double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  std::string numbers = fmt::format("{:3.0f}% {}/{}{}", share * 100, done, total, more);
  int room = width - static_cast<int>(title.size() + numbers.size()) - 4;
  if (room < 5)
    return fmt::format("{} {}", title, numbers).substr(0, static_cast<size_t>(width));
  int bar = std::min(room, 40), full = static_cast<int>(share * bar);
  return fmt::format("{} [{}{}] {}", title, std::string(static_cast<size_t>(full), '#'),
                     std::string(static_cast<size_t>(bar - full), '.'), numbers);
}

void Progress::draw(const Text &more) {
  Clock::time_point now = Clock::now();
  if (now < next_ && !everyStep_)
    return;
  next_ = now + std::chrono::milliseconds(100);
  winsize size{};
  int width = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col : 80;
  std::string text = line(title_, done_, total_, width - 1, more ? more() : "");
  std::fprintf(stderr, "\r%s\033[K", text.c_str());
  std::fflush(stderr);
  shown = this;
}

} // namespace sheaf::tool
