//===- flush.h - Running buckets on threads ---------------------*- C++ -*-===//
//
// Depths run one after the other; the buckets of one depth do not depend on each other. Every
// thread walks the same schedule and works out the same division of each depth for itself, so
// nothing is handed out: threads only meet at a barrier between depths, and not even there while
// depths are too small to be divided (the caller's thread then runs on alone). How many threads
// there are may change from one divided depth to the next, where others use them too.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_CPU_FLUSH_H
#define SHEAF_RUNTIME_CPU_FLUSH_H

#include "runtime/cpu/weights.h"
#include "runtime/device/device.h"
#include "runtime/device/workers.h"
#include "runtime/model/value.h"

#include <atomic>
#include <memory>
#include <span>

namespace sheaf::rt {

/// How one bucket is divided: into `pieces` runs of records, or of columns.
struct Division {
  enum By : uint8_t { Nothing, Records, Panels } by = Nothing;
  unsigned pieces = 1;
};

/// What dividing a bucket is decided by.
struct DivisionCase {
  int64_t records = 0;
  uint32_t panels = 0;
  double nanoseconds = 0; ///< expected, on one thread
  unsigned threads = 1;
  bool force = false; ///< hostile: divide whatever can be
};

/// The policy, in one place.
Division divide(const DivisionCase &bucket);

/// Where piece `number` of a launch begins that is divided by records: pieces have as equal work as
/// records allow. `sums`: the work of each record and all before it.
int64_t cutByWork(std::span<const double> sums, int64_t pieces, int64_t number);

class Flusher {
public:
  /// Others may use the same workers.
  Flusher(const Model &model, std::shared_ptr<Workers> workers, bool hostile);

  /// Runs launches, and notes them in a trace with a list a thread, if there is one. Throws
  /// InternalError when a kernel wrote beyond its scratch (hostile setting).
  void run(const Launches &launches, uint8_t *rows, const PackedWeights &weights, Trace *trace);

  /// Between flushes.
  Workers &workers() { return *workers_; }

private:
  struct KernelState {
    KernelFn fn;
    const void *const *weights;
    uint32_t panels;
    uint64_t scratchBytes;
    double nanosecondsPerWork; ///< measured; see workOf
    int64_t walked = -1;       ///< serpentine: which element of ThreadState::walksBack
  };
  struct alignas(64) ThreadState {
    // Of the running flush: time read at the end of one piece, by kernel; time read after several
    // pieces, and what each kernel was expected to have of it.
    std::vector<uint64_t> nanoseconds;
    std::vector<double> expectedOfShared;
    uint64_t shared = 0;
    std::vector<double> load; ///< by thread: what this depth has given it so far
    /// Whether what it walked last went from the last panel to the first: by packed copy of
    /// weights, and after these by kernel that has none. What it met last is still in its cache,
    /// so it begins there.
    std::vector<uint8_t> walksBack;
    uint64_t clock = 0;  ///< when it was read last; 0 when no piece follows directly
    bool unread = false; ///< whether pieces ran since then
    uint64_t busy = 0;   ///< in pieces, as far as the clock was read
    uint64_t barriers = 0;
    uint64_t parallelLaunches = 0;
  };
  struct Piece {
    const ScheduledBucket *bucket;
    int64_t begin, end;
    int64_t panelBegin, panelEnd;
    double nanoseconds; ///< expected
  };

  void provideScratch(uint64_t bytes);
  void findWalks(const PackedWeights &weights);
  void measure(Counters &counters);
  void addUp(size_t launch);
  int64_t cutOf(size_t launch, int64_t pieces, int64_t number) const;
  bool isParallel(size_t begin, size_t end) const;
  void passBarrier(size_t next, unsigned thread);
  double lostSoFar() const;
  void runAlone();
  void runTogether(Workers::Team &team);
  void walk(unsigned thread);
  void runGroup(size_t begin, size_t end, bool parallel, unsigned thread);
  void call(const Piece &piece, ThreadState &state);
  void readShared(ThreadState &state);
  void leaveClock(ThreadState &state);
  void divideShared(ThreadState &state);

  const Model &model_;
  const CpuCode &code_;
  std::shared_ptr<Workers> workers_;
  std::vector<AlignedBytes> scratch_; ///< of threads
  uint64_t fixedScratchBytes_, scratchBytes_ = 0;
  bool hostile_;
  /// What a vendor's library computes may depend on how a bucket is divided, so no measured time
  /// has a part in it, nor has who else uses the workers.
  bool steady_ = false;
  Patience patience_;
  std::vector<KernelState> kernels_;
  std::vector<ThreadState> threads_; ///< as many as there are workers

  // The running flush.
  const ScheduledBucket *buckets_ = nullptr;
  size_t count_ = 0, first_ = 0;
  uint32_t before_ = 0; ///< launches of the schedule before it
  uint8_t *rows_ = nullptr;
  Trace *trace_ = nullptr;
  uint64_t flushes_ = 0; ///< so far
  bool together_ = true; ///< threads may share it
  // The job that threads share from `first_` on.
  Workers::Team *team_ = nullptr;
  uint64_t jobBegin_ = 0;
  /// Before this bucket the job ends. Written by the caller's thread before a barrier, read after.
  std::atomic<size_t> jobEnd_{0};
  bool exact_ = true;                ///< the clock is read after each piece
  std::vector<float> expected_;      ///< nanoseconds, by bucket
  std::vector<int64_t> sumsOf_;      ///< by bucket: where in sums_, or -1: records are alike
  std::vector<double> sums_;         ///< of the work of records, as cutByWork() takes them
  std::vector<double> work_;         ///< by kernel
  std::atomic<int64_t> overrun_{-1}; ///< a kernel that wrote beyond its scratch
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_FLUSH_H
