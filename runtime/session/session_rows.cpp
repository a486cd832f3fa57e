//===- session_rows.cpp - What the device is told of rows -----------------===//
#include "runtime/session/kept_values.h"
#include "runtime/session/session_impl.h"

#include <new>

namespace sheaf::rt {

namespace {

/// Granules of rows that take long to look at; and that part of them which may stay unused.
constexpr uint64_t kMuch = (uint64_t(16) << 20) / kGranuleBytes, kLittle = 32;

/// An instruction for each of these ranges.
template <typename Kind>
void append(std::vector<Instruction> &instructions, std::span<const RowRange> ranges) {
  for (const RowRange &range : ranges)
    instructions.push_back(Kind{range});
}

} // namespace

/// The launches of the schedule from `begin` on, with what they read and what host code will.
void Session::Impl::submit(size_t begin, bool planned) {
  instructions.clear();
  bool shares = device->facts().sharesRows;
  size_t offset = begin;
  if (!shares)
    copyWrittenIn();
  auto launch = [&](size_t from, size_t to) {
    if (to > from)
      instructions.push_back(Launches{std::span(schedule).subspan(from, to - from),
                                      static_cast<uint32_t>(from),
                                      recorder.scratch.temporaryBytes(), &counters});
  };
  if (options.hostile && planned) {
    // Whoever reads what is free shall notice.
    for (const RowPlan::Release &release : rowPlan.releases()) {
      size_t ran = offset + (runsAt.empty() ? release.launches : runsAt[release.launches]);
      launch(begin, ran);
      begin = ran;
      instructions.push_back(FillRows{release.rows, 0xFF});
    }
  }
  launch(begin, schedule.size());
  if (!shares)
    copyKeptOut(offset);
  ticket = device->submit(instructions);
}

void Session::Impl::copyWrittenIn() {
  append<CopyIn>(instructions, recorder.written.ranges);
  recorder.written.ranges.clear();
}

/// What these launches make that is kept for other mini-batches, whose results it may be; and what
/// is emitted.
void Session::Impl::copyKeptOut(size_t begin) {
  std::vector<RowRange> ranges;
  for (const ScheduledBucket &bucket : std::span(schedule).subspan(begin)) {
    const KernelDesc &kernel = model.kernels[bucket.kernel];
    bool isEmitted = model.entry.emits && !kernel.deferred;
    for (int64_t i = 0; i < bucket.count; ++i) {
      const int32_t *words = bucket.records + i * kernel.words;
      uint64_t id = static_cast<uint32_t>(words[kernel.words - 1]);
      if (!isEmitted && id < recorder.rowSpace.keptBegin())
        continue;
      for (const RecordTensor &result : kernel.results) {
        uint64_t granules = granulesOf(result, words);
        appendRange(ranges, {id, granules});
        id += granules;
      }
    }
  }
  append<CopyOut>(instructions, ranges);
}

/// Lets the host see what those that wait read, as far as it stands at `depth` or above: that has
/// been computed.
void Session::Impl::publishReads(int64_t depth) {
  std::vector<RowRange> ranges;
  std::erase_if(recorder.reads.waits, [&](const ReadRows::Wait &wait) {
    if (wait.depth > depth)
      return false;
    appendRange(ranges, wait.rows);
    return true;
  });
  if (ranges.empty())
    return;
  instructions.clear();
  append<CopyOut>(instructions, ranges);
  ticket = device->submit(instructions);
}

/// The same for one that need not wait.
void Session::Impl::fetch(const RowRange &rows) {
  instructions.clear();
  copyWrittenIn(); // they may be an input's
  instructions.push_back(CopyOut{rows});
  ticket = device->submit(instructions);
  settle();
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

/// Lets the host see parameters that the device has changed.
void Session::Impl::showParams(std::span<const uint32_t> params) {
  if (device->facts().sharesRows)
    return;
  instructions.clear();
  for (uint32_t param : params) {
    const ParamDesc &desc = model.params[param];
    instructions.push_back(
        CopyOut{{desc.id, static_cast<uint64_t>(tensorGranules(desc.shape, desc.dtype))}});
  }
  device->run(instructions);
}

/// Whether so much is kept, and so little was made and let go since that was last looked at, that
/// to look takes longer than it is worth: instances that come one at a time must not each pay for
/// all that others have kept.
bool Session::Impl::rowsMayStay() const {
  const RowSpace &rows = recorder.rowSpace;
  return kept && !kept->isEmpty() && !options.hostile && rows.used() >= kMuch &&
         rows.handedOut() + kept->gone() <= rows.used() / kLittle &&
         usedBytes() < meter.limit() / 2;
}

/// The rows of what an engine keeps, with the room after those that may grow.
std::vector<RowRange> Session::Impl::keptRows() {
  std::vector<RowRange> stay;
  if (kept->isEmpty())
    return stay;
  const RowSpace &rows = recorder.rowSpace;
  GranuleBits live;
  live.reset(rows.used());
  kept->mark(live);
  recorder.grown.keep(live);
  if (recorder.grown.takeJoined())
    kept->findMemory();
  for (uint64_t at = live.next(0, true); at < live.size();) {
    uint64_t end = live.next(at, false);
    stay.push_back({rows.first() + at, end - at});
    at = live.next(end, true);
  }
  return stay;
}

/// Copies the tensors of a value that are memoised records' results, which come and go as these do,
/// into rows of the run. False, with Recorder::failure set, when memory is short.
bool Session::Impl::bringOut(ValueImage &image) {
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> copies;
  instructions.clear();
  for (const ValueImage::Tensor &tensor : image.tensors()) {
    uint32_t id = image.id(tensor);
    if (id < recorder.rowSpace.keptBegin() || tensor.granules == 0)
      continue;
    auto [copy, isNew] = copies.try_emplace({id, tensor.granules});
    if (isNew) {
      uint64_t to = recorder.rowSpace.allocateNow(static_cast<int64_t>(tensor.granules));
      if (to == RowSpace::kFull) {
        recorder.setFailure({Failure::Rows, 0, 0, 0, tensor.granules});
        return false;
      }
      copy->second = static_cast<uint32_t>(to);
      instructions.push_back(CopyRows{to, {id, tensor.granules}});
    }
    image.setId(tensor, copy->second);
  }
  if (!instructions.empty()) {
    ticket = device->submit(instructions);
    settle();
  }
  return true;
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
