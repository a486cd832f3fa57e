//===- json.cpp - JSON lines, and one array of instances ------------------===//
#include "runtime/io/formats.h"
#include "runtime/io/jsonl.h"
#include "runtime/io/trees.h"

namespace sheaf::io {

namespace {

std::string_view firstLine(std::string_view text) {
  LineRecords lines(text);
  std::string_view line;
  lines.next(line);
  return line;
}

std::string_view withoutLeadingSpace(std::string_view text) {
  while (!text.empty() && isSpace(text[0]))
    text.remove_prefix(1);
  return text;
}

/// The elements of an array, each as it stands in the text.
class ArrayRecords final : public RecordReader {
public:
  explicit ArrayRecords(std::string_view text)
      : text_(withoutByteOrderMark(text)), skipped_(text.size() - text_.size()), json_(text_) {}

  bool next(std::string_view &record) override {
    if (ended_)
      return false;
    try {
      return read(record);
    } catch (TextError &error) {
      ended_ = true;
      error.offset += skipped_;
      throw;
    }
  }

private:
  bool read(std::string_view &record) {
    if (!isOpen_) {
      JsonEvent event = json_.next();
      if (event != JsonEvent::BeginArray)
        throw TextError{json_.offset(), "expected an array of instances, found " +
                                            describeEvent(event, json_.text())};
      isOpen_ = true;
    }
    JsonEvent first = json_.next();
    if (first == JsonEvent::EndArray) {
      ended_ = true;
      json_.next(); // End, or it throws
      return false;
    }
    size_t begin = json_.offset();
    json_.skip(first);
    record = text_.substr(begin, json_.end() - begin);
    return true;
  }

  std::string_view text_;
  size_t skipped_; ///< bytes of the byte order mark
  JsonPull json_;
  bool isOpen_ = false, ended_ = false;
};

/// An array of objects, or one that does not end on its line: other arrays are lines.
bool isArrayOfInstances(std::string_view text) {
  std::string_view line = withoutLeadingSpace(firstLine(text));
  if (!line.starts_with('['))
    return false;
  JsonPull json(line);
  try {
    json.next();
    JsonEvent first = json.next();
    json.skip(first);
    if (first != JsonEvent::EndArray)
      for (JsonEvent event = json.next(); event != JsonEvent::EndArray; event = json.next())
        json.skip(event);
    json.next(); // End, or it throws
    // All of the text, or are there more lines of its kind?
    std::string_view rest =
        text.substr(static_cast<size_t>(line.data() - text.data()) + line.size());
    return first == JsonEvent::BeginObject && isBlank(rest);
  } catch (const TextError &error) {
    return error.offset >= line.size(); // it goes on
  }
}

bool isJsonLine(std::string_view text) {
  std::string_view line = withoutLeadingSpace(firstLine(text));
  if (line.starts_with('{'))
    return true;
  // `[1, 2]` is JSON, `[MAX 2 9 ]` is not.
  if (!line.starts_with('['))
    return false;
  std::string_view rest = withoutLeadingSpace(line.substr(1));
  return !rest.empty() &&
         std::string_view("0123456789-\"[{]").find(rest[0]) != std::string_view::npos;
}

std::unique_ptr<InstanceReader> jsonReader(const ReadContext &context) {
  return std::make_unique<JsonInstanceReader>(context);
}

/// All strings that are no member names; of trees their words.
void countJson(std::string_view record, CountingReader &counter) {
  JsonPull json(record);
  for (JsonEvent event = json.next(); event != JsonEvent::End; event = json.next()) {
    if (event != JsonEvent::String)
      continue;
    std::vector<std::string_view> found;
    try {
      found = treeWords(json.text());
    } catch (const TextError &) {
      found = {json.text()}; // not a tree: a word
    }
    for (std::string_view word : found)
      counter.words("").count(word);
  }
}

} // namespace

const DataFormat kJsonlFormat = {.name = "jsonl",
                                 .description = "JSON, an instance a line",
                                 .begins = "`{` or a JSON array",
                                 .example = R"({"words": ["a", "film"], "label": 1})",
                                 .extensions = {".jsonl", ".ndjson", ".json"},
                                 .detects = isJsonLine,
                                 .records = recordsBy<LineRecords>,
                                 .reader = jsonReader,
                                 .countWords = countJson};

const DataFormat kJsonFormat = {.name = "json",
                                .description = "JSON, one array of all instances",
                                .begins =
                                    "one array of objects, or one that goes over several lines",
                                .example = R"([{"words": ["a", "film"], "label": 1}])",
                                .extensions = {".json"},
                                .detects = isArrayOfInstances,
                                .records = recordsBy<ArrayRecords>,
                                .reader = jsonReader,
                                .countWords = countJson,
                                .record = "element"};

} // namespace sheaf::io
