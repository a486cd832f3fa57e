// Weights of sessions from files, and into files.
#include "runtime/api/options.h"
#include "runtime/api/origin.h"
#include "runtime/api/weights.h"
#include "sheaf/gradients.h"

#include "runtime/fit/pretrained.h"
#include "runtime/io/weights_path.h"

using namespace sheaf;
using namespace sheaf::api;

struct sheaf_loaded_weights {
  std::vector<std::string> missing, unused, words;
  std::string conversions;
};

namespace {

io::LoadOptions loadingOf(const sheaf_load_weights_options &asked, const LoadedModel &model) {
  io::LoadOptions loading;
  for (const char *rename : array(asked.renames, asked.rename_count, "renames"))
    loading.renames.push_back(
        fromArguments([&] { return io::parseRename(&given(rename, "a rename")); }));
  for (const char *pattern : array(asked.fresh, asked.fresh_count, "fresh")) {
    model.weightsNamed(&given(pattern, "a pattern of options.fresh"));
    loading.fresh.emplace_back(pattern);
  }
  loading.partial = asked.partial != 0;
  loading.strict = asked.strict != 0;
  loading.useAll = true;
  loading.stop = tokenOf(asked.stop);
  if (model.origin())
    loading.storedNames = model.origin()->storedNames;
  return loading;
}

fit::Pretrained::Tables tablesOf(const sheaf_load_weights_options &asked,
                                 const LoadedModel &model) {
  fit::Pretrained::Tables tables;
  for (const sheaf_word_table &table : array(asked.tables, asked.table_count, "tables")) {
    const rt::ParamDesc &param = model.model().params[model.weight(table.weight)];
    std::string name = table.vocabulary ? table.vocabulary : "";
    const io::Vocabulary *words = model.words(name);
    if (!words || !words->hasWords())
      throw Invalid("the model has no words of " + io::tokenTypeName(name));
    if (param.shape.empty() || param.shape[0] != words->size())
      throw Invalid("weight '" + param.name + "' has no row for each of the " +
                    io::plural(words->size(), "word") + " of " + io::tokenTypeName(name));
    tables[param.name] = name;
  }
  if (!tables.empty() && !asked.partial)
    throw Invalid("options.tables is for loading with options.partial");
  return tables;
}

/// Gives a session what a file has for it, tables by word.
void takeByWord(RunningModel &running, const std::string &path, const io::LoadOptions &loading,
                const fit::Pretrained::Tables &tables, sheaf_loaded_weights &told) {
  rt::Session &session = *running.session;
  auto now = [&](size_t param) { return session.param(param).rowMajor(); };
  fit::Pretrained pretrained(
      session, running.model->vocabularies(), [&] { return tables; }, now, loading.fresh);
  fit::Pretrained::Taken taken = pretrained.take(path, loading);
  told.missing.assign(pretrained.unloaded().begin(), pretrained.unloaded().end());
  told.unused = std::move(taken.unused);
  told.conversions = std::move(taken.conversions);
  for (const fit::Pretrained::Lacking &table : taken.lacking)
    for (const std::string &word : table.lack)
      told.words.push_back(table.param + ": " + word);
}

/// The same without tables.
void take(RunningModel &running, const std::string &path, const io::LoadOptions &loading,
          sheaf_loaded_weights &told) {
  io::WeightFile file = io::WeightFile::open(path);
  io::checkVocabulary(file.name, file.metadata, running.model->vocabularies());
  // Calls for the first weight when all of the file fits.
  io::LoadedWeights found = io::loadWeights(
      file, running.model->model(),
      [&](size_t index, std::span<const uint8_t> rowMajor) {
        running.session->setParam(index, rowMajor);
      },
      loading);
  told.missing = std::move(found.unloaded);
  told.unused = std::move(found.unused);
  told.conversions = found.conversionText();
}

const std::vector<std::string> &namesOf(const sheaf_loaded_weights &loaded, int32_t which) {
  static const std::vector<std::string> none;
  return which == SHEAF_WEIGHTS_MISSING  ? loaded.missing
         : which == SHEAF_WEIGHTS_UNUSED ? loaded.unused
         : which == SHEAF_WEIGHTS_WORDS  ? loaded.words
                                         : none;
}

} // namespace

sheaf_status sheaf_session_load_weights(sheaf_session *session, sheaf_model *model,
                                        const char *path, const sheaf_load_weights_options *options,
                                        sheaf_loaded_weights **loaded) {
  return guarded([&] {
    std::shared_ptr<Running> running = given(session, "session").running;
    const std::shared_ptr<const LoadedModel> &of = given(model, "model").model;
    given(path, "path");
    sheaf_load_weights_options asked = known(options, "sheaf_load_weights_options");
    io::LoadOptions loading = loadingOf(asked, *of);
    fit::Pretrained::Tables tables = tablesOf(asked, *of);
    auto told = std::make_unique<sheaf_loaded_weights>();
    std::string name = fromArguments([&] { return io::weightsFile(path); });
    std::lock_guard lock(running->mutex);
    RunningModel &gets = runningFor(*running, of);
    fromArguments([&] {
      if (tables.empty())
        take(gets, name, loading, *told);
      else
        takeByWord(gets, name, loading, tables, *told);
    });
    ++gets.runs;
    if (loaded)
      *loaded = told.release();
  });
}

void sheaf_loaded_weights_release(sheaf_loaded_weights *loaded) { delete loaded; }

size_t sheaf_loaded_weights_count(const sheaf_loaded_weights *loaded, int32_t which) {
  return loaded ? namesOf(*loaded, which).size() : 0;
}

const char *sheaf_loaded_weights_name(const sheaf_loaded_weights *loaded, int32_t which,
                                      size_t number) {
  return number < sheaf_loaded_weights_count(loaded, which)
             ? namesOf(*loaded, which)[number].c_str()
             : nullptr;
}

const char *sheaf_loaded_weights_conversions(const sheaf_loaded_weights *loaded) {
  return loaded ? loaded->conversions.c_str() : "";
}

sheaf_status sheaf_session_save_weights(sheaf_session *session, sheaf_model *model,
                                        const char *path,
                                        const sheaf_save_weights_options *options) {
  return guarded([&] {
    std::shared_ptr<Running> running = given(session, "session").running;
    const std::shared_ptr<const LoadedModel> &of = given(model, "model").model;
    given(path, "path");
    sheaf_save_weights_options asked = known(options, "sheaf_save_weights_options");
    std::lock_guard lock(running->mutex);
    const rt::Session &has = *runningFor(*running, of).session;
    fromArguments([&] {
      if (asked.vocabularies)
        for (const auto &[name, vocabulary] : of->vocabularies().all())
          if (vocabulary.hasWords())
            vocabulary.save(io::vocabularyBeside(path, name));
      io::saveWeights(
          path, of->model(), [&](size_t index) { return has.param(index); },
          io::modelMetadata(of->model(), of->vocabularies()));
    });
  });
}
