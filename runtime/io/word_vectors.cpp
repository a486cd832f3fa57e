#include "runtime/io/word_vectors.h"

#include "runtime/io/json.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace sheaf::io {

namespace {

std::vector<std::string_view> fieldsOf(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && line[end] != ' ' && line[end] != '\t')
      ++end;
    if (end > at)
      fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

bool readReal(std::string_view text, float &value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  return rest == end && (error == std::errc() || error == std::errc::result_out_of_range);
}

bool isCount(std::string_view text) {
  int64_t value = 0;
  return text.find_first_not_of("0123456789") == std::string_view::npos &&
         parseInteger(text, value);
}

/// The first line of word2vec's and fastText's files.
bool isCounts(const std::vector<std::string_view> &fields) {
  return fields.size() == 2 && isCount(fields[0]) && isCount(fields[1]);
}

} // namespace

bool isWordVectors(std::string_view text) {
  LineReader lines(text.substr(0, 1 << 20));
  std::string_view line;
  if (!lines.next(line))
    return false;
  std::vector<std::string_view> fields = fieldsOf(line);
  if (isCounts(fields))
    return true;
  float value = 0;
  return fields.size() >= 3 && readReal(fields[fields.size() - 1], value) &&
         readReal(fields[fields.size() - 2], value);
}

WordVectors readWordVectors(const SourceText &source, const Vocabulary &vocabulary) {
  WordVectors vectors;
  vectors.rowOf.assign(static_cast<size_t>(vocabulary.size()), -1);
  LineReader lines(source.text);
  std::string_view line;
  int64_t rows = 0;
  while (lines.next(line)) {
    if (isBlank(line))
      continue;
    std::vector<std::string_view> fields = fieldsOf(line);
    if (lines.number() == 1 && isCounts(fields)) {
      parseInteger(fields[1], vectors.width);
      continue;
    }
    if (vectors.width == 0)
      vectors.width = static_cast<int64_t>(fields.size()) - 1;
    auto width = static_cast<size_t>(vectors.width);
    if (fields.size() < width + 1 || width == 0)
      failAt(source.name, lines.number(), 0,
             fmt::format("expected a word and {}, found {}", plural(vectors.width, "number"),
                         plural(static_cast<int64_t>(fields.size()), "field")));
    ++vectors.words;
    size_t first = fields.size() - width;
    std::string_view word(fields[0].data(),
                          static_cast<size_t>(fields[first - 1].data() - fields[0].data()) +
                              fields[first - 1].size());
    int64_t number = vocabulary.find(word);
    if (number < 0 || vectors.rowOf[static_cast<size_t>(number)] >= 0)
      continue;
    vectors.rowOf[static_cast<size_t>(number)] = rows++;
    for (size_t i = first; i < fields.size(); ++i) {
      float value = 0;
      if (!readReal(fields[i], value))
        failAt(source.name, lines.number(), fields[i].data() - line.data() + 1,
               fmt::format("expected a number of the vector of {}, found {}", quoted(word),
                           quoted(fields[i])));
      vectors.values.push_back(value);
    }
  }
  for (int64_t i = 0; i < vocabulary.size(); ++i)
    if (vectors.rowOf[static_cast<size_t>(i)] < 0)
      vectors.lack.emplace_back(vocabulary.word(i));
  return vectors;
}

} // namespace sheaf::io
