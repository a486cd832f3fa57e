#include "runtime/session/engine_inbox.h"

#include <iterator>
#include <utility>

namespace sheaf::rt {

void EngineInbox::submit(std::vector<Request> requests) {
  std::vector<std::unique_ptr<Submitted>> fresh;
  for (Request &request : requests) {
    fresh.push_back(std::make_unique<Submitted>());
    fresh.back()->request = std::move(request);
  }
  {
    std::lock_guard lock(mutex_);
    for (std::unique_ptr<Submitted> &submitted : fresh)
      submitted->number = next_++;
  }
  // A stop that comes before the request is here is seen when that is taken in.
  for (std::unique_ptr<Submitted> &submitted : fresh)
    if (const std::stop_token &stop = submitted->request.stop; stop.stop_possible())
      submitted->onStop.emplace(*this, submitted->number, stop);
  std::lock_guard lock(mutex_);
  arrivals_.requests.insert(arrivals_.requests.end(), std::make_move_iterator(fresh.begin()),
                            std::make_move_iterator(fresh.end()));
  tell();
}

/// Something has arrived.
void EngineInbox::tell() {
  arrived_.notify_all();
  if (listener_)
    listener_();
}

void EngineInbox::listen(std::function<void()> listener) {
  std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void EngineInbox::reserveStop() {
  std::lock_guard lock(mutex_);
  if (size_t room = stops_.size() + heard_ + 1; room > stops_.capacity())
    stops_.reserve(2 * room);
  ++heard_;
}

void EngineInbox::releaseStop() {
  std::lock_guard lock(mutex_);
  --heard_;
}

void EngineInbox::noteStop(uint64_t number) {
  std::lock_guard lock(mutex_);
  stops_.push_back(number);
  tell();
}

void EngineInbox::noteDropped() {
  std::lock_guard lock(mutex_);
  dropped_ = true;
  tell();
}

bool EngineInbox::takeDropped() {
  std::lock_guard lock(mutex_);
  return std::exchange(dropped_, false);
}

void EngineInbox::whenIdle(std::function<void()> change) {
  std::lock_guard lock(mutex_);
  arrivals_.changes.push_back(std::move(change));
  tell();
}

EngineInbox::Arrivals EngineInbox::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(arrivals_, {});
}

std::vector<uint64_t> EngineInbox::takeStops() {
  std::lock_guard lock(mutex_);
  std::vector<uint64_t> taken(stops_);
  stops_.clear();
  return taken;
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
