#include "runtime/cpu/flush.h"

#include "runtime/device/float_environment.h"
#include "runtime/device/launch_counts.h"
#include "runtime/memory/scratch.h"

#include <cstring>
#include <numeric>

namespace sheaf::rt {

namespace {

/// A barrier costs about 0.1 us, and the last thread to arrive sets the pace; dividing less than
/// this gains nothing.
constexpr double kLeastParallelNs = 1000;
constexpr double kLeastPieceNs = 400;
/// Kernels hold four or more records in registers; with fewer than this a piece, dividing by
/// records reads all weights on every thread, dividing by panels reads each weight once.
constexpr int64_t kLeastPieceRecords = 4;
/// With fewer, a bucket without panels is divided if it takes this long.
constexpr double kLongRecordsNs = 10000;

/// Before a kernel was measured: 60 GFLOP/s, and what a record costs beside its products.
constexpr double kWorkOfRecord = 400;
constexpr double kFirstNsPerWork = 1.0 / 60;

/// Reading the clock takes about 20 ns, so short pieces in a row share one: in all flushes but the
/// first ones and, from then on, one of as many, which measure what each kernel needs.
constexpr double kLeastReadNs = 5000;
constexpr uint64_t kExactFlushes = 16;

constexpr uint8_t kScratchGuard = 0x5A;

#ifdef SHEAF_UNCOUNTED // bench/counting.py measures what counting costs
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
#endif

/// What the time of a bucket is taken to be proportional to.
double workOf(double flop, int64_t records) {
  return flop + kWorkOfRecord * static_cast<double>(records);
}

} // namespace

Division divide(const DivisionCase &bucket) {
  if (bucket.threads < 2)
    return {};
  unsigned most = bucket.threads;
  if (!bucket.force)
    most = static_cast<unsigned>(
        std::min<double>(most, std::max(1.0, bucket.nanoseconds / kLeastPieceNs)));
  if (most < 2)
    return {};
  // By records if every piece keeps a kernel's tile busy: no thread then reads what another
  // writes, and no cache line is written by two.
  int64_t byRecords =
      std::min<int64_t>(most, bucket.records / (bucket.force ? 1 : kLeastPieceRecords));
  if (byRecords == most)
    return {Division::Records, most};
  int64_t byPanels = std::min<int64_t>(most, bucket.panels);
  if (byPanels >= 2 && byPanels >= byRecords)
    return {Division::Panels, static_cast<unsigned>(byPanels)};
  // Fewer records a piece waste registers and read all weights on more threads, but for long
  // records that is still better than threads without work.
  if (byPanels < 2 && bucket.nanoseconds >= kLongRecordsNs)
    byRecords = std::min<int64_t>(most, bucket.records);
  if (byRecords >= 2)
    return {Division::Records, static_cast<unsigned>(byRecords)};
  return {};
}

Flusher::Flusher(const Model &model, unsigned threads, bool hostile)
    : model_(model), code_(cpuCode(model)), workers_(threads), scratch_(threads),
      fixedScratchBytes_(fixedScratchBytes(model)), hostile_(hostile), threads_(threads) {
  for (const CpuKernel &kernel : code_.kernels) {
    kernels_.push_back(
        {kernel.fn, nullptr, kernel.panels, kernel.scratchBytes, kFirstNsPerWork, -1});
    steady_ |= std::any_of(kernel.weights.begin(), kernel.weights.end(),
                           [](const WeightUse &use) { return use.kind == WeightUse::Foreign; });
  }
  for (ThreadState &state : threads_) {
    // A cache line of padding keeps the threads' vectors apart.
    state.nanoseconds.resize(kernels_.size() + 8);
    state.expectedOfShared.resize(kernels_.size() + 8);
    state.load.reserve(threads + 8);
    state.load.resize(threads);
  }
  work_.resize(kernels_.size());
}

/// Of each thread.
void Flusher::provideScratch(uint64_t bytes) {
  if (scratchBytes_ == bytes)
    return;
  scratchBytes_ = 0; // none, if memory is too short
  for (AlignedBytes &block : scratch_) {
    block.reset();
    block = allocateAligned(bytes);
  }
  scratchBytes_ = bytes;
}

/// Of which walk the direction is kept for each kernel that can turn: kernels that read the same
/// copy take turns at it.
void Flusher::findWalks(const PackedWeights &weights) {
  for (size_t k = 0; k < kernels_.size(); ++k)
    if (code_.kernels[k].serpentine) {
      int64_t copy = weights.largestCopy(k);
      kernels_[k].walked = copy >= 0 ? copy : static_cast<int64_t>(weights.copyCount() + k);
    }
  for (ThreadState &state : threads_)
    state.walksBack.resize(weights.copyCount() + kernels_.size() + kGranuleBytes);
}

void Flusher::measure(Counters &counters) {
  expected_.resize(count_);
  std::fill(work_.begin(), work_.end(), 0);
  LaunchCounts counts(counters);
  for (size_t i = 0; i < count_; ++i) {
    const ScheduledBucket &bucket = buckets_[i];
    const KernelDesc &kernelDesc = model_.kernels[bucket.kernel];
    double flop = sumOverRecords(kernelDesc.flop, kernelDesc.words, bucket);
    double work = workOf(flop, bucket.count);
    work_[bucket.kernel] += work;
    expected_[i] = static_cast<float>(work * kernels_[bucket.kernel].nanosecondsPerWork);
    if constexpr (kCounts)
      counts.add(bucket, flop);
  }
}

void Flusher::run(const Launches &launches, uint8_t *rows, const PackedWeights &weights,
                  Trace *trace) {
  Counters &counters = *launches.counters;
  buckets_ = launches.buckets.data();
  count_ = launches.buckets.size();
  before_ = launches.number;
  rows_ = rows;
  trace_ = trace;
  provideScratch(fixedScratchBytes_ + launches.temporaryBytes);
  if (threads_.front().walksBack.empty())
    findWalks(weights);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const KernelDesc &desc = model_.kernels[k];
    kernels_[k].weights = weights.of(k).data();
    kernels_[k].scratchBytes =
        code_.kernels[k].scratchBytes + (desc.temporaries ? launches.temporaryBytes : 0);
  }
  for (ThreadState &state : threads_) {
    std::fill(state.nanoseconds.begin(), state.nanoseconds.end(), 0);
    std::fill(state.expectedOfShared.begin(), state.expectedOfShared.end(), 0);
    state.shared = state.clock = state.barriers = state.parallelLaunches = 0;
    state.unread = false;
  }
  exact_ = trace || steady_ || flushes_ < kExactFlushes || flushes_ % kExactFlushes == 0;
  ++flushes_;
  measure(counters);
  together_ = hostile_ || steady_ || patience_.worthIt();
  aloneFrom_.store(SIZE_MAX, std::memory_order_relaxed);
  uint64_t start = threads_.size() > 1 ? clockNow() : 0;

  {
    // Depths before the first divided one need no other thread awake.
    FloatEnvironment environment;
    for (first_ = 0; first_ < count_;) {
      size_t end = groupEnd(first_);
      if (isParallel(first_, end))
        break;
      runGroup(first_, end, /*parallel=*/false, 0);
      first_ = end;
    }
  }
  leaveClock(threads_[0]); // waking the others is no kernel's time
  if (first_ < count_) {
    jobBegin_ = clockNow();
    threads_[0].busy = 0;
    workers_.run([](void *self, unsigned t) { static_cast<Flusher *>(self)->walk(t); }, this);
    if (aloneFrom_.load(std::memory_order_relaxed) == SIZE_MAX)
      patience_.together(lostSoFar());
  } else if (!together_) {
    patience_.alone(static_cast<double>(clockNow() - start));
  }
  leaveClock(threads_[0]);
  for (ThreadState &state : threads_)
    divideShared(state);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    uint64_t ns = 0;
    for (ThreadState &state : threads_)
      ns += state.nanoseconds[k];
    counters.kernels[k].nanoseconds += ns;
    // Half old, half new: one disturbed measurement must not change the policy for long.
    if (exact_ && !steady_ && work_[k] > 0)
      kernels_[k].nanosecondsPerWork =
          (kernels_[k].nanosecondsPerWork + static_cast<double>(ns) / work_[k]) / 2;
  }
  counters.barriers += threads_[0].barriers;
  counters.parallelLaunches += threads_[0].parallelLaunches;
  if (int64_t kernel = overrun_.exchange(-1); kernel >= 0)
    throw InternalError("kernel '" + model_.kernels[static_cast<size_t>(kernel)].name +
                        "' wrote beyond its scratch memory");
}

size_t Flusher::groupEnd(size_t begin) const {
  size_t end = begin + 1;
  while (end < count_ && buckets_[end].depth == buckets_[begin].depth)
    ++end;
  return end;
}

bool Flusher::isParallel(size_t begin, size_t end) const {
  if (threads_.size() == 1 || !together_)
    return false;
  if (hostile_)
    return true;
  double total = 0;
  for (size_t i = begin; i < end; ++i)
    total += expected_[i];
  if (total < kLeastParallelNs)
    return false;
  if (end - begin > 1)
    return true;
  const ScheduledBucket &bucket = buckets_[begin];
  return divide({bucket.count, kernels_[bucket.kernel].panels, expected_[begin],
                 static_cast<unsigned>(threads_.size()), false})
             .pieces > 1;
}

double Flusher::lostSoFar() const {
  return Patience::lost(static_cast<double>(clockNow() - jobBegin_),
                        static_cast<double>(threads_[0].busy),
                        static_cast<unsigned>(threads_.size()));
}

/// Before the group that begins at `next`.
void Flusher::passBarrier(size_t next, unsigned thread) {
  leaveClock(threads_[thread]);
  ++threads_[thread].barriers;
  if (thread == 0 && !hostile_ && !steady_)
    if (double lost = lostSoFar(); lost > 0) {
      aloneFrom_.store(next, std::memory_order_relaxed);
      patience_.together(lost);
    }
  workers_.barrier().wait();
}

void Flusher::walk(unsigned thread) {
  bool before = false; // whether the depth before this one was divided
  for (size_t begin = first_; begin < count_;) {
    size_t end = groupEnd(begin);
    bool parallel = isParallel(begin, end);
    // Starting the job is the barrier before its first depth.
    if ((parallel || before) && begin != first_)
      passBarrier(begin, thread);
    // Behind its barrier every thread sees it.
    if (begin >= aloneFrom_.load(std::memory_order_relaxed)) {
      if (thread == 0)
        runGroup(begin, count_, /*parallel=*/false, 0);
      break;
    }
    if (parallel || thread == 0)
      runGroup(begin, end, parallel, thread);
    before = parallel;
    begin = end;
  }
  leaveClock(threads_[thread]);
}

void Flusher::runGroup(size_t begin, size_t end, bool parallel, unsigned thread) {
  ThreadState &state = threads_[thread];
  if (!parallel) {
    for (size_t i = begin; i < end; ++i)
      call({&buckets_[i], 0, buckets_[i].count, 0, kernels_[buckets_[i].kernel].panels,
            expected_[i]},
           state);
    return;
  }
  unsigned threads = static_cast<unsigned>(threads_.size());
  std::fill(state.load.begin(), state.load.end(), 0.0);
  for (size_t i = begin; i < end; ++i) {
    const ScheduledBucket &bucket = buckets_[i];
    int64_t panels = kernels_[bucket.kernel].panels;
    Division division =
        divide({bucket.count, static_cast<uint32_t>(panels), expected_[i], threads, hostile_});
    if (thread == 0 && division.pieces > 1)
      ++state.parallelLaunches;
    int64_t pieces = division.pieces;
    // Every piece goes to the thread that has least to do, the first of equals: the same answer on
    // every thread, and piece t on thread t when all is even.
    for (int64_t p = 0; p < pieces; ++p) {
      auto least = std::min_element(state.load.begin(), state.load.end());
      *least += expected_[i] / static_cast<double>(pieces);
      if (least - state.load.begin() != thread)
        continue;
      Piece piece{&bucket, 0, bucket.count, 0, panels, expected_[i] / static_cast<double>(pieces)};
      if (division.by == Division::Records) {
        piece.begin = bucket.count * p / pieces;
        piece.end = bucket.count * (p + 1) / pieces;
      } else if (division.by == Division::Panels) {
        piece.panelBegin = panels * p / pieces;
        piece.panelEnd = panels * (p + 1) / pieces;
      }
      call(piece, state);
    }
  }
}

void Flusher::call(const Piece &piece, ThreadState &state) {
  const KernelState &kernel = kernels_[piece.bucket->kernel];
  unsigned thread = static_cast<unsigned>(&state - threads_.data());
  uint8_t *scratch = scratch_[thread].get();
  if (hostile_) {
    memset(scratch, 0xFF, kernel.scratchBytes);
    memset(scratch + kernel.scratchBytes, kScratchGuard, 64);
  }
  bool alone = kCounts && (exact_ || piece.nanoseconds >= kLeastReadNs);
  if (kCounts && state.clock == 0)
    state.clock = clockNow();
  else if (alone && state.unread)
    readShared(state);
  uint64_t start = state.clock;
  int64_t first = piece.panelBegin, last = piece.panelEnd;
  if (kernel.walked >= 0 && (state.walksBack[static_cast<size_t>(kernel.walked)] ^= 1)) {
    first = std::max<int64_t>(piece.panelEnd, 1);
    last = piece.panelBegin;
  }
  kernel.fn(piece.bucket->records, piece.begin, piece.end, first, last, rows_, kernel.weights,
            scratch);
  if (alone) {
    uint64_t now = clockNow();
    state.nanoseconds[piece.bucket->kernel] += now - state.clock;
    state.busy += now - state.clock;
    state.clock = now;
  } else if (kCounts) {
    state.expectedOfShared[piece.bucket->kernel] += piece.nanoseconds;
    state.unread = true;
  }
  if (trace_)
    trace_->launches[thread].push_back({{start, state.clock},
                                        before_ + static_cast<uint32_t>(piece.bucket - buckets_),
                                        piece.bucket->kernel,
                                        piece.bucket->depth,
                                        piece.end - piece.begin,
                                        static_cast<uint32_t>(piece.panelEnd),
                                        static_cast<uint32_t>(piece.panelBegin)});
  if (hostile_)
    for (int i = 0; i < 64; ++i)
      if (scratch[kernel.scratchBytes + static_cast<uint64_t>(i)] != kScratchGuard)
        overrun_.store(piece.bucket->kernel, std::memory_order_relaxed);
}

void Flusher::readShared(ThreadState &state) {
  uint64_t now = clockNow();
  state.shared += now - state.clock;
  state.busy += now - state.clock;
  state.clock = now;
  state.unread = false;
}

void Flusher::divideShared(ThreadState &state) {
  double expected =
      std::accumulate(state.expectedOfShared.begin(), state.expectedOfShared.end(), 0.0);
  if (expected <= 0)
    return;
  double scale = static_cast<double>(state.shared) / expected;
  for (size_t k = 0; k < kernels_.size(); ++k)
    state.nanoseconds[k] += static_cast<uint64_t>(state.expectedOfShared[k] * scale);
}

/// Before this thread waits or does something else than run pieces.
void Flusher::leaveClock(ThreadState &state) {
  if (state.unread)
    readShared(state);
  state.clock = 0;
}

} // namespace sheaf::rt
