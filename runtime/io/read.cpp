#include "runtime/io/read.h"

#include <fmt/format.h>

namespace sheaf::io {

namespace {

/// The records of a source, one after the other, with the place of what is wrong in them.
class SourceReader {
public:
  SourceReader(const SourceText &source, const ReadOptions &options)
      : source_(source), options_(options),
        format_(options.format ? *options.format : detectFormat(source)), places_(source.text) {
    requireEightBit(source);
  }

  const DataFormat &format() const { return format_; }

  /// Calls `open` with what stands before the records, then `take` with each record and its line,
  /// as long as it returns true for more. A record for which it throws a TextError is told, or left
  /// out; `leftOut` is called then.
  template <typename Open, typename Take, typename LeftOut>
  void read(Open open, Take take, LeftOut leftOut) {
    std::unique_ptr<RecordReader> records =
        at(source_.text, [&] { return format_.records(source_.text); });
    at(records->header(), [&] {
      requireUtf8(records->header());
      open(records->header());
    });
    std::string_view record;
    for (int64_t left = options_.limit; left > 0;) {
      if (options_.stop.stop_requested())
        throw ReadingStopped();
      if (!at(source_.text, [&] { return records->next(record); }))
        break;
      try {
        requireUtf8(record);
        take(record, places_.at(offsetOf(record)).line);
        --left;
      } catch (const TextError &error) {
        PlacedError placed = errorAt(record, error, options_.limit - left);
        if (report_.skipped >= options_.skipBad)
          throw placed;
        if (report_.skipped++ == 0)
          report_.firstSkipped = placed.what();
        leftOut();
      }
    }
  }

  ReadReport &report() { return report_; }

private:
  size_t offsetOf(std::string_view part) const {
    return part.empty() ? 0 : static_cast<size_t>(part.data() - source_.text.data());
  }

  PlacedError errorAt(std::string_view part, const TextError &error, int64_t instance = -1) {
    TextPlace place = places_.at(offsetOf(part) + error.offset);
    return {{source_.name, place.line, place.column, instance, error.field}, error.message};
  }

  /// Gives a TextError its place, counted from this part of the text.
  template <typename Do> auto at(std::string_view part, Do what) {
    try {
      return what();
    } catch (const TextError &error) {
      throw errorAt(part, error);
    }
  }

  const SourceText &source_;
  const ReadOptions &options_;
  const DataFormat &format_;
  PlaceFinder places_;
  ReadReport report_;
};

void readInto(Dataset &dataset, const SourceText &source, const rt::TypeTable &types,
              const rt::EntryDesc &entry, TokenReader &tokens, const ReadOptions &options) {
  if (isBlank(withoutByteOrderMark(source.text)))
    return; // of any format
  SourceReader reader(source, options);
  const DataFormat &format = reader.format();
  dataset.addSource(source.name);
  std::unique_ptr<InstanceReader> instances;
  try {
    reader.read(
        [&](std::string_view header) {
          instances = format.reader(
              {types, entry, tokens, dataset.heap(), options.dims, options.strict, header});
        },
        [&](std::string_view record, int64_t line) {
          dataset.add(instances->read(record).data(), line);
          tokens.endRecord(/*kept=*/true);
        },
        [&] { tokens.endRecord(/*kept=*/false); });
  } catch (const UserError &error) {
    // Errors of lines name their place; errors of the binding get the file and the guess here.
    std::string message = error.what();
    if (message.starts_with(source.name + ":"))
      throw;
    throw PlacedError({source.name}, options.format
                                         ? message
                                         : fmt::format("{}\n  (read as {}; {} says otherwise)",
                                                       message, format.name, options.formatTerm));
  }
  ReadReport &report = dataset.report();
  report = std::move(reader.report());
  report.record = format.record;
  report.fields = format.fields;
  report.ignored = instances->ignored();
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
  if (dataset.size() > 0 || options.limit <= 0)
    return dataset;
  const ReadReport &report = dataset.report();
  if (report.skipped)
    throw PlacedError({source.name}, fmt::format("no data: every {} was skipped; the first: {}",
                                                 report.record, report.firstSkipped));
  throw PlacedError({source.name},
                    fmt::format("no data: the file has no {}",
                                std::string_view(report.record) == "line" ? "line that is not blank"
                                                                          : report.record));
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

std::map<std::string, Vocabulary>
vocabulariesOf(const SourceText &source, const std::set<std::string> &names,
               const std::map<std::string, int64_t> &sizes, const rt::TypeTable &types,
               const rt::EntryDesc &entry, const ReadOptions &options) {
  std::map<std::string, Vocabulary> made;
  if (names.empty())
    return made;
  // All of the data, so that a vocabulary does not depend on how many instances are wanted.
  ReadOptions counting = options;
  counting.limit = INT64_MAX;
  std::map<std::string, CountedTokens> counted = countTokens(source, types, entry, counting);
  for (const std::string &name : names) {
    const CountedTokens &tokens = counted[name];
    auto size = sizes.find(name);
    if (tokens.words.distinct() > 0) {
      WordCounter::Options most;
      if (size != sizes.end())
        most.maxSize = size->second;
      made[name] = tokens.words.build(most);
    } else if (size != sizes.end()) {
      made[name] = Vocabulary::ofSize(size->second);
    } else if (tokens.greatest < 0) {
      made[name] = {};
    } else {
      throw PlacedError({source.name},
                        fmt::format("it has numbers for {}, and nothing tells how many there are: "
                                    "give dim '{}' a value, {} at least, or a vocabulary",
                                    tokenTypeName(name), sizeDimName(name), tokens.greatest + 1));
    }
  }
  return made;
}

std::map<std::string, Vocabulary> buildVocabularies(const SourceText &source,
                                                    const ReadOptions &options,
                                                    const WordCounter::Options &counting) {
  SourceReader reader(source, options);
  CountingReader counter;
  reader.read(
      [](std::string_view) {},
      [&](std::string_view record, int64_t) { reader.format().countWords(record, counter); },
      [] {});
  if (counter.words("").distinct() == 0)
    throw PlacedError({source.name}, "no words in the data");
  std::map<std::string, Vocabulary> built;
  for (const auto &[name, counted] : counter.counted())
    built.emplace(name, counted.words.build(counting));
  return built;
}

} // namespace sheaf::io
