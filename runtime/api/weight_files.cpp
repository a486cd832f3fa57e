// Weights of sessions from files, and into files.
#include "runtime/api/options.h"
#include "runtime/api/origin.h"
#include "runtime/api/weights.h"
#include "sheaf/gradients.h"

#include "runtime/io/weights_path.h"

#include <algorithm>

using namespace sheaf;
using namespace sheaf::api;

struct sheaf_loaded_weights {
  std::vector<std::string> missing, unused;
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
  if (model.origin())
    loading.storedNames = model.origin()->storedNames;
  return loading;
}

/// Throws Invalid for renames that decide for no tensor.
void requireUse(const std::vector<io::Rename> &renames, const io::WeightFile &file) {
  for (size_t i = 0; i < renames.size(); ++i)
    if (std::none_of(file.tensors.begin(), file.tensors.end(), [&](const io::FileTensor &tensor) {
          return io::renameOf(tensor.name, renames) == i;
        }))
      throw Invalid("the rename " + renames[i].text() + " is for no tensor of " + file.name);
}

const std::vector<std::string> &namesOf(const sheaf_loaded_weights &loaded, int32_t which) {
  static const std::vector<std::string> none;
  return which == SHEAF_WEIGHTS_MISSING  ? loaded.missing
         : which == SHEAF_WEIGHTS_UNUSED ? loaded.unused
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
    auto told = std::make_unique<sheaf_loaded_weights>();
    io::WeightFile file = fromArguments([&] { return io::WeightFile::open(path); });
    fromArguments([&] { io::checkVocabulary(file.name, file.metadata, of->vocabularies()); });
    requireUse(loading.renames, file);
    std::lock_guard lock(running->mutex);
    RunningModel &gets = runningFor(*running, of);
    // Calls for the first weight when all of the file fits.
    io::LoadedWeights found = fromArguments([&] {
      return io::loadWeights(
          file, of->model(),
          [&](size_t index, std::span<const uint8_t> rowMajor) {
            gets.session->setParam(index, rowMajor);
          },
          loading);
    });
    ++gets.runs;
    told->missing = std::move(found.unloaded);
    told->unused = std::move(found.unused);
    told->conversions = found.conversionText();
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
