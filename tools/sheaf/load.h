//===- load.h - From the command line to a model with its data --*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_LOAD_H
#define SHEAF_TOOLS_SHEAF_LOAD_H

#include "compiler/bench/Bench.h"
#include "compiler/driver/Compiler.h"
#include "runtime/artefact/artefact.h"
#include "runtime/io/read.h"
#include "runtime/session/session.h"
#include "tools/sheaf/interrupt.h"
#include "tools/sheaf/options.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sheaf::tool {

class ReadNotes;

/// The model and the data of a command, each of which is read once, for however many functions.
class InputFiles {
public:
  explicit InputFiles(bool hashed = false) : hashed_(hashed) {}
  /// The text, decompressed. Throws UserError.
  const io::SourceText &of(const std::string &file) { return read(file).text; }
  /// io::contentHash() of the file as it lies there, where they are hashed.
  const std::string &hash(const std::string &file) { return read(file).hash; }

  /// The model, as readModel() gives it.
  const SourceFile &model(const ModelOptions &options);

private:
  struct File {
    io::SourceText text;
    std::string hash;
  };
  const File &read(const std::string &file);

  bool hashed_;
  std::map<std::string, File> files_;
  std::map<std::string, SourceFile> models_;
};

/// The model's source text. Throws UserError, also for an artefact, and UsageError when a file
/// that parses does not declare a dim or the function that the options name.
SourceFile readModel(const ModelOptions &options);

/// A text with the files that it uses.
SourceFile withUsedFiles(io::SourceText text);

/// That a file that parses lacks the function that the options name; empty when it has it.
std::string missingEntry(const SourceFile &source, const ModelOptions &options);

/// Everything reported, to standard error; coloured on a terminal.
void printDiagnostics(const Diagnostics &diags);

/// Ends the command after diagnostics were printed.
struct DiagnosticsPrinted {};

/// What `--precision` says. Throws UsageError.
driver::Precision parsePrecision(const std::string &text);

/// What `--target-cpu` says. Throws UsageError for what there is not.
std::string parseTargetCpu(const std::string &text);

/// What the options say, without vocabularies. Throws UsageError.
driver::CompileOptions compileOptions(const ModelOptions &options);

/// What `--dump` asks for, if it does. Throws UserError.
void dumpPhases(const SourceFile &source, const driver::CompileOptions &compile,
                const std::string &directory);

/// Adds the sizes of vocabularies, for another compilation of what was loaded with them.
void bindSizes(const io::Vocabularies &vocabularies, driver::CompileOptions &compile);
/// Adds the sizes of the vocabularies of `--vocab`, for commands without data. Throws UserError.
void bindVocabularyFiles(const ModelOptions &options, driver::CompileOptions &compile);

/// A compiled model and the vocabularies that it was compiled for.
struct LoadedModel {
  std::unique_ptr<SourceFile> source;
  std::unique_ptr<driver::CompiledModel> compiled;
  std::unique_ptr<artefact::Artefact> artefact; ///< instead of source and compiled
  io::Vocabularies vocabularies;
  driver::CompileOptions options;           ///< that it was compiled with; not of an artefact
  std::map<std::string, int64_t> givenDims; ///< of these, those of --dim

  const rt::Model &model() const { return artefact ? artefact->model() : compiled->model(); }
  driver::BenchModel benchModel() const;
};

/// Compiles without data, to be looked at: the code may be for another machine
/// (CompileOptions::runsElsewhere). Throws UserError, UsageError, DiagnosticsPrinted.
LoadedModel loadModel(const ModelOptions &options, const WeightOptions &weights = {});

/// Compiles without data a model that is to be given these weights; all vocabularies that its entry
/// reads are found (one that only has a size has no words). Where it `runsElsewhere` its code may
/// be for another machine. Throws like loadModel.
LoadedModel loadWithVocabularies(const ModelOptions &options, const WeightOptions &weights,
                                 bool runsElsewhere);

/// A compiled model, its instances, and the vocabularies that both share.
struct LoadedRun : LoadedModel {
  io::Dataset data;
  std::vector<rt::Instance> instances;
};

/// Compiles, or opens an artefact, and reads data, at most `limit` instances. Vocabularies come
/// from `--vocab`, else from the artefact or the files beside the weights, else from the data.
/// What is to be said of the data is collected in `notes`, and what is read is kept in `files`,
/// where they are given. Throws like loadModel.
LoadedRun loadRun(const ModelOptions &options, const DataOptions &data,
                  const WeightOptions &weights, int64_t limit = INT64_MAX,
                  ReadNotes *notes = nullptr, InputFiles *files = nullptr);

/// Compiles, or opens an artefact, before there are data; nothing where a vocabulary is to be made
/// of them. Throws like loadModel.
std::optional<LoadedModel> loadBeforeData(const ModelOptions &options,
                                          const WeightOptions &weights);
/// The data for what that loaded. Throws UserError.
LoadedRun readAll(LoadedModel loaded, io::SourceText text, const DataOptions &data);

/// `limits.check()` has passed.
rt::SessionOptions sessionOptions(const LimitOptions &limits, unsigned threads,
                                  const rt::Model &model);

/// An instance as reports call it: its number and its place in the data.
std::string instanceName(const io::Dataset &data, int64_t instance);

/// What became of an instance that failed, with its place in the data.
std::string failureText(const io::Dataset &data, const RunError &error);

/// A line `note: ...` on standard error.
void note(const std::string &text);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_LOAD_H
