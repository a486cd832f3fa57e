//===- session_plan.cpp - Places for what a wave was promised -------------===//
//
// When all launches of a wave are there, its promised rows are given places (schedule/row_plan.h).
// Where there is no room for them in order of depth, or the policy is that of least memory, the
// launches run in windows of the order of recording (schedule/recorded_windows.h).
//
//===----------------------------------------------------------------------===//
#include "runtime/session/session_impl.h"

#include <bit>

namespace sheaf::rt {

std::optional<RowRange> Session::Impl::placeRows(size_t begin) {
  windowsOfPlan = leastPlanned = 0;
  // Those of earlier waves have places already.
  LiveValues results(model, values.facts(), meter, memory.records);
  try {
    results.beginPromised();
    for (size_t number : wave->members)
      if (outcomes[number].slots)
        results.add(model.entry.resultType, outcomes[number].slots);
  } catch (const std::bad_alloc &) {
    return std::nullopt;
  }
  if (model.training)
    return placeTraining(begin, results.promised());
  bool planned = planInWindows(begin, results.promised());
  scheduler.windows().release();
  std::optional<RowRange> passing = planned ? allocatePlanned() : std::nullopt;
  if (passing)
    rowPlan.apply(passing->begin);
  return passing;
}

/// Plans for the launches from `begin` on, in the order of the policy or one that takes less. False
/// when there is no room.
bool Session::Impl::planInWindows(size_t begin, std::span<Slot *const> results) {
  uint64_t all = recorder.promised.granules();
  if (policy == Policy::Memory || (options.hostile && counters.flushes % 3 == 1))
    cutInWindows(begin, options.hostile ? 1 + all / 5 : kNearBytes / kGranuleBytes);
  if (!planRows(begin, results))
    return false;
  takenOfPromised = static_cast<double>(rowPlan.staying() + rowPlan.passing()) /
                    static_cast<double>(std::max<uint64_t>(all, 1));
  return hasRoomForPlan() || planNarrower(begin, results);
}

bool Session::Impl::planRows(size_t begin, std::span<Slot *const> results) {
  if (!rowPlan.make(std::span(schedule).subspan(begin), recorder.promised, results,
                    recorder.rowSpace))
    return false;
  uint64_t bytes = usedBytes() + (rowPlan.staying() + rowPlan.passing()) * kGranuleBytes;
  leastPlanned = leastPlanned ? std::min(leastPlanned, bytes) : bytes;
  return true;
}

bool Session::Impl::hasRoomForPlan() const {
  const RowSpace &rows = recorder.rowSpace;
  return rowPlan.passing() <= rows.left() &&
         rowPlan.staying() + rowPlan.passing() <= rows.left() + rows.inHoles();
}

/// Windows of about so many granules, in place of the launches from `begin` on. False when there is
/// no memory for that; the launches are as they were then.
bool Session::Impl::cutInWindows(size_t begin, uint64_t granules) {
  RecordedWindows &windows = scheduler.windows();
  if (windows.isEmpty() &&
      !windows.find(std::span(schedule).subspan(begin), recorder.promised, recorder.rowSpace))
    return false;
  windowsOfPlan = windows.cut(granules, schedule, begin);
  return windowsOfPlan > 0;
}

/// There is no room for what is planned: the launches run in as few windows as make room, if some
/// do.
bool Session::Impl::planNarrower(size_t begin, std::span<Slot *const> results) {
  const RowSpace &rows = recorder.rowSpace;
  uint64_t all = recorder.promised.granules(), free = rows.left() + rows.inHoles();
  uint64_t room = std::min(rows.left(), free - std::min(free, rowPlan.staying()));
  if (room == 0)
    return false;
  uint64_t before = rowPlan.passing();
  uint64_t number = std::bit_ceil(std::max({uint64_t(2), before / room, windowsOfPlan + 1}));
  for (; number <= all; number *= 2) {
    if (!cutInWindows(begin, all / number) || !planRows(begin, results))
      break;
    if (hasRoomForPlan())
      return true;
    // Half as large windows save half as much again, and what is needed beyond them stays.
    uint64_t now = rowPlan.passing(), saved = before - std::min(before, now);
    if (now > room + saved)
      break;
    before = now;
  }
  // Several instances are better walked apart.
  return wave->members.size() == 1 && planOneByOne(begin, results);
}

/// The last means: each record runs when it was recorded, and all that is free is looked at. What
/// that takes at most can be told from the program (compiler/analysis/LiveTensors.h).
bool Session::Impl::planOneByOne(size_t begin, std::span<Slot *const> results) {
  rowPlan.looksAtAll(true);
  bool hasRoom = cutInWindows(begin, 1) && planRows(begin, results) && hasRoomForPlan();
  rowPlan.looksAtAll(false);
  return hasRoom;
}

/// Rows for what the plan says that stays, and a place for all else. Nothing when there is no room.
std::optional<RowRange> Session::Impl::allocatePlanned() {
  auto allocate = [&](uint64_t granules) {
    return recorder.rowSpace.allocateNow(static_cast<int64_t>(granules));
  };
  if (!rowPlan.placeStaying(allocate))
    return std::nullopt;
  uint64_t passing = allocate(rowPlan.passing());
  if (passing == RowSpace::kFull)
    return std::nullopt;
  return RowRange{passing, rowPlan.passing()};
}

/// Counts a plan for so many granules that were promised.
void Session::Impl::notePlan(uint64_t promised, uint64_t start) {
  uint64_t taken = rowPlan.staying() + rowPlan.passing();
  counters.rowPlans += 1;
  counters.rowWindows += windowsOfPlan > 1 ? windowsOfPlan : 0;
  counters.promisedBytes += promised * kGranuleBytes;
  counters.plannedBytes += taken * kGranuleBytes;
  counters.leastBytes += rowPlan.least() * kGranuleBytes;
  counters.planNanoseconds += clockNow() - start;
}

/// All that was promised has run: none but results is needed any more, and their rows lie apart. In
/// training what was dropped is known by its names from now on.
void Session::Impl::giveBackPassing(size_t begin, const RowRange &passing) {
  settle();
  if (!model.training || !dropped.isEmpty())
    isWhole = false; // several records may name the same rows
  if (options.hostile)
    checkGuards();
  recorder.rowSpace.giveBackLast(passing.begin, passing.granules);
  if (!dropped.isEmpty()) {
    takeRecordedBack(begin);
    dropped.takeNames(recorder.promised);
  }
  forgetCopies();
  recorder.promised.forget();
  recorder.known.forgetSeen(); // some of it names what was promised
}

} // namespace sheaf::rt
