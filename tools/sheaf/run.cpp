//===- run.cpp - sheaf run ------------------------------------------------===//
#include "tools/sheaf/answers.h"
#include "tools/sheaf/command.h"
#include "tools/sheaf/failure.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/output_file.h"
#include "tools/sheaf/progress.h"
#include "tools/sheaf/recorded_reads.h"
#include "tools/sheaf/run_lines.h"
#include "tools/sheaf/stats.h"
#include "tools/sheaf/tokenizer.h"
#include "tools/sheaf/trace.h"
#include "tools/sheaf/weights.h"

#include "compiler/verify/Verify.h"
#include "runtime/devices/devices.h"
#include "runtime/io/gzip.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace sheaf::tool {

namespace {

struct RunArguments {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  BatchOptions batches;
  std::string format;
  std::string output;
  std::string stats, statsFile;
  std::string trace;
  std::string device;
  bool verify = false;
  bool checkResults = false;
  bool stream = false;
};

/// Whether the report of --verify is for programs.
bool checkFormat(const RunArguments &arguments) {
  const std::string &format = arguments.format;
  if (arguments.verify)
    return FormatOption{.format = format.empty() ? "text" : format}.json();
  if (!format.empty() && format != "jsonl" && format != "none")
    throw UsageError(fmt::format("--format takes jsonl or none, not '{}'", format));
  return false;
}

/// Null without a name.
rt::DeviceFactory deviceNamed(const std::string &name) {
  std::string known;
  for (const rt::DeviceRecord &each : rt::devices()) {
    if (each.name == name)
      return each.make;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", each.name);
  }
  if (!name.empty())
    throw UsageError(fmt::format("there is no device '{}'; there are {}", name, known));
  return nullptr;
}

/// Whether an instance may be answered before the others are read.
bool mayAnswerLines(const RunArguments &arguments) {
  return arguments.data.data == "-" && arguments.data.tokenizer.empty() && !arguments.verify &&
         !arguments.checkResults && arguments.stats.empty() && arguments.trace.empty() &&
         arguments.device.empty();
}

/// Whether a result is numbers of words that a tokenizer can read back.
bool isTokens(const rt::Model &model, const io::Vocabularies &vocabularies) {
  const rt::TypeDesc *type = &model.types.types[model.entry.resultType];
  if (type->kind == rt::TypeKind::List)
    type = &model.types.types[type->children[0]];
  bool isWord = type->kind == rt::TypeKind::Token;
  bool isRow = type->kind == rt::TypeKind::Tensor && type->isToken && type->shape.size() == 1 &&
               type == &model.types.types[model.entry.resultType];
  const io::Vocabulary *words = vocabularies.find("");
  return (isWord || isRow) && type->vocab.empty() && !(words && words->hasWords());
}

/// Puts the texts beside the numbers of lines that have an answer.
void addTexts(TokenDecoder &decoder, std::vector<Answer> &answers) {
  std::vector<Answer *> done;
  std::vector<std::string> ids;
  for (Answer &answer : answers)
    if (answer.error.empty()) {
      done.push_back(&answer);
      ids.push_back(answer.line.substr(0, answer.line.size() - 1));
    }
  std::vector<std::string> texts = decoder.decode(ids);
  for (size_t i = 0; i < done.size(); ++i)
    done[i]->line = fmt::format("{{\"ids\": {}, \"text\": {}}}\n", ids[i], texts[i]);
}

int runModel(RunArguments &arguments) {
  arguments.batches.check();
  bool asJson = checkFormat(arguments);
  if (!arguments.stats.empty() && arguments.stats != "text" && arguments.stats != "json")
    throw UsageError(fmt::format("--stats takes text or json, not '{}'", arguments.stats));
  if (!arguments.statsFile.empty() && arguments.stats.empty())
    throw UsageError("--stats-file needs --stats");
  checkOutputs({arguments.output, arguments.statsFile, arguments.trace},
               {arguments.model.model, arguments.data.data, arguments.weights.weights});
  rt::DeviceFactory device = deviceNamed(arguments.device);
  uint64_t start = rt::clockNow();

  arguments.weights.check();
  arguments.limits.check(arguments.model);
  InterruptGuard guard(arguments.output);
  LoadedRun run;
  std::optional<LoadedModel> early;
  LineInput input;
  const io::DataFormat *lines = nullptr;
  if (mayAnswerLines(arguments)) {
    early = loadBeforeData(arguments.model, arguments.weights);
    if (!early)
      note("standard input is read to its end first, since a vocabulary is made of it; --vocab "
           "gives one");
  }
  if (early) {
    lines = lineFormat(arguments.data.reading(), input);
    if (lines)
      static_cast<LoadedModel &>(run) = std::move(*early);
    else
      run = readAll(std::move(*early), io::decompressed({LineInput::kName, input.whole()}),
                    arguments.data);
  } else {
    run = loadRun(arguments.model, arguments.data, arguments.weights);
  }
  rt::SessionOptions options =
      sessionOptions(arguments.limits, arguments.batches.threads, run.model());
  options.checkResults = arguments.checkResults;
  options.device = device;
  if (arguments.verify) {
    if (!run.compiled)
      throw UsageError("--verify needs the model's source, for the oracle to run");
    driver::VerifyOptions verify;
    verify.batch = arguments.batches.batch;
    verify.session = options;
    std::unique_ptr<Progress> bar;
    std::string shown;
    verify.progress = [&](const char *what, int64_t, int64_t total) {
      if (shown != what) {
        shown = what;
        bar.reset();
        bar = std::make_unique<Progress>(what, total);
      }
      bar->step();
    };
    driver::VerifyReport report =
        driver::verify(*run.compiled, run.instances, weightSetter(arguments.weights, run), verify);
    bar.reset();
    fmt::print("{}", asJson ? verifyJson(report) : verifyText(report));
    if (!report.ok)
      tellFailure(report.problem);
    return report.ok ? kOk : kFailed;
  }

  options.weightsStay = !options.hostile;
  std::optional<Statistics> statistics;
  if (!arguments.stats.empty())
    statistics.emplace(run.model(), run.compiled ? &run.compiled->storeUse() : nullptr);
  rt::Session session(run.model(), options);
  if (run.compiled)
    setWeights(session, arguments.weights, run, /*quiet=*/false);
  std::unique_ptr<TraceFile> trace;
  if (!arguments.trace.empty()) {
    trace = std::make_unique<TraceFile>(arguments.trace, run.model(), options.threads,
                                        [&](int64_t i) { return instanceName(run.data, i); });
    session.setTrace(&trace->trace());
  }
  if (statistics)
    statistics->watch(session);
  RecordedReads reads(session, options, [&](rt::Session &reader) {
    if (run.compiled)
      setWeights(reader, arguments.weights, run, /*quiet=*/true);
  });
  auto runBatch = [&](std::span<const rt::Instance> some) {
    reads.record(some);
    std::span<const rt::Outcome> outcomes = session.run(some);
    if (statistics)
      statistics->add(session);
    if (trace)
      trace->between();
    return outcomes;
  };
  OutputFile output(arguments.output);
  AnswerWriter writer(session, run.vocabularies,
                      {.isPrinted = arguments.format != "none", .isNumbered = arguments.stream});
  if (lines) {
    session.packWeights();
    return runLines(run, session, input, *lines, arguments.data,
                    static_cast<unsigned>(std::min<int64_t>(arguments.batches.batch, 1 << 20)),
                    writer, output);
  }
  int64_t failed = 0;
  // Line n of the output speaks of instance n, whatever became of the others.
  auto answer = [&](const rt::Instance &instance, const rt::Outcome &outcome) {
    failed += !outcome.ok();
    return writer.outcome(instance, run.data.name(instance.index), outcome);
  };
  if (arguments.stream && arguments.format != "none")
    session.onEmit([&](const rt::Instance &instance, const rt::Slot *value) {
      output.write(writer.emission(instance.index, value));
      output.flush();
    });
  std::optional<TokenDecoder> decoder;
  if (!arguments.data.tokenizer.empty() && !arguments.stream && arguments.format != "none" &&
      isTokens(run.model(), run.vocabularies))
    decoder.emplace(arguments.data.tokenizer);
  // Kept while the instances of a mini-batch that had too little memory run alone.
  std::vector<Answer> answers;
  std::span<const rt::Instance> rest = run.instances;
  session.packWeights();
  uint64_t began = rt::clockNow();
  while (!rest.empty()) {
    std::span<const rt::Instance> some =
        rest.first(std::min<size_t>(rest.size(), arguments.batches.batch));
    rest = rest.subspan(some.size());
    answers.assign(some.size(), {});
    rt::runEach(some, runBatch, [&](size_t i, const rt::Outcome &outcome) {
      answers[i] = answer(some[i], outcome);
    });
    if (decoder)
      addTexts(*decoder, answers);
    for (const Answer &each : answers) {
      output.write(each.line);
      fmt::print(stderr, "{}", each.error);
    }
  }
  output.finish();
  if (!arguments.stats.empty()) {
    double loadMs = static_cast<double>(began - start) * 1e-6;
    double runMs = static_cast<double>(rt::clockNow() - began) * 1e-6;
    std::string text = arguments.stats == "json" ? statistics->json(session, loadMs, runMs)
                                                 : statistics->text(session, loadMs, runMs);
    if (arguments.statsFile.empty()) {
      fmt::print(stderr, "{}", text);
    } else {
      OutputFile file(arguments.statsFile);
      file.write(text);
      file.finish();
    }
  }
  if (trace)
    trace->finish();
  if (failed)
    fmt::print(stderr, "error: {} of {} instances failed\n", failed, run.instances.size());
  return failed ? kFailed : kOk;
}

} // namespace

void addRun(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "run", "runs a model over data; one JSON line an instance");
  auto arguments = std::make_shared<RunArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true);
  arguments->model.addStore(*sub);
  arguments->model.addVerbose(*sub);
  arguments->model.addArtefact(*sub);
  arguments->data.add(*sub);
  arguments->weights.add(*sub);
  arguments->limits.add(*sub);
  arguments->batches.add(*sub);
  sub->add_option("-o", arguments->output, "the file to write instead of standard output")
      ->type_name("FILE");
  sub->add_option("--format", arguments->format,
                  "jsonl, or none to run only; of what --verify tells text or json")
      ->type_name("FORMAT");
  sub->add_option("--stats", arguments->stats,
                  "at the end, what was counted and timed, on standard error: text or json")
      ->type_name("FORMAT");
  sub->add_option("--stats-file", arguments->statsFile,
                  "write that there instead, where no note or error is")
      ->type_name("FILE");
  sub->add_option("--trace", arguments->trace,
                  "write when what ran on which thread: a Chrome trace, for ui.perfetto.dev")
      ->type_name("FILE");
  sub->add_option("--device", arguments->device,
                  "what runs kernels: cpu, or null, which counts launches and bytes and computes "
                  "nothing; what the program reads is computed by cpu before (default: cpu)")
      ->type_name("NAME");
  sub->add_flag("--check-results", arguments->checkResults,
                "instances whose result holds NaN or infinity fail, naming the block that was the "
                "first to make one");
  sub->add_flag("--stream", arguments->stream,
                "a line for each value that an instance emits, as it happens, and one for each "
                "result, with the instance's number");
  sub->add_flag("--verify", arguments->verify,
                "instead of printing results, compare them with the oracle, and bit by bit across "
                "batch sizes, orders and threads")
      ->excludes("--check-results") // NaN agrees with NaN
      ->excludes("--stream");
  sub->callback([arguments, &action] { action = [arguments] { return runModel(*arguments); }; });
}

} // namespace sheaf::tool
