#include "runtime/io/formats.h"

#include <fmt/format.h>

namespace sheaf::io {

/// The record of a file in formats/.
#define FORMAT(record)                                                                             \
  []() -> const DataFormat * {                                                                     \
    extern const DataFormat record;                                                                \
    return &record;                                                                                \
  }()

std::span<const DataFormat *const> dataFormats() {
  static const DataFormat *const all[] = {
      FORMAT(kJsonFormat), // before jsonl, which takes all other arrays
      FORMAT(kJsonlFormat),  FORMAT(kTreesFormat), FORMAT(kCsvFormat), FORMAT(kTsvFormat),
      FORMAT(kTaggedFormat), // before text, which takes all lines
      FORMAT(kTextFormat),
  };
  return all;
}
#undef FORMAT

std::string dataFormatNames() {
  std::string names = "auto";
  std::span<const DataFormat *const> all = dataFormats();
  for (const DataFormat *format : all)
    names += (format == all.back() ? " or " : ", ") + std::string(format->name);
  return names;
}

const DataFormat *parseDataFormat(const std::string &name) {
  if (name == "auto")
    return nullptr;
  for (const DataFormat *format : dataFormats())
    if (name == format->name)
      return format;
  throw UserError(
      fmt::format("there is no data format '{}'; there are {}", name, dataFormatNames()));
}

const DataFormat &detectFormat(const SourceText &source) {
  std::string_view name = source.name, text = withoutByteOrderMark(source.text);
  if (name.ends_with(".gz"))
    name.remove_suffix(3);
  std::vector<const DataFormat *> named;
  for (const DataFormat *format : dataFormats())
    for (std::string_view extension : format->extensions)
      if (name.ends_with(extension))
        named.push_back(format);
  std::span<const DataFormat *const> candidates = dataFormats();
  if (!named.empty())
    candidates = named;
  if (candidates.size() > 1 && !isBlank(text))
    for (const DataFormat *format : candidates)
      if (format->detects && format->detects(text))
        return *format;
  return *candidates.back();
}

bool isOfLines(const DataFormat &format) { return format.records == recordsBy<LineRecords>; }

bool LineRecords::next(std::string_view &record) {
  while (lines_.next(record))
    if (!isBlank(record))
      return true;
  return false;
}

} // namespace sheaf::io
