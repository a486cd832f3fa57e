//===- formats.h - The formats of data files --------------------*- C++ -*-===//
//
// A format is one record: how a text is divided into instances, how one of them becomes arguments
// of an entry, and which words it has. Who adds one writes a file in formats/ with its record, and
// a line in formats.cpp; the option, its help, detection, messages, docs and fuzzing go by the
// table.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_FORMATS_H
#define SHEAF_RUNTIME_IO_FORMATS_H

#include "runtime/io/dataset.h"
#include "runtime/io/text.h"
#include "runtime/io/vocab.h"
#include "runtime/model/model.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::io {

/// Divides a text into records, one an instance. They are parts of the text, in its order.
class RecordReader {
public:
  virtual ~RecordReader() = default;
  /// False at the end of the text. Throws TextError at an offset of the whole text where a text
  /// cannot be divided.
  virtual bool next(std::string_view &record) = 0;
  /// What stands before the records and belongs to all of them; empty in most formats.
  virtual std::string_view header() const { return {}; }
};

/// One record a line; blank lines are skipped.
class LineRecords final : public RecordReader {
public:
  explicit LineRecords(std::string_view text) : lines_(text) {}
  bool next(std::string_view &record) override;

private:
  LineReader lines_;
};

/// What instances are read for, and with.
struct ReadContext {
  const rt::TypeTable &types;
  const rt::EntryDesc &entry;
  TokenReader &tokens;
  SlotHeap &heap;
  /// Model::dims, for extents that name them; may be null.
  const std::map<std::string, int64_t> *dims = nullptr;
  bool strict = false; ///< what the entry does not take is an error
  std::string_view header = {};
};

/// Makes arguments of records.
class InstanceReader {
public:
  virtual ~InstanceReader() = default;
  /// The slots of the arguments, valid until the next call. Throws TextError at an offset of the
  /// record.
  virtual const std::vector<rt::Slot> &read(std::string_view record) = 0;
  /// How many of the records read had what the entry does not take, by name.
  virtual std::map<std::string, int64_t> ignored() const { return {}; }
};

struct DataFormat {
  const char *name;        ///< of --data-format
  const char *description; ///< what it holds
  const char *begins;      ///< what a text of it begins with, in words; empty: only its name tells
  const char *example;     ///< a text with one instance
  /// Of files that are of this format, or of one of several; `.gz` is looked past.
  std::vector<std::string_view> extensions;
  /// Whether a text is of this format where its name leaves that open. It holds more than blanks.
  /// Null: only its name says so.
  bool (*detects)(std::string_view text);
  std::unique_ptr<RecordReader> (*records)(std::string_view text);
  /// Throws UserError when such data do not fit the entry, TextError at an offset of the header.
  std::unique_ptr<InstanceReader> (*reader)(const ReadContext &context);
  /// Counts the words of a record without a model. Throws TextError.
  void (*countWords)(std::string_view record, CountingReader &counter);
  const char *record = "line";    ///< what messages call one
  const char *fields = "members"; ///< what messages call its named parts
};

template <typename Records> std::unique_ptr<RecordReader> recordsBy(std::string_view text) {
  return std::make_unique<Records>(text);
}

/// Whether each line of a text is an instance, whatever stands before and after it.
bool isOfLines(const DataFormat &format);

/// All formats, in the order in which they are asked whether a text is theirs. The last one takes
/// any, and of those that share an extension the last one takes what none detects.
std::span<const DataFormat *const> dataFormats();

/// `auto, trees, ...`, for messages and help.
std::string dataFormatNames();

/// The format of that name; null for `auto`. Throws UserError that lists the names.
const DataFormat *parseDataFormat(const std::string &name);

/// What a file holds, by its name, else by what it begins with.
const DataFormat &detectFormat(const SourceText &source);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_FORMATS_H
