//===- run.cpp - Mini-batches that were put aside -------------------------===//
#include "runtime/session/session_impl.h"

#include <algorithm>
#include <new>
#include <utility>

namespace sheaf::rt {

Run::Impl::~Impl() {
  std::erase(session.aside, this);
  session.meter.uncharge(session.memory.records, charged);
}

Run::Run(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Run::~Run() = default;

std::span<const Outcome> Run::outcomes() const { return impl_->outcomes; }

const Slot *Run::arguments(size_t instance) const {
  return impl_->outcomes.at(instance).ok() ? impl_->walks[instance].args : nullptr;
}

std::vector<RowRange> Session::Impl::rowsAside() const {
  std::vector<RowRange> rows;
  for (const Run::Impl *run : aside)
    rows.insert(rows.end(), run->rows.begin(), run->rows.end());
  return rows;
}

std::unique_ptr<Run> Session::putAside() {
  Impl &session = *impl_;
  // Others keep results from one mini-batch to the next, or give rows back meanwhile.
  if (!session.backward || session.options.keepBytes != 0)
    throw InternalError("putAside() on a session that cannot go back");
  session.settle();
  // All that may fail comes first: a mini-batch that cannot be put aside stays.
  auto made = std::make_unique<Run::Impl>(session);
  Run::Impl *run = made.get();
  run->recorded = session.recorded();
  uint64_t bytes = run->recorded.size() * sizeof(ScheduledBucket);
  if (!session.meter.charge(session.memory.records, bytes))
    throw OutOfMemory("out of memory for a mini-batch beside others: these already hold " +
                      session.meter.held().text());
  run->charged = bytes;
  run->heap = session.recorder.heap.emptyLike();
  run->records = session.recorder.buckets.noRecords();
  run->rows = session.recorder.rowSpace.ranges();
  session.aside.reserve(session.aside.size() + 1);
  std::unique_ptr<Run> result(new Run(std::move(made)));

  run->heap->swap(session.recorder.heap);
  session.recorder.buckets.swapRecords(*run->records);
  run->folded = std::exchange(session.folded, {});
  run->outcomes = std::exchange(session.outcomes, {});
  run->walks = std::exchange(session.walks, {});
  run->dropped.swap(session.dropped);
  run->weights = session.weightsOfRun;
  session.aside.push_back(run);
  try {
    session.forgetMiniBatch();
  } catch (const std::bad_alloc &) { // the next run forgets it again
  }
  return result;
}

} // namespace sheaf::rt
