#include "runtime/walk/read_replay.h"

namespace sheaf::rt {

uint32_t ReadReplay::begin() {
  if (left() == 0)
    return kUnknown;
  return rewind(log_.instances_[begun_++]);
}

uint32_t ReadReplay::beginAgain(uint32_t thread) {
  return rewind(knowsMore(thread) ? log_.threads_[thread].again : thread);
}

std::optional<Slot> ReadReplay::take(uint32_t thread, uint32_t place) {
  if (thread == kUnknown)
    return std::nullopt;
  const std::vector<LoggedRead> &events = log_.threads_[thread].events;
  size_t &next = next_[thread];
  if (next == events.size() || events[next].place != place)
    return std::nullopt;
  return events[next++].value;
}

bool ReadReplay::asked(uint32_t thread, bool forks) {
  std::optional<Slot> logged = take(thread, ReadLog::kAsked);
  return logged ? *logged != 0 : forks;
}

uint32_t ReadReplay::fork(uint32_t parent) {
  std::optional<Slot> logged = take(parent, ReadLog::kForked);
  return logged ? rewind(static_cast<uint32_t>(*logged)) : kUnknown;
}

std::optional<Slot> ReadReplay::read(uint32_t thread, LoggedRead read) {
  return take(thread, read.place);
}

} // namespace sheaf::rt
