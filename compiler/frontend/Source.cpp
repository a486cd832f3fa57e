//===- Source.cpp - A model's file and those that it uses -----------------===//

#include "compiler/frontend/Source.h"

#include "compiler/frontend/Lexer.h"
#include "compiler/frontend/Parser.h"

#include <limits>
#include <mutex>

namespace sheaf {

namespace {

/// More files than a person writes: names that lead to ever new files end here.
constexpr size_t mostFiles = 1000;

/// Where a text says `use "NAME"`. Whether that may stand there is the parser's business.
UsedNames usesIn(const SourceText &text) {
  SourceFile alone(text.name(), {});
  Diagnostics unheard(alone);
  UsedNames uses;
  // Most files use nothing, and are read by the parser alone.
  if (text.text().find("use") == std::string_view::npos)
    return uses;
  std::vector<Token> tokens = lex(text, unheard);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const Token &name = tokens[i + 1];
    if (tokens[i].kind == TokenKind::Identifier && text.slice(tokens[i].range) == "use" &&
        name.kind == TokenKind::String && !name.startsLine)
      uses.emplace_back(name.range, unquote(text.slice(name.range)));
  }
  return uses;
}

/// A Program begins with the word `module` or its generic name, after comments and names of
/// attributes and types, each on a line of its own (`#` begins a comment in a source).
bool beginsAsProgramText(std::string_view text) {
  auto skipBlank = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  };
  for (skipBlank(); text.starts_with("//") || text.starts_with('#') || text.starts_with('!');
       skipBlank())
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  if (text.starts_with("\"builtin.module\""))
    return true;
  constexpr std::string_view word = "module";
  if (!text.starts_with(word))
    return false;
  text.remove_prefix(word.size());
  skipBlank();
  return text.starts_with('{') || text.starts_with('@') || text.starts_with("attributes");
}

} // namespace

struct SourceFile::Parsed {
  std::once_flag once;
  std::shared_ptr<const Syntax> syntax;
};

std::shared_ptr<const Syntax> SourceFile::syntax() const {
  std::call_once(parsed->once, [&] {
    auto made = std::make_shared<Syntax>();
    Diagnostics diags(*this);
    made->module = parseModule(*this, diags);
    made->findings = diags.all();
    made->errors = diags.errorCount();
    parsed->syntax = std::move(made);
  });
  return parsed->syntax;
}

uint32_t SourceText::offsetOf(LineColumn place) const {
  uint32_t line = std::max(place.line, 1u), column = std::max(place.column, 1u);
  if (!isSeen())
    return lineBegin(line) + std::min(column, gridColumns) - 1;
  if (line > lineCount())
    return first + static_cast<uint32_t>(contents.size());
  std::string_view text = lineText(line);
  size_t at = 0;
  for (uint32_t left = column - 1; left > 0 && at < text.size(); --left)
    do
      ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return lineBegin(line) + static_cast<uint32_t>(at);
}

SourceFile::SourceFile(std::string name, std::string text, const FileResolver &resolver) {
  texts.emplace_back(std::move(name), std::move(text), 0);
  beginsAsProgram = beginsAsProgramText(texts.front().text());
  parsed = std::make_shared<Parsed>();
  if (resolver && !beginsAsProgram)
    addUsedFiles(texts, hosts, 0, usesIn(texts.front()), resolver);
}

SourceFile::SourceFile(std::deque<SourceText> files, size_t hosts,
                       std::shared_ptr<const Syntax> syntax)
    : texts(std::move(files)), hosts(hosts), isBuilt(true), beginsAsProgram(false),
      parsed(std::make_shared<Parsed>()) {
  std::call_once(parsed->once, [&] { parsed->syntax = std::move(syntax); });
}

void addUsedFiles(std::deque<SourceText> &texts, size_t hosts, uint32_t begin, UsedNames first,
                  const FileResolver &resolver) {
  for (size_t i = 0; i < texts.size(); i = std::max(i + 1, hosts))
    for (auto &[range, used] : i == 0 ? first : usesIn(texts[i])) {
      SourceText::Use &use = texts[i].uses.emplace_back();
      use.range = range;
      if (texts.size() > mostFiles) {
        use.problem = "the model uses more than 1000 files";
        continue;
      }
      UsedFile found = resolver(used, texts[i].name());
      if (!found.problem.empty()) {
        use.problem = std::move(found.problem);
        continue;
      }
      // The model itself, which only a text can use, is its first.
      size_t number = 0;
      while (number < texts.size() && texts[number].name() != found.name)
        number = std::max(number + 1, hosts);
      if (number == texts.size()) {
        const SourceText &last = texts.back();
        // One byte between two files, so that the end of one is not the beginning of the next.
        uint64_t next = std::max<uint64_t>(uint64_t{last.begin()} + last.text().size() + 1, begin);
        if (next + found.text.size() >= std::numeric_limits<uint32_t>::max()) {
          use.problem = "the files of a model hold less than 4 GiB";
          continue;
        }
        texts.emplace_back(std::move(found.name), std::move(found.text),
                           static_cast<uint32_t>(next));
      }
      use.file = number == 0 ? 0 : number - hosts + 1;
    }
}

} // namespace sheaf
