#include "runtime/cpu/flush.h"

#include "runtime/device/float_environment.h"
#include "runtime/device/launch_counts.h"
#include "runtime/memory/scratch.h"

#include <cstring>
#include <numeric>
#include <utility>

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
/// Of rows that are read or written, beside products: at some 15 GB/s.
constexpr double kWorkOfByte = 4;

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

int64_t cutByWork(std::span<const double> sums, int64_t pieces, int64_t number) {
  auto records = static_cast<int64_t>(sums.size());
  if (number <= 0 || number >= pieces)
    return number <= 0 ? 0 : records;
  double before = sums.back() * static_cast<double>(number) / static_cast<double>(pieces);
  auto at = static_cast<int64_t>(std::lower_bound(sums.begin(), sums.end(), before) - sums.begin());
  double from = at > 0 ? sums[static_cast<size_t>(at - 1)] : 0;
  // A record goes where more of it is.
  return at < records && before - from > (sums[static_cast<size_t>(at)] - from) / 2 ? at + 1 : at;
}

Flusher::Flusher(const Model &model, std::shared_ptr<Workers> workers, bool hostile)
    : model_(model), code_(cpuCode(model)), workers_(std::move(workers)),
      scratch_(workers_->threads()), fixedScratchBytes_(fixedScratchBytes(model)),
      hostile_(hostile), threads_(workers_->threads()) {
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
    state.load.reserve(threads_.size() + 8);
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
  sumsOf_.assign(count_, -1);
  sums_.clear();
  std::fill(work_.begin(), work_.end(), 0);
  LaunchCounts counts(counters);
  for (size_t i = 0; i < count_; ++i) {
    const ScheduledBucket &bucket = buckets_[i];
    const KernelDesc &kernelDesc = model_.kernels[bucket.kernel];
    double flop = sumOverRecords(kernelDesc.flop, kernelDesc.words, bucket);
    double work = workOf(flop, bucket.count);
    work_[bucket.kernel] += work;
    expected_[i] = static_cast<float>(work * kernels_[bucket.kernel].nanosecondsPerWork);
    if (threads_.size() > 1)
      addUp(i);
    if constexpr (kCounts)
      counts.add(bucket, flop);
  }
}

/// Adds up the work of a launch's records if they are not alike, and it may be divided by them.
void Flusher::addUp(size_t launch) {
  const ScheduledBucket &bucket = buckets_[launch];
  auto threads = static_cast<unsigned>(threads_.size());
  if (divide({bucket.count, kernels_[bucket.kernel].panels, expected_[launch], threads, hostile_})
          .by != Division::Records)
    return;
  const KernelDesc &desc = model_.kernels[bucket.kernel];
  auto varies = [](const std::vector<FlopTerm> &terms) {
    return std::any_of(terms.begin(), terms.end(),
                       [](const FlopTerm &term) { return !term.extentWords.empty(); });
  };
  bool byBytes = desc.bytes && varies(*desc.bytes);
  if (!varies(desc.flop) && !byBytes)
    return;
  sumsOf_[launch] = static_cast<int64_t>(sums_.size());
  double sum = 0;
  for (int64_t r = 0; r < bucket.count; ++r) {
    ScheduledBucket one{bucket.depth, bucket.kernel, bucket.records + r * desc.words, 1};
    sum += workOf(sumOverRecords(desc.flop, desc.words, one), 1);
    if (byBytes)
      sum += kWorkOfByte * sumOverRecords(*desc.bytes, desc.words, one);
    sums_.push_back(sum);
  }
}

/// Where piece `number` of a launch begins that is divided by records into so many.
int64_t Flusher::cutOf(size_t launch, int64_t pieces, int64_t number) const {
  int64_t count = buckets_[launch].count;
  if (sumsOf_[launch] < 0)
    return count * number / pieces;
  return cutByWork(
      std::span(sums_).subspan(static_cast<size_t>(sumsOf_[launch]), static_cast<size_t>(count)),
      pieces, number);
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
  bool wasTogether = together_;
  uint64_t start = threads_.size() > 1 ? clockNow() : 0;
  {
    Workers::Team team(*workers_);
    for (first_ = 0;;) {
      runAlone();
      if (first_ == count_)
        break;
      runTogether(team);
    }
  }
  if (!wasTogether)
    patience_.alone(static_cast<double>(clockNow() - start));
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

/// Depths before the next divided one need no other thread awake.
void Flusher::runAlone() {
  FloatEnvironment environment;
  while (first_ < count_) {
    size_t end = groupEnd(std::span(buckets_, count_), first_);
    if (isParallel(first_, end))
      break;
    runGroup(first_, end, /*parallel=*/false, 0);
    first_ = end;
  }
  leaveClock(threads_[0]); // waking the others is no kernel's time
}

/// From a divided depth on, until all is done or it does not pay any more.
void Flusher::runTogether(Workers::Team &team) {
  team.gather();
  team_ = &team;
  jobEnd_.store(count_, std::memory_order_relaxed);
  jobBegin_ = clockNow();
  threads_[0].busy = 0;
  team.run([](void *self, unsigned t) { static_cast<Flusher *>(self)->walk(t); }, this);
  first_ = jobEnd_.load(std::memory_order_relaxed);
  if (team.threads() == 1)
    return;
  double lost = lostSoFar();
  patience_.together(lost);
  together_ = hostile_ || steady_ || lost <= 0;
}

double Flusher::lostSoFar() const {
  return Patience::lost(static_cast<double>(clockNow() - jobBegin_),
                        static_cast<double>(threads_[0].busy), team_->threads());
}

/// Before the group that begins at `next`.
void Flusher::passBarrier(size_t next, unsigned thread) {
  leaveClock(threads_[thread]);
  bool alone = team_->threads() == 1;
  if (thread == 0)
    if (team_->isUneven() || (!alone && !hostile_ && !steady_ && lostSoFar() > 0))
      jobEnd_.store(next, std::memory_order_relaxed);
  if (alone)
    return;
  ++threads_[thread].barriers;
  team_->barrier().wait();
}

void Flusher::walk(unsigned thread) {
  bool before = false; // whether the depth before this one was divided
  for (size_t begin = first_; begin < count_;) {
    size_t end = groupEnd(std::span(buckets_, count_), begin);
    bool parallel = isParallel(begin, end);
    // Starting the job is the barrier before its first depth.
    if ((parallel || before) && begin != first_) {
      passBarrier(begin, thread);
      // After its barrier every thread sees it.
      if (begin >= jobEnd_.load(std::memory_order_relaxed))
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
  unsigned threads = steady_ ? static_cast<unsigned>(threads_.size()) : team_->threads();
  state.load.assign(team_->threads(), 0.0);
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
        piece.begin = cutOf(i, pieces, p);
        piece.end = cutOf(i, pieces, p + 1);
        if (piece.begin == piece.end)
          continue;
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
