//===- Bench.h - How fast a compiled model is -------------------*- C++ -*-===//
//
// Times mini-batches the way a user pays for them once data are parsed and code is compiled:
// recording, scheduling, running, reading outputs, freeing. Repetitions alternate with probes of
// the core's peak (Peak.h), so that a slow state of the machine slows both.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_BENCH_BENCH_H
#define SHEAF_COMPILER_BENCH_BENCH_H

#include "compiler/measure/KernelTable.h"
#include "compiler/measure/Peak.h"
#include "compiler/measure/Timing.h"
#include "runtime/session/session.h"
#include "runtime/train/optimizer.h"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

enum class Engine {
  Oracle,    ///< the interpreter, one instance after the other
  Unbatched, ///< compiled, one instance a run; the times of all runs summed
  Batched,   ///< compiled, all instances in one run
  Training   ///< compiled, all instances in one step of a training: forward, back and update
};
std::string_view engineName(Engine engine);
/// Of those that run a model as it is, so none of Training.
std::optional<Engine> engineByName(std::string_view name);

/// What is timed: compiled here, or an artefact.
struct BenchModel {
  const rt::Model &model;
  rt::Target target; ///< of its code
  Precision precision = Precision::F32;
  uint64_t codeBytes = 0;
  const CompiledModel *compiled = nullptr; ///< of an artefact there is none, and so no oracle
};

struct BenchCase {
  Engine engine = Engine::Batched;
  int64_t batch = 64;
  unsigned threads = 1;
  rt::Policy policy = rt::Policy::Depth;
};

/// How many times as long the same takes otherwise compiled, in turn with it.
struct Against {
  std::string what; ///< "f32", where the row is in bf16; else the optimisation that is left out
  Ratio ratio;
};

/// Times and counts are of one mini-batch: means, where a repetition has several.
struct BenchRow {
  BenchCase what;
  /// Of one repetition: as many as the instances of the largest batch make, so that rows of other
  /// batches speak of the same instances.
  int64_t miniBatches = 1;
  int64_t repetitions = 0;
  double ms = 0; ///< median
  double msMin = 0;
  double cpuMs = 0;     ///< median, of the process' processor time
  double recordMs = 0;  ///< median, of walking the instances and recording blocks
  double kernelMs = 0;  ///< median, of ordering and running what was recorded
  double inKernels = 0; ///< share of all threads' time that was spent inside kernels
  double orderMs = 0;   ///< median, of ordering alone
  /// Training: medians and least of what a step is made of.
  double forwardMs = 0, backwardMs = 0, updateMs = 0;
  double forwardMsMin = 0, backwardMsMin = 0, updateMsMin = 0;
  double forwardGflop = 0; ///< Training: of the way forward alone
  double gflop = 0;        ///< of products, as executed
  double gflops = 0;       ///< at the median
  double peakGflops = 0;   ///< the highest probe, times the threads
  double shareOfPeak = 0;  ///< at the shortest time
  bool peakTooLow = false; ///< some share is above 1, however often the peak was probed
  double records = 0;
  double saved = 0; ///< records that were not made: the same ones had been (known.h)
  double launches = 0;
  /// The least of any order (rt::Dependences).
  std::optional<double> leastLaunches;
  double recordNs = 0; ///< recording, per record, made or saved
  uint64_t rowsBytes = 0;
  double rssMb = 0;
  rt::MemoryUse memory;
  uint64_t codeBytes = 0;
  /// Those that ran, the longest first: of all mini-batches of a repetition, its time the mean.
  std::vector<KernelRow> kernels;
  std::vector<Against> against; ///< what was asked for

  /// Peak bytes beyond weights, rows and code.
  uint64_t otherBytes() const;
};

struct BenchOptions {
  int64_t minRepetitions = 20; ///< of a mini-batch; of all of them not less than three
  double minSeconds = 1;
  unsigned warmUps = 1;       ///< of a session that timeInTurn() makes
  bool trace = false;         ///< sessions write a trace, which is thrown away: what that costs
  rt::SessionOptions session; ///< `threads` and `policy` are the case's
};

class Benchmark {
public:
  /// `initialise` gives a session its weights. Everything must outlive this.
  Benchmark(const BenchModel &model, std::span<const rt::Instance> instances,
            std::function<void(rt::Session &)> initialise, BenchOptions options);

  /// Takes all instances, `batch` at a time, or at once when there are fewer (the row says how
  /// many); what is left over is left out. Throws RunError when one of them fails, UserError for
  /// Engine::Oracle of an artefact.
  BenchRow run(const BenchCase &what);
  /// One repetition of the same: ms.
  double timeOnce(const BenchCase &what);
  /// Packed weights of less than 4 MB, scratch and host values lie elsewhere from now on; so may
  /// what is on huge pages. A third session is alive meanwhile.
  void moveSession(const BenchCase &what);
  const BenchOptions &options() const { return options_; }

private:
  rt::Session &session(const BenchCase &what);
  std::unique_ptr<rt::Session> newSession(const BenchCase &what) const;
  void use(std::unique_ptr<rt::Session> session, const BenchCase &what);
  /// How many instances a mini-batch has, and the instances of all mini-batches.
  size_t batchOf(const BenchCase &what) const;
  std::span<const rt::Instance> instancesOf(const BenchCase &what) const;
  void runOnce(rt::Session &session, const BenchCase &what,
               const std::function<void()> &afterEachRun = {});
  void stepOnce(rt::Session &session, std::span<const rt::Instance> instances,
                const std::function<void()> &beforeUpdate);
  void compiled(BenchRow &row);
  void oracle(BenchRow &row);

  BenchModel model_;
  std::span<const rt::Instance> instances_;
  std::function<void(rt::Session &)> initialise_;
  BenchOptions options_;
  PeakProbe probe_;
  std::unique_ptr<rt::Session> session_;
  std::unique_ptr<rt::Trace> trace_; ///< of the session
  // Training.
  std::unique_ptr<rt::Optimizer> optimizer_; ///< of the session
  std::vector<float> lossWeights_;
  struct Step {
    double forwardMs, backwardMs, updateMs;
    double forwardGflop;
  } step_{}; ///< what the steps of the last repetition took
};

/// Both benchmarks hold the same instances. At least so many pairs, for at least so long, as the
/// options of the first say, with sessions in several places of memory one after the other: where
/// they happen to lie in the caches makes the same code a few per cent faster or slower. The
/// interval is of the medians of places.
Ratio timeInTurn(Benchmark &slower, Benchmark &faster, const BenchCase &what);

/// What is known of BenchRow::against, for people.
std::string againstTable(std::span<const BenchRow> rows);

/// The rows as a JSON array; `dims` are the model's.
std::string benchJson(const std::string &model, const std::map<std::string, int64_t> &dims,
                      std::span<const BenchRow> rows);

/// The rows for people: a table, then the memory of the last row by kind.
std::string benchTable(std::span<const BenchRow> rows);

/// The rows of trainings for people: what a step is made of, then the memory of the last row.
std::string trainingTable(std::span<const BenchRow> rows);

/// The rows for people who compare policies: launches against the least of any order.
std::string policyTable(std::span<const BenchRow> rows);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_BENCH_BENCH_H
