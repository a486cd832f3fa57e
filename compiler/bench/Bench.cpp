//===- Bench.cpp - How fast a compiled model is ---------------------------===//
#include "compiler/bench/Bench.h"

#include "compiler/measure/ProcessMemory.h"
#include "compiler/oracle/Convert.h"
#include "compiler/oracle/Oracle.h"
#include "compiler/verify/FlatValue.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace sheaf::driver {

namespace {

/// In so many places sessions lie for pairs in turn: an even number, for both to move first as
/// often.
constexpr int64_t kPlaces = 12;

/// What one repetition cost.
struct Cost {
  std::vector<double> ms, cpuMs, recordMs, kernelMs, orderMs;
  std::vector<double> forwardMs, backwardMs, updateMs; ///< Training
};

double least(const std::vector<double> &values) {
  return *std::min_element(values.begin(), values.end());
}

} // namespace

std::string_view engineName(Engine engine) {
  switch (engine) {
  case Engine::Oracle:
    return "oracle";
  case Engine::Unbatched:
    return "unbatched";
  case Engine::Training:
    return "training";
  case Engine::Batched:
    break;
  }
  return "batched";
}

std::optional<Engine> engineByName(std::string_view name) {
  for (Engine engine : {Engine::Oracle, Engine::Unbatched, Engine::Batched})
    if (engineName(engine) == name)
      return engine;
  return std::nullopt;
}

uint64_t BenchRow::otherBytes() const {
  return memory.heap.peak + memory.records.peak + memory.scratch.peak + memory.stack.peak;
}

Benchmark::Benchmark(const BenchModel &model, std::span<const rt::Instance> instances,
                     std::function<void(rt::Session &)> initialise, BenchOptions options)
    : model_(model), instances_(instances), initialise_(std::move(initialise)), options_(options),
      probe_(model.target, model.precision) {}

std::unique_ptr<rt::Session> Benchmark::newSession(const BenchCase &what) const {
  rt::SessionOptions options = options_.session;
  options.threads = what.threads;
  options.policy = what.policy;
  auto session = std::make_unique<rt::Session>(model_.model, options);
  initialise_(*session);
  session->packWeights();
  return session;
}

void Benchmark::use(std::unique_ptr<rt::Session> session, const BenchCase &what) {
  optimizer_.reset();
  session_ = std::move(session);
  if (what.engine == Engine::Training)
    optimizer_ = std::make_unique<rt::Optimizer>(*session_,
                                                 rt::OptimizerOptions{rt::OptimizerOptions::Adam});
  if (optimizer_)
    optimizer_->reserve();
  if (options_.trace) {
    trace_ = std::make_unique<rt::Trace>(what.threads);
    session_->setTrace(trace_.get());
  }
}

rt::Session &Benchmark::session(const BenchCase &what) {
  if (!session_ || session_->options().threads != what.threads ||
      session_->options().policy != what.policy) {
    optimizer_.reset();
    session_.reset(); // its memory must be free before the next one takes as much
    use(newSession(what), what);
  }
  return *session_;
}

// The old session holds its pages until the new one has its own.
void Benchmark::moveSession(const BenchCase &what) { use(newSession(what), what); }

size_t Benchmark::batchOf(const BenchCase &what) const {
  return std::min(static_cast<size_t>(what.batch), instances_.size());
}

std::span<const rt::Instance> Benchmark::instancesOf(const BenchCase &what) const {
  size_t batch = batchOf(what);
  return instances_.first(batch ? instances_.size() / batch * batch : 0);
}

/// One step of Adam. Its rate is 0, so that every repetition computes the same.
void Benchmark::stepOnce(rt::Session &session, std::span<const rt::Instance> instances,
                         const std::function<void()> &beforeUpdate) {
  double clock = seconds();
  auto lap = [&] {
    double before = std::exchange(clock, seconds());
    return (clock - before) * 1e3;
  };
  double flop = session.counters().flop;
  lossWeights_.assign(instances.size(), 1.0F / static_cast<float>(instances.size()));
  std::optional<std::span<const rt::ParamGradient>> gradients;
  while (!gradients) {
    for (const rt::Outcome &outcome : session.run(instances))
      if (!outcome.ok())
        throw *outcome.error;
    step_.forwardMs += lap();
    step_.forwardGflop += (session.counters().flop - flop) * 1e-9;
    gradients = session.tryBackward(lossWeights_);
    step_.backwardMs += lap();
  }
  if (beforeUpdate)
    beforeUpdate();
  optimizer_->step(*gradients, /*learningRate=*/0);
  step_.updateMs += lap();
}

/// All instances of the case, and their results.
void Benchmark::runOnce(rt::Session &session, const BenchCase &what,
                        const std::function<void()> &afterEachRun) {
  std::span<const rt::Instance> instances = instancesOf(what);
  size_t step = what.engine == Engine::Unbatched ? 1 : batchOf(what);
  if (what.engine == Engine::Training) {
    step_ = {};
    for (size_t i = 0; i < instances.size(); i += step)
      stepOnce(session, instances.subspan(i, step), afterEachRun);
    return;
  }
  uint32_t type = model_.model.entry.resultType;
  Flattener flattener;
  FlatValue result;
  for (size_t i = 0; i < instances.size(); i += step) {
    for (const rt::Outcome &outcome : session.run(instances.subspan(i, step))) {
      if (!outcome.ok())
        throw *outcome.error;
      flattener.flatten(session, type, outcome.slots, result);
    }
    if (afterEachRun)
      afterEachRun();
  }
}

double Benchmark::timeOnce(const BenchCase &what) {
  rt::Session &session = this->session(what);
  double start = seconds();
  runOnce(session, what);
  return (seconds() - start) * 1e3;
}

Ratio timeInTurn(Benchmark &slower, Benchmark &faster, const BenchCase &what) {
  std::optional<Pin> pin;
  if (what.threads == 1)
    pin.emplace();
  const BenchOptions &options = slower.options();
  int64_t places = std::clamp<int64_t>(options.minRepetitions / 2 * 2, 1, kPlaces);
  // What is made once is made before, and a policy is chosen.
  unsigned warmUps = options.warmUps;
  if (what.policy == rt::Policy::Auto)
    warmUps += rt::PolicyTrial::kRuns;
  std::vector<double> ofPlaces;
  int64_t pairs = 0;
  double begin = seconds();
  for (int64_t place = 1; place <= places; ++place) {
    // Whoever moves first may get the better place.
    std::array<Benchmark *, 2> both{&faster, &slower};
    if (place % 2 == 0)
      std::swap(both[0], both[1]);
    for (Benchmark *each : both)
      each->moveSession(what);
    for (Benchmark *each : both)
      for (unsigned i = 0; i < warmUps; ++i)
        each->timeOnce(what);
    double share = static_cast<double>(place) / static_cast<double>(places);
    std::vector<double> ratios;
    while (pairs * places < options.minRepetitions * place ||
           seconds() - begin < options.minSeconds * share) {
      // Whichever comes first, in turn: what grows with time falls on both.
      bool slowFirst = pairs++ % 2 == 0;
      double before = (slowFirst ? slower : faster).timeOnce(what);
      double after = (slowFirst ? faster : slower).timeOnce(what);
      ratios.push_back(slowFirst ? before / after : after / before);
    }
    if (!ratios.empty())
      ofPlaces.push_back(median(std::move(ratios)));
  }
  // Pairs of one place are alike: they tell of the others no more than their median.
  Ratio ratio = ratioOf(std::move(ofPlaces));
  ratio.pairs = pairs;
  return ratio;
}

BenchRow Benchmark::run(const BenchCase &what) {
  BenchRow row;
  row.what = what;
  if (what.engine == Engine::Oracle && !model_.compiled)
    throw UserError("the oracle runs a model's source, which an artefact does not have");
  row.what.batch = static_cast<int64_t>(batchOf(what));
  row.miniBatches =
      static_cast<int64_t>(instancesOf(what).size() / std::max<size_t>(1, batchOf(what)));
  compiled(row);
  if (what.engine == Engine::Oracle)
    oracle(row);
  row.gflops = row.gflop / (row.ms * 1e-3);
  if (row.peakGflops > 0)
    row.shareOfPeak = row.gflop / (row.msMin * 1e-3 * row.peakGflops);
  double asked = row.records + row.saved;
  row.recordNs = asked > 0 ? row.recordMs * 1e6 / asked : 0;
  row.rssMb = static_cast<double>(processMemory().now) / (1 << 20);
  return row;
}

void Benchmark::compiled(BenchRow &row) {
  rt::Session &session = this->session(row.what);
  // Workers have cores of their own: only a lone thread can be kept on one.
  std::optional<Pin> pin;
  if (row.what.threads == 1)
    pin.emplace();
  bool counting = false;
  auto of = static_cast<double>(row.miniBatches); // what one has is the mean of all
  KernelStatistics statistics(model_.model);
  auto once = [&] {
    runOnce(session, row.what, [&] {
      if (!counting)
        return;
      if (row.what.engine == Engine::Training) {
        row.leastLaunches.reset();
        statistics.add(session.schedule());
        statistics.add(session.backwardSchedule());
        return;
      }
      std::optional<rt::Dependences> dependences = session.dependences();
      row.leastLaunches = dependences && row.leastLaunches
                              ? std::optional(static_cast<double>(dependences->leastLaunches) / of +
                                              *row.leastLaunches)
                              : std::nullopt;
      statistics.add(session.schedule());
    });
  };

  // The time of each kernel is that of all repetitions, which the probes are no part of.
  std::vector<uint64_t> kernelNs(model_.model.kernels.size());
  auto addKernelTimes = [&] {
    const std::vector<rt::KernelCounters> &kernels = session.counters().kernels;
    for (size_t i = 0; i < kernelNs.size(); ++i)
      kernelNs[i] += kernels[i].nanoseconds;
  };

  once();
  once();
  double probe = probe_.measure();
  Cost cost;
  // The oracle's row needs the counts of the compiled program only.
  bool timed = row.what.engine != Engine::Oracle;
  int64_t leastRepetitions =
      std::max(std::min<int64_t>(options_.minRepetitions, 3),
               (options_.minRepetitions + row.miniBatches - 1) / row.miniBatches);
  double begin = seconds();
  do {
    session.resetCounters();
    if (trace_)
      trace_->clear();
    double start = seconds(), cpu = processorSeconds();
    once();
    cost.ms.push_back((seconds() - start) * 1e3 / of);
    cost.cpuMs.push_back((processorSeconds() - cpu) * 1e3 / of);
    const rt::Counters &counters = session.counters();
    cost.recordMs.push_back(static_cast<double>(counters.recordNanoseconds) * 1e-6 / of);
    cost.kernelMs.push_back(static_cast<double>(counters.flushNanoseconds) * 1e-6 / of);
    cost.orderMs.push_back(static_cast<double>(counters.orderNanoseconds) * 1e-6 / of);
    cost.forwardMs.push_back(step_.forwardMs / of);
    cost.backwardMs.push_back(step_.backwardMs / of);
    cost.updateMs.push_back(step_.updateMs / of);
    row.forwardGflop = step_.forwardGflop / of;
    row.records = static_cast<double>(counters.records) / of;
    row.saved = static_cast<double>(counters.saved) / of;
    row.launches = static_cast<double>(counters.launches) / of;
    row.gflop = counters.flop * 1e-9 / of;
    addKernelTimes();
    probe = std::max(probe, probe_.measure());
  } while (timed && (static_cast<int64_t>(cost.ms.size()) < leastRepetitions ||
                     seconds() - begin < options_.minSeconds));

  row.repetitions = static_cast<int64_t>(cost.ms.size());
  double repetitions = static_cast<double>(row.repetitions), inside = 0;
  for (uint64_t ns : kernelNs)
    inside += static_cast<double>(ns) * 1e-6 / repetitions;
  double all = std::accumulate(cost.ms.begin(), cost.ms.end(), 0.0) / repetitions * of;
  row.inKernels = inside / (all * row.what.threads);
  row.ms = median(cost.ms);
  row.msMin = least(cost.ms);
  row.cpuMs = median(cost.cpuMs);
  if (row.what.engine == Engine::Training) {
    row.forwardMs = median(cost.forwardMs);
    row.backwardMs = median(cost.backwardMs);
    row.updateMs = median(cost.updateMs);
    row.forwardMsMin = least(cost.forwardMs);
    row.backwardMsMin = least(cost.backwardMs);
    row.updateMsMin = least(cost.updateMs);
  }
  row.recordMs = median(cost.recordMs);
  row.kernelMs = median(cost.kernelMs);
  row.orderMs = median(cost.orderMs);
  row.memory = session.memory();
  counting = true;
  row.leastLaunches = 0;
  const std::vector<rt::KernelCounters> counted = session.counters().kernels;
  // Dependences are those of all launches. There may be memory only if rows are given back.
  auto keepingAll = [&] {
    session.keepAll(true);
    try {
      once();
      return true;
    } catch (const RunError &) {
      return false;
    } catch (const OutOfMemory &) {
      return false;
    }
  };
  bool kept = keepingAll();
  session.keepAll(false);
  if (!kept) {
    row.leastLaunches.reset();
    once();
  }
  row.kernels = statistics.rows(counted);
  for (KernelRow &kernel : row.kernels)
    kernel.ms = static_cast<double>(kernelNs[kernel.kernel]) * 1e-6 / repetitions;
  sortByTime(row.kernels);
  double reached = row.gflop / (row.msMin * 1e-3 * row.what.threads);
  for (const KernelRow &kernel : row.kernels)
    reached = std::max(reached, kernel.gflops());
  probe = probe_.measureUpTo(reached, probe);
  row.peakTooLow = probe < reached;
  row.peakGflops = probe * row.what.threads;
  row.rowsBytes = row.memory.rows.now;
  row.codeBytes = model_.codeBytes;
}

void Benchmark::oracle(BenchRow &row) {
  const rt::Model &model = model_.model;
  oracle::OracleOptions options;
  options.sampleSeed = options_.session.sampleSeed;
  oracle::Oracle oracle(model_.compiled->program(), oracle::weightsOf(session(row.what)),
                        oracle::Precision::F32, options);
  double start = seconds(), cpu = processorSeconds();
  for (const rt::Instance &instance : instancesOf(row.what))
    oracle.run(model.entry.name,
               oracle::fromInstance(model.types, model.entry.argTypes, instance.args),
               instance.index);
  row.repetitions = 1;
  auto of = static_cast<double>(row.miniBatches);
  row.ms = row.msMin = (seconds() - start) * 1e3 / of;
  row.cpuMs = (processorSeconds() - cpu) * 1e3 / of;
  row.peakTooLow = false;
  row.recordMs = row.kernelMs = row.orderMs = row.inKernels = 0;
  row.kernels.clear();
  row.records = row.saved = row.launches = 0;
  row.leastLaunches.reset();
  row.rowsBytes = 0;
}

} // namespace sheaf::driver
