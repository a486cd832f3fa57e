//===- options.cpp - Options that several subcommands share ---------------===//
#include "tools/sheaf/options.h"

#include "runtime/io/checksum.h"
#include "tools/sheaf/command.h"
#include "tools/sheaf/tables.h"
#include "tools/sheaf/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace sheaf::tool {

/// Where CLI11 puts what has no group.
constexpr const char *kNoHeading = "Options";

CLI::App *addCommand(CLI::App &app, const char *name, const char *description) {
  CLI::App *sub = app.add_subcommand(name, description);
  std::string heading = app.option_defaults()->get_group();
  if (heading != kNoHeading)
    sub->group(heading);
  sub->option_defaults()->group(kNoHeading);
  return sub;
}

HelpGroup::HelpGroup(CLI::App &app, const std::string &heading)
    : app_(app), before_(app.option_defaults()->get_group()) {
  app.option_defaults()->group(heading);
}

HelpGroup::~HelpGroup() { app_.option_defaults()->group(before_); }

// Headings that several functions write.
constexpr const char *kModelGroup = "Model", *kCodeGroup = "Code";

void ModelOptions::add(CLI::App &app, bool vocabulary, EntryOption which) {
  HelpGroup group(app, kModelGroup);
  app.add_option("model", model, "the model's source file")->required()->type_name("MODEL");
  app.add_option("--dim", dims, "bind a dim, instead of the value in the source; repeatable")
      ->type_name("NAME=NUMBER")
      ->expected(1)
      ->take_all()
      ->delimiter(',');
  switch (which) {
  case EntryOption::Run:
    entryGiven =
        app.add_option("--entry", entry, "the function to run (default: main)")->type_name("NAME");
    break;
  case EntryOption::Loss:
    training = true;
    entry = "loss";
    entryOption = "--loss";
    entryGiven =
        app.add_option("--loss", entry, "the function whose result is the loss (default: loss)")
            ->type_name("NAME");
    break;
  case EntryOption::Metric:
    entryOption = "--metric";
    break;
  }
  if (vocabulary)
    app.add_option("--vocab", vocabs,
                   "a vocabulary, one word a line, line 0 <unk>; for token<NAME> write NAME=FILE; "
                   "repeatable")
        ->type_name("FILE")
        ->expected(1)
        ->take_all();
  app.add_flag("--dropout", dropout, "dropout drops, as in training; else it changes nothing");
  HelpGroup code(app, kCodeGroup);
  app.add_option("--without", without,
                 "leave an optimisation out; repeatable ('sheaf explain' names them)")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->delimiter(',');
  app.add_option("--target", target,
                 "what kernels are made for; help lists what there is (default: cpu)")
      ->type_name("NAME")
      ->each([](const std::string &text) {
        if (text != "help")
          return;
        std::string listed = tableText(*findTable("targets"));
        listed.pop_back(); // CLI11 ends the line
        throw CLI::CallForVersion(listed, kOk);
      });
  app.add_option(
         "--target-cpu", targetCpu,
         "make code for this CPU: host (or native), or LLVM's name of one, such as x86-64-v3")
      ->type_name("CPU");
  app.add_option("--target-cache", targetCache, kTargetCacheHelp)->type_name("SIZES");
  app.add_option("--precision", precision,
                 "what products of weights and attention compute in: f32 or bf16 (default: f32)")
      ->type_name("NAME");
  app.add_option("--numeric-class", numericClass,
                 "exact: products keep their order of sums, whatever the batch; any: a block may "
                 "take a library for its products (default: exact)")
      ->type_name("NAME");
  app.add_option("--dump", dump,
                 "write what every phase, pass and kernel came to, as files of a directory")
      ->type_name("DIR");
}

void ModelOptions::addStore(CLI::App &app) {
  HelpGroup group(app, kCodeGroup);
  app.add_option("--store", store,
                 "the directory that keeps compiled code from one start to the next, or none "
                 "(default: sheaf in the user's cache directory; SHEAF_STORE names another)")
      ->type_name("DIR");
}

void ModelOptions::addVerbose(CLI::App &app) {
  HelpGroup group(app, kCodeGroup);
  app.add_option("--verbose", verbose,
                 "dispatch: say on standard error who was asked for each product of each block, "
                 "and why it refused")
      ->type_name("WHAT");
}

void ModelOptions::addArtefact(CLI::App &app) {
  artefacts = true;
  HelpGroup group(app, kModelGroup);
  app.get_option("model")->description("the model's source file, or an artefact of it");
  app.add_option("--require-sha256", sha256,
                 "refuse an artefact with another SHA-256: running one is trusting its author")
      ->type_name("DIGEST")
      ->check([](const std::string &text) {
        return io::isSha256(text) ? std::string() : "takes 64 hexadecimal digits";
      });
}

void checkOutputs(const std::vector<std::string> &outputs, const std::vector<std::string> &inputs) {
  namespace fs = std::filesystem;
  auto same = [](const std::string &a, const std::string &b) {
    std::error_code ignored; // of files that are not there
    bool isDevice = fs::exists(a, ignored) && !fs::is_regular_file(a, ignored);
    return !a.empty() && !b.empty() && a != "-" && b != "-" && !isDevice &&
           (fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored) ||
            fs::equivalent(a, b, ignored));
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const std::string &input : inputs)
      if (same(outputs[i], input))
        throw UsageError(fmt::format("'{}' is read, and would be written over", outputs[i]));
    for (size_t j = 0; j < i; ++j)
      if (same(outputs[i], outputs[j]))
        throw UsageError(fmt::format("'{}' is to be written twice", outputs[i]));
  }
}

void DataOptions::add(CLI::App &app, bool required) {
  HelpGroup group(app, "Data");
  app.add_option(
         "--data", data,
         "the instances: JSON, tables, bracket trees or text, also by gzip; - is standard input")
      ->required(required)
      ->type_name("FILE");
  addReading(app);
  app.add_option("--tokenizer", tokenizer,
                 "a tokenizer.json of Hugging Face, or a directory with it: lines of text, and "
                 "strings in lines of JSON, become its numbers; needs Python's package tokenizers")
      ->type_name("FILE");
  app.add_flag("--strict-vocab", strictVocab, "words that the vocabulary lacks are errors");
}

void DataOptions::addReading(CLI::App &app) {
  app.add_option("--data-format", format, io::dataFormatNames() + " (default: auto)")
      ->type_name("FORMAT");
  app.add_flag("--strict-data", strictData,
               "members of JSON, and columns, that the function does not take are errors");
  app.add_option("--skip-bad-lines", skipBadLines,
                 "leave out up to so many instances that cannot be read (default: 0)")
      ->type_name("N");
}

static void addRepeated(CLI::App &app, const char *name, std::vector<std::string> &values,
                        const char *meaning, const char *type) {
  app.add_option(name, values, meaning)->type_name(type)->expected(1)->take_all();
}

io::ReadOptions DataOptions::reading() const {
  io::ReadOptions reading;
  reading.format = fromCommandLine([&] { return io::parseDataFormat(format); });
  reading.formatTerm = "--data-format";
  reading.strict = strictData;
  if (!skipBadLines.empty() && skipBadLines != "0")
    reading.skipBad = parseNumber("--skip-bad-lines", skipBadLines);
  return reading;
}

void WeightOptions::add(CLI::App &app, bool begins) {
  HelpGroup group(app, "Weights");
  if (begins) {
    addSeed(app, "--seed", seed, "of the random numbers (default: 0)");
  } else {
    app.add_option(
           "--weights", weights,
           "the weights: a safetensors file, a checkpoint, or a directory, of a training, which "
           "stands for its best, or of a model as Hugging Face has it")
        ->type_name("FILE");
    seedGiven = addSeed(app, "--seed", seed, "without weights, initialise them with this seed");
  }
  app.add_flag("--check-nan", checkNan, "report weights that hold NaN or infinity");
  app.add_flag("--strict-weights", strict,
               "tensors that the model has no parameter for are errors");
  addRepeated(app, "--rename", renames,
              "tensors of the file named FROM are for the parameter TO; * stands for anything, and "
              "in TO for the same; repeatable, the first that matches counts",
              "FROM=TO");
}

void WeightOptions::addInitFrom(CLI::App &app) {
  HelpGroup group(app, "Weights");
  addRepeated(app, "--init-from", initFrom,
              "begin with what this file has, by name, and initialise the rest: safetensors, or "
              "vectors of words as text (GloVe, word2vec, fastText); repeatable",
              "FILE");
  addRepeated(app, "--fresh", fresh,
              "parameters that are initialised whatever --init-from has; * stands for anything",
              "PATTERN");
}

void WeightOptions::check() {
  if (!weights.empty() && seedGiven && seedGiven->count() > 0)
    throw UsageError("--weights and --seed exclude each other");
  if (!weights.empty() && !initFrom.empty())
    throw UsageError("--weights and --init-from exclude each other");
  if (!fresh.empty() && initFrom.empty())
    throw UsageError("--fresh needs --init-from");
  if (!renames.empty() && weights.empty() && initFrom.empty())
    throw UsageError("--rename needs --weights or --init-from");
  loading();
  weights = io::weightsFile(weights);
}

io::LoadOptions WeightOptions::loading() const {
  io::LoadOptions options;
  options.findNonFinite = checkNan;
  options.strict = strict;
  options.renameTerm = "--rename";
  for (const std::string &rename : renames)
    options.renames.push_back(
        fromCommandLine([&] { return io::parseRename(rename, options.renameTerm); }));
  return options;
}

void LimitOptions::add(CLI::App &app) {
  HelpGroup group(app, "Limits and order");
  app.add_option(
         "--memory-limit", memoryLimitText,
         "most bytes of weights, rows, host values and stacks; K, M, G and T are understood")
      ->type_name("BYTES");
  app.add_option("--fold-memory", foldMemoryText,
                 "most bytes of results that depend on parameters alone, kept from one mini-batch "
                 "to the next; 0: none (default: a quarter of the limit)")
      ->type_name("BYTES");
  app.add_option("--max-depth", maxDepthText,
                 "room for so many frames of one instance's recursion (default: millions)")
      ->type_name("NUMBER");
  app.add_option("--max-steps", maxStepsText,
                 "calls of recursive functions after which an instance is given up as endless "
                 "(default: 1000000000)")
      ->type_name("NUMBER");
  app.add_option("--fibers", fibersText,
                 "instances and calls that may wait for a read at one time, at most 8192 "
                 "(default: 512; far more are slower)")
      ->type_name("NUMBER");
  app.add_option(
         "--policy", policyText,
         "in which order records run: depth, agenda, lookahead, search, memory, which needs few "
         "rows "
         "at a time, or auto, which times the first three on the first mini-batches; no result "
         "depends on it (default: depth)")
      ->type_name("NAME");
  app.add_option("--forks", forksText,
                 "which calls that may wait for a read run beside those that make them: worth, "
                 "which is while few others wait, always, never, or alternately; no result depends "
                 "on it (default: worth)")
      ->type_name("NAME");
  app.add_option("--waves", wavesText,
                 "bytes of tensors after which the instances walked so far are computed, if the "
                 "model does not read; 0: all at once (default: what caches hold, and more if "
                 "weights are large)")
      ->type_name("BYTES");
  app.add_option(
         "--row-reuse", rowReuseText,
         "whether tensors of a model that does not read lie where others have lain that are "
         "needed no more: worth, which is where they are large or memory is short, always, "
         "or never; no result depends on it (default: worth)")
      ->type_name("NAME");
  app.add_option(
         "--share-rows", shareRowsText,
         "whether tensors that grow from the same rows, as caches of several samples do, have "
         "these in memory once: worth, which is where they are many, always, or never; no result "
         "depends on it (default: worth)")
      ->type_name("NAME");
  app.add_option(
         "--recompute", recomputeText,
         "whether training drops tensors of a forward pass and makes them again in the backward "
         "pass, of a model that does not read: worth, which is what the memory limit does not "
         "hold, always, or never; no result depends on it (default: worth)")
      ->type_name("NAME");
  addSeed(app, "--sample-seed", sampleSeed, "what random draws follow from (default: 0)");
  app.add_flag("--hostile", hostile,
               "to find mistakes in generated code: guarded rows, poisoned memory, tiny buckets");
}

void LimitOptions::check(ModelOptions &model) {
  if (!memoryLimitText.empty())
    memoryLimit = parseBytes("--memory-limit", memoryLimitText);
  model.limited = memoryLimit != 0;
  if (!foldMemoryText.empty())
    foldMemory = foldMemoryText == "0" ? 0 : parseBytes("--fold-memory", foldMemoryText);
  if (!wavesText.empty())
    waves = wavesText == "0" ? 0 : parseBytes("--waves", wavesText);
  if (!maxDepthText.empty())
    maxDepth = parseNumber("--max-depth", maxDepthText);
  if (!maxStepsText.empty())
    maxSteps = parseNumber("--max-steps", maxStepsText);
  if (!fibersText.empty())
    fibers = parseNumber("--fibers", fibersText);
  std::optional<rt::Policy> named = rt::policyByName(policyText);
  if (!named)
    throw UsageError(fmt::format(
        "--policy takes depth, agenda, lookahead, search, memory and auto, not '{}'", policyText));
  policy = *named;
  std::optional<rt::Forking> forks = rt::forkingByName(forksText);
  if (!forks)
    throw UsageError(
        fmt::format("--forks takes worth, always, never and alternately, not '{}'", forksText));
  forking = *forks;
  auto when = [](const char *option, const std::string &text) {
    std::optional<rt::When> named = rt::whenByName(text);
    if (!named)
      throw UsageError(fmt::format("{} takes worth, always and never, not '{}'", option, text));
    return *named;
  };
  rowReuse = when("--row-reuse", rowReuseText);
  shareRows = when("--share-rows", shareRowsText);
  recompute = when("--recompute", recomputeText);
  constexpr int64_t mostFibers = rt::SessionOptions::kMostFibers;
  if (fibers > mostFibers)
    throw UsageError(fmt::format("--fibers takes at most {}", mostFibers));
  constexpr int64_t most = int64_t{1} << 32;
  if (maxDepth > most)
    throw UsageError(fmt::format("--max-depth takes at most {}", most));
}

void BatchOptions::add(CLI::App &app) {
  app.add_option("--batch", batchText, "instances a mini-batch (default: 64)")->type_name("N");
  app.add_option("--threads", threadsText, "threads that run kernels (default: 1)")->type_name("N");
}

void BatchOptions::check() {
  batch = parseNumber("--batch", batchText);
  threads = static_cast<unsigned>(parseNumber("--threads", threadsText));
}

void FormatOption::add(CLI::App &app) {
  app.add_option("--format", format, people + " or json (default: " + people + ")")
      ->type_name("FORMAT");
}

bool FormatOption::json() const {
  if (format != people && format != "json")
    throw UsageError(fmt::format("--format takes {} or json, not '{}'", people, format));
  return format == "json";
}

CLI::Option *addSeed(CLI::App &app, const std::string &name, uint64_t &seed,
                     const std::string &meaning) {
  // CLI11 would take a negative number for a large one.
  auto check = [name](const std::string &text) {
    uint64_t value = 0;
    const char *end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end)
      throw UsageError(
          fmt::format("{} takes a number from 0 to {}, not '{}'", name, UINT64_MAX, text));
    return std::string();
  };
  return app.add_option(name, seed, meaning)->type_name("NUMBER")->check(check);
}

std::map<std::string, int64_t> parseDims(const std::vector<std::string> &texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string &text : texts) {
    size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("--dim takes NAME=NUMBER, not '{}'", text));
    std::string name = text.substr(0, equals);
    const char *begin = text.data() + equals + 1;
    const char *end = text.data() + text.size();
    int64_t value = 0;
    auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || rest != end || value <= 0)
      throw UsageError(
          fmt::format("--dim {}: '{}' is not a positive number", name, std::string(begin, end)));
    if (!dims.emplace(name, value).second)
      throw UsageError(fmt::format("--dim {} is given twice", name));
  }
  return dims;
}

rt::CacheSizes parseTargetCache(const std::string &text) {
  rt::CacheSizes caches;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string level = text.substr(begin, 3), size = text.substr(begin, end - begin);
    int64_t *bytes = level == "L1=" ? &caches.l1 : level == "L2=" ? &caches.l2 : nullptr;
    if (!bytes || *bytes || size.size() < 4)
      throw UsageError(
          fmt::format("--target-cache takes sizes such as L1=48K,L2=2M, not '{}'", text));
    uint64_t given = parseBytes("--target-cache " + level, size.substr(3));
    constexpr uint64_t most = uint64_t{1} << 40;
    *bytes = static_cast<int64_t>(std::min(given, most));
    begin = end + 1;
  }
  return caches;
}

uint64_t parseBytes(const std::string &option, const std::string &text) {
  constexpr std::string_view kUnits = "kmgt";
  uint64_t value = 0;
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  bool ok = error == std::errc();
  double fraction = 0;
  if (ok && rest != end && *rest == '.') {
    auto [after, wrong] = std::from_chars(rest, end, fraction, std::chars_format::fixed);
    ok = wrong == std::errc();
    rest = after;
  }
  int shift = 0;
  if (ok && rest != end) {
    rest += *rest == ' '; // as errors and reports write it
    size_t unit =
        rest == end ? std::string_view::npos : kUnits.find(static_cast<char>(*rest | 0x20));
    ok = unit != std::string_view::npos;
    shift = ok ? 10 * static_cast<int>(unit + 1) : 0;
    if (ok && ++rest != end && (*rest == 'B' || *rest == 'b'))
      ++rest;
    ok = ok && rest == end;
  }
  ok = ok && value <= (UINT64_MAX >> shift) - 1 && (value > 0 || fraction > 0);
  if (!ok)
    throw UsageError(
        fmt::format("{} takes a number of bytes such as 500M or 2G, not '{}'", option, text));
  return (value << shift) + static_cast<uint64_t>(std::ceil(std::ldexp(fraction, shift)));
}

int64_t parseNumber(const std::string &option, const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value <= 0)
    throw UsageError(fmt::format("{} takes a positive number, not '{}'", option, text));
  return value;
}

int64_t parseCount(const std::string &option, const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0)
    throw UsageError(fmt::format("{} takes a number from 0, not '{}'", option, text));
  return value;
}

std::vector<int64_t> parseNumbers(const std::string &option, const std::string &text) {
  std::vector<int64_t> numbers;
  size_t begin = 0;
  for (;;) {
    size_t comma = text.find(',', begin);
    numbers.push_back(parseNumber(option, text.substr(begin, comma - begin)));
    if (comma == std::string::npos)
      return numbers;
    begin = comma + 1;
  }
}

} // namespace sheaf::tool
