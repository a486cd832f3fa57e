//===- load.cpp - From the command line to a model with its data ----------===//
#include "tools/sheaf/load.h"

#include "tools/sheaf/command.h"
#include "tools/sheaf/hooks.h"
#include "tools/sheaf/nearest.h"
#include "tools/sheaf/progress.h"
#include "tools/sheaf/read_notes.h"
#include "tools/sheaf/reproduce.h"
#include "tools/sheaf/tokenizer.h"
#include "tools/sheaf/weights.h"

#include "compiler/driver/Library.h"
#include "compiler/target/Target.h"
#include "runtime/io/gzip.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unistd.h>

namespace sheaf::tool {

void (*changeOptions)(driver::CompileOptions &) = nullptr;

namespace {

bool entryIsGiven(const ModelOptions &options) {
  return !options.entryGiven || options.entryGiven->count() > 0;
}

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether the file declares what the command line names. What is wrong with one that does not
/// parse is told when it is compiled.
void checkNames(const SourceFile &source, const ModelOptions &options) {
  if (!driver::declaredFunctions(source))
    return;
  std::string missing = missingEntry(source, options);
  std::vector<std::string> dims;
  if (!options.dims.empty())
    dims = driver::declaredDims(source);
  for (const auto &[name, value] : parseDims(options.dims))
    if (!contains(dims, name))
      throw UsageError(
          fmt::format("{}: the model declares no dim '{}'{}", source.name(), name,
                      dims.empty() ? "" : fmt::format("; its dims are {}", fmt::join(dims, ", "))));
  // The compiler tells of a file without `main`.
  bool isTold = !entryIsGiven(options) && options.entryOption == "--entry";
  if (!missing.empty() && !isTold) {
    if (entryIsGiven(options))
      throw UsageError(fmt::format("{}: {}", options.entryOption, missing));
    throw UserError(fmt::format("{}; {} names another", missing, options.entryOption));
  }
}

} // namespace

std::string missingEntry(const SourceFile &source, const ModelOptions &options) {
  std::optional<std::vector<std::string>> functions = driver::declaredFunctions(source);
  if (!functions || contains(*functions, options.entry))
    return {};
  return fmt::format("{}: there is no function '{}'{}", source.name(), options.entry,
                     didYouMean(options.entry, *functions));
}

static SourceFile readModelFile(const std::string &path) {
  if (artefact::isArtefact(path))
    throw UserError(path + ": a compiled model; this command needs its source");
  io::SourceText text = io::readSource(path);
  if (artefact::beginsAsArtefact(text.text))
    throw UserError(path + ": a compiled model, which is mapped from its file: give its name");
  io::requireEightBit(text);
  if (size_t at = text.text.find('\0'); at != std::string::npos) {
    io::TextPlace place = io::PlaceFinder(text.text).at(at);
    io::failAt(text.name, place.line, place.column, "a NUL byte: a model file is UTF-8 text");
  }
  return withUsedFiles(std::move(text));
}

SourceFile readModel(const ModelOptions &options) {
  SourceFile source = readModelFile(options.model);
  checkNames(source, options);
  return source;
}

const SourceFile &InputFiles::model(const ModelOptions &options) {
  auto known = models_.find(options.model);
  if (known == models_.end())
    known = models_.emplace(options.model, readModelFile(options.model)).first;
  checkNames(known->second, options);
  return known->second;
}

SourceFile withUsedFiles(io::SourceText text) {
  FileResolver resolver = driver::fileResolver(text.name);
  return {std::move(text.name), std::move(text.text), resolver};
}

void note(const std::string &text) {
  Progress::clear();
  fmt::print(stderr, "note: {}\n", text);
}

void printDiagnostics(const Diagnostics &diags) {
  Progress::clear();
  fmt::print(stderr, "{}", diags.render(isatty(STDERR_FILENO)));
}

namespace {

store::Options storeOptions(const std::string &option) {
  const char *place = getenv("SHEAF_STORE"), *limit = getenv("SHEAF_STORE_LIMIT");
  std::string directory = option.empty() && place ? place : option;
  store::Options options;
  if (directory.empty())
    options.directory = store::defaultDirectory();
  else if (directory != "none")
    options.directory = directory;
  if (limit && *limit && !options.directory.empty())
    options.limit = parseBytes("SHEAF_STORE_LIMIT", limit);
  return options;
}

} // namespace

driver::Precision parsePrecision(const std::string &text) {
  if (text == "f32")
    return driver::Precision::F32;
  if (text == "bf16")
    return driver::Precision::Bf16;
  throw UsageError(fmt::format("--precision takes f32 and bf16, not '{}'", text));
}

/// Throws UsageError for what there is not.
static std::string parseTarget(const std::string &text) {
  std::vector<std::string> names;
  for (const driver::Target &target : driver::targets())
    names.push_back(target.name);
  if (std::find(names.begin(), names.end(), text) == names.end())
    throw UsageError(fmt::format("there is no target '{}'{}; --target takes {}", text,
                                 didYouMean(text, names), fmt::join(names, ", ")));
  return text;
}

std::string parseTargetCpu(const std::string &text) {
  std::string cpu = text == "native" ? "host" : text;
  fromCommandLine([&] { return target::detect(cpu); });
  return cpu;
}

driver::CompileOptions compileOptions(const ModelOptions &options) {
  driver::CompileOptions compile;
  compile.dims = parseDims(options.dims);
  compile.constants = io::parseConstants(options.constants, "the constants of the training");
  compile.entry = options.entry;
  compile.without.insert(options.without.begin(), options.without.end());
  std::vector<driver::Optimisation> known = driver::optimisations();
  for (const std::string &name : compile.without) {
    if (std::any_of(known.begin(), known.end(), [&](auto &o) { return o.name == name; }))
      continue;
    std::string names;
    for (const driver::Optimisation &optimisation : known)
      names += (names.empty() ? "" : ", ") + optimisation.name;
    throw UsageError(fmt::format("there is no optimisation '{}'; --without takes {}", name, names));
  }
  // The order of gradients' sums follows from it.
  if (options.limited && options.training)
    compile.without.insert(kHoistRows);
  compile.target = parseTarget(options.target);
  compile.targetCpu = parseTargetCpu(options.targetCpu);
  compile.targetCaches = parseTargetCache(options.targetCache);
  compile.precision = parsePrecision(options.precision);
  if (options.numericClass == "any")
    compile.numericClass = kernels::NumericClass::Any;
  else if (options.numericClass != "exact")
    throw UsageError(
        fmt::format("--numeric-class takes exact and any, not '{}'", options.numericClass));
  if (!options.verbose.empty() && options.verbose != "dispatch")
    throw UsageError(fmt::format("--verbose takes dispatch, not '{}'", options.verbose));
  if (options.training && compile.numericClass == kernels::NumericClass::Any)
    throw UsageError("training keeps the order of sums: --numeric-class any is for inference");
  compile.dropout = options.dropout;
  compile.training = options.training;
  compile.inputGradients = options.inputGradients;
  compile.store = storeOptions(options.store);
  if (changeOptions)
    changeOptions(compile);
  return compile;
}

namespace {

io::Vocabularies vocabularyFiles(const ModelOptions &options) {
  io::Vocabularies vocabularies;
  for (const std::string &option : options.vocabs)
    vocabularies.add(option, "--vocab");
  return vocabularies;
}

/// What `--verbose dispatch` asks for; equal lines of several kernels are told once.
void printDispatch(const driver::CompiledModel &model) {
  std::set<std::string> told;
  for (const driver::BlockInfo &block : model.blocks())
    for (const driver::DispatchInfo &product : block.dispatch) {
      std::string text =
          fmt::format("dispatch: {}: {}: {}\n", product.place, block.name, product.what);
      for (const kernels::Verdict &verdict : product.verdicts)
        text += fmt::format("  {}: {}\n", verdict.implementation,
                            verdict.reason.empty() ? "taken" : verdict.reason);
      if (told.insert(text).second)
        fmt::print(stderr, "{}", text);
    }
}

void compileLoaded(LoadedModel &loaded, const driver::CompileOptions &compile,
                   const ModelOptions &options) {
  loaded.options = compile;
  loaded.givenDims = parseDims(options.dims);
  dumpPhases(*loaded.source, compile, options.dump);
  Diagnostics diags(*loaded.source);
  loaded.compiled = driver::compile(*loaded.source, compile, diags);
  printDiagnostics(diags);
  if (diags.hasErrors())
    throw DiagnosticsPrinted();
  // A command that compiles several models is told once.
  static std::set<std::string> told;
  for (const std::string &warning : loaded.compiled->storeUse().warnings)
    if (told.insert(warning).second)
      fmt::print(stderr, "warning: {}\n", warning);
  if (options.verbose == "dispatch")
    printDispatch(*loaded.compiled);
}

} // namespace

void dumpPhases(const SourceFile &source, const driver::CompileOptions &compile,
                const std::string &directory) {
  if (directory.empty())
    return;
  // What is wrong with the program is told when it is compiled.
  Diagnostics unheard(source);
  driver::dump(source, compile, directory, unheard);
}

void bindSizes(const io::Vocabularies &vocabularies, driver::CompileOptions &compile) {
  for (const auto &[name, vocabulary] : vocabularies.all())
    compile.vocabularySizes[name] = vocabulary.size();
}

void bindVocabularyFiles(const ModelOptions &options, driver::CompileOptions &compile) {
  bindSizes(vocabularyFiles(options), compile);
}

driver::BenchModel LoadedModel::benchModel() const {
  if (compiled)
    return {compiled->model(), compiled->target(), compiled->precision(), compiled->codeBytes(),
            compiled.get()};
  const artefact::Description &description = artefact->description();
  return {artefact->model(), description.target(),
          description.code().isBf16() ? driver::Precision::Bf16 : driver::Precision::F32,
          description.image.layout.bytes()};
}

LoadedModel loadModel(const ModelOptions &options, const WeightOptions &weights) {
  LoadedModel loaded;
  driver::CompileOptions compile = compileOptions(options);
  compile.runsElsewhere = true;
  loaded.source = std::make_unique<SourceFile>(readModel(options));
  loaded.vocabularies = vocabularyFiles(options);
  bindStoredDims(weights, *loaded.source, loaded.vocabularies, compile);
  bindSizes(loaded.vocabularies, compile);
  compileLoaded(loaded, compile, options);
  return loaded;
}

namespace {

/// The entry's types, before its data can be read.
std::unique_ptr<driver::EntryTypes> inspectLoaded(const LoadedModel &loaded,
                                                  const driver::CompileOptions &compile) {
  Diagnostics diags(*loaded.source);
  std::unique_ptr<driver::EntryTypes> entry = driver::inspect(*loaded.source, compile, diags);
  if (diags.hasErrors()) {
    printDiagnostics(diags);
    throw DiagnosticsPrinted();
  }
  return entry;
}

/// Reads the source, with the vocabularies and stored dims that the options name.
std::unique_ptr<driver::EntryTypes> inspectSource(LoadedModel &loaded, const ModelOptions &options,
                                                  const WeightOptions &weights,
                                                  driver::CompileOptions &compile,
                                                  InputFiles &files) {
  loaded.source = std::make_unique<SourceFile>(files.model(options));
  loaded.vocabularies = vocabularyFiles(options);
  bindStoredDims(weights, *loaded.source, loaded.vocabularies, compile);
  return inspectLoaded(loaded, compile);
}

void refuseDigest(const ModelOptions &options) {
  if (!options.sha256.empty())
    throw UsageError("--require-sha256 is for artefacts; " + options.model + " is none");
}

/// Adds the vocabularies beside the weights: of all that the model names, since what the entry
/// makes may be of one that it does not read. Returns the names of those that it reads and that
/// are still missing.
std::set<std::string> findVocabularies(const driver::EntryTypes &entry,
                                       const WeightOptions &weights,
                                       io::Vocabularies &vocabularies) {
  std::set<std::string> missing = driver::argumentVocabularies(entry);
  for (const std::string &name : entry.vocabularies) {
    if (!vocabularies.find(name))
      if (std::string beside = io::vocabularyOf(weights.weights, name); !beside.empty())
        vocabularies.set(name, io::Vocabulary::load(beside));
    const io::Vocabulary *vocabulary = vocabularies.find(name);
    if (!vocabulary)
      continue;
    missing.erase(name);
    auto dim = entry.vocabularyDims.find(name);
    if (dim != entry.vocabularyDims.end() && dim->second.second != vocabulary->size())
      throw UserError(fmt::format(
          "dim {0} is {1}, but the vocabulary of {2} has {3} entries; give --dim {0}={3}, or no "
          "value in the source",
          dim->second.first, dim->second.second, io::tokenTypeName(name), vocabulary->size()));
  }
  return missing;
}

/// Makes vocabularies of the words of the data.
void buildVocabularies(LoadedRun &loaded, const std::set<std::string> &missing,
                       const driver::EntryTypes &entry, const io::SourceText &text,
                       const io::ReadOptions &reading, ReadNotes &notes) {
  std::map<std::string, int64_t> sizes;
  for (const auto &[name, dim] : entry.vocabularyDims)
    sizes[name] = dim.second;
  for (auto &[name, vocabulary] :
       io::vocabulariesOf(text, missing, sizes, entry.types, entry.entry, reading)) {
    if (vocabulary.hasWords() && vocabulary.size() > 1)
      notes.once(fmt::format("no vocabulary for {}: made one of the {} in {} ('sheaf vocab' writes "
                             "such a file, --vocab reads it)",
                             io::tokenTypeName(name), io::plural(vocabulary.size() - 1, "word"),
                             text.name));
    loaded.vocabularies.set(name, std::move(vocabulary));
  }
}

/// `goesOn`: more will be read that the notes are of, too.
void readInstances(LoadedRun &loaded, const io::SourceText &text, io::ReadOptions reading,
                   bool strictVocab, ReadNotes &notes, bool goesOn) {
  const rt::Model &model = loaded.model();
  io::VocabularyReader tokens(loaded.vocabularies, strictVocab);
  reading.dims = &model.dims;
  loaded.data = io::readDataset(text, model.types, model.entry, tokens, reading);
  notes.add(loaded.data.report(), loaded.data.size(), text.name, model.entry);
  if (!goesOn)
    notes.noteIgnored();
  notes.addUnknownWords(tokens);
  loaded.instances.reserve(loaded.data.size());
  for (int64_t i = 0; i < loaded.data.size(); ++i)
    loaded.instances.push_back({loaded.data.args(i), i});
}

/// What an artefact was built with cannot be given again.
void openArtefact(LoadedModel &loaded, const ModelOptions &options, const WeightOptions &weights) {
  auto refuse = [&](const std::string &option) {
    throw UsageError(option + " has no meaning for an artefact, which was built with its own");
  };
  if (!options.dims.empty())
    refuse("--dim");
  if (!options.without.empty())
    refuse("--without");
  if (options.target != ModelOptions().target)
    refuse("--target");
  if (options.targetCpu != "host" && options.targetCpu != "native")
    refuse("--target-cpu");
  if (!options.targetCache.empty())
    refuse("--target-cache");
  if (options.precision != "f32")
    refuse("--precision");
  if (options.numericClass != "exact")
    refuse("--numeric-class");
  if (!options.verbose.empty())
    refuse("--verbose");
  if (!options.dump.empty())
    refuse("--dump");
  if (options.dropout)
    refuse("--dropout");
  if (options.training)
    refuse("--train");
  if (!weights.weights.empty())
    refuse("--weights");
  if (weights.strict)
    refuse("--strict-weights");
  if (weights.seedGiven && weights.seedGiven->count() > 0)
    refuse("--seed");
  loaded.artefact = artefact::Artefact::open(options.model, {options.sha256});
  const std::string &entry = loaded.model().entry.name;
  if (entryIsGiven(options) && options.entry != entry)
    throw UsageError(
        fmt::format("{}: built to run '{}', not '{}'", options.model, entry, options.entry));
  loaded.vocabularies = loaded.artefact->vocabularies();
  io::Vocabularies given = vocabularyFiles(options);
  for (const auto &[name, vocabulary] : given.all()) {
    const io::Vocabulary *own = loaded.vocabularies.find(name);
    if (own && own->hasWords() ? own->hash() != vocabulary.hash()
                               : own && own->size() != vocabulary.size())
      throw UserError(fmt::format("{}: built with another vocabulary for {} than --vocab gives",
                                  options.model, io::tokenTypeName(name)));
    if (own)
      loaded.vocabularies.set(name, vocabulary);
  }
}

} // namespace

LoadedModel loadWithVocabularies(const ModelOptions &options, const WeightOptions &weights,
                                 bool runsElsewhere) {
  LoadedModel loaded;
  driver::CompileOptions compile = compileOptions(options);
  compile.runsElsewhere = runsElsewhere;
  InputFiles files;
  std::unique_ptr<driver::EntryTypes> entry =
      inspectSource(loaded, options, weights, compile, files);
  for (const std::string &name : findVocabularies(*entry, weights, loaded.vocabularies)) {
    auto dim = entry->vocabularyDims.find(name);
    if (dim == entry->vocabularyDims.end())
      throw UserError(
          fmt::format("no vocabulary for {}: give one with --vocab ('sheaf vocab' makes "
                      "one of data)",
                      io::tokenTypeName(name)));
    loaded.vocabularies.set(name, io::Vocabulary::ofSize(dim->second.second));
  }
  bindSizes(loaded.vocabularies, compile);
  compileLoaded(loaded, compile, options);
  return loaded;
}

std::optional<LoadedModel> loadBeforeData(const ModelOptions &options,
                                          const WeightOptions &weights) {
  LoadedModel loaded;
  if (options.artefacts && artefact::isArtefact(options.model)) {
    openArtefact(loaded, options, weights);
    return loaded;
  }
  refuseDigest(options);
  driver::CompileOptions compile = compileOptions(options);
  InputFiles files;
  std::unique_ptr<driver::EntryTypes> entry =
      inspectSource(loaded, options, weights, compile, files);
  if (!findVocabularies(*entry, weights, loaded.vocabularies).empty())
    return std::nullopt;
  bindSizes(loaded.vocabularies, compile);
  compileLoaded(loaded, compile, options);
  return loaded;
}

LoadedRun readAll(LoadedModel loaded, io::SourceText text, const DataOptions &data) {
  LoadedRun run;
  static_cast<LoadedModel &>(run) = std::move(loaded);
  keepStandardInput(text.text);
  ReadNotes notes;
  readInstances(run, text, data.reading(), data.strictVocab, notes, /*goesOn=*/false);
  return run;
}

const InputFiles::File &InputFiles::read(const std::string &file) {
  if (auto known = files_.find(file); known != files_.end())
    return known->second;
  File fresh;
  io::SourceText raw = io::readSource(file);
  if (hashed_)
    fresh.hash = io::contentHash(raw.text);
  fresh.text = io::decompressed(std::move(raw));
  if (file == "-")
    keepStandardInput(fresh.text.text);
  return files_.emplace(file, std::move(fresh)).first->second;
}

LoadedRun loadRun(const ModelOptions &options, const DataOptions &data,
                  const WeightOptions &weights, int64_t limit, ReadNotes *notes,
                  InputFiles *files) {
  LoadedRun loaded;
  InputFiles once;
  InputFiles &read = files ? *files : once;
  ReadNotes own;
  io::ReadOptions reading = data.reading();
  reading.limit = limit;
  io::SourceText encoded;
  auto instances = [&]() -> const io::SourceText & {
    const io::SourceText &given = read.of(data.data);
    if (data.tokenizer.empty())
      return given;
    encoded = encodeTexts(given, data.tokenizer, reading);
    return encoded;
  };
  if (options.artefacts && artefact::isArtefact(options.model)) {
    openArtefact(loaded, options, weights);
    const io::SourceText &text = instances();
    readInstances(loaded, text, reading, data.strictVocab, notes ? *notes : own, notes);
    return loaded;
  }
  refuseDigest(options);
  driver::CompileOptions compile = compileOptions(options);
  std::unique_ptr<driver::EntryTypes> entry =
      inspectSource(loaded, options, weights, compile, read);
  const io::SourceText &text = instances();
  buildVocabularies(loaded, findVocabularies(*entry, weights, loaded.vocabularies), *entry, text,
                    reading, notes ? *notes : own);
  bindSizes(loaded.vocabularies, compile);
  compileLoaded(loaded, compile, options);
  readInstances(loaded, text, reading, data.strictVocab, notes ? *notes : own, notes);
  return loaded;
}

std::string instanceName(const io::Dataset &data, int64_t instance) {
  return fmt::format("instance {} ({})", instance, data.name(instance));
}

std::string failureText(const io::Dataset &data, const RunError &error) {
  return fmt::format("{}: {}", data.name(error.instance()), error.what());
}

rt::SessionOptions sessionOptions(const LimitOptions &limits, unsigned threads,
                                  const rt::Model &model) {
  rt::SessionOptions options;
  options.threads = threads;
  options.memoryLimit = limits.memoryLimit;
  options.keepBytes = limits.foldMemory;
  options.hostile = limits.hostile;
  options.sampleSeed = limits.sampleSeed;
  options.policy = limits.policy;
  options.forking = limits.forking;
  options.waveBytes = limits.waves;
  options.rowReuse = limits.rowReuse;
  options.shareRows = limits.shareRows;
  options.recompute = limits.recompute;
  if (limits.maxSteps)
    options.maxSteps = limits.maxSteps;
  if (limits.fibers)
    options.fibers = static_cast<unsigned>(limits.fibers);
  if (limits.maxDepth)
    options.hostStackBytes = rt::stackBytesFor(model, static_cast<uint64_t>(limits.maxDepth));
  return options;
}

} // namespace sheaf::tool
