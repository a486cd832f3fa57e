//===- session_rows.cpp - What the device is told of rows -----------------===//
#include "runtime/session/session_impl.h"

#include <new>

namespace sheaf::rt {

namespace {

/// An instruction for each of these ranges.
template <typename Kind>
void append(std::vector<Instruction> &instructions, std::span<const RowRange> ranges) {
  for (const RowRange &range : ranges)
    instructions.push_back(Kind{range});
}

} // namespace

/// The launches of the schedule from `begin` on, with what they read and what host code will.
void Session::Impl::submit(size_t begin) {
  instructions.clear();
  bool shares = device->facts().sharesRows;
  if (!shares)
    copyWrittenIn();
  instructions.push_back(Launches{std::span(schedule).subspan(begin), static_cast<uint32_t>(begin),
                                  recorder.scratch.temporaryBytes(), &counters});
  if (!shares)
    copyReadsOut(begin);
  ticket = device->submit(instructions);
}

void Session::Impl::copyWrittenIn() {
  append<CopyIn>(instructions, recorder.written.ranges);
  recorder.written.ranges.clear();
}

/// What these launches make that host code may read or emit, and what is kept for other
/// mini-batches. Which elements it reads host code does not say.
void Session::Impl::copyReadsOut(size_t begin) {
  const RowSpace &rows = recorder.rowSpace;
  std::vector<RowRange> ranges;
  bool areKnown = true; // else, of an older artefact, the host sees all there is
  for (const ScheduledBucket &bucket : std::span(schedule).subspan(begin)) {
    const KernelDesc &kernel = model.kernels[bucket.kernel];
    areKnown = areKnown && !kernel.results.empty();
    bool isRead = (model.reads || model.entry.emits) && !kernel.deferred;
    for (int64_t i = 0; i < bucket.count && areKnown; ++i) {
      const int32_t *words = bucket.records + i * kernel.words;
      uint64_t id = static_cast<uint32_t>(words[kernel.words - 1]);
      if (!isRead && id < rows.keptBegin())
        continue;
      for (const RecordTensor &result : kernel.results) {
        uint64_t granules = granulesOf(result, words);
        appendRange(ranges, {id, granules});
        id += granules;
      }
    }
  }
  if (!areKnown) {
    ranges.clear();
    if (model.reads || model.entry.emits)
      ranges.push_back({rows.first(), rows.used()});
    ranges.push_back({rows.keptBegin(), rows.capacity() - rows.keptBegin()});
  }
  append<CopyOut>(instructions, ranges);
}

/// Lets the host see the results of a mini-batch.
void Session::Impl::showResults(const std::function<void(LiveValues &)> &addResults) {
  if (device->facts().sharesRows)
    return;
  instructions.clear();
  copyWrittenIn(); // an input may be a result
  const RowSpace &rows = recorder.rowSpace;
  LiveValues results(model, values.facts(), meter, memory.records);
  try {
    results.begin(rows, nullptr);
    addResults(results);
    const GranuleBits &bits = results.bits();
    for (uint64_t at = bits.next(0, true); at < bits.size();) {
      uint64_t end = bits.next(at, false);
      instructions.push_back(CopyOut{{rows.first() + at, end - at}});
      at = bits.next(end, true);
    }
  } catch (const std::bad_alloc &) {
    instructions.push_back(CopyOut{{rows.first(), rows.used()}});
  }
  device->run(instructions);
}

/// Lets the host see all rows.
void Session::Impl::showAll() {
  if (device->facts().sharesRows)
    return;
  const RowSpace &rows = recorder.rowSpace;
  device->copyOut({rows.first(), rows.used()});
  device->copyOut({rows.keptBegin(), rows.capacity() - rows.keptBegin()});
}

} // namespace sheaf::rt
