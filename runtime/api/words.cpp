// Vocabularies of no model.
#include "runtime/api/words.h"
#include "runtime/api/compile.h"
#include "runtime/api/options.h"
#include "runtime/api/weights.h"

#include "runtime/io/read.h"

#include <algorithm>

using namespace sheaf;
using namespace sheaf::api;

struct sheaf_words {
  explicit sheaf_words(io::Vocabulary words) : vocabulary(std::move(words)) {
    if (vocabulary.hasWords())
      for (int64_t i = 0; i < vocabulary.size(); ++i)
        texts.push_back(vocabulary.word(i).data()); // of a std::string
    hash = vocabulary.hash();
  }
  const io::Vocabulary vocabulary;
  std::vector<const char *> texts; ///< the words, by number
  std::string hash;
};

io::Vocabulary api::vocabularyOfWords(const char *const *words, int64_t size,
                                      const std::string &what) {
  if (size < 1)
    throw Invalid(what + " has size " + std::to_string(size));
  if (!words)
    return io::Vocabulary::ofSize(size);
  io::Vocabulary made;
  for (int64_t i = 0; i < size; ++i) {
    const char *word = words[i];
    if (!word)
      throw Invalid("word " + std::to_string(i) + " of " + what + " is null");
    if (i == 0 ? io::kUnknownWord != word : !made.add(word))
      throw Invalid("word " + std::to_string(i) + " of " + what + ", '" + word +
                    (i == 0 ? "', is not '<unk>'" : "', is there twice"));
  }
  return made;
}

sheaf_status sheaf_words_make(const char *const *words, int64_t size, sheaf_words **made) {
  return guarded([&] {
    given(made, "made");
    *made = new sheaf_words(vocabularyOfWords(words, size, "the vocabulary"));
  });
}

sheaf_status sheaf_words_load(const char *path, sheaf_words **loaded) {
  return guarded([&] {
    given(path, "path");
    given(loaded, "loaded");
    io::SourceText text = io::readSource(path);
    *loaded = fromArguments([&] { return new sheaf_words(io::Vocabulary::parse(text)); });
  });
}

sheaf_status sheaf_words_count(const char *path, const sheaf_count_options *options,
                               sheaf_words **counted) {
  return guarded([&] {
    given(path, "path");
    given(counted, "counted");
    sheaf_count_options asked = known(options, "sheaf_count_options");
    std::string name = asked.name ? asked.name : "";
    io::ReadOptions reading;
    if (asked.format)
      reading.format = fromArguments([&] { return io::parseDataFormat(asked.format); });
    reading.skipBad = countOf(asked.skip_bad);
    reading.stop = tokenOf(asked.stop);
    io::WordCounter::Options counting;
    counting.minCount = countOf(asked.min_count, counting.minCount);
    counting.maxSize = countOf(asked.max_size, counting.maxSize);
    io::SourceText text = io::readSource(path);
    try {
      std::map<std::string, io::Vocabulary> built =
          fromArguments([&] { return io::buildVocabularies(text, reading, counting); });
      auto found = built.find(name);
      if (found == built.end())
        throw Invalid(std::string(path) + ": no words for the vocabulary '" + name + "'");
      *counted = new sheaf_words(std::move(found->second));
    } catch (const io::ReadingStopped &stopped) {
      throw Stopped(stopped.what());
    }
  });
}

sheaf_status sheaf_words_of_model(const sheaf_model *model, const char *name, sheaf_words **words) {
  return guarded([&] {
    const io::Vocabulary *found = given(model, "model").model->words(&given(name, "name"));
    given(words, "words");
    if (!found)
      throw Invalid("the model has no vocabulary of " + io::tokenTypeName(name));
    *words = new sheaf_words(*found);
  });
}

void sheaf_words_release(sheaf_words *words) { delete words; }

int64_t sheaf_words_size(const sheaf_words *words) { return words ? words->vocabulary.size() : -1; }

int64_t sheaf_words_token(const sheaf_words *words, const char *word) {
  return words && word ? words->vocabulary.id(word) : -1;
}

const char *sheaf_words_word(const sheaf_words *words, int64_t token) {
  return words && token >= 0 && static_cast<size_t>(token) < words->texts.size()
             ? words->texts[static_cast<size_t>(token)]
             : nullptr;
}

const char *sheaf_words_hash(const sheaf_words *words) {
  return words ? words->hash.c_str() : nullptr;
}

sheaf_status sheaf_words_save(const sheaf_words *words, const char *path) {
  return guarded([&] {
    const io::Vocabulary &saved = given(words, "words").vocabulary;
    given(path, "path");
    if (!saved.hasWords())
      throw Invalid("the vocabulary has a size and no words: there is nothing to save");
    fromArguments([&] { saved.save(path); });
  });
}

sheaf_vocabulary sheaf_words_vocabulary(const sheaf_words *words, const char *name) {
  return {name, nullptr, words && !words->texts.empty() ? words->texts.data() : nullptr,
          words ? words->vocabulary.size() : 0};
}
