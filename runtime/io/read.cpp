#include "runtime/io/read.h"

#include "runtime/io/json.h"
#include "runtime/io/jsonl.h"
#include "runtime/io/sentences.h"
#include "runtime/io/trees.h"
#include "runtime/io/types.h"

#include <algorithm>
#include <fmt/format.h>

namespace sheaf::io {

using rt::Slot;
using rt::TypeKind;

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

DataFormat parseDataFormat(const std::string &name) {
  for (DataFormat format : {DataFormat::Auto, DataFormat::Trees, DataFormat::Jsonl,
                            DataFormat::Tagged, DataFormat::Text})
    if (name == dataFormatName(format))
      return format;
  throw UserError(
      fmt::format("--data-format {}: expected auto, trees, jsonl, tagged or text", name));
}

const char *dataFormatName(DataFormat format) {
  switch (format) {
  case DataFormat::Auto:
    return "auto";
  case DataFormat::Trees:
    return "trees";
  case DataFormat::Jsonl:
    return "jsonl";
  case DataFormat::Tagged:
    return "tagged";
  case DataFormat::Text:
    break;
  }
  return "text";
}

DataFormat detectFormat(const SourceText &source) {
  for (const char *extension : {".jsonl", ".ndjson", ".json"})
    if (source.name.ends_with(extension))
      return DataFormat::Jsonl;
  LineReader lines(source.text);
  std::string_view line;
  do {
    if (!lines.next(line))
      return DataFormat::Text;
  } while (isBlank(line));
  while (isSpace(line[0]))
    line.remove_prefix(1);
  if (line[0] == '(')
    return DataFormat::Trees;
  if (line[0] == '{')
    return DataFormat::Jsonl;
  if (line[0] == '[') {
    // `[1, 2]` is JSON, `[MAX 2 9 ]` is not.
    std::string_view rest = line.substr(1);
    while (!rest.empty() && isSpace(rest[0]))
      rest.remove_prefix(1);
    if (!rest.empty() &&
        std::string_view("0123456789-\"[{]").find(rest[0]) != std::string_view::npos)
      return DataFormat::Jsonl;
  }
  std::vector<std::string_view> words = splitWords(line);
  bool tagged = std::all_of(words.begin(), words.end(), [](std::string_view word) {
    size_t bar = word.rfind('|');
    return bar != std::string_view::npos && bar > 0 && bar + 1 < word.size();
  });
  return tagged ? DataFormat::Tagged : DataFormat::Text;
}

//===----------------------------------------------------------------------===//
// Trees as arguments
//===----------------------------------------------------------------------===//

namespace {

/// Which parameter takes the tree and which the root's label.
struct TreeArguments {
  size_t tree = 0;
  std::optional<size_t> label;
};

TreeArguments bindTreeArguments(const rt::TypeTable &types, const rt::EntryDesc &entry) {
  TreeArguments result;
  bool found = false;
  for (size_t i = 0; i < entry.argTypes.size(); ++i) {
    TypeKind kind = types.types[entry.argTypes[i]].kind;
    if (kind == TypeKind::Data && !found) {
      result.tree = i;
      found = true;
    } else if (kind == TypeKind::Int && entry.argNames[i] == "label" && !result.label) {
      result.label = i;
    } else {
      throw UserError(fmt::format("bracket trees cannot give the parameter '{}: {}' of '{}'; they "
                                  "give one data type and 'label: int'",
                                  entry.argNames[i], typeName(types, entry.argTypes[i]),
                                  entry.name));
    }
  }
  if (!found)
    throw UserError(fmt::format("bracket trees need a parameter of a data type (or list<token>, "
                                "which takes their words); '{}' has none",
                                entry.name));
  return result;
}

void readTrees(const SourceText &source, const rt::TypeTable &types, const rt::EntryDesc &entry,
               TokenReader &tokens, Dataset &dataset, int64_t limit) {
  TreeArguments arguments = bindTreeArguments(types, entry);
  TreeBinding binding(types, entry.argTypes[arguments.tree]);
  dataset.addSource(source.name);
  LineReader lines(source.text);
  std::string_view line;
  Slot args[2];
  while (limit > 0 && lines.next(line)) {
    if (isBlank(line))
      continue;
    try {
      std::optional<int64_t> label;
      args[arguments.tree] = binding.read(line, tokens, dataset.heap(), label);
      if (arguments.label) {
        if (!label)
          throw TextError{0, fmt::format("this tree has no label at its root, but '{}' has the "
                                         "parameter 'label: int'",
                                         entry.name)};
        args[*arguments.label] = *label;
      }
      dataset.add(args, lines.number());
    } catch (const TextError &error) {
      failAt(source.name, lines.number(), static_cast<int64_t>(error.offset) + 1, error.message);
    }
    --limit;
  }
}

bool hasDataParameter(const rt::TypeTable &types, const rt::EntryDesc &entry) {
  return std::any_of(entry.argTypes.begin(), entry.argTypes.end(),
                     [&](uint32_t t) { return types.types[t].kind == TypeKind::Data; });
}

bool hasData(const SourceText &source) {
  LineReader lines(source.text);
  for (std::string_view line; lines.next(line);)
    if (!isBlank(line))
      return true;
  return false;
}

void readInto(Dataset &dataset, const SourceText &source, const rt::TypeTable &types,
              const rt::EntryDesc &entry, TokenReader &tokens, const ReadOptions &options) {
  if (!hasData(source))
    return; // of any format
  DataFormat format = options.format == DataFormat::Auto ? detectFormat(source) : options.format;
  try {
    switch (format) {
    case DataFormat::Trees:
      if (!hasDataParameter(types, entry) && SentenceBinding::takesWords(types, entry))
        readSentences(source, SentenceBinding::Kind::Tree, types, entry, tokens, dataset,
                      options.limit);
      else
        readTrees(source, types, entry, tokens, dataset, options.limit);
      break;
    case DataFormat::Jsonl:
      readJsonl(source, types, entry, tokens, dataset, options.limit, options.dims);
      break;
    case DataFormat::Tagged:
      readSentences(source, SentenceBinding::Kind::Tagged, types, entry, tokens, dataset,
                    options.limit);
      break;
    case DataFormat::Auto:
    case DataFormat::Text:
      readSentences(source, SentenceBinding::Kind::Text, types, entry, tokens, dataset,
                    options.limit);
      break;
    }
  } catch (const UserError &error) {
    // Errors of lines name their place; errors of the binding get the file and the guess here.
    std::string message = error.what();
    if (message.starts_with(source.name + ":"))
      throw;
    throw UserError(fmt::format(
        "{}: {}{}", source.name, message,
        options.format == DataFormat::Auto
            ? fmt::format("\n  (read as {}; --data-format says otherwise)", dataFormatName(format))
            : ""));
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Datasets
//===----------------------------------------------------------------------===//

int64_t argSlots(const rt::TypeTable &types, const rt::EntryDesc &entry) {
  int64_t slots = 0;
  for (uint32_t type : entry.argTypes)
    slots += types.slots(type);
  return slots;
}

Dataset readDataset(const SourceText &source, const rt::TypeTable &types,
                    const rt::EntryDesc &entry, TokenReader &tokens, const ReadOptions &options) {
  Dataset dataset(argSlots(types, entry));
  readInto(dataset, source, types, entry, tokens, options);
  if (dataset.size() == 0 && options.limit > 0)
    throw UserError(
        fmt::format("{}: no data: the file has no line that is not blank", source.name));
  return dataset;
}

Dataset readDataset(const std::string &path, const rt::TypeTable &types, const rt::EntryDesc &entry,
                    TokenReader &tokens, const ReadOptions &options) {
  return readDataset(readSource(path), types, entry, tokens, options);
}

//===----------------------------------------------------------------------===//
// Vocabularies
//===----------------------------------------------------------------------===//

std::map<std::string, CountedTokens> countTokens(const SourceText &source,
                                                 const rt::TypeTable &types,
                                                 const rt::EntryDesc &entry,
                                                 const ReadOptions &options) {
  CountingReader counter;
  readDataset(source, types, entry, counter, options);
  return counter.counted();
}

/// The words of a tree from left to right.
static std::vector<std::string_view> treeWords(std::string_view text) {
  std::vector<std::string_view> words;
  TreeEvents events(text);
  for (TreeEvents::Kind kind = events.next(); kind != TreeEvents::End; kind = events.next())
    if (kind == TreeEvents::Word)
      words.push_back(events.word());
  return words;
}

static void countJson(std::string_view line, WordCounter &words) {
  JsonPull json(line);
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
      words.count(word);
  }
}

std::map<std::string, Vocabulary> buildVocabularies(const SourceText &source,
                                                    const ReadOptions &options,
                                                    const WordCounter::Options &counting) {
  DataFormat format = options.format == DataFormat::Auto ? detectFormat(source) : options.format;
  CountingReader counter;
  WordCounter &words = counter.words("");
  LineReader lines(source.text);
  std::string_view line;
  int64_t left = options.limit;
  while (left > 0 && lines.next(line)) {
    if (isBlank(line))
      continue;
    --left;
    try {
      if (format == DataFormat::Trees) {
        for (std::string_view word : treeWords(line))
          words.count(word);
      } else if (format == DataFormat::Jsonl) {
        countJson(line, words);
      } else {
        for (std::string_view item : splitWords(line)) {
          if (format != DataFormat::Tagged) {
            words.count(item);
            continue;
          }
          TaggedWord tagged;
          try {
            tagged = splitTagged(item);
          } catch (TextError &error) {
            error.offset += static_cast<size_t>(item.data() - line.data());
            throw;
          }
          words.count(tagged.word);
          counter.words("tag").count(tagged.tag);
        }
      }
    } catch (const TextError &error) {
      failAt(source.name, lines.number(), static_cast<int64_t>(error.offset) + 1, error.message);
    }
  }
  if (words.distinct() == 0)
    throw UserError(fmt::format("{}: no words in the data", source.name));
  std::map<std::string, Vocabulary> built;
  for (const auto &[name, counted] : counter.counted())
    built.emplace(name, counted.words.build(counting));
  return built;
}

} // namespace sheaf::io
