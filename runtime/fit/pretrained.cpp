#include "runtime/fit/pretrained.h"

#include "runtime/io/weights_path.h"
#include "runtime/io/word_vectors.h"
#include "runtime/model/error.h"
#include "runtime/session/init.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

namespace sheaf::fit {

io::LoadedWeights setWeights(rt::Session &session, const io::WeightFile &file,
                             const io::Vocabularies &vocabularies, const io::LoadOptions &options) {
  const std::vector<rt::ParamDesc> &params = session.model().params;
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].synthetic)
      session.setParam(i, rt::initialise(params[i], 0));
  io::LoadedWeights loaded = io::loadWeights(
      file, session.model(),
      [&](size_t index, std::span<const uint8_t> rowMajor) { session.setParam(index, rowMajor); },
      options);
  io::checkVocabulary(file.name, loaded.metadata, vocabularies);
  return loaded;
}

Pretrained::Pretrained(rt::Session &session, const io::Vocabularies &vocabularies,
                       std::function<Tables()> tables, Initial initial,
                       std::vector<std::string> fresh)
    : session_(session), vocabularies_(vocabularies), findTables_(std::move(tables)),
      initial_(std::move(initial)), fresh_(std::move(fresh)) {
  for (const rt::ParamDesc &param : session.model().params)
    if (!param.synthetic)
      unloaded_.insert(param.name);
  for (const std::string &pattern : fresh_)
    if (std::none_of(unloaded_.begin(), unloaded_.end(),
                     [&](const std::string &name) { return io::matches(name, pattern); }))
      throw UserError("no parameter of the model is called '" + pattern + "'");
}

const Pretrained::Tables &Pretrained::tables() {
  if (!tables_)
    tables_ = findTables_();
  return *tables_;
}

size_t Pretrained::paramNamed(const std::string &name) const {
  return static_cast<size_t>(session_.findParam(name));
}

static void addWords(const std::string &param, io::WordRows rows,
                     const std::vector<std::string> &lack, io::LoadOptions &options,
                     std::vector<Pretrained::Lacking> &lacking) {
  if (!lack.empty())
    lacking.push_back({param, rows.of.size(), lack});
  options.words[param] = std::move(rows);
}

/// The vectors of the model's words, as the one tensor of a file.
io::WeightFile Pretrained::openVectors(const io::SourceText &text, io::LoadOptions &options,
                                       Taken &taken) {
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
    throw PlacedError(
        {text.name},
        fmt::format("vectors of words, but the model has {}: {} vectors=NAME says which",
                    candidates.empty()
                        ? "no parameter with a row for each word"
                        : fmt::format("several parameters with a row for each word: {}",
                                      fmt::join(candidates, ", ")),
                    options.renameTerm));
  const io::Vocabulary *vocabulary = vocabularies_.find(tables().at(to));
  if (!vocabulary || !vocabulary->hasWords())
    throw PlacedError({text.name}, fmt::format("vectors of words, but the model's {} are numbers",
                                               io::tokenTypeName(tables().at(to))));
  io::WordVectors vectors = io::readWordVectors(text, *vocabulary);
  if (vectors.values.empty())
    throw PlacedError({text.name},
                      fmt::format("it has vectors of {}, none of them of the vocabulary of {}",
                                  io::plural(vectors.words, "word"),
                                  io::tokenTypeName(tables().at(to))));
  io::WeightFile file;
  file.name = text.name;
  auto rows = static_cast<int64_t>(vectors.values.size()) / vectors.width;
  file.owned.resize(vectors.values.size() * sizeof(float));
  std::memcpy(file.owned.data(), vectors.values.data(), file.owned.size());
  file.tensors.push_back({to, io::fileTypeOf(rt::DType::F32), {rows, vectors.width}, file.owned});
  for (size_t i = 0; i < options.renames.size(); ++i)
    if (i != io::renameOf(name, options.renames))
      taken.idleRenames.push_back(i);
  io::refuseIdle(options, taken.idleRenames, text.name);
  options.renames.clear();
  addWords(to, {std::move(vectors.rowOf), rows}, vectors.lack, options, taken.lacking);
  return file;
}

/// Tables of another vocabulary: by word.
void Pretrained::matchWords(const io::WeightFile &file, io::LoadOptions &options, Taken &taken) {
  io::Vocabularies unknown; // of which the file has a hash, but nothing tells its words
  for (const auto &[name, vocabulary] : vocabularies_.all()) {
    std::string beside = io::vocabularyOf(file.name, name);
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
        addWords(param, rows, lack, options, taken.lacking);
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

Pretrained::Taken Pretrained::take(const std::string &path, io::LoadOptions options) {
  Taken taken;
  options.partial = true;
  options.fresh = fresh_;
  options.initial = initial_;
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
      file.emplace(openVectors(text, options, taken));
  if (!file) {
    file.emplace(io::WeightFile::open(path));
    matchWords(*file, options, taken);
  }
  io::LoadedWeights loaded = io::loadWeights(
      *file, session_.model(),
      [&](size_t index, std::span<const uint8_t> rowMajor) {
        session_.setParam(index, rowMajor);
        unloaded_.erase(session_.model().params[index].name);
      },
      options);
  taken.unused = std::move(loaded.unused);
  taken.conversions = loaded.conversionText();
  if (!options.renames.empty())
    taken.idleRenames = std::move(loaded.idleRenames);
  taken.nonFinite = std::move(loaded.nonFinite);
  return taken;
}

} // namespace sheaf::fit
