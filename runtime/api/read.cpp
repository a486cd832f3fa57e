// Values of files.
#include "runtime/api/options.h"
#include "runtime/api/weights.h"
#include "runtime/api/words.h"
#include "sheaf/train.h"

#include "runtime/io/read.h"

#include <algorithm>

using namespace sheaf;
using namespace sheaf::api;

sheaf_status sheaf_values_read(sheaf_model *model, const char *path,
                               const sheaf_read_options *options, sheaf_values **values) {
  return guarded([&] {
    const std::shared_ptr<const LoadedModel> &of = given(model, "model").model;
    given(path, "path");
    given(values, "values");
    sheaf_read_options asked = known(options, "sheaf_read_options");
    io::ReadOptions reading;
    if (asked.format)
      reading.format = fromArguments([&] { return io::parseDataFormat(asked.format); });
    reading.limit = countOf(asked.limit, reading.limit);
    reading.dims = &of->model().dims;
    reading.strict = asked.strict != 0;
    reading.skipBad = countOf(asked.skip_bad);
    reading.stop = tokenOf(asked.stop);
    io::SourceText text = io::readSource(path);
    io::VocabularyReader tokens(of->vocabularies(), asked.strict_words != 0);
    auto store = std::make_shared<ValueStore>(of);
    try {
      store->file = std::make_shared<ReadFile>(fromArguments(
          [&] { return io::readDataset(text, of->types(), of->model().entry, tokens, reading); }));
    } catch (const io::ReadingStopped &stopped) {
      throw Stopped(stopped.what());
    }
    ReadFile &file = *store->file;
    file.path = path;
    if (of->origin() || of->model().training) // else no training is told of it
      file.hash = io::contentHash(text.text);
    if (asked.format)
      file.format = asked.format;
    file.strict = reading.strict;
    file.strictWords = asked.strict_words != 0;
    file.limited = asked.limit != 0;
    file.skipBad = reading.skipBad;
    const io::Dataset &dataset = file.dataset;
    for (int64_t i = 0; i < dataset.size(); ++i)
      store->instances.push_back(dataset.instance(i));
    for (const io::VocabularyReader::Unknown &unknown : tokens.unknown()) {
      file.words += unknown.words;
      file.unknown += unknown.unknown;
    }
    *values = new sheaf_values{std::move(store)};
  });
}

sheaf_status sheaf_values_report(const sheaf_values *values, sheaf_read_report *report) {
  return guarded([&] {
    sheaf_read_report told{};
    if (const ReadFile *file = given(values, "values").store->file.get()) {
      const io::ReadReport &read = file->dataset.report();
      told.skipped = static_cast<uint64_t>(read.skipped);
      told.first_skipped = read.skipped ? read.firstSkipped.c_str() : nullptr;
      told.words = static_cast<uint64_t>(file->words);
      told.unknown_words = static_cast<uint64_t>(file->unknown);
    }
    tell(told, given(report, "report"), "read_report");
  });
}

const char *sheaf_values_place(const sheaf_values *values, size_t instance) {
  const ReadFile *file = values ? values->store->file.get() : nullptr;
  if (!file || instance >= values->store->instances.size())
    return nullptr;
  const char *place = nullptr; // also when there is no memory for them
  guarded([&] {
    std::call_once(file->placesMade, [&] {
      std::vector<std::string> places;
      for (int64_t i = 0; i < file->dataset.size(); ++i)
        places.push_back(file->dataset.name(i));
      file->places = std::move(places);
    });
    place = file->places[instance].c_str();
  });
  return place;
}
