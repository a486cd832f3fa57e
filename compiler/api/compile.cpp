// From what a program asks for to what the runtime loads.
#include "compiler/api/compile.h"

#include "compiler/api/built.h"
#include "compiler/driver/Compiler.h"
#include "compiler/driver/Config.h"
#include "compiler/driver/Library.h"
#include "compiler/frontend/AstPrinter.h"
#include "compiler/frontend/Parser.h"
#include "compiler/target/Target.h"
#include "runtime/compile/compiler.h"
#include "runtime/io/read.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <new>

#include <dlfcn.h>

using namespace sheaf;
using namespace sheaf::compile;

namespace {

/// Ends a compilation whose findings tell why.
struct SourceErrors {};

std::string libraryOfLayers() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&libraryOfLayers), &info) || !info.dli_fname)
    return {};
  return driver::libraryDirectory(info.dli_fname);
}

sheaf::FileResolver resolverOf(const Request &request) {
  std::string library = request.library.empty() ? libraryOfLayers() : request.library;
  if (!request.resolve)
    return driver::fileResolver(request.name, library);
  // Files of the library use each other, whatever the caller has of their names.
  return [own = request.resolve, layers = driver::libraryResolver(library)](
             const std::string &used, const std::string &by) -> sheaf::UsedFile {
    if (!by.starts_with(driver::kLibraryPrefix))
      if (compile::UsedFile found = own(used, by); !found.name.empty())
        return {std::move(found.name), std::move(found.text), {}};
    return layers(used, by);
  };
}

Place placeOf(const SourceFile &source, SourceRange range) {
  LineColumn begin = source.lineColumn(range.begin), end = source.lineColumn(range.end);
  // A range ends in its own file, whatever stands after.
  const SourceText &file = source.fileOf(range.begin);
  end = file.lineColumn(range.end);
  return {file.name(), begin.line, begin.column, end.line, end.column};
}

Finding::Severity severityOf(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return Finding::Error;
  case Severity::Warning:
    return Finding::Warning;
  case Severity::Note:
    break;
  }
  return Finding::Note;
}

void tell(const Diagnostics &diags, Answer &answer) {
  for (const Diagnostic *diagnostic : diags.inSourceOrder()) {
    Finding &finding = answer.findings.emplace_back();
    finding.severity = severityOf(diagnostic->severity);
    finding.place = placeOf(diags.file(), diagnostic->range);
    finding.message = diagnostic->message;
    finding.help = diagnostic->help;
    finding.text = diags.render(*diagnostic);
    for (const DiagnosticNote &note : diagnostic->notes) {
      Finding &further = finding.notes.emplace_back();
      further.severity = Finding::Note;
      further.place = placeOf(diags.file(), note.range);
      further.message = note.message;
    }
  }
}

[[noreturn]] void refuse(const Diagnostics &diags, Answer &answer) {
  tell(diags, answer);
  for (const Finding &finding : answer.findings)
    if (finding.severity == Finding::Error && answer.message.empty())
      answer.message = fmt::format("{}:{}:{}: error: {}", finding.place.file, finding.place.line,
                                   finding.place.column, finding.message);
  throw SourceErrors();
}

driver::CompileOptions optionsOf(const Request &request) {
  driver::CompileOptions options;
  options.dims = request.dims;
  options.entry = request.entry;
  options.dropout = request.dropout;
  options.training = request.training;
  options.inputGradients = request.inputGradients;
  options.precision = request.bf16 ? driver::Precision::Bf16 : driver::Precision::F32;
  options.target = request.target;
  std::vector<std::string> targets;
  for (const driver::Target &target : driver::targets())
    targets.emplace_back(target.name);
  if (std::find(targets.begin(), targets.end(), request.target) == targets.end())
    throw UserError(fmt::format("there is no target '{}'; there are {}", request.target,
                                fmt::join(targets, ", ")));
  options.targetCaches = request.targetCaches;
  options.targetCpu = request.targetCpu == "native" ? "host" : request.targetCpu;
  options.threads = std::max(request.threads, 1u);
  options.store = {request.store, request.storeLimit};
  options.stop = request.stop;
  options.without = {request.without.begin(), request.without.end()};
  std::vector<std::string> known;
  for (const driver::Optimisation &optimisation : driver::optimisations())
    known.push_back(optimisation.name);
  for (const std::string &name : options.without)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError(fmt::format("there is no optimisation '{}' to leave out; there are {}", name,
                                  fmt::join(known, ", ")));
  target::checkRunsHere(target::detect(options.targetCpu));
  return options;
}

/// What weights were made with stands before what the source says.
void bindWeights(const SourceFile &source, const Request &request,
                 driver::CompileOptions &options) {
  driver::bindDims(source, {request.weightDims, request.weights}, request.vocabularies, options);
  options.constants = request.weightConstants;
  if (request.weightConfig)
    driver::bindConfig(source, *request.weightConfig, options);
}

/// Makes those that are needed and not there of the words of data.
void makeVocabularies(const driver::EntryTypes &entry, const Request &request,
                      const std::set<std::string> &needed, io::Vocabularies &all) {
  if (request.words.name.empty())
    return;
  std::set<std::string> missing;
  for (const std::string &name : needed)
    if (!all.find(name))
      missing.insert(name);
  std::map<std::string, int64_t> sizes;
  for (const auto &[name, dim] : entry.vocabularyDims)
    sizes[name] = dim.second;
  io::ReadOptions reading;
  if (!request.wordsFormat.empty())
    reading.format = io::parseDataFormat(request.wordsFormat);
  reading.stop = request.stop;
  for (auto &[name, vocabulary] :
       io::vocabulariesOf(request.words, missing, sizes, entry.types, entry.entry, reading))
    all.set(name, std::move(vocabulary));
}

/// Gives every vocabulary that the model names its size.
void bindVocabularies(const driver::EntryTypes &entry, const Request &request,
                      driver::CompileOptions &options, Answer &answer) {
  std::set<std::string> needed = driver::argumentVocabularies(entry);
  answer.vocabularies = request.vocabularies;
  for (const auto &[name, vocabulary] : request.vocabularies.all())
    if (!entry.vocabularies.contains(name))
      throw UserError(fmt::format("the model has no vocabulary of {}", io::tokenTypeName(name)));
  makeVocabularies(entry, request, needed, answer.vocabularies);
  for (const std::string &name : entry.vocabularies) {
    auto dim = entry.vocabularyDims.find(name);
    bool hasSize = dim != entry.vocabularyDims.end();
    const io::Vocabulary *given = request.vocabularies.find(name);
    if (given && hasSize && dim->second.second != given->size())
      throw UserError(fmt::format("dim {} is {}, but the vocabulary of {} has {} entries",
                                  dim->second.first, dim->second.second, io::tokenTypeName(name),
                                  given->size()));
    if (answer.vocabularies.find(name) || !needed.contains(name))
      continue;
    if (!hasSize)
      throw UserError(fmt::format("no vocabulary for {}: give one, or dim '{}' a value",
                                  io::tokenTypeName(name), io::sizeDimName(name)));
    answer.vocabularies.set(name, io::Vocabulary::ofSize(dim->second.second));
  }
  for (const auto &[name, vocabulary] : answer.vocabularies.all())
    options.vocabularySizes[name] = vocabulary.size();
}

} // namespace

void api::compileModel(const Request &request, Answer &answer, const UseModel &use) {
  driver::CompileOptions options = optionsOf(request);
  SourceFile source = request.built ? sourceOf(*request.built, resolverOf(request))
                                    : SourceFile(request.name, request.text, resolverOf(request));
  bindWeights(source, request, options);
  {
    Diagnostics diags(source);
    std::unique_ptr<driver::EntryTypes> entry = driver::inspect(source, options, diags);
    if (diags.hasErrors())
      refuse(diags, answer);
    bindVocabularies(*entry, request, options, answer);
  }
  Diagnostics diags(source);
  std::unique_ptr<driver::CompiledModel> model = driver::compile(source, options, diags);
  if (diags.hasErrors())
    refuse(diags, answer);
  tell(diags, answer);
  for (const std::string &warning : model->storeUse().warnings) {
    Finding &finding = answer.findings.emplace_back();
    finding.severity = Finding::Warning;
    finding.message = warning;
    finding.text = "warning: " + warning + "\n";
  }
  answer.storedNames = model->storedNames();
  answer.dims = options.dims;
  std::string whole;
  for (const SourceText &text : source.files())
    whole += text.text();
  answer.sourceHash = io::contentHash(whole);
  use(*model, source);
  answer.outcome = Answer::Compiled;
}

artefact::Description api::describe(const driver::CompiledModel &model, const Answer &answer) {
  return artefact::describe(model.model(), model.code(), model.target(), model.numerics(),
                            answer.vocabularies, "sheaf " SHEAF_VERSION);
}

void api::answering(Answer &answer, const std::function<void()> &work) noexcept {
  auto ended = [&](Answer::Outcome outcome, const char *message) {
    answer.outcome = outcome;
    answer.message = message;
  };
  auto blames = [&](Answer::Outcome outcome, const PlacedError &error) {
    ended(outcome, error.what());
    answer.place = error.place();
    answer.reason = error.message();
  };
  try {
    work();
  } catch (const SourceErrors &) {
    answer.outcome = Answer::Errors;
  } catch (const driver::Stopped &stopped) {
    ended(Answer::Stopped, stopped.what());
  } catch (const io::ReadingStopped &stopped) {
    ended(Answer::Stopped, stopped.what());
  } catch (const NotReadable &error) {
    blames(Answer::NotReadable, error);
  } catch (const PlacedError &error) {
    blames(Answer::Refused, error);
  } catch (const UserError &error) {
    ended(Answer::Refused, error.what());
    answer.reason = error.what();
  } catch (const std::bad_alloc &) {
    ended(Answer::NoMemory, "the machine has no more memory");
  } catch (const std::exception &error) {
    ended(Answer::Internal, error.what());
  } catch (...) {
    ended(Answer::Internal, "internal error: of no known kind");
  }
}

namespace {

void compileFor(const Request &request, Answer &answer) noexcept {
  api::answering(answer, [&] {
    api::compileModel(request, answer, [&](const driver::CompiledModel &model, const SourceFile &) {
      answer.compiled.description = api::describe(model, answer);
      answer.compiled.image = model.code().image();
    });
  });
}

void print(const Built &built, Answer &answer, std::string &text) noexcept {
  api::answering(answer, [&] {
    SourceFile source = api::sourceOf(built, {});
    std::shared_ptr<const Syntax> syntax = source.syntax();
    // What cannot be said in the language has no text. Files that are used are not looked for.
    Diagnostics diags(source);
    diags.take(syntax->findings, syntax->errors);
    if (diags.hasErrors())
      refuse(diags, answer);
    text = printModule(syntax->module);
    answer.outcome = Answer::Compiled;
  });
}

} // namespace

extern "C" {
__attribute__((visibility("default"))) extern const Compiler sheaf_compiler_library;
const Compiler sheaf_compiler_library = {{}, compileFor, api::explain, print};
}
