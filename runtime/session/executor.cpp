#include "runtime/session/executor.h"

#include "runtime/session/engine_impl.h"
#include "runtime/session/invalid_argument.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sheaf::rt {

Executor::Executor(std::function<uint64_t()> clock) : clock_(std::move(clock)) {}

Executor::~Executor() {
  for (auto &[engine, member] : members_) {
    engine->impl_->inbox.listen(nullptr);
    engine->impl_->executor = nullptr;
  }
}

uint64_t Executor::now() const { return clock_ ? clock_() : clockNow(); }

void Executor::add(Engine &engine, TurnOptions options) {
  if (!(options.share > 0))
    throw InvalidArgument("an engine's share of the time is more than 0");
  {
    std::lock_guard lock(mutex_);
    if (engine.impl_->executor || members_.contains(&engine))
      throw InvalidArgument("an engine is in one executor at most");
    Member &member = members_[&engine];
    member.options = std::move(options);
    member.turn = ++turns_;
    engine.impl_->executor = this;
  }
  engine.impl_->inbox.listen([this, &engine] { hear(engine); });
  hear(engine); // it may have been given something before
}

void Executor::remove(Engine &engine) {
  engine.impl_->inbox.listen(nullptr);
  std::unique_lock lock(mutex_);
  auto found = members_.find(&engine);
  if (found == members_.end())
    return;
  engine.impl_->executor = nullptr;
  Member &member = found->second;
  if (!member.isStepped()) {
    members_.erase(found);
    return;
  }
  member.leaves = true;
  if (member.stepper != std::this_thread::get_id())
    stepped_.wait(lock, [&] { return !members_.contains(&engine); });
}

/// The engine was given something.
void Executor::hear(Engine &engine) {
  std::lock_guard lock(mutex_);
  auto found = members_.find(&engine);
  if (found == members_.end())
    return;
  Member &member = found->second;
  if (!std::exchange(member.hasMore, true) && !member.isStepped())
    member.time = std::max(member.time, time_);
  arrived_.notify_one();
}

/// Whose turn it is: of those who had the least time whoever had none for longest.
Executor::Place *Executor::next() {
  Place *best = nullptr;
  auto order = [](const Place &place) { return std::tuple(place.second.time, place.second.turn); };
  for (Place &place : members_) {
    const Member &member = place.second;
    if (member.hasMore && !member.isBroken && !member.isStepped())
      if (!best || order(place) < order(*best))
        best = &place;
  }
  return best;
}

void Executor::takeTurn(Place &place, std::unique_lock<std::mutex> &lock) {
  Engine *engine = place.first;
  Member &member = place.second;
  member.stepper = std::this_thread::get_id();
  member.hasMore = false;
  member.turn = ++turns_;
  time_ = std::max(time_, member.time);
  lock.unlock();
  std::exception_ptr thrown;
  bool more = true;
  uint64_t start = now();
  try {
    more = engine->step();
  } catch (...) {
    thrown = std::current_exception();
  }
  auto took = static_cast<double>(now() - start);
  if (thrown && member.options.failed)
    try {
      member.options.failed(std::exchange(thrown, nullptr));
    } catch (...) {
      thrown = std::current_exception();
    }
  lock.lock();
  member.time += took / member.options.share;
  member.hasMore |= more;
  member.isBroken = engine->impl_->broken != nullptr;
  member.stepper = {};
  if (member.leaves) {
    members_.erase(engine);
    stepped_.notify_all();
  }
  if (thrown)
    std::rethrow_exception(thrown);
}

Executor::Leaving::~Leaving() {
  if (executor.next())
    executor.arrived_.notify_one();
}

bool Executor::step() {
  std::unique_lock lock(mutex_);
  Leaving leaving{*this};
  if (Place *place = next())
    takeTurn(*place, lock);
  return std::any_of(members_.begin(), members_.end(), [](const Place &place) {
    const Member &member = place.second;
    return member.isStepped() || (member.hasMore && !member.isBroken);
  });
}

void Executor::run(const std::stop_token &stop) {
  std::unique_lock lock(mutex_);
  Leaving leaving{*this};
  while (!stop.stop_requested()) {
    if (Place *place = next())
      takeTurn(*place, lock);
    else
      arrived_.wait(lock, stop, [&] { return next() != nullptr; });
  }
}

} // namespace sheaf::rt
