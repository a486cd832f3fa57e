//===- csv.cpp - Tables of comma- or tab-separated values -----------------===//
//
// As RFC 4180 has it. A row becomes an object of JSON, whose members are the cells as the
// parameters' types have them, and is read as such: what a value may be is said there alone.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/formats.h"
#include "runtime/io/json.h"
#include "runtime/io/jsonl.h"
#include "runtime/io/sentences.h"

#include <algorithm>
#include <fmt/format.h>

namespace sheaf::io {

namespace {

using rt::TypeDesc;
using rt::TypeKind;

/// Rows, over several lines where quotes say so; those that are blank are skipped.
template <char kSeparator> class Rows final : public RecordReader {
public:
  explicit Rows(std::string_view text) : rest_(withoutByteOrderMark(text)) { next(header_); }

  bool next(std::string_view &record) override {
    do {
      if (rest_.empty())
        return false;
      size_t end = rowEnd();
      record = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      if (record.ends_with('\r'))
        record.remove_suffix(1);
    } while (isBlank(record));
    return true;
  }
  std::string_view header() const override { return header_; }

private:
  /// A quote opens a quoted cell at the beginning of a cell only.
  size_t rowEnd() const {
    bool atBegin = true, quoted = false;
    for (size_t i = 0; i < rest_.size(); ++i) {
      char c = rest_[i];
      if (quoted) {
        quoted = c != '"' || (i + 1 < rest_.size() && rest_[i + 1] == '"' && ++i);
        continue;
      }
      if (c == '\n')
        return i;
      quoted = c == '"' && atBegin;
      atBegin = c == kSeparator;
    }
    return rest_.size();
  }

  std::string_view rest_, header_;
};

struct Cell {
  size_t offset; ///< in the row
  std::string text;
};

std::vector<Cell> cellsOf(std::string_view row, char separator) {
  std::vector<Cell> cells;
  for (size_t at = 0;;) {
    Cell &cell = cells.emplace_back(Cell{at, {}});
    if (at < row.size() && row[at] == '"') {
      for (++at;; ++at) {
        if (at >= row.size())
          throw TextError{cell.offset, "a cell without its closing quote"};
        if (row[at] == '"' && (at + 1 >= row.size() || row[++at] != '"'))
          break;
        cell.text += row[at];
      }
      if (at + 1 == row.size() && row[at] == '"')
        ++at; // the closing quote ends the row
      if (at < row.size() && row[at] != separator)
        throw TextError{at, "text after the closing quote of a cell"};
    } else {
      size_t end = std::min(row.find(separator, at), row.size());
      cell.text = row.substr(at, end - at);
      at = end;
    }
    if (at >= row.size())
      return cells;
    ++at; // the separator
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

/// Cells as JSON of a type.
class CellWriter {
public:
  explicit CellWriter(const rt::TypeTable &types) : types_(types) {}

  /// Throws TextError at an offset of the cell.
  void append(std::string &json, uint32_t type, const std::string &cell) const {
    std::string_view text = trimmed(cell);
    if (std::optional<bool> isWord = scalar(type))
      return *isWord ? appendJsonString(json, cell) : appendNumber(json, text);
    if (std::optional<bool> areWords = sequence(type)) {
      json += '[';
      std::string_view comma;
      for (std::string_view item : splitWords(cell)) {
        json += comma;
        comma = ",";
        *areWords ? appendJsonString(json, item) : appendNumber(json, item);
      }
      json += ']';
      return;
    }
    if (types_.types[type].kind == TypeKind::Data) {
      std::optional<uint32_t> field = optionalField(type);
      if (field && text.empty()) {
        json += "null";
        return;
      }
      bool isJson = !text.empty() && (text[0] == '{' || text[0] == '"');
      if (field && !isJson)
        return append(json, *field, cell);
      if (!isJson) // a tree, or the name of a constructor
        return appendJsonString(json, text);
    }
    // It must be one value, so that nothing of the cell becomes a part of the row.
    JsonPull pull(cell);
    pull.skip(pull.next());
    pull.next(); // End, or it throws
    json += cell;
  }

private:
  /// Whether values are words; nothing when they are no scalars.
  std::optional<bool> scalar(uint32_t type) const {
    const TypeDesc &desc = types_.types[type];
    if (desc.kind == TypeKind::Token)
      return true;
    if (desc.kind == TypeKind::Int || desc.kind == TypeKind::Float || desc.kind == TypeKind::Bool)
      return false;
    if (desc.kind == TypeKind::Tensor && desc.shape.empty())
      return desc.isToken;
    return std::nullopt;
  }
  /// Likewise of the elements of lists and vectors.
  std::optional<bool> sequence(uint32_t type) const {
    const TypeDesc &desc = types_.types[type];
    if (desc.kind == TypeKind::List)
      return scalar(desc.children[0]);
    if (desc.kind == TypeKind::Tensor && desc.shape.size() == 1)
      return desc.isToken;
    return std::nullopt;
  }
  /// The field of what may be absent, unless it is of a data type: these are written as JSON.
  std::optional<uint32_t> optionalField(uint32_t type) const {
    std::optional<OptionalCtors> ctors = optionalCtors(types_, type);
    if (!ctors || types_.types[ctors->field].kind == TypeKind::Data)
      return std::nullopt;
    return ctors->field;
  }

  /// What is no number, true or false, is told as the string that it is.
  static void appendNumber(std::string &json, std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (lower == "true" || lower == "false") {
      json += lower;
      return;
    }
    try {
      JsonPull pull(text);
      if (pull.next() == JsonEvent::Number && pull.end() == text.size()) {
        json += text;
        return;
      }
    } catch (const TextError &) {
    }
    appendJsonString(json, text);
  }

  const rt::TypeTable &types_;
};

class RowReader final : public InstanceReader {
public:
  RowReader(const ReadContext &context, char separator)
      : context_(context), separator_(separator), json_(context), cells_(context.types) {
    const rt::EntryDesc &entry = context.entry;
    for (Cell &cell : cellsOf(context.header, separator)) {
      std::string name(trimmed(cell.text));
      if (std::any_of(columns_.begin(), columns_.end(),
                      [&](const Column &column) { return column.name == name; }))
        throw TextError{cell.offset, fmt::format("two columns are named {}", quoted(name))};
      auto param = std::find(entry.argNames.begin(), entry.argNames.end(), name);
      columns_.push_back({name, static_cast<size_t>(param - entry.argNames.begin())});
    }
    for (const std::string &name : entry.argNames)
      if (std::none_of(columns_.begin(), columns_.end(),
                       [&](const Column &column) { return column.name == name; }))
        throw TextError{0,
                        fmt::format("no column is named '{}', as a parameter is; the columns are "
                                    "{}",
                                    name, columnNames())};
    for (const Column &column : columns_)
      if (context.strict && column.param == entry.argNames.size())
        throw TextError{
            0, fmt::format("no parameter is named {}, as a column is", quoted(column.name))};
  }

  const std::vector<rt::Slot> &read(std::string_view record) override {
    std::vector<Cell> cells = cellsOf(record, separator_);
    if (cells.size() != columns_.size())
      throw TextError{cells[std::min(cells.size() - 1, columns_.size())].offset,
                      fmt::format("{} in a row of a table with {}",
                                  plural(static_cast<int64_t>(cells.size()), "cell"),
                                  plural(static_cast<int64_t>(columns_.size()), "column"))};
    text_ = "{";
    std::vector<std::pair<size_t, size_t>> begins; // in the JSON, and in the row
    for (size_t i = 0; i < cells.size(); ++i) {
      if (columns_[i].param == context_.entry.argNames.size())
        continue;
      text_ += text_.size() > 1 ? "," : "";
      appendJsonString(text_, columns_[i].name);
      text_ += ':';
      begins.emplace_back(text_.size(), cells[i].offset);
      try {
        cells_.append(text_, context_.entry.argTypes[columns_[i].param], cells[i].text);
      } catch (const TextError &error) {
        throw TextError{cells[i].offset, error.message, "$." + columns_[i].name};
      }
    }
    text_ += '}';
    try {
      const std::vector<rt::Slot> &slots = json_.read(text_);
      ++rows_;
      return slots;
    } catch (TextError &error) {
      size_t offset = 0;
      for (auto [inJson, inRow] : begins)
        if (inJson <= error.offset)
          offset = inRow;
      throw TextError{offset, error.message, error.field};
    }
  }

  std::map<std::string, int64_t> ignored() const override {
    std::map<std::string, int64_t> ignored;
    for (const Column &column : columns_)
      if (column.param == context_.entry.argNames.size() && rows_)
        ignored[column.name] = rows_;
    return ignored;
  }

private:
  struct Column {
    std::string name;
    size_t param; ///< as many as there are: none
  };

  std::string columnNames() const {
    std::string names;
    for (const Column &column : columns_)
      names += (names.empty() ? "" : ", ") + quoted(column.name);
    return names;
  }

  const ReadContext context_;
  char separator_;
  JsonInstanceReader json_;
  CellWriter cells_;
  std::vector<Column> columns_;
  std::string text_;
  int64_t rows_ = 0;
};

template <char kSeparator> std::unique_ptr<InstanceReader> rowReader(const ReadContext &context) {
  return std::make_unique<RowReader>(context, kSeparator);
}

/// Words between spaces, of all cells that are no numbers.
template <char kSeparator> void countCells(std::string_view record, CountingReader &counter) {
  for (const Cell &cell : cellsOf(record, kSeparator)) {
    double number;
    if (parseDouble(trimmed(cell.text), number))
      continue;
    for (std::string_view word : splitWords(cell.text))
      counter.words("").count(word);
  }
}

template <char kSeparator>
DataFormat tableFormat(const char *name, std::string_view extension, const char *description,
                       const char *example) {
  return {.name = name,
          .description = description,
          .begins = "",
          .example = example,
          .extensions = {extension},
          .detects = nullptr,
          .records = recordsBy<Rows<kSeparator>>,
          .reader = rowReader<kSeparator>,
          .countWords = countCells<kSeparator>,
          .record = "row",
          .fields = "columns"};
}

} // namespace

const DataFormat kCsvFormat =
    tableFormat<','>("csv", ".csv", "rows below a header, with commas", "text,label\ngood film,1");
const DataFormat kTsvFormat =
    tableFormat<'\t'>("tsv", ".tsv", "rows below a header, with tabs", "text\tlabel\ngood film\t1");

} // namespace sheaf::io
