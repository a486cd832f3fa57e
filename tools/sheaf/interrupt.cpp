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

struct InterruptGuard::Impl {
  std::function<void()> cleanUp;
  sigset_t before;
  int signals = -1;
  int quit = -1;
  std::thread watcher;
};

InterruptGuard::InterruptGuard(const std::string &path)
    : InterruptGuard(path.empty() || path == "-" ? std::function<void()>()
                                                 : [path] { removeUnfinished(path); }) {}

InterruptGuard::InterruptGuard(std::function<void()> cleanUp) {
  if (!cleanUp)
    return;
  impl_ = std::make_unique<Impl>();
  impl_->cleanUp = std::move(cleanUp);
  // Threads that start later inherit the mask, so that only the watcher sees these signals.
  sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, &impl_->before);
  impl_->signals = signalfd(-1, &set, SFD_CLOEXEC);
  impl_->quit = eventfd(0, EFD_CLOEXEC);
  impl_->watcher = std::thread([impl = impl_.get()] {
    pollfd both[2] = {{impl->signals, POLLIN, 0}, {impl->quit, POLLIN, 0}};
    for (;;) {
      if (poll(both, 2, -1) < 0 && errno == EINTR)
        continue;
      if (both[1].revents || !both[0].revents)
        return;
      signalfd_siginfo info;
      if (read(impl->signals, &info, sizeof info) != sizeof info)
        return;
      impl->cleanUp();
      // End as the signal would have ended the process.
      int number = static_cast<int>(info.ssi_signo);
      signal(number, SIG_DFL);
      sigset_t set = interrupts();
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      raise(number);
    }
  });
}

InterruptGuard::~InterruptGuard() {
  if (!impl_)
    return;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(impl_->quit, &one, sizeof one);
  impl_->watcher.join();
  close(impl_->signals);
  close(impl_->quit);
  pthread_sigmask(SIG_SETMASK, &impl_->before, nullptr);
}

} // namespace sheaf::tool
