//===- Parser.cpp - Cursor, errors and recovery ---------------------------===//

#include "compiler/frontend/Parser.h"
#include "compiler/frontend/ParserImpl.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf {

namespace {

/// A name longer than this is cut in messages.
constexpr size_t longestShown = 40;

bool isOpening(TokenKind kind) {
  return kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket ||
         kind == TokenKind::LeftBrace;
}

bool isClosing(TokenKind kind) {
  return kind == TokenKind::RightParen || kind == TokenKind::RightBracket ||
         kind == TokenKind::RightBrace;
}

/// Whether an element of a list may begin so; then a comma is likely to be missing before it.
bool beginsElement(TokenKind kind) {
  switch (kind) {
  case TokenKind::Identifier:
  case TokenKind::Integer:
  case TokenKind::Float:
  case TokenKind::String:
  case TokenKind::KwTrue:
  case TokenKind::KwFalse:
  case TokenKind::Underscore:
  case TokenKind::LeftParen:
  case TokenKind::LeftBracket:
    return true;
  default:
    return false;
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Cursor
//===----------------------------------------------------------------------===//

const Token &Parser::peek(size_t ahead) const {
  return tokens[std::min(position + ahead, tokens.size() - 1)];
}

Token Parser::advance() {
  Token token = peek();
  if (position + 1 < tokens.size()) {
    ++position;
    lastEnd = token.range.end;
  }
  return token;
}

bool Parser::accept(TokenKind kind) {
  if (panicking || !at(kind))
    return false;
  advance();
  return true;
}

bool Parser::isName(const Token &token, std::string_view name) const {
  return token.kind == TokenKind::Identifier && spelling(token) == name;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Whether it is the end of a line that was found, and not the token after it.
bool Parser::foundNewline() const { return atNewline() && position != constructBegin; }

std::string Parser::found() const {
  const Token &token = peek();
  if (token.kind == TokenKind::End)
    return "end of file";
  if (foundNewline())
    return "end of line";
  if (token.kind == TokenKind::String)
    return "a string";
  std::string_view text = spelling(token);
  if (text.size() > longestShown)
    return fmt::format("'{}...'", text.substr(0, longestShown));
  return fmt::format("'{}'", text);
}

SourceRange Parser::foundRange() const {
  if (position > 0 && (foundNewline() || at(TokenKind::End)))
    return {lastEnd, lastEnd};
  return peek().range;
}

std::string Parser::hintFor(const Token &token) const {
  if (token.kind == TokenKind::Question)
    return "a choice is written if c { a } else { b }";
  if (token.kind == TokenKind::Star && position > 0 &&
      tokens[position - 1].kind == TokenKind::Star && lastEnd == token.range.begin)
    return "there is no operator '**'";
  return token.kind == TokenKind::Identifier ? std::string(foreignWordHelp(spelling(token)))
                                             : std::string();
}

Diagnostic &Parser::report(SourceRange range, std::string message, std::string help) {
  if (panicking)
    return ignored = {};
  Diagnostic &diagnostic = diags.error(range, std::move(message), std::move(help));
  if (diags.tooManyErrors())
    stop();
  return diagnostic;
}

Diagnostic &Parser::failAt(SourceRange range, std::string message, std::string help) {
  Diagnostic &diagnostic = report(range, std::move(message), std::move(help));
  panicking = true;
  return diagnostic;
}

Diagnostic &Parser::fail(std::string_view expected, std::string help) {
  // The lexer has already complained about an Error token.
  if (panicking || at(TokenKind::Error)) {
    panicking = true;
    return ignored = {};
  }
  if (help.empty() && !foundNewline())
    help = hintFor(peek());
  return failAt(foundRange(), fmt::format("expected {} but found {}", expected, found()),
                std::move(help));
}

void Parser::refuseNesting(SourceRange range) {
  report(range, "nested too deeply",
         fmt::format("at most {} levels are allowed; name the parts with 'let'", maxNesting));
  stop();
}

void Parser::stop() {
  stopped = panicking = true;
  position = tokens.size() - 1;
}

bool Parser::expect(TokenKind kind, std::string_view expected, std::string help) {
  if (accept(kind))
    return true;
  fail(expected, std::move(help));
  return false;
}

bool Parser::expectClose(TokenKind close, const Token &open, std::string_view expected) {
  if (accept(close))
    return true;
  fail(expected.empty() ? describe(close) : expected)
      .withNote(open.range, fmt::format("{} was opened here", describe(open.kind)));
  return false;
}

void Parser::failInList(const Token &open, TokenKind close) {
  std::string help = hintFor(peek());
  if (at(TokenKind::FatArrow))
    help = lambdaForm;
  else if (help.empty() && beginsElement(peek().kind))
    help = "is a ',' missing before it?";
  fail(fmt::format("',' or {}", describe(close)), help)
      .withNote(open.range, fmt::format("{} was opened here", describe(open.kind)));
}

void Parser::expectEndOf(std::string_view what, std::string_view end) {
  if (panicking || atNewline() || at(TokenKind::Semicolon) || at(TokenKind::RightBrace) ||
      at(TokenKind::End))
    return;
  std::string help = at(TokenKind::Equal)  ? "'==' compares"
                     : at(TokenKind::KwIf) ? "a choice is written if c { a } else { b }"
                                           : hintFor(peek());
  // `return x` and the like are two names to us, and the first one is the mistake.
  if (help.empty())
    help = hintFor(tokens[position - 1]);
  fail(fmt::format("{} after {}", end, what), std::move(help));
}

Identifier Parser::expectName(std::string_view what) {
  if (panicking)
    return {{}, peek().range};
  if (isReservedWord(peek().kind) && !atNewline())
    return takeReservedWord();
  if (!at(TokenKind::Identifier)) {
    fail(what);
    return {{}, foundRange()};
  }
  Token token = advance();
  return {std::string(spelling(token)), token.range};
}

Identifier Parser::takeReservedWord() {
  Token token = advance();
  std::string word(spelling(token));
  report(token.range, fmt::format("'{}' is a keyword and cannot be a name", word),
         fmt::format("choose another name, such as '{}_'", word));
  return {word, token.range};
}

//===----------------------------------------------------------------------===//
// Recovery
//===----------------------------------------------------------------------===//

Parser::DeclWord Parser::declWord(const Token &token) const {
  if (token.kind == TokenKind::KwFn)
    return DeclWord::Fn;
  if (isName(token, "use"))
    return DeclWord::Use;
  if (isName(token, "dim"))
    return DeclWord::Dim;
  if (isName(token, "data"))
    return DeclWord::Data;
  if (isName(token, "param"))
    return DeclWord::Param;
  if (isName(token, "layer"))
    return DeclWord::Layer;
  return DeclWord::None;
}

bool Parser::startsStatement(size_t index) const {
  if (index == 0 || tokens[index].startsLine)
    return true;
  TokenKind previous = tokens[index - 1].kind;
  return previous == TokenKind::Semicolon || previous == TokenKind::LeftBrace;
}

bool Parser::looksLikeDecl(size_t index) const {
  DeclWord word = declWord(tokens[index]);
  if (word == DeclWord::None || !startsStatement(index))
    return false;
  if (word == DeclWord::Fn)
    return true;
  // The soft words are names too; no expression goes on with a second name, or with a string.
  const Token &next = tokens[index + 1];
  if (word == DeclWord::Use)
    return next.kind == TokenKind::String && !next.startsLine;
  bool isNameLike =
      next.kind == TokenKind::Identifier ||
      (isReservedWord(next.kind) && next.kind != TokenKind::KwIf && next.kind != TokenKind::KwElse);
  return isNameLike && !next.startsLine;
}

bool Parser::beginsDecl(size_t index) const {
  return looksLikeDecl(index) && indentationOf(tokens[index]) <= declIndentation;
}

uint32_t Parser::indentationOf(const Token &token) const {
  return token.range.begin - source.lineBegin(source.lineOf(token.range.begin));
}

/// Skips to the next ',' or the closing bracket of a list. False if the list seems to be left open.
bool Parser::skipToListElement(TokenKind close) {
  if (stopped)
    return false;
  for (size_t open = 0; !at(TokenKind::End); advance()) {
    TokenKind kind = peek().kind;
    if (beginsDecl(position))
      return false;
    if (open == 0) {
      if (kind == TokenKind::Comma || kind == close) {
        endPanic();
        return true;
      }
      bool beginsStatement = kind == TokenKind::KwLet || kind == TokenKind::KwCheck;
      if (isClosing(kind) || kind == TokenKind::Semicolon ||
          (beginsStatement && startsStatement(position)))
        return false;
    }
    if (isOpening(kind))
      ++open;
    else if (isClosing(kind))
      --open;
  }
  return false;
}

/// Skips to the end of a statement or arm. Parentheses that are left open do not hide a `let`.
void Parser::skipToStatement(size_t statementBegin, bool stopAtComma) {
  size_t braces = 0, others = 0;
  for (; !at(TokenKind::End); advance()) {
    const Token &token = peek();
    // The panic stays: the block that called was not closed.
    if (beginsDecl(position))
      return;
    if (braces == 0) {
      if (token.kind == TokenKind::RightBrace)
        break;
      if (position > statementBegin) {
        bool isStatementWord = token.kind == TokenKind::KwLet || token.kind == TokenKind::KwCheck;
        if (isStatementWord && startsStatement(position))
          break;
        bool isSeparator = token.kind == TokenKind::Semicolon ||
                           (stopAtComma && token.kind == TokenKind::Comma) ||
                           (token.startsLine && token.kind != TokenKind::KwElse);
        if (others == 0 && isSeparator)
          break;
      }
    }
    if (token.kind == TokenKind::LeftBrace)
      ++braces;
    else if (token.kind == TokenKind::RightBrace)
      --braces;
    else if (isOpening(token.kind) && braces == 0)
      ++others;
    else if (isClosing(token.kind) && braces == 0 && others > 0)
      --others;
  }
  if (!at(TokenKind::End))
    endPanic();
}

void Parser::skipToDecl(size_t declBegin, bool inLayer) {
  for (size_t braces = 0; !at(TokenKind::End); advance()) {
    TokenKind kind = peek().kind;
    bool hasMoved = position > declBegin;
    if (hasMoved && beginsDecl(position))
      break;
    bool followsSemicolon = position > 0 && tokens[position - 1].kind == TokenKind::Semicolon;
    bool isDecl = followsSemicolon && looksLikeDecl(position);
    if (kind == TokenKind::KwLet)
      isDecl = startsStatement(position);
    else if (kind == TokenKind::KwCheck) // in a body it stands further in
      isDecl = !inLayer && startsStatement(position) && indentationOf(peek()) <= declIndentation;
    if (hasMoved && braces == 0 && isDecl)
      break;
    if (inLayer && braces == 0 && kind == TokenKind::RightBrace)
      break;
    if (kind == TokenKind::LeftBrace)
      ++braces;
    else if (kind == TokenKind::RightBrace && braces > 0)
      --braces;
  }
  endPanic();
}

//===----------------------------------------------------------------------===//
// The tree
//===----------------------------------------------------------------------===//

const Expr *Parser::finish(Expr *expr) {
  expr->range = rangeFrom(expr->range);
  forEachChild(*expr,
               [&](const Expr &child) { expr->height = std::max(expr->height, child.height + 1); });
  if (expr->height <= maxNesting)
    return expr;
  refuseNesting(expr->range);
  return errorExpr();
}

std::shared_ptr<const Syntax> soundSyntax(const SourceFile &source) {
  std::shared_ptr<const Syntax> syntax = source.isProgram() ? nullptr : source.syntax();
  return syntax && syntax->errors == 0 ? syntax : nullptr;
}

Module parseModule(const SourceFile &source, Diagnostics &diags) {
  Module module;
  Parser(source.file(0), diags, module, module.decls).run();
  parseUsed(source, diags, module);
  return module;
}

void parseUsed(const SourceFile &source, Diagnostics &diags, Module &module) {
  module.used.resize(source.fileCount() - 1);
  for (size_t i = 1; i < source.fileCount(); ++i)
    Parser(source.file(i), diags, module, module.used[i - 1]).run();
}

} // namespace sheaf
