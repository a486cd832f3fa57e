//===- Bench.cpp - How fast a compiled model is ---------------------------===//
#include "compiler/driver/Bench.h"

#include "compiler/driver/FlatValue.h"
#include "compiler/driver/ReportJson.h"
#include "compiler/oracle/Convert.h"
#include "compiler/oracle/Oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>

namespace sheaf::driver {

namespace {

/// In so many places sessions lie for pairs in turn: an even number, for both to move first as
/// often.
constexpr int64_t kPlaces = 12;

/// Resident memory of this process.
double residentMb() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("VmRSS:"))
      return std::stod(line.substr(6)) / 1024;
  return 0;
}

/// What one repetition cost.
struct Cost {
  std::vector<double> ms, recordMs, kernelMs, orderMs;
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

std::span<const rt::Instance> Benchmark::instancesOf(const BenchCase &what) const {
  return instances_.first(std::min(static_cast<size_t>(what.batch), instances_.size()));
}

/// One step of Adam. Its rate is 0, so that every repetition computes the same.
void Benchmark::stepOnce(rt::Session &session, const BenchCase &what,
                         const std::function<void()> &beforeUpdate) {
  double clock = seconds();
  auto lap = [&] {
    double before = std::exchange(clock, seconds());
    return (clock - before) * 1e3;
  };
  std::span<const rt::Instance> instances = instancesOf(what);
  double flop = session.counters().flop;
  for (const rt::Outcome &outcome : session.run(instances))
    if (!outcome.ok())
      throw *outcome.error;
  step_.forwardMs = lap();
  step_.forwardGflop = (session.counters().flop - flop) * 1e-9;
  lossWeights_.assign(instances.size(), 1.0F / static_cast<float>(instances.size()));
  std::span<const rt::ParamGradient> gradients = session.backward(lossWeights_);
  step_.backwardMs = lap();
  if (beforeUpdate)
    beforeUpdate();
  optimizer_->step(gradients, /*learningRate=*/0);
  step_.updateMs = lap();
}

/// All instances of the case, and their results.
void Benchmark::runOnce(rt::Session &session, const BenchCase &what,
                        const std::function<void()> &afterEachRun) {
  if (what.engine == Engine::Training) {
    stepOnce(session, what, afterEachRun);
    return;
  }
  std::span<const rt::Instance> instances = instancesOf(what);
  size_t step = what.engine == Engine::Unbatched ? 1 : instances.size();
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
  unsigned warmUps = what.policy == rt::Policy::Auto ? rt::PolicyTrial::kRuns + 1 : 1;
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
  std::span<const rt::Instance> instances = instancesOf(what);
  row.what.batch = static_cast<int64_t>(instances.size());
  compiled(row);
  if (what.engine == Engine::Oracle)
    oracle(row, instances);
  row.gflops = row.gflop / (row.ms * 1e-3);
  if (row.peakGflops > 0)
    row.shareOfPeak = row.gflop / (row.msMin * 1e-3 * row.peakGflops);
  uint64_t asked = row.records + row.saved;
  row.recordNs = asked ? row.recordMs * 1e6 / static_cast<double>(asked) : 0;
  row.rssMb = residentMb();
  return row;
}

void Benchmark::compiled(BenchRow &row) {
  rt::Session &session = this->session(row.what);
  // Workers have cores of their own: only a lone thread can be kept on one.
  std::optional<Pin> pin;
  if (row.what.threads == 1)
    pin.emplace();
  bool counting = false;
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
                              ? std::optional(dependences->leastLaunches + *row.leastLaunches)
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
  double begin = seconds();
  do {
    session.resetCounters();
    if (trace_)
      trace_->clear();
    double start = seconds();
    once();
    cost.ms.push_back((seconds() - start) * 1e3);
    const rt::Counters &counters = session.counters();
    cost.recordMs.push_back(static_cast<double>(counters.recordNanoseconds) * 1e-6);
    cost.kernelMs.push_back(static_cast<double>(counters.flushNanoseconds) * 1e-6);
    cost.orderMs.push_back(static_cast<double>(counters.orderNanoseconds) * 1e-6);
    cost.forwardMs.push_back(step_.forwardMs);
    cost.backwardMs.push_back(step_.backwardMs);
    cost.updateMs.push_back(step_.updateMs);
    row.forwardGflop = step_.forwardGflop;
    row.records = counters.records;
    row.saved = counters.saved;
    row.launches = counters.launches;
    row.gflop = counters.flop * 1e-9;
    addKernelTimes();
    probe = std::max(probe, probe_.measure());
  } while (timed && (static_cast<int64_t>(cost.ms.size()) < options_.minRepetitions ||
                     seconds() - begin < options_.minSeconds));

  row.repetitions = static_cast<int64_t>(cost.ms.size());
  double repetitions = static_cast<double>(row.repetitions), inside = 0;
  for (uint64_t ns : kernelNs)
    inside += static_cast<double>(ns) * 1e-6 / repetitions;
  double all = std::accumulate(cost.ms.begin(), cost.ms.end(), 0.0) / repetitions;
  row.inKernels = inside / (all * row.what.threads);
  row.ms = median(cost.ms);
  row.msMin = least(cost.ms);
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
  row.peakGflops = probe * row.what.threads;
  row.memory = session.memory();
  counting = true;
  row.leastLaunches = 0;
  const std::vector<rt::KernelCounters> counted = session.counters().kernels;
  session.keepAll(true); // dependences are those of all launches
  try {
    once();
  } catch (const RunError &) { // there is memory only if rows are given back
    session.keepAll(false);
    row.leastLaunches.reset();
    once();
  }
  session.keepAll(false);
  row.kernels = statistics.rows(counted);
  for (KernelRow &kernel : row.kernels)
    kernel.ms = static_cast<double>(kernelNs[kernel.kernel]) * 1e-6 / repetitions;
  sortByTime(row.kernels);
  row.rowsBytes = row.memory.rows.now;
  row.codeBytes = model_.codeBytes;
}

void Benchmark::oracle(BenchRow &row, std::span<const rt::Instance> instances) {
  const rt::Model &model = model_.model;
  oracle::OracleOptions options;
  options.sampleSeed = options_.session.sampleSeed;
  oracle::Oracle oracle(model_.compiled->program(), oracle::weightsOf(session(row.what)),
                        oracle::Precision::F32, options);
  double start = seconds();
  for (const rt::Instance &instance : instances)
    oracle.run(model.entry.name,
               oracle::fromInstance(model.types, model.entry.argTypes, instance.args),
               instance.index);
  row.repetitions = 1;
  row.ms = row.msMin = (seconds() - start) * 1e3;
  row.recordMs = row.kernelMs = row.orderMs = row.inKernels = 0;
  row.kernels.clear();
  row.records = row.saved = row.launches = 0;
  row.leastLaunches.reset();
  row.rowsBytes = 0;
}

namespace {

Json memoryJson(const BenchRow &row) {
  const rt::MemoryUse &m = row.memory;
  return {{"weights", m.weights.peak}, {"packed", m.packed.peak},   {"rows", m.rows.peak},
          {"tables", m.tables.peak},   {"code", row.codeBytes},     {"heap", m.heap.peak},
          {"records", m.records.peak}, {"scratch", m.scratch.peak}, {"stack", m.stack.peak},
          {"other", row.otherBytes()}};
}

/// What stands below a table: the peak, and the memory of the last row.
std::string lastLines(std::span<const BenchRow> rows) {
  if (rows.empty())
    return "";
  const BenchRow &last = rows.back();
  double peak = 0;
  for (const BenchRow &row : rows)
    peak = std::max(peak, row.peakGflops / row.what.threads);
  const rt::MemoryUse &m = last.memory;
  std::string out =
      fmt::format("peak of one core: {:.1f} GFLOP/s; a share counts the products' FLOP only, at "
                  "the shortest time; inside: of all time, that inside kernels\n",
                  peak);
  out += fmt::format(
      "memory of the last row: weights {}, packed {}, rows {}, tables {}, code {}; beyond these "
      "{} (values {}, records {}, scratch {}, stack {}); process {:.0f} MB\n",
      bytesText(static_cast<double>(m.weights.peak)), bytesText(static_cast<double>(m.packed.peak)),
      bytesText(static_cast<double>(m.rows.peak)), bytesText(static_cast<double>(m.tables.peak)),
      bytesText(static_cast<double>(last.codeBytes)),
      bytesText(static_cast<double>(last.otherBytes())),
      bytesText(static_cast<double>(m.heap.peak)), bytesText(static_cast<double>(m.records.peak)),
      bytesText(static_cast<double>(m.scratch.peak)), bytesText(static_cast<double>(m.stack.peak)),
      last.rssMb);
  return out;
}

} // namespace

std::string benchJson(const std::string &model, const std::map<std::string, int64_t> &dims,
                      std::span<const BenchRow> rows) {
  Json array = Json::array();
  for (const BenchRow &row : rows) {
    array.push_back(
        reportJson("bench", 2,
                   {{"model", model},
                    {"engine", engineName(row.what.engine)},
                    {"batch", row.what.batch},
                    {"threads", row.what.threads},
                    {"dims", dims},
                    {"repetitions", row.repetitions},
                    {"ms", row.ms},
                    {"ms_min", row.msMin},
                    {"record_ms", row.recordMs},
                    {"kernel_ms", row.kernelMs},
                    {"in_kernels", row.inKernels},
                    {"gflop", row.gflop},
                    {"gflops", row.gflops},
                    {"peak_gflops", row.peakGflops},
                    {"share_of_peak", row.shareOfPeak},
                    {"records", row.records},
                    {"saved_records", row.saved},
                    {"launches", row.launches},
                    {"record_ns", row.recordNs},
                    {"rows_bytes", row.rowsBytes},
                    {"rss_mb", row.rssMb},
                    {"memory", memoryJson(row)},
                    {"kernels", kernelsJson(row.kernels, row.peakGflops / row.what.threads)},
                    {"policy", rt::policyName(row.what.policy)},
                    {"order_ms", row.orderMs}}));
    if (row.leastLaunches)
      array.back()["least_launches"] = *row.leastLaunches;
    for (const Against &other : row.against)
      array.back()["against"].push_back({{"what", other.what},
                                         {"median", other.ratio.median},
                                         {"low", other.ratio.low},
                                         {"high", other.ratio.high},
                                         {"pairs", other.ratio.pairs}});
    if (row.what.engine == Engine::Training)
      array.back()["step"] = {{"forward_ms", row.forwardMs},
                              {"backward_ms", row.backwardMs},
                              {"update_ms", row.updateMs},
                              {"forward_ms_min", row.forwardMsMin},
                              {"backward_ms_min", row.backwardMsMin},
                              {"update_ms_min", row.updateMsMin},
                              {"forward_gflop", row.forwardGflop}};
  }
  return jsonText(array);
}

std::string benchTable(std::span<const BenchRow> rows) {
  std::string out =
      fmt::format("{:<10} {:>6} {:>7} {:>10} {:>10} {:>9} {:>9} {:>6} {:>8} {:>6} {:>8} "
                  "{:>9} {:>9} {:>9} {:>9}\n",
                  "engine", "batch", "threads", "ms", "ms min", "record ms", "kernel ms", "inside",
                  "GFLOP/s", "peak", "speed-up", "records", "saved", "launches", "ns/record");
  for (const BenchRow &row : rows) {
    std::string speedup;
    for (const BenchRow &other : rows)
      if (other.what.engine == Engine::Unbatched && row.what.engine == Engine::Batched &&
          other.what.batch == row.what.batch && other.what.threads == row.what.threads)
        speedup = fmt::format("{:.1f}x", other.ms / row.ms);
    out += fmt::format(
        "{:<10} {:>6} {:>7} {:>10.3f} {:>10.3f} {:>9.3f} {:>9.3f} {:>5.1f}% {:>8.1f} "
        "{:>5.1f}% {:>8} {:>9} {:>9} {:>9} {:>9.1f}\n",
        engineName(row.what.engine), row.what.batch, row.what.threads, row.ms, row.msMin,
        row.recordMs, row.kernelMs, row.inKernels * 100, row.gflops, row.shareOfPeak * 100, speedup,
        row.records, row.saved, row.launches, row.recordNs);
  }
  return out + lastLines(rows);
}

std::string trainingTable(std::span<const BenchRow> rows) {
  std::string out =
      fmt::format("{:>6} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6} {:>8} {:>6} {:>13} {:>8} "
                  "{:>9}\n",
                  "batch", "threads", "forward ms", "backward", "update", "step", "step min",
                  "inside", "GFLOP/s", "peak", "back/forward", "records", "launches");
  for (const BenchRow &row : rows)
    out +=
        fmt::format("{:>6} {:>7} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>5.1f}% "
                    "{:>8.1f} {:>5.1f}% {:>12.2f}x {:>8} {:>9}\n",
                    row.what.batch, row.what.threads, row.forwardMs, row.backwardMs, row.updateMs,
                    row.ms, row.msMin, row.inKernels * 100, row.gflops, row.shareOfPeak * 100,
                    row.backwardMsMin / row.forwardMsMin, row.records, row.launches);
  return out + lastLines(rows);
}

std::string againstTable(std::span<const BenchRow> rows) {
  std::string out =
      fmt::format("{:<10} {:>6} {:>7} {:<24} {:>13} {:>20} {:>7}\n", "engine", "batch", "threads",
                  "in f32, or without", "times as long", "95 % of the median", "pairs");
  for (const BenchRow &row : rows)
    for (const auto &[what, ratio] : row.against)
      out += fmt::format("{:<10} {:>6} {:>7} {:<24} {:>13.3f} {:>20} {:>7}\n",
                         engineName(row.what.engine), row.what.batch, row.what.threads, what,
                         ratio.median, fmt::format("{:.3f} to {:.3f}", ratio.low, ratio.high),
                         ratio.pairs);
  return out;
}

std::string policyTable(std::span<const BenchRow> rows) {
  std::string out =
      fmt::format("{:<10} {:>6} {:>7} {:>9} {:>9} {:>9} {:>12} {:>10} {:>10}\n", "policy", "batch",
                  "threads", "launches", "least", "ratio", "ordering ms", "ms", "ms min");
  for (const BenchRow &row : rows) {
    std::string least = "?", ratio = "?";
    if (row.leastLaunches) {
      least = std::to_string(*row.leastLaunches);
      ratio = fmt::format("{:.2f}", static_cast<double>(row.launches) /
                                        std::max(1.0, static_cast<double>(*row.leastLaunches)));
    }
    out += fmt::format("{:<10} {:>6} {:>7} {:>9} {:>9} {:>9} {:>12.3f} {:>10.3f} {:>10.3f}\n",
                       rt::policyName(row.what.policy), row.what.batch, row.what.threads,
                       row.launches, least, ratio, row.orderMs, row.ms, row.msMin);
  }
  return out + "least: for each kernel the longest chain of its records, summed; no order needs "
               "fewer launches\n";
}

} // namespace sheaf::driver
