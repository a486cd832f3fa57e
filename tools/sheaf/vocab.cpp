//===- vocab.cpp - sheaf vocab --------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"

#include "compiler/driver/Compiler.h"
#include "runtime/io/gzip.h"
#include "runtime/io/read.h"
#include "runtime/io/vocab.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

namespace {

struct VocabArguments {
  std::string data;
  std::string output;
  std::string name;
  std::string model;
  std::string entry = "main";
  CLI::Option *entryGiven = nullptr;
  DataOptions reading; ///< but for its file
  std::string minCount;
  std::string maxSize;
};

/// The words that the model's entry reads as tokens.
std::map<std::string, io::Vocabulary> wordsOfModel(const VocabArguments &arguments,
                                                   const io::SourceText &source,
                                                   const io::ReadOptions &options,
                                                   const io::WordCounter::Options &counting) {
  ModelOptions model;
  model.model = arguments.model;
  model.entry = arguments.entry;
  model.entryGiven = arguments.entryGiven;
  SourceFile file = readModel(model);
  driver::CompileOptions compile;
  compile.entry = arguments.entry;
  Diagnostics diags(file);
  std::unique_ptr<driver::EntryTypes> entry = driver::inspect(file, compile, diags);
  printDiagnostics(diags);
  if (diags.hasErrors())
    throw DiagnosticsPrinted();
  std::map<std::string, io::Vocabulary> built;
  for (const auto &[name, tokens] : io::countTokens(source, entry->types, entry->entry, options)) {
    if (name == arguments.name && tokens.words.distinct() == 0 && tokens.greatest >= 0)
      throw UserError(fmt::format("{}: it has numbers for {}, and no words: these need no "
                                  "vocabulary's file where dim '{}' has a value, {} at least",
                                  source.name, io::tokenTypeName(name), io::sizeDimName(name),
                                  tokens.greatest + 1));
    built.emplace(name, tokens.words.build(counting));
  }
  return built;
}

int runVocab(const VocabArguments &arguments) {
  io::ReadOptions options = arguments.reading.reading();
  io::WordCounter::Options counting;
  if (!arguments.minCount.empty())
    counting.minCount = parseNumber("--min-count", arguments.minCount);
  if (!arguments.maxSize.empty())
    counting.maxSize = parseNumber("--max-size", arguments.maxSize);
  checkOutputs({arguments.output}, {arguments.data, arguments.model});
  InterruptGuard guard(arguments.output);
  io::SourceText source = io::readData(arguments.data);
  std::map<std::string, io::Vocabulary> built =
      arguments.model.empty() ? io::buildVocabularies(source, options, counting)
                              : wordsOfModel(arguments, source, options, counting);
  auto found = built.find(arguments.name);
  if (found == built.end()) {
    if (arguments.name.empty())
      throw UserError(fmt::format("{}: no words", source.name));
    throw UserError(fmt::format("{}: no words of a vocabulary '{}'", source.name, arguments.name));
  }
  found->second.save(arguments.output);
  note(fmt::format("{}: {} entries", arguments.output, found->second.size()));
  return kOk;
}

} // namespace

void addVocab(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "vocab", "makes a vocabulary of the words in a data file");
  auto arguments = std::make_shared<VocabArguments>();
  sub->add_option("data", arguments->data, "the data file; - is standard input")
      ->required()
      ->type_name("FILE");
  sub->add_option("-o", arguments->output, "the vocabulary's file")->required()->type_name("FILE");
  sub->add_option("--name", arguments->name,
                  "which vocabulary: that of token<NAME>, or 'tag' for the tags of tagged "
                  "sentences")
      ->type_name("NAME");
  sub->add_option("--model", arguments->model, "count only what this model reads as tokens")
      ->type_name("MODEL");
  arguments->entryGiven = sub->add_option("--entry", arguments->entry,
                                          "the model's function to read for (default: main)")
                              ->type_name("NAME");
  arguments->reading.addReading(*sub);
  sub->add_option("--min-count", arguments->minCount, "leave out words that are rarer")
      ->type_name("N");
  sub->add_option("--max-size", arguments->maxSize, "at most so many entries, <unk> included")
      ->type_name("N");
  sub->callback([arguments, &action] { action = [arguments] { return runVocab(*arguments); }; });
}

} // namespace sheaf::tool
