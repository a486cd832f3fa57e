//===- ParserBlock.cpp - Blocks, conditionals and matches -----------------===//

#include "compiler/frontend/ParserImpl.h"

#include <fmt/format.h>

namespace sheaf {

/// `{ statements; value }`
const Expr *Parser::parseBlock() {
  Token open = peek();
  if (!expect(TokenKind::LeftBrace, "'{'", at(TokenKind::Equal) ? "'==' compares" : ""))
    return errorExpr();
  NewlineScope lines(*this, false);
  auto *block = make<BlockExpr>(open.range);
  Token resultBegin = open;
  while (!panicking) {
    if (accept(TokenKind::Semicolon))
      continue;
    if (at(TokenKind::RightBrace) || at(TokenKind::End) || beginsDecl(position))
      break;
    dropResult(*block, resultBegin);
    size_t begin = position;
    resultBegin = peek();
    beginConstruct();
    parseBlockItem(*block);
    if (at(TokenKind::Equal) && !atNewline() && block->result && block->result->is<NameExpr>())
      fail("end of line after an expression",
           fmt::format("a name is introduced with 'let': let {} = ...",
                       block->result->to<NameExpr>().name));
    expectEndOf(block->result ? "an expression" : "a statement");
    if (panicking) {
      // What was lost may have been the value.
      block->result = errorExpr();
      skipToStatement(begin, /*stopAtComma=*/false);
    }
  }
  if (!block->result && at(TokenKind::RightBrace))
    report(peek().range, "expected an expression before the end of the block but found '}'",
           "the last line of a block is its value; '()' is the value of nothing");
  if (!block->result)
    block->result = errorExpr();
  expectCloseBrace(open);
  return finish(block);
}

void Parser::expectCloseBrace(const Token &open) {
  if (beginsDecl(position))
    failAt(peek().range, fmt::format("expected '}}' before '{}'", spelling(peek())))
        .withNote(open.range, "'{' was opened here");
  expectClose(TokenKind::RightBrace, open);
}

/// The value of a block, if something follows it: a call becomes a statement, else it is refused.
void Parser::dropResult(BlockExpr &block, const Token &resultBegin) {
  const Expr *unused = std::exchange(block.result, nullptr);
  if (!unused || unused->is<ErrorExpr>())
    return;
  if (unused->is<CallExpr>()) {
    Stmt stmt;
    stmt.kind = Stmt::Kind::Do;
    stmt.range = unused->range;
    stmt.value = unused;
    block.stmts.push_back(std::move(stmt));
    return;
  }
  // An `if` without `else` has had its message.
  if (const auto *conditional = unused->as<IfExpr>())
    if (conditional->elseExpr->is<ErrorExpr>())
      return;
  TokenKind first = resultBegin.kind;
  bool looksContinued = !block.stmts.empty() && resultBegin.startsLine &&
                        (first == TokenKind::Minus || first == TokenKind::LeftParen ||
                         first == TokenKind::LeftBracket);
  report(join(resultBegin.range, unused->range), "the value of this expression is not used",
         looksContinued
             ? fmt::format("{} at the start of a line begins a new expression", describe(first))
             : "name it with 'let', or make it the last line of the block");
}

/// A statement, or the value of the block.
void Parser::parseBlockItem(BlockExpr &block) {
  if (looksLikeDecl(position))
    refuseDecl(fmt::format("a '{}' cannot stand inside a function", spelling(peek())),
               at(TokenKind::KwFn) ? "move it out, or write a lambda: let f = |x| body"
                                   : "move it out of the function");
  else if (at(TokenKind::KwLet))
    block.stmts.push_back(parseLetStmt());
  else if (at(TokenKind::KwCheck))
    block.stmts.push_back(parseCheckStmt());
  else
    block.result = parseExpr();
}

/// `let pattern: Type = value`
Stmt Parser::parseLetStmt() {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Let;
  stmt.range = advance().range;
  stmt.pattern = parsePattern();
  if (accept(TokenKind::Colon))
    stmt.type = parseType();
  std::string help = "'let' needs a value: let x = ...";
  if (!atNewline() && at(TokenKind::Comma))
    help = "a tuple is taken apart in parentheses: let (a, b) = ...";
  else if (!atNewline() && at(TokenKind::EqualEqual))
    help = "'=' gives a value, '==' compares";
  expect(TokenKind::Equal, "'='", help);
  stmt.value = parseExpr();
  stmt.range = rangeFrom(stmt.range);
  return stmt;
}

/// `check condition, "message"`
Stmt Parser::parseCheckStmt() {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Check;
  stmt.range = advance().range;
  stmt.value = parseExpr();
  if (at(TokenKind::String) && !atNewline())
    fail("',' before the message");
  if (accept(TokenKind::Comma)) {
    Token message = peek();
    if (expect(TokenKind::String, "a message in double quotes"))
      stmt.message = unquote(spelling(message));
  }
  stmt.range = rangeFrom(stmt.range);
  return stmt;
}

/// `if c { a } else if d { b } else { e }`
const Expr *Parser::parseIf() {
  Nesting nesting(*this);
  Token keyword = advance();
  auto *conditional = make<IfExpr>(keyword.range);
  conditional->condition = parseExpr();
  conditional->thenExpr = parseBlock();
  if (panicking) {
    conditional->elseExpr = errorExpr();
  } else if (!accept(TokenKind::KwElse)) {
    if (isName(peek(), "elif"))
      failAt(advance().range, "expected 'else' but found 'elif'", "write 'else if'");
    report(keyword.range, "this 'if' has no 'else'", "an 'if' has a value: add 'else { ... }'");
    conditional->elseExpr = errorExpr();
  } else if (at(TokenKind::KwIf)) {
    conditional->elseExpr = parseIf();
  } else {
    if (!at(TokenKind::LeftBrace))
      fail("'{' or 'if' after 'else'", "both branches stand in braces");
    conditional->elseExpr = parseBlock();
  }
  return finish(conditional);
}

/// `match e { pattern => value ... }`
const Expr *Parser::parseMatch() {
  auto *match = make<MatchExpr>(advance().range);
  match->scrutinee = parseExpr();
  match->headRange = rangeFrom(match->range);
  Token open = peek();
  if (!expect(TokenKind::LeftBrace, "'{' and the arms"))
    return finish(match);
  NewlineScope lines(*this, false);
  while (!panicking) {
    if (accept(TokenKind::Semicolon) || accept(TokenKind::Comma))
      continue;
    if (at(TokenKind::RightBrace) || at(TokenKind::End) || beginsDecl(position))
      break;
    size_t begin = position;
    beginConstruct();
    parseArm(*match);
    if (!at(TokenKind::Comma))
      expectEndOf("an arm", "end of line or ','");
    if (panicking)
      skipToStatement(begin, /*stopAtComma=*/true);
  }
  if (match->arms.empty())
    report(match->headRange, "this 'match' has no arms", "an arm is written pattern => value");
  expectCloseBrace(open);
  return finish(match);
}

/// `pattern if guard => value`
void Parser::parseArm(MatchExpr &match) {
  MatchArm arm;
  arm.range = peek().range;
  arm.pattern = parsePattern();
  if (accept(TokenKind::KwIf))
    arm.guard = parseExpr();
  expect(TokenKind::FatArrow, arm.guard ? "'=>' after the guard" : "'=>' after the pattern",
         "an arm is written pattern => value");
  arm.body = parseExpr();
  arm.range = rangeFrom(arm.range);
  match.arms.push_back(arm);
}

} // namespace sheaf
