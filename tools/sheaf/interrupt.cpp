//===- interrupt.cpp - Interrupted output ---------------------------------===//
#include "tools/sheaf/interrupt.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <glob.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <thread>
#include <unistd.h>

namespace sheaf::tool {

namespace {

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&set, signal);
  return set;
}

/// io::AtomicFile's name for the file it has not finished.
void removeUnfinished(const std::string &path) {
  std::string pattern;
  for (char c : path) {
    if (std::strchr("*?[\\", c))
      pattern += '\\';
    pattern += c;
  }
  pattern += fmt::format(".tmp{}-*", getpid());
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i)
      unlink(found.gl_pathv[i]);
  globfree(&found);
}

} // namespace

/// Hands interrupting signals to a thread.
class SignalWatch {
public:
  /// `handle` runs on that thread; what it says false to ends the process as if nobody watched.
  explicit SignalWatch(std::function<bool(int signal)> handle) : handle_(std::move(handle)) {
    // Threads that start later inherit the mask, so that only the watcher sees these signals.
    sigset_t set = interrupts();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC);
    quit_ = eventfd(0, EFD_CLOEXEC);
    watcher_ = std::thread([this] { watch(); });
  }

  ~SignalWatch() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = ::write(quit_, &one, sizeof one);
    watcher_.join();
    close(signals_);
    close(quit_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

private:
  void watch() {
    pollfd both[2] = {{signals_, POLLIN, 0}, {quit_, POLLIN, 0}};
    for (;;) {
      if (poll(both, 2, -1) < 0 && errno == EINTR)
        continue;
      if (both[1].revents || !both[0].revents)
        return;
      signalfd_siginfo info;
      if (read(signals_, &info, sizeof info) != sizeof info)
        return;
      int number = static_cast<int>(info.ssi_signo);
      if (handle_(number))
        continue;
      // End as the signal would have ended the process.
      signal(number, SIG_DFL);
      sigset_t set = interrupts();
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      raise(number);
    }
  }

  std::function<bool(int)> handle_;
  sigset_t before_;
  int signals_ = -1, quit_ = -1;
  std::thread watcher_;
};

InterruptGuard::InterruptGuard(const std::string &path)
    : InterruptGuard(path.empty() || path == "-" ? std::function<void()>()
                                                 : [path] { removeUnfinished(path); }) {}

InterruptGuard::InterruptGuard(std::function<void()> cleanUp) {
  if (cleanUp)
    watch_ = std::make_unique<SignalWatch>([cleanUp = std::move(cleanUp)](int) {
      cleanUp();
      return false;
    });
}

InterruptGuard::~InterruptGuard() = default;

StopSignal::StopSignal()
    : watch_(std::make_unique<SignalWatch>([this](int signal) {
        int none = 0;
        if (!listens_ || !received_.compare_exchange_strong(none, signal))
          return false;
        stop_.request_stop();
        return true;
      })) {}

StopSignal::~StopSignal() = default;

} // namespace sheaf::tool
