//===- bench.cpp - sheaf bench --------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/weights.h"

#include "compiler/bench/Bench.h"
#include "compiler/verify/GradCheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace sheaf::tool {

namespace {

struct BenchArguments {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  std::string batch = "1,8,64,256";
  std::string threads = "1";
  std::string engines = "unbatched,batched";
  FormatOption format{.people = "table"};
  std::string repetitions = "20";
  double seconds = 1;
  bool kernels = false;
  bool policies = false;
  std::vector<std::string> against;
  std::vector<double> shares; ///< of the memory of rows
  bool train = false;
  bool trace = false;
};

std::vector<driver::Engine> parseEngines(const std::string &text) {
  std::vector<driver::Engine> engines;
  size_t begin = 0;
  for (;;) {
    size_t comma = text.find(',', begin);
    std::string name = text.substr(begin, comma - begin);
    std::optional<driver::Engine> engine = driver::engineByName(name);
    if (!engine)
      throw UsageError(fmt::format("--engine takes oracle, unbatched and batched, not '{}'", name));
    engines.push_back(*engine);
    if (comma == std::string::npos)
      return engines;
    begin = comma + 1;
  }
}

/// What is timed for each number of threads and instances.
std::vector<driver::BenchCase> casesOf(const BenchArguments &arguments) {
  std::vector<driver::BenchCase> cases;
  if (arguments.train)
    cases.push_back({.engine = driver::Engine::Training, .policy = arguments.limits.policy});
  else if (arguments.policies)
    for (rt::Policy policy : rt::kOrders)
      cases.push_back({.policy = policy});
  else
    for (driver::Engine engine : parseEngines(arguments.engines))
      cases.push_back({.engine = engine, .policy = arguments.limits.policy});
  return cases;
}

/// What `time` gives. The error of an instance that fails tells its place in the data.
template <typename Time> auto placed(const io::Dataset &data, const Time &time) {
  try {
    return time();
  } catch (const RunError &error) {
    throw UserError(failureText(data, error));
  }
}

rt::SessionOptions sessionFor(const BenchArguments &arguments, const rt::Model &model) {
  rt::SessionOptions session = sessionOptions(arguments.limits, 1, model);
  if (arguments.train)
    session.keepBytes = 0;
  return session;
}

/// The options of what a model is compared with.
ModelOptions otherwise(ModelOptions model, const std::string &what) {
  if (what == "f32")
    model.precision = "f32";
  else
    model.without.push_back(what);
  return model;
}

/// Adds to each row how many times as long it takes the model as `--against` says.
void timeAgainst(const BenchArguments &arguments, const LoadedRun &run,
                 driver::Benchmark &benchmark, driver::BenchOptions options,
                 std::span<driver::BenchRow> rows) {
  for (const std::string &what : arguments.against) {
    LoadedRun other = loadRun(otherwise(arguments.model, what), arguments.data, arguments.weights,
                              static_cast<int64_t>(run.instances.size()));
    options.session = sessionFor(arguments, other.model());
    driver::Benchmark yardstick(
        other.benchModel(), other.instances,
        [&](rt::Session &session) {
          setWeights(session, arguments.weights, other, /*quiet=*/true);
        },
        options);
    for (driver::BenchRow &row : rows)
      if (row.what.engine != driver::Engine::Oracle)
        row.against.push_back({what, placed(run.data, [&] {
                                 return driver::timeInTurn(yardstick, benchmark, row.what);
                               })});
  }
}

/// The most bytes of rows at one time in a memory limit; nothing when it is too little.
std::optional<uint64_t> rowsIn(uint64_t limit, const LoadedRun &run,
                               const std::function<void(rt::Session &)> &initialise,
                               driver::BenchOptions options, const driver::BenchCase &what) {
  options.session.memoryLimit = limit;
  options.minRepetitions = 3;
  options.minSeconds = 0;
  try {
    return driver::Benchmark(run.benchModel(), run.instances, initialise, options)
        .run(what)
        .memory.rows.peak;
  } catch (const UserError &) {
    return std::nullopt;
  } catch (const RunError &) {
    return std::nullopt;
  }
}

/// Adds to a row how many times as long its training takes where the memory limit lets its rows
/// have a share of what they take.
void timeInLess(const LoadedRun &run, const std::function<void(rt::Session &)> &initialise,
                driver::Benchmark &benchmark, driver::BenchOptions options, double share,
                driver::BenchRow &row) {
  auto all = static_cast<double>(row.memory.rows.peak);
  auto wanted = static_cast<uint64_t>(share * all);
  uint64_t limit = row.memory.training.peak + wanted;
  for (const rt::NamedMemoryKind &kind : rt::kMemoryKinds)
    if (kind.kind != &rt::MemoryUse::rows)
      limit += (row.memory.*kind.kind).peak;
  // What is remembered of dropped rows takes memory, too: how much is found by trying.
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    std::optional<uint64_t> rows = rowsIn(limit, run, initialise, options, row.what);
    if (!rows) {
      limit += wanted / 20;
      continue;
    }
    if (*rows > wanted + wanted / 50 && i < kTries / 2) {
      limit -= *rows - wanted;
      continue;
    }
    options.session.memoryLimit = limit;
    options.warmUps = 8; // it learns what the backward pass takes
    driver::Benchmark less(run.benchModel(), run.instances, initialise, options);
    std::string what = fmt::format("{:.2f} of the rows", static_cast<double>(*rows) / all);
    row.against.push_back(
        {what, placed(run.data, [&] { return driver::timeInTurn(less, benchmark, row.what); })});
    return;
  }
  note(fmt::format("batch {}: a step does not fit where rows have {} of their memory",
                   row.what.batch, share));
}

int runBench(BenchArguments &arguments) {
  if (arguments.model.model.empty())
    throw UsageError("model is required");
  std::vector<int64_t> batches = parseNumbers("--batch", arguments.batch);
  std::vector<int64_t> threads = parseNumbers("--threads", arguments.threads);
  bool asJson = arguments.format.json();
  for (const std::string &what : arguments.against) {
    if (what == "f32" && arguments.model.precision == "f32")
      throw UsageError("--against f32 needs --precision bf16");
    compileOptions(otherwise(arguments.model, what)); // whether there is such an optimisation
  }
  arguments.model.training = arguments.train;
  if (arguments.train && !arguments.model.entryGiven->count())
    arguments.model.entry = "loss";
  driver::BenchOptions options;
  options.minRepetitions = parseNumber("--repetitions", arguments.repetitions);
  options.minSeconds = arguments.seconds;
  options.trace = arguments.trace;

  arguments.weights.check();
  arguments.limits.check(arguments.model);
  std::vector<driver::BenchCase> cases = casesOf(arguments);
  int64_t largest = *std::max_element(batches.begin(), batches.end());
  LoadedRun run = loadRun(arguments.model, arguments.data, arguments.weights, largest);
  if (arguments.train)
    driver::requireLoss(run.model());
  options.session = sessionFor(arguments, run.model());
  int64_t available = static_cast<int64_t>(run.instances.size());
  if (available < largest)
    note(fmt::format("the data hold {} instances; larger batches are cut to that", available));

  // An artefact brings its weights.
  std::function<void(rt::Session &)> initialise = [](rt::Session &) {};
  if (run.compiled)
    initialise = weightSetter(arguments.weights, run);
  driver::Benchmark benchmark(run.benchModel(), run.instances, initialise, options);
  std::vector<driver::BenchRow> rows;
  bool progress = isatty(STDERR_FILENO);
  for (int64_t count : threads)
    for (int64_t batch : batches)
      for (driver::BenchCase what : cases) {
        what.batch = batch;
        what.threads = static_cast<unsigned>(count);
        if (progress)
          fmt::print(stderr, "\r\033[K{}, batch {}, {} threads", driver::engineName(what.engine),
                     batch, count);
        rows.push_back(placed(run.data, [&] { return benchmark.run(what); }));
      }
  if (progress)
    fmt::print(stderr, "\r\033[K");

  timeAgainst(arguments, run, benchmark, options, rows);
  auto quietly = [&](rt::Session &session) {
    if (run.compiled)
      setWeights(session, arguments.weights, run, /*quiet=*/true);
  };
  for (double share : arguments.shares)
    for (driver::BenchRow &row : rows)
      timeInLess(run, quietly, benchmark, options, share, row);
  bool compares = !arguments.against.empty() || !arguments.shares.empty();

  const std::string &name = run.model().name;
  if (asJson)
    fmt::print("{}", driver::benchJson(name, run.model().dims, rows));
  else if (arguments.train)
    fmt::print("{}{}", driver::trainingTable(rows),
               compares ? "\n" + driver::againstTable(rows) : "");
  else if (arguments.policies)
    fmt::print("{}", driver::policyTable(rows));
  else
    fmt::print("{}{}", driver::benchTable(rows), compares ? "\n" + driver::againstTable(rows) : "");
  if (arguments.kernels && !asJson)
    fmt::print("{}{}",
               rows.back().miniBatches > 1 ? fmt::format("of all {} mini-batches of the last row\n",
                                                         rows.back().miniBatches)
                                           : "",
               driver::kernelTable(rows.back().kernels,
                                   rows.back().peakGflops / rows.back().what.threads));
  return kOk;
}

} // namespace

void addBench(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "bench", "times mini-batches against the machine's peak");
  auto arguments = std::make_shared<BenchArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addArtefact(*sub);
  // What is required comes before subcommands: `kernels` would be taken for the model.
  sub->get_option("model")->required(false);
  arguments->model.addStore(*sub);
  arguments->model.addVerbose(*sub);
  arguments->data.add(*sub);
  arguments->weights.add(*sub);
  arguments->limits.add(*sub);
  sub->add_option("--batch", arguments->batch, "instances a mini-batch (default: 1,8,64,256)")
      ->type_name("N,...");
  sub->add_option("--threads", arguments->threads, "threads that run kernels (default: 1)")
      ->type_name("N,...");
  sub->add_option("--engine", arguments->engines,
                  "oracle, unbatched, batched (default: unbatched,batched)")
      ->type_name("NAME,...");
  sub->add_flag("--kernels", arguments->kernels, "the kernels of the last row, too");
  sub->add_flag("--policies", arguments->policies,
                "compare the policies (--policy), all with the engine batched: launches, the least "
                "launches of any order, the time of ordering")
      ->excludes("--engine")
      ->excludes("--policy");
  sub->add_flag("--train", arguments->train,
                "time steps of a training of the function --entry (default: loss), forward, back "
                "and update by Adam, and the share of the peak that all their products have")
      ->excludes("--engine")
      ->excludes("--policies");
  sub->add_option("--against", arguments->against,
                  "how many times as long the same takes without an optimisation, by the names of "
                  "--without, or, with --precision bf16, in f32: in turn with it")
      ->type_name("NAME,...")
      ->expected(1)
      ->take_all()
      ->delimiter(',')
      ->excludes("--policies");
  sub->add_option("--row-shares", arguments->shares,
                  "with --train, how many times as long a step takes where the memory limit lets "
                  "rows have such a share of what they take: in turn with it")
      ->type_name("SHARE,...")
      ->expected(1)
      ->take_all()
      ->delimiter(',')
      ->check(CLI::Range(0.01, 1.0))
      ->needs("--train");
  sub->add_flag("--traced", arguments->trace,
                "with a trace being gathered as for 'run --trace': what that costs");
  arguments->format.add(*sub);
  sub->add_option("--repetitions", arguments->repetitions, "at least so many (default: 20)")
      ->type_name("N");
  sub->add_option("--seconds", arguments->seconds, "for at least so long (default: 1)")
      ->type_name("S");
  addBenchKernels(*sub, action);
  sub->callback([sub, arguments, &action] {
    if (sub->get_subcommands().empty())
      action = [arguments] { return runBench(*arguments); };
  });
}

} // namespace sheaf::tool
