//===- Diagnostics.cpp - Errors, warnings and notes -----------------------===//

#include "compiler/frontend/Diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace sheaf {

namespace {
/// Words of other languages, and what to write here.
constexpr std::pair<std::string_view, std::string_view> foreignWords[] = {
    {"and", "write '&&' for 'and'"},
    {"or", "write '||' for 'or'"},
    {"not", "write '!' for 'not'"},
    {"then", "write 'if c { a } else { b }'"},
    {"elif", "write 'else if'"},
    {"return", "there is no 'return': the last line of a block is its value"},
    {"for", "over a list go map, fold, scan and filter; loop(...) goes on while a condition holds"},
    {"while", "a loop is written loop(|x| CONDITION, |x| STEP, start)"},
    {"lambda", lambdaForm},
    {"in", "the value follows on the next line, without 'in'"},
    {"def", "functions are declared with 'fn', outside other functions"},
    {"var", "a name is introduced with 'let name = value'"},
    {"val", "a name is introduced with 'let name = value'"},
    {"print", "there is no 'print': what the entry gives is written out"},
    {"const", "a name is introduced with 'let name = value'"},
    {"inf", "infinity is 1.0 / 0.0"},
    {"infinity", "infinity is 1.0 / 0.0"},
    {"nan", "NaN is 0.0 / 0.0"},
};

/// Methods of other languages' tensors, likewise.
constexpr std::pair<std::string_view, std::string_view> foreignMethods[] = {
    {"item", "read(x) gives the element of a tensor as a host value"},
    {"tolist", "read(x) gives the element of a tensor as a host value"},
    {"mm", "a product is written a @ b"},
    {"bmm", "a product is written a @ b"},
    {"matmul", "a product is written a @ b"},
    {"view", "write reshape(x, ...)"},
    {"permute", "write transpose(x, axis1, axis2)"},
    {"t", "write transpose(x)"},
    {"unsqueeze", "write expand_dims(x, axis=...)"},
    {"size", "shape(x, 0) is an extent as an int"},
    {"detach", "write stop_gradient(x)"},
};

/// Functions of other libraries that there are none of here, or by another name.
constexpr std::pair<std::string_view, std::string_view> foreignFunctions[] = {
    {"topk", "write top_k(x, k)"},
    {"argmin", "write argmax(-x)"},
    {"cat", "write concat(x, y, axis=...)"},
    {"mm", "a product is written a @ b"},
    {"bmm", "a product is written a @ b"},
    {"view", "write reshape(x, ...)"},
    {"permute", "write transpose(x, axis1, axis2)"},
    {"unsqueeze", "write expand_dims(x, axis=...)"},
    {"clip", "write clamp(x, lo, hi)"},
    {"arange", "iota(n) makes a tensor, range(n) a list"},
    {"detach", "write stop_gradient(x)"},
    {"swish", "write silu(x)"},
    {"nll_loss", "cross_entropy(logits, label) takes logits"},
    {"size", "shape(x, 0) is an extent as an int"},
    {"floordiv", "write floor_div(a, b)"},
    {"floor_divide", "write floor_div(a, b)"},
    {"remainder", "write floor_mod(a, b)"},
};

std::string_view helpFor(std::span<const std::pair<std::string_view, std::string_view>> words,
                         std::string_view word) {
  for (auto [foreign, help] : words)
    if (word == foreign)
      return help;
  return {};
}
} // namespace

std::string_view foreignWordHelp(std::string_view word) { return helpFor(foreignWords, word); }
std::string_view foreignFunctionHelp(std::string_view name) {
  return helpFor(foreignFunctions, name);
}
std::string_view foreignMethodHelp(std::string_view name) { return helpFor(foreignMethods, name); }

std::string_view severityName(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error";
  case Severity::Warning:
    return "warning";
  case Severity::Note:
    return "note";
  }
  return "error";
}

namespace {

constexpr size_t tabWidth = 4;
/// A longer line is shown as a window of about this many columns around the caret.
constexpr size_t widestLine = 160;

constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view green = "\x1b[1;32m";
constexpr std::string_view reset = "\x1b[0m";

std::string_view severityColour(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "\x1b[1;31m";
  case Severity::Warning:
    return "\x1b[1;35m";
  case Severity::Note:
    return "\x1b[1;36m";
  }
  return "";
}

/// One character of a source line as it is shown: its text, its columns, and where it stands.
struct Cell {
  std::string text;
  size_t width;
  uint32_t offset;
};

/// The columns a terminal gives to a code point, roughly.
size_t displayWidth(char32_t c) {
  if (c >= 0x300 && c <= 0x36F)
    return 0;
  bool isWide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return isWide ? 2 : 1;
}

/// The length in bytes of the UTF-8 sequence at the front of `text`, or 0 if there is none.
size_t sequenceLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t length = byte(0) < 0x80   ? 1
                  : byte(0) < 0xC2 ? 0
                  : byte(0) < 0xE0 ? 2
                  : byte(0) < 0xF0 ? 3
                  : byte(0) < 0xF5 ? 4
                                   : 0;
  if (length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  return length;
}

char32_t decode(std::string_view sequence) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1)
    return byte(0);
  char32_t c = byte(0) & (0xFFu >> (sequence.size() + 1));
  for (size_t i = 1; i < sequence.size(); ++i)
    c = (c << 6) | (byte(i) & 0x3Fu);
  return c;
}

/// Control characters and stray bytes become U+FFFD, so that a file cannot steer a terminal.
std::vector<Cell> cellsOf(std::string_view line, uint32_t offset) {
  std::vector<Cell> cells;
  size_t column = 0;
  for (size_t i = 0; i < line.size();) {
    size_t length = sequenceLength(line.substr(i));
    Cell cell{"\xEF\xBF\xBD", 1, static_cast<uint32_t>(offset + i)};
    if (line[i] == '\t') {
      cell.width = tabWidth - column % tabWidth;
      cell.text = std::string(cell.width, ' ');
    } else if (length > 0) {
      std::string_view sequence = line.substr(i, length);
      char32_t c = decode(sequence);
      if (c >= 0x20 && c != 0x7F && (c < 0x80 || c >= 0xA0)) {
        cell.text = sequence;
        cell.width = displayWidth(c);
      }
    }
    column += cell.width;
    i += std::max<size_t>(length, 1);
    cells.push_back(std::move(cell));
  }
  return cells;
}

/// A part of a line, and where it begins.
struct Window {
  std::string_view text;
  uint32_t offset;
};

/// What of a line is looked at: all of it, or of a very long one some bytes around the caret.
Window windowOf(std::string_view line, uint32_t lineBegin, uint32_t caret) {
  constexpr size_t reach = 4 * widestLine;
  size_t at = std::min<size_t>(caret - lineBegin, line.size());
  size_t first = at > reach ? at - reach : 0;
  while (first > 0 && (static_cast<unsigned char>(line[first]) & 0xC0) == 0x80)
    --first;
  return {line.substr(first, at - first + reach), static_cast<uint32_t>(lineBegin + first)};
}

/// The source line of a range's start, and below it `^~~~` as far as the range goes in that line.
std::string renderSnippet(const SourceFile &files, SourceRange range, bool colour) {
  const SourceText &source = files.fileOf(range.begin);
  if (!source.isSeen())
    return {};
  uint32_t line = source.lineOf(range.begin);
  std::string_view whole = source.lineText(line);
  Window window = windowOf(whole, source.lineBegin(line), range.begin);
  std::vector<Cell> cells = cellsOf(window.text, window.offset);
  auto firstAtOrAfter = [&](uint32_t offset) {
    return static_cast<size_t>(
        std::partition_point(cells.begin(), cells.end(),
                             [&](const Cell &cell) { return cell.offset < offset; }) -
        cells.begin());
  };
  size_t caret = firstAtOrAfter(range.begin);
  size_t caretEnd = std::max(firstAtOrAfter(range.end), caret + 1);

  size_t first = 0, last = cells.size();
  if (cells.size() > widestLine) {
    first = caret > widestLine / 2 ? caret - widestLine / 2 : 0;
    last = std::min(cells.size(), first + widestLine);
    caretEnd = std::min(caretEnd, std::max(last, caret + 1));
  }
  bool cutsFront = first > 0 || window.text.data() != whole.data();
  bool cutsBack = last < cells.size() || window.text.end() != whole.end();
  std::string text = cutsFront ? "..." : "";
  std::string blanks(text.size(), ' ');
  std::string underline;
  for (size_t i = first; i < last; ++i) {
    text += cells[i].text;
    if (i < caret)
      blanks.append(cells[i].width, ' ');
    else if (i < caretEnd)
      underline.append(cells[i].width, '~');
  }
  if (cutsBack)
    text += "...";
  if (underline.empty())
    underline = "~";
  underline[0] = '^';
  if (colour)
    underline = fmt::format("{}{}{}", green, underline, reset);
  return fmt::format("{}\n{}{}\n", text, blanks, underline);
}

std::string renderHeading(const SourceFile &files, Severity severity, SourceRange range,
                          std::string_view message, bool colour) {
  const SourceText &source = files.fileOf(range.begin);
  LineColumn at = source.lineColumn(range.begin);
  std::string place = fmt::format("{}:{}:{}:", source.name(), at.line, at.column);
  if (!colour)
    return fmt::format("{} {}: {}\n", place, severityName(severity), message);
  return fmt::format("{}{}{} {}{}:{} {}{}{}\n", bold, place, reset, severityColour(severity),
                     severityName(severity), reset, bold, message, reset);
}

} // namespace

Diagnostic &Diagnostics::add(Severity severity, SourceRange range, std::string message,
                             std::string help) {
  return kept.emplace_back(Diagnostic{severity, range, std::move(message), std::move(help), {}});
}

Diagnostic &Diagnostics::error(SourceRange range, std::string message, std::string help) {
  if (++errors <= maxErrors)
    return add(Severity::Error, range, std::move(message), std::move(help));
  dropped = {};
  return dropped;
}

void Diagnostics::take(const std::deque<Diagnostic> &findings, size_t errorCount) {
  kept.insert(kept.end(), findings.begin(), findings.end());
  errors += errorCount;
}

void Diagnostics::forgetSince(Mark mark) {
  kept.resize(mark.kept);
  errors = mark.errors;
}

Diagnostic &Diagnostics::warning(SourceRange range, std::string message, std::string help) {
  return add(Severity::Warning, range, std::move(message), std::move(help));
}

Diagnostic &Diagnostics::note(SourceRange range, std::string message, std::string help) {
  return add(Severity::Note, range, std::move(message), std::move(help));
}

std::string Diagnostics::render(const Diagnostic &diagnostic, bool colour) const {
  std::string out =
      renderHeading(source, diagnostic.severity, diagnostic.range, diagnostic.message, colour);
  out += renderSnippet(source, diagnostic.range, colour);
  if (!diagnostic.help.empty())
    out += fmt::format("help: {}\n", diagnostic.help);
  for (const DiagnosticNote &note : diagnostic.notes) {
    out += renderHeading(source, Severity::Note, note.range, note.message, colour);
    out += renderSnippet(source, note.range, colour);
  }
  return out;
}

std::vector<const Diagnostic *> Diagnostics::inSourceOrder() const {
  std::vector<size_t> order(kept.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(kept[a].range.begin, a) < std::pair(kept[b].range.begin, b);
  });
  std::vector<const Diagnostic *> sorted;
  for (size_t index : order)
    sorted.push_back(&kept[index]);
  return sorted;
}

std::string Diagnostics::render(bool colour) const {
  std::string out;
  for (const Diagnostic *diagnostic : inSourceOrder())
    out += render(*diagnostic, colour);
  if (tooManyErrors())
    out +=
        fmt::format("{}: error: too many errors (only {} are shown)\n", source.name(), maxErrors);
  return out;
}

} // namespace sheaf
