//===- backward_segments.cpp - Where the rows of gradients are used again -===//
//
// The walk back runs in segments, after which parameters have taken what is theirs and the rows are
// free, and these in pieces, before which dropped rows are made again.
//
//===----------------------------------------------------------------------===//
#include "runtime/backward/backward.h"

#include <algorithm>
#include <utility>

namespace sheaf::rt {

/// Whether what was put there is all of a gradient, and all of it is still waited for.
bool Backward::isHeld(const Waiting &waiting) const {
  uint32_t differs = waiting.held == 0;
  for (uint32_t i = 0; i < waiting.granules; ++i)
    differs |= sources_[waiting.begin + i] ^ (waiting.held + i);
  return !differs;
}

/// Puts gradients that records wait for where the segment's rows do not take them along. What has
/// several summands by then is their sum so far, so that sums are made in the same order. Until the
/// segment has ended they count as taken.
void Backward::holdWaiting() {
  size_t kept = 0;
  for (Waiting &each : waiting_) {
    if (!isHeld(each)) {
      if (each.held)
        leave_.push_back({0, each.held, each.granules});
      if (!hasGradient(each.begin, each.granules))
        continue;
      uint64_t row = held_.allocate(each.granules);
      if (row == RowSpace::kFull)
        outOfMemory();
      each.held = static_cast<uint32_t>(row);
      sumTo(each.held, each.begin, each.granules, each.dtype, /*add=*/false);
    }
    for (uint32_t i = 0; i < each.granules; ++i)
      if (uint32_t &source = sources_[each.begin + i]) {
        if (i > 0 && !stay_.empty() && stay_.back().row + stay_.back().granules == each.held + i)
          ++stay_.back().granules;
        else
          stay_.push_back({each.begin + i, each.held + i, 1});
        source = 0; // another range may begin in this one
      }
    waiting_[kept++] = each;
  }
  waiting_.resize(kept);
  flushSums(depth_++);
}

/// Runs what was made since the last piece, and gives back what was made again for it.
void Backward::runPiece(const Runner &run, bool endsSegment) {
  makeAgain(run);
  run(std::span(schedule_).subspan(ran_), ran_);
  ran_ = schedule_.size();
  if (!endsSegment)
    forgetAgain(false);
}

/// Gives back what was made again and is needed no more.
void Backward::forgetAgain(bool endsSegment) {
  dropped_->endPiece(endsSegment,
                     [&](uint32_t place, uint32_t granules) { held_.giveBack(place, granules); });
  again_ = 0;
}

/// Makes what the piece reads of dropped rows, and tells all that reads it where that is.
void Backward::makeAgain(const Runner &run) {
  if (dropped_->isEmpty())
    return;
  std::span<ScheduledBucket> made = std::span(schedule_).subspan(ran_);
  dropped_->need(made, rows_);
  std::vector<Factor> factors = placeFactors();
  for (const Factor &factor : factors)
    dropped_->need(*factor.ids);
  std::span<const ScheduledBucket> again;
  try {
    again = dropped_->makeAgain(forward_, rows_, [&](uint32_t granules) {
      uint64_t id = held_.allocate(granules);
      if (id == RowSpace::kFull)
        outOfMemory();
      return static_cast<uint32_t>(id);
    });
  } catch (const std::bad_alloc &) {
    outOfMemory();
  }
  dropped_->place(made, rows_);
  for (const ScheduledBucket &launch : again)
    counters_->recomputed += static_cast<uint64_t>(launch.count);
  if (!again.empty())
    run(again, 0);
  copyFactors(factors, run);
}

/// Products of weights read their factors at the end of the segment. Places of those that stay are
/// written; the others, since the last piece, are returned.
std::vector<Backward::Factor> Backward::placeFactors() {
  std::vector<Factor> factors;
  auto add = [&](uint32_t *ids, size_t count, uint32_t stride) {
    for (size_t end, i = 0; i < count; i = end) {
      end = i + 1;
      if (!PromisedRows::has(ids[i]))
        continue;
      if (dropped_->stays(ids[i])) {
        dropped_->place(ids[i]);
        continue;
      }
      while (end < count && ids[end] == ids[end - 1] + stride &&
             dropped_->isOneAllocation(ids[end], ids[i]))
        ++end;
      factors.push_back({ids + i, static_cast<uint32_t>(end - i), stride});
    }
  };
  auto addRows = [&](std::vector<uint32_t> &ids, size_t &placed, int64_t granules) {
    add(ids.data() + placed, ids.size() - placed, static_cast<uint32_t>(granules));
    placed = ids.size();
  };
  for (Job &job : jobs_) {
    const ParamDesc &param = model_.params[job.param];
    bool rows = job.kind == WeightGradient::Product;
    addRows(job.left, job.leftPlaced, rowGranules(job.rowCount, DType::F32));
    addRows(job.right, job.rightPlaced,
            rows ? rowGranules(job.columnCount, DType::F32)
                 : tensorGranules(param.shape, param.dtype));
  }
  for (; scatteredPlaced_ < scattered_.size(); ++scatteredPlaced_) {
    Scattered &each = scattered_[scatteredPlaced_];
    std::vector<int64_t> shape = model_.params[each.weight->param].shape;
    shape[0] = each.count;
    auto rows = static_cast<uint32_t>(tensorGranules(shape, DType::F32));
    std::array indices{each.count};
    add(&each.left, 1, static_cast<uint32_t>(tensorGranules(indices, each.weight->indexType)));
    add(&each.right, 1, rows);
  }
  return factors;
}

/// Copies factors that were made again to where they are until the segment ends.
void Backward::copyFactors(std::span<const Factor> factors, const Runner &run) {
  std::vector<int32_t> copies;
  std::vector<uint32_t> sources(factors.size());
  for (size_t i = 0; i < factors.size(); ++i) {
    const Factor &factor = factors[i];
    uint32_t granules = factor.count * factor.stride;
    sources[i] = *factor.ids;
    dropped_->place(sources[i]);
    uint32_t to = allocateRows(granules);
    for (uint32_t r = 0; r < factor.count; ++r)
      factor.ids[r] = to + r * factor.stride;
    appendRecord(copies, copyRecord(to, granules, &sources[i]));
  }
  ScheduledBucket launch{0, nativeKernel(model_, NativeKernel::Sum), copies.data(),
                         static_cast<int64_t>(copies.size()) / kRecordWords<SumRecord>};
  if (launch.count > 0)
    run({&launch, 1}, 0);
}

/// Runs what was made, lets parameters take what is theirs, and gives the rows back.
void Backward::endSegment(const Runner &run, bool last) {
  if (!last)
    holdWaiting();
  account();
  runPiece(run, /*endsSegment=*/true);
  addJobs(depth_);
  showIndices();
  scatter();
  addParamRows(depth_++);
  run(std::span(schedule_).subspan(ran_), ran_);
  ran_ = schedule_.size();
  for (const Held &each : stay_)
    for (uint32_t i = 0; i < each.granules; ++i)
      sources_[each.begin + i] = each.row + i;
  for (const Held &each : leave_)
    held_.giveBack(each.row, each.granules);
  stay_.clear();
  leave_.clear();
  for (Job &job : jobs_)
    job.clear();
  summands_.clear();
  scattered_.clear();
  scatteredPlaced_ = 0;
  paramRows_.clear();
  forgetAgain(/*endsSegment=*/true);
  if (!last) // what the last one made stays for those who look at the schedule
    chunks_.giveBack();
  made_ = 0;
}

} // namespace sheaf::rt
