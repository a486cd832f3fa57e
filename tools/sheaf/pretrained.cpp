//===- pretrained.cpp - Weights that others were trained to ---------------===//
#include "tools/sheaf/pretrained.h"

#include "tools/sheaf/weights.h"

#include "compiler/driver/ParamShapes.h"
#include "runtime/io/word_vectors.h"
#include "runtime/model/convert.h"
#include "runtime/model/error.h"
#include "runtime/session/init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace sheaf::tool {

std::function<std::string(const std::map<std::string, std::vector<int64_t>> &)>
dimAdvice(const LoadedModel &loaded) {
  return [&](const std::map<std::string, std::vector<int64_t>> &shapes) -> std::string {
    if (!loaded.source || loaded.source->name().ends_with(".mlir"))
      return "";
    std::string options, given;
    for (const auto &[dim, value] : driver::dimsForShapes(*loaded.source, loaded.options, shapes)) {
      std::optional<std::string> words = driver::vocabularyOfDim(dim);
      bool isVocabulary = words && loaded.vocabularies.find(*words);
      auto it = loaded.givenDims.find(dim);
      if (it != loaded.givenDims.end())
        given += fmt::format("\n  --dim {0}={1} is given, but the file's shapes are those of "
                             "--dim {0}={2}",
                             dim, it->second, value);
      else if (isVocabulary)
        given +=
            fmt::format("\n  the vocabulary of {} has {} entries, the file is for {}: --vocab "
                        "gives another",
                        io::tokenTypeName(*words), loaded.vocabularies.find(*words)->size(), value);
      else
        options += fmt::format(" --dim {}={}", dim, value);
    }
    return given + (options.empty() ? "" : fmt::format("\n {} would do", options));
  };
}

std::string unusedText(const std::string &file, const std::vector<std::string> &unused) {
  return fmt::format("{}: {} the model has no parameter for: {}", file,
                     io::plural(static_cast<int64_t>(unused.size()), "tensor"),
                     io::firstOf(unused));
}

Pretrained::Pretrained(rt::Session &session, const LoadedModel &loaded, uint64_t seed,
                       const std::vector<std::string> &fresh)
    : session_(session), loaded_(loaded), seed_(seed), fresh_(fresh) {
  for (const rt::ParamDesc &param : session.model().params)
    if (!param.synthetic)
      unloaded_.insert(param.name);
  for (const std::string &pattern : fresh)
    if (std::none_of(unloaded_.begin(), unloaded_.end(),
                     [&](const std::string &name) { return io::matches(name, pattern); }))
      throw UsageError("--fresh: no parameter of the model is called '" + pattern + "'");
}

const Pretrained::Tables &Pretrained::tables() {
  if (!tables_)
    tables_ = loaded_.source->name().ends_with(".mlir")
                  ? Tables()
                  : driver::vocabularyTables(*loaded_.source, loaded_.options);
  return *tables_;
}

size_t Pretrained::paramNamed(const std::string &name) const {
  return static_cast<size_t>(session_.findParam(name));
}

void Pretrained::addWords(const std::string &file, const std::string &param, io::WordRows rows,
                          const std::vector<std::string> &lack, io::LoadOptions &options) {
  if (!lack.empty()) {
    std::vector<std::string> names;
    for (const std::string &word : lack)
      names.push_back(io::quoted(word));
    notes_.push_back(fmt::format("{}: it has {} of the {} words of '{}'; the others begin as they "
                                 "are initialised: {}",
                                 file, rows.of.size() - lack.size(), rows.of.size(), param,
                                 io::firstOf(names)));
  }
  options.words[param] = std::move(rows);
}

/// The vectors of the model's words, as the one tensor of a file.
io::WeightFile Pretrained::openVectors(const io::SourceText &text, io::LoadOptions &options) {
  // The table that they are for: the one that is named, or the only one.
  std::string name = "vectors", to = io::renamed(name, options.renames);
  std::vector<std::string> candidates;
  for (const auto &[param, vocabulary] : tables())
    if (session_.model().params[paramNamed(param)].shape.size() == 2 &&
        !io::matchesAny(param, fresh_))
      candidates.push_back(param);
  if (to == name && candidates.size() == 1)
    to = candidates[0];
  if (std::find(candidates.begin(), candidates.end(), to) == candidates.end())
    throw UserError(fmt::format(
        "{}: vectors of words, but the model has {}: --rename vectors=NAME says which", text.name,
        candidates.empty() ? "no parameter with a row for each word"
                           : fmt::format("several parameters with a row for each word: {}",
                                         fmt::join(candidates, ", "))));
  const io::Vocabulary *vocabulary = loaded_.vocabularies.find(tables().at(to));
  if (!vocabulary || !vocabulary->hasWords())
    throw UserError(fmt::format("{}: vectors of words, but the model's {} are numbers", text.name,
                                io::tokenTypeName(tables().at(to))));
  io::WordVectors vectors = io::readWordVectors(text, *vocabulary);
  if (vectors.values.empty())
    throw UserError(fmt::format("{}: it has vectors of {}, none of them of the vocabulary of {}",
                                text.name, io::plural(vectors.words, "word"),
                                io::tokenTypeName(tables().at(to))));
  io::WeightFile file;
  file.name = text.name;
  auto rows = static_cast<int64_t>(vectors.values.size()) / vectors.width;
  file.owned.resize(vectors.values.size() * sizeof(float));
  std::memcpy(file.owned.data(), vectors.values.data(), file.owned.size());
  file.tensors.push_back({to, io::fileTypeOf(rt::DType::F32), {rows, vectors.width}, file.owned});
  options.renames.clear();
  addWords(text.name, to, {std::move(vectors.rowOf), rows}, vectors.lack, options);
  return file;
}

/// Tables of another vocabulary: by word.
void Pretrained::matchWords(const io::WeightFile &file, io::LoadOptions &options) {
  io::Vocabularies unknown; // of which the file has a hash, but nothing tells its words
  for (const auto &[name, vocabulary] : loaded_.vocabularies.all()) {
    std::string beside = vocabularyOf(file.name, name);
    if (beside.empty() || !vocabulary.hasWords()) {
      unknown.set(name, vocabulary);
      continue;
    }
    io::Vocabulary other = io::Vocabulary::load(beside);
    if (other.hash() == vocabulary.hash())
      continue;
    io::WordRows rows;
    rows.fileRows = other.size();
    std::vector<std::string> lack;
    for (int64_t i = 0; i < vocabulary.size(); ++i) {
      rows.of.push_back(other.find(vocabulary.word(i)));
      if (rows.of.back() < 0)
        lack.emplace_back(vocabulary.word(i));
    }
    for (const io::FileTensor &tensor : file.tensors) {
      std::string param = io::renamed(tensor.name, options.renames);
      auto table = tables().find(param);
      if (table != tables().end() && table->second == name && !io::matchesAny(param, fresh_))
        addWords(file.name, param, rows, lack, options);
    }
  }
  // Without a table to fill it does not matter.
  bool any = std::any_of(file.tensors.begin(), file.tensors.end(), [&](const auto &tensor) {
    std::string param = io::renamed(tensor.name, options.renames);
    return tables().contains(param) && !io::matchesAny(param, fresh_);
  });
  if (any)
    io::checkVocabulary(file.name, file.metadata, unknown);
}

std::vector<io::NonFinite> Pretrained::take(const std::string &path, io::LoadOptions options) {
  options.partial = true;
  options.fresh = fresh_;
  options.adviseShapes = [&, advise = dimAdvice(loaded_)](const auto &shapes) {
    return advise(shapes) + "\n  --fresh PATTERN leaves parameters as they are initialised";
  };
  options.initial = [&](size_t param) {
    return rt::initialise(session_.model().params[param], seed_);
  };
  std::string begin(16, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(stream.gcount()));
  bool isBinary =
      begin.empty() ||
      io::isSafetensors({reinterpret_cast<const uint8_t *>(begin.data()), begin.size()});
  std::optional<io::WeightFile> file;
  if (!isBinary)
    if (io::SourceText text = io::readSource(path); io::isWordVectors(text.text))
      file.emplace(openVectors(text, options));
  if (!file) {
    file.emplace(io::WeightFile::open(path));
    matchWords(*file, options);
  }
  io::LoadedWeights loaded = io::loadWeights(
      *file, session_.model(),
      [&](size_t index, std::span<const uint8_t> rowMajor) {
        session_.setParam(index, rowMajor);
        unloaded_.erase(session_.model().params[index].name);
      },
      options);
  if (!loaded.unused.empty())
    notes_.push_back(unusedText(path, loaded.unused));
  return std::move(loaded.nonFinite);
}

std::vector<std::string> Pretrained::notes() const {
  std::vector<std::string> all = notes_;
  if (!unloaded_.empty())
    all.push_back(fmt::format("not in the files of --init-from, and initialised with seed {}: {}",
                              seed_,
                              io::firstOf({unloaded_.begin(), unloaded_.end()}, /*most=*/12)));
  return all;
}

} // namespace sheaf::tool
