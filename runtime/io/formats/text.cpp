//===- text.cpp - Sentences, and tagged ones ------------------------------===//
#include "runtime/io/formats.h"
#include "runtime/io/sentences.h"

#include <algorithm>

namespace sheaf::io {

namespace {

/// Of the first line that is not blank.
bool isTagged(std::string_view text) {
  LineRecords lines(text);
  std::string_view line;
  lines.next(line);
  std::vector<std::string_view> words = splitWords(line);
  return std::all_of(words.begin(), words.end(), [](std::string_view word) {
    size_t bar = word.rfind('|');
    return bar != std::string_view::npos && bar > 0 && bar + 1 < word.size();
  });
}

template <SentenceBinding::Kind kKind>
std::unique_ptr<InstanceReader> sentenceReader(const ReadContext &context) {
  return std::make_unique<SentenceBinding>(context, kKind);
}

void countText(std::string_view record, CountingReader &counter) {
  for (std::string_view word : splitWords(record))
    counter.words("").count(word);
}

void countTagged(std::string_view record, CountingReader &counter) {
  for (std::string_view item : splitWords(record)) {
    TaggedWord tagged;
    try {
      tagged = splitTagged(item);
    } catch (TextError &error) {
      error.offset += static_cast<size_t>(item.data() - record.data());
      throw;
    }
    counter.words("").count(tagged.word);
    counter.words("tag").count(tagged.tag);
  }
}

} // namespace

const DataFormat kTaggedFormat = {.name = "tagged",
                                  .description = "sentences, each word with a tag",
                                  .begins = "a line of `word|tag`",
                                  .example = "Punk|I-MISC band|O",
                                  .extensions = {},
                                  .detects = isTagged,
                                  .records = recordsBy<LineRecords>,
                                  .reader = sentenceReader<SentenceBinding::Kind::Tagged>,
                                  .countWords = countTagged};

const DataFormat kTextFormat = {.name = "text",
                                .description = "sentences, one a line",
                                .begins = "anything else",
                                .example = "a sentence in words",
                                .extensions = {},
                                .detects = nullptr,
                                .records = recordsBy<LineRecords>,
                                .reader = sentenceReader<SentenceBinding::Kind::Text>,
                                .countWords = countText};

} // namespace sheaf::io
