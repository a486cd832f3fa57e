//===- ParserImpl.h - The parser class ------------------------*- C++ -*-===//
//
// The recursive-descent parser behind Parser.h, private to Parser*.cpp.
//
// Errors: `fail` reports and puts the parser in panic, in which nothing more is reported or
// accepted and the parse functions return quickly with Error nodes. The innermost construct that
// can tell where its next part begins (a list element, a statement, an arm, a declaration) skips
// to there and ends the panic. Mistakes that leave the parser in step go to `report` and need no
// panic.
//
// Nesting: each recursion over the input holds a `Nesting`, and `finish` bounds the height of
// expressions, because loops build high trees without recursion. What is beyond the bound ends the
// parse with one error.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_PARSERIMPL_H
#define SHEAF_COMPILER_FRONTEND_PARSERIMPL_H

#include "compiler/frontend/AST.h"
#include "compiler/frontend/Diagnostics.h"
#include "compiler/frontend/Lexer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

class Parser {
public:
  /// Nodes go into `module`, declarations into `decls`.
  Parser(const SourceText &source, Diagnostics &diags, Module &module,
         std::vector<const Decl *> &decls)
      : source(source), diags(diags), tokens(lex(source, diags)), module(module), decls(decls) {}

  void run() { parseDecls(); }

private:
  /// Declaration keywords, which are ordinary names elsewhere.
  enum class DeclWord { None, Use, Dim, Data, Param, Layer, Fn };

  /// How newlines count until the end of the scope.
  class NewlineScope {
  public:
    NewlineScope(Parser &parser, bool blank)
        : parser(parser), saved(std::exchange(parser.newlinesAreBlank, blank)) {}
    ~NewlineScope() { parser.newlinesAreBlank = saved; }
    NewlineScope(const NewlineScope &) = delete;

  private:
    Parser &parser;
    bool saved;
  };

  /// One level of nesting, until the end of the scope.
  class Nesting {
  public:
    explicit Nesting(Parser &parser) : parser(parser) {
      if (++parser.depth > maxNesting)
        parser.refuseNesting(parser.peek().range);
    }
    ~Nesting() { --parser.depth; }
    Nesting(const Nesting &) = delete;

  private:
    Parser &parser;
  };

  // Cursor (Parser.cpp).
  const Token &peek(size_t ahead = 0) const;
  bool at(TokenKind kind) const { return peek().kind == kind; }
  /// Whether the next token begins a line that counts.
  bool atNewline() const { return peek().startsLine && !newlinesAreBlank; }
  Token advance();
  bool accept(TokenKind kind);
  std::string_view spelling(const Token &token) const { return source.slice(token.range); }
  bool isName(const Token &token, std::string_view name) const;
  /// From a token's or node's start to the end of what was read last.
  SourceRange rangeFrom(SourceRange start) const {
    return {start.begin, std::max(start.begin, lastEnd)};
  }

  // Errors (Parser.cpp).
  /// Reports "expected X but found Y" at the next token and panics.
  Diagnostic &fail(std::string_view expected, std::string help = {});
  /// Reports any message and panics.
  Diagnostic &failAt(SourceRange range, std::string message, std::string help = {});
  /// Reports any message and goes on.
  Diagnostic &report(SourceRange range, std::string message, std::string help = {});
  void refuseNesting(SourceRange range);
  void stop();
  bool foundNewline() const;
  std::string found() const;
  SourceRange foundRange() const;
  std::string hintFor(const Token &token) const;
  void endPanic() { panicking = stopped; }
  /// Reads a token of this kind, or fails.
  bool expect(TokenKind kind, std::string_view expected, std::string help = {});
  /// Reads the bracket that closes `open`, or fails and points at `open`.
  bool expectClose(TokenKind close, const Token &open, std::string_view expected = {});
  /// Fails unless a declaration or statement may end here.
  void expectEndOf(std::string_view what, std::string_view end = "end of line");
  /// Reads a name, or fails and gives an empty one. A reserved word is reported and taken.
  Identifier expectName(std::string_view what);
  Identifier takeReservedWord();

  // Recovery (Parser.cpp). Each skips to where parsing can go on, and ends the panic unless the
  // construct that called seems to be unfinished there.
  bool skipToListElement(TokenKind close);
  void skipToStatement(size_t statementBegin, bool stopAtComma);
  void skipToDecl(size_t declBegin, bool inLayer);
  /// The word that a token would be where a declaration must stand.
  DeclWord declWord(const Token &token) const;
  /// Whether the token at an index begins a declaration, seen from where none can stand.
  bool looksLikeDecl(size_t index) const;
  /// The same, but only if it is not indented below the declaration being parsed: then that one
  /// was probably not closed.
  bool beginsDecl(size_t index) const;
  bool startsStatement(size_t index) const;
  uint32_t indentationOf(const Token &token) const;
  void beginConstruct() { constructBegin = position; }

  /// Parses `element, element, ... close` after the opening token; a trailing comma is allowed.
  /// Bad elements are reported and skipped. `newlinesAreBlank` is for the caller to set.
  template <typename ParseElement>
  void parseList(const Token &open, TokenKind close, ParseElement parseElement) {
    while (!panicking && !at(close)) {
      parseElement();
      if (!panicking && !at(TokenKind::Comma) && !at(close))
        failInList(open, close);
      if (panicking && !skipToListElement(close))
        return;
      if (!accept(TokenKind::Comma))
        break;
    }
    expectClose(close, open);
  }
  void failInList(const Token &open, TokenKind close);

  template <typename T> T *make(SourceRange range) { return module.arena.make<T>(range); }
  /// Completes an expression whose children are set: its range ends here, its height is known.
  const Expr *finish(Expr *expr);
  const Expr *errorExpr() { return make<ErrorExpr>(foundRange()); }

  // Declarations (ParserDecl.cpp).
  void parseDecls();
  void parseDecl(std::vector<const Decl *> &decls, bool inLayer);
  const Decl *parseUse();
  const Expr *parseConfigured(std::vector<ConfigMember> &config);
  bool parseConfigMembers(std::vector<ConfigMember> &config);
  const Decl *parseCheck();
  std::optional<CheckDecl::Value> parseConfigValue();
  StoredNames parseStoredNames();
  void parseDims(std::vector<const Decl *> &decls);
  const Decl *parseData();
  void parseConstructor(DataDecl &data);
  const Decl *parseParam();
  Initializer parseInitializer();
  const Decl *parseFn();
  const Expr *parseFnBody();
  const Decl *parseTopLet(bool inLayer);
  const Decl *parseLayer();
  std::vector<Identifier> parseTypeParams();
  void failDecl(bool inLayer);
  /// Reports a declaration where it cannot stand, and drops it.
  void refuseDecl(std::string message, std::string help);

  // Expressions (ParserExpr.cpp).
  const Expr *parseExpr();
  const Expr *parseBinary(int minPrecedence);
  const Expr *parseUnary();
  const Expr *parsePostfix();
  Expr *parseCall(const Expr *callee);
  Expr *parseIndex(const Expr *base);
  IndexItem parseIndexItem();
  Expr *parseField(const Expr *base);
  std::vector<Argument> parseArgs();
  const Expr *parsePrimary();
  const Expr *parseParenthesized();
  const Expr *parseListExpr();
  const Expr *parseLambda();
  const Expr *failOperand();

  // Blocks, conditionals and matches (ParserBlock.cpp).
  const Expr *parseBlock();
  void expectCloseBrace(const Token &open);
  void parseBlockItem(BlockExpr &block);
  void dropResult(BlockExpr &block, const Token &resultBegin);
  Stmt parseLetStmt();
  Stmt parseCheckStmt();
  const Expr *parseIf();
  const Expr *parseMatch();
  void parseArm(MatchExpr &match);

  // Types and patterns (ParserType.cpp).
  const TypeExpr *parseType();
  const TypeExpr *parseParenthesizedType();
  const TypeExpr *parseNamedType(const std::optional<Identifier> &file);
  std::vector<const TypeExpr *> parseTypeArgs();
  bool expectGreater(const Token &open);
  std::vector<DimExpr> parseTypeDims();
  DimExpr parseDimExpr();
  /// Reports the first part that cannot stand in an extent, and gives false.
  bool checkDimExpr(const Expr &expr);
  const Pattern *parsePattern();
  const Pattern *parsePrimaryPattern();
  const Pattern *parseNamePattern();
  /// `lstm.` before a name of another file; the name is next.
  std::optional<Identifier> parseQualifier();
  std::vector<const Pattern *> parsePatternList(const Token &open, TokenKind close);

  const SourceText &source;
  Diagnostics &diags;
  std::vector<Token> tokens;
  Module &module;
  std::vector<const Decl *> &decls; ///< of the file
  size_t position = 0;
  uint32_t lastEnd = 0; ///< where the token read last ends
  /// Where the declaration, statement or arm being parsed begins. A newline before it is no end of
  /// line to complain about.
  size_t constructBegin = 0;
  uint32_t declIndentation = 0; ///< of the declaration being parsed
  uint32_t depth = 0;
  bool newlinesAreBlank = false;
  bool panicking = false;
  bool stopped = false; ///< the parse is over: at the end of input, and panicking for good
  Diagnostic ignored;   ///< what `fail` returns when it reports nothing
};

/// Whether a name is written like a constructor.
inline bool isCapitalized(std::string_view name) {
  return !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
}

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_PARSERIMPL_H
