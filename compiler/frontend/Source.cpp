//===- Source.cpp - A model's file and those that it uses -----------------===//

#include "compiler/frontend/Source.h"

#include "compiler/frontend/Lexer.h"

#include <limits>

namespace sheaf {

namespace {

/// More files than a person writes: names that lead to ever new files end here.
constexpr size_t mostFiles = 1000;

/// Where a text says `use "NAME"`. Whether that may stand there is the parser's business.
std::vector<std::pair<SourceRange, std::string>> usesIn(const SourceText &text) {
  SourceFile alone(text.name(), {});
  Diagnostics unheard(alone);
  std::vector<std::pair<SourceRange, std::string>> uses;
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

} // namespace

SourceFile::SourceFile(std::string name, std::string text, const FileResolver &resolver) {
  texts.emplace_back(std::move(name), std::move(text), 0);
  if (!resolver)
    return;
  for (size_t i = 0; i < texts.size(); ++i)
    for (auto &[range, used] : usesIn(texts[i])) {
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
      size_t number = 0;
      while (number < texts.size() && texts[number].name() != found.name)
        ++number;
      if (number == texts.size()) {
        const SourceText &last = texts.back();
        // One byte between two files, so that the end of one is not the beginning of the next.
        uint64_t begin = uint64_t{last.begin()} + last.text().size() + 1;
        if (begin + found.text.size() >= std::numeric_limits<uint32_t>::max()) {
          use.problem = "the files of a model hold less than 4 GiB";
          continue;
        }
        texts.emplace_back(std::move(found.name), std::move(found.text),
                           static_cast<uint32_t>(begin));
      }
      use.file = number;
    }
}

} // namespace sheaf
