#include "python/native/waiting.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace sheaf::python {

namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 40ms;      // between two looks for signals
constexpr auto kPatience = 150ms; // for work that was told to stop

/// A thread that does one piece of work after the other.
class Helper {
public:
  Helper() : thread_([this] { loop(); }) {}
  ~Helper() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void start(std::function<void()> work) {
    {
      std::lock_guard lock(mutex_);
      work_ = std::move(work);
      busy_ = true;
    }
    changed_.notify_all();
  }
  template <typename Duration> bool wait(Duration most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [&] { return !busy_; });
  }

private:
  void loop() {
    // Signals are for the threads of others.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return busy_ || ends_; });
      if (!busy_)
        return;
      std::function<void()> work = std::move(work_);
      lock.unlock();
      work();
      work = nullptr; // what it held goes before anyone is told
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

/// Used with the GIL held. Never destroyed: a process may end while one works.
std::vector<Helper *> &idle() {
  static auto *helpers = new std::vector<Helper *>;
  return *helpers;
}
std::vector<Helper *> &abandoned() {
  static auto *helpers = new std::vector<Helper *>;
  return *helpers;
}

Helper *takeHelper() {
  // Those whose work has ended since are as good as others.
  for (size_t i = abandoned().size(); i-- > 0;)
    if (abandoned()[i]->wait(0ms)) {
      idle().push_back(abandoned()[i]);
      abandoned().erase(abandoned().begin() + static_cast<ptrdiff_t>(i));
    }
  if (idle().empty())
    return new Helper;
  Helper *helper = idle().back();
  idle().pop_back();
  return helper;
}

} // namespace

Unlocked::~Unlocked() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) { // pthread_exit, which must not go on
    while (true)
      pause();
  }
}

Stop makeStop() {
  sheaf_stop *stop = nullptr;
  check(sheaf_stop_create(&stop));
  return Stop(stop, sheaf_stop_release);
}

namespace {
unsigned long mainThread = 0; // 0: to be asked for
}

bool tellsSignals() {
  if (!mainThread) {
    nb::object main = nb::module_::import_("threading").attr("main_thread")();
    mainThread = nb::cast<unsigned long>(main.attr("ident"));
  }
  return PyThread_get_thread_ident() == mainThread;
}

void runWaiting(std::function<void()> work, const Stop &stop) {
  if (!tellsSignals()) {
    Unlocked unlocked;
    work();
    return;
  }
  Helper *helper = takeHelper();
  helper->start(std::move(work));
  while (true) {
    bool done;
    {
      Unlocked unlocked;
      done = helper->wait(kLook);
    }
    if (done)
      break;
    if (PyErr_CheckSignals() == 0)
      continue;
    nb::python_error interrupt;
    sheaf_stop_request(stop.get());
    {
      Unlocked unlocked;
      done = helper->wait(kPatience);
    }
    (done ? idle() : abandoned()).push_back(helper);
    throw interrupt;
  }
  idle().push_back(helper);
}

void finishWaiting() {
  for (Helper *helper : abandoned()) {
    Unlocked unlocked;
    helper->wait(std::chrono::hours(1));
  }
  for (Helper *helper : idle())
    delete helper;
  idle().clear();
}

void forgetThreads() {
  mainThread = 0;
  idle().clear();
  abandoned().clear();
}

} // namespace sheaf::python
