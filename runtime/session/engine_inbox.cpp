#include "runtime/session/engine_inbox.h"

#include <utility>

namespace sheaf::rt {

void EngineInbox::submit(Request request) {
  auto submitted = std::make_unique<Submitted>();
  submitted->request = std::move(request);
  {
    std::lock_guard lock(mutex_);
    submitted->number = next_++;
  }
  // A stop that comes before the request is here is seen when that is taken in.
  if (submitted->request.stop.stop_possible())
    submitted->onStop.emplace(submitted->request.stop, [this, number = submitted->number] {
      std::lock_guard lock(mutex_);
      stops_.push_back(number);
      arrived_.notify_all();
    });
  std::lock_guard lock(mutex_);
  arrivals_.requests.push_back(std::move(submitted));
  arrived_.notify_all();
}

void EngineInbox::whenIdle(std::function<void()> change) {
  std::lock_guard lock(mutex_);
  arrivals_.changes.push_back(std::move(change));
  arrived_.notify_all();
}

EngineInbox::Arrivals EngineInbox::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(arrivals_, {});
}

std::vector<uint64_t> EngineInbox::takeStops() {
  std::lock_guard lock(mutex_);
  return std::exchange(stops_, {});
}

void EngineInbox::setQueued(size_t queued) {
  std::lock_guard lock(mutex_);
  queued_ = queued;
}

size_t EngineInbox::waiting() const {
  std::lock_guard lock(mutex_);
  return arrivals_.requests.size() + queued_;
}

bool EngineInbox::hasArrivals() const {
  std::lock_guard lock(mutex_);
  return !isEmpty();
}

void EngineInbox::wait(const std::stop_token &stop) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, stop, [&] { return !isEmpty(); });
}

} // namespace sheaf::rt
