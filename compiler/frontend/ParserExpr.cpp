//===- ParserExpr.cpp - Expressions ---------------------------------------===//

#include "compiler/frontend/Operators.h"
#include "compiler/frontend/ParserImpl.h"

#include <fmt/format.h>

namespace sheaf {

namespace {

const BinaryOpInfo *infixOp(TokenKind token) {
  for (const BinaryOpInfo &info : binaryOps)
    if (info.token == token)
      return &info;
  return nullptr;
}

} // namespace

const Expr *Parser::parseExpr() {
  Nesting nesting(*this);
  return parseBinary(lowestPrecedence);
}

const Expr *Parser::parseBinary(int minPrecedence) {
  SourceRange start = peek().range;
  const Expr *lhs = parseUnary();
  while (!panicking) {
    const BinaryOpInfo *info = infixOp(peek().kind);
    if (!info || info->precedence < minPrecedence || (at(TokenKind::Minus) && atNewline()))
      break;
    auto *binary = make<BinaryExpr>(start);
    binary->op = info->op;
    binary->opRange = advance().range;
    binary->lhs = lhs;
    if (info->op == BinaryOp::Cons) {
      Nesting nesting(*this);
      binary->rhs = parseBinary(precedenceOfCons);
    } else {
      binary->rhs = parseBinary(info->precedence + 1);
    }
    lhs = finish(binary);
    const BinaryOpInfo *next = infixOp(peek().kind);
    if (info->precedence == precedenceOfComparisons && next &&
        next->precedence == precedenceOfComparisons) {
      report(peek().range, "comparisons cannot be chained", "compare twice: a < b && b < c");
      lhs = finish(make<ErrorExpr>(start)); // no more is said of it
    }
  }
  return lhs;
}

const Expr *Parser::parseUnary() {
  if (panicking || (!at(TokenKind::Minus) && !at(TokenKind::Bang)))
    return parsePostfix();
  Nesting nesting(*this);
  Token op = advance();
  auto *unary = make<UnaryExpr>(op.range);
  unary->op = op.kind == TokenKind::Minus ? UnaryOp::Negate : UnaryOp::Not;
  unary->operand = parseUnary();
  return finish(unary);
}

const Expr *Parser::parsePostfix() {
  SourceRange start = peek().range;
  const Expr *expr = parsePrimary();
  while (!panicking) {
    Expr *outer = nullptr;
    if (at(TokenKind::Dot))
      outer = parseField(expr);
    else if (at(TokenKind::LeftParen) && !atNewline())
      outer = parseCall(expr);
    else if (at(TokenKind::LeftBracket) && !atNewline())
      outer = parseIndex(expr);
    else
      break;
    outer->range = start;
    expr = finish(outer);
  }
  return expr;
}

Expr *Parser::parseField(const Expr *base) {
  advance();
  auto *field = make<FieldExpr>(base->range);
  field->base = base;
  if (at(TokenKind::Integer))
    fail("a name after '.'", "a tuple is taken apart by a pattern: let (a, b) = ...");
  field->field = expectName("a name after '.'");
  return field;
}

Expr *Parser::parseCall(const Expr *callee) {
  auto *call = make<CallExpr>(callee->range);
  call->callee = callee;
  call->siteId = module.callSiteCount++;
  call->args = parseArgs();
  return call;
}

/// `(a, name=b)`, the parentheses included.
std::vector<Argument> Parser::parseArgs() {
  Token open = advance();
  NewlineScope lines(*this, true);
  std::vector<Argument> args;
  parseList(open, TokenKind::RightParen, [&] {
    Argument arg;
    if (at(TokenKind::Identifier) && peek(1).kind == TokenKind::Equal) {
      arg.name = expectName("a name");
      advance();
    } else if (!args.empty() && args.back().name) {
      report(peek().range, "an argument without a name follows one with a name",
             "write the named arguments last");
    }
    arg.value = parseExpr();
    if (at(TokenKind::Colon) && arg.value->is<NameExpr>())
      fail("',' or ')'", "a named argument is written name=value");
    args.push_back(std::move(arg));
  });
  return args;
}

Expr *Parser::parseIndex(const Expr *base) {
  Token open = advance();
  NewlineScope lines(*this, true);
  auto *index = make<IndexExpr>(base->range);
  index->base = base;
  if (at(TokenKind::RightBracket))
    fail("an index");
  parseList(open, TokenKind::RightBracket, [&] { index->items.push_back(parseIndexItem()); });
  return index;
}

IndexItem Parser::parseIndexItem() {
  IndexItem item;
  item.range = peek().range;
  if (!at(TokenKind::Colon))
    item.index = parseExpr();
  if (accept(TokenKind::Colon)) {
    item.isSlice = true;
    item.begin = std::exchange(item.index, nullptr);
    if (!at(TokenKind::Comma) && !at(TokenKind::RightBracket))
      item.end = parseExpr();
    if (at(TokenKind::Colon))
      fail("',' or ']'", "a slice is written begin:end, without a step");
  }
  item.range = rangeFrom(item.range);
  return item;
}

const Expr *Parser::parsePrimary() {
  if (panicking)
    return errorExpr();
  Token token = peek();
  switch (token.kind) {
  case TokenKind::Integer: {
    advance();
    auto *literal = make<IntLiteralExpr>(token.range);
    literal->value = token.integer;
    return literal;
  }
  case TokenKind::Float: {
    advance();
    auto *literal = make<FloatLiteralExpr>(token.range);
    literal->value = token.number;
    return literal;
  }
  case TokenKind::String: {
    advance();
    auto *literal = make<StringLiteralExpr>(token.range);
    literal->value = unquote(spelling(token));
    return literal;
  }
  case TokenKind::KwTrue:
  case TokenKind::KwFalse: {
    advance();
    auto *literal = make<BoolLiteralExpr>(token.range);
    literal->value = token.kind == TokenKind::KwTrue;
    return literal;
  }
  case TokenKind::Identifier: {
    advance();
    auto *name = make<NameExpr>(token.range);
    name->name = spelling(token);
    return name;
  }
  case TokenKind::LeftParen:
    return parseParenthesized();
  case TokenKind::LeftBracket:
    return parseListExpr();
  case TokenKind::LeftBrace:
    return parseBlock();
  case TokenKind::KwIf:
    return parseIf();
  case TokenKind::KwMatch:
    return parseMatch();
  case TokenKind::Pipe:
  case TokenKind::OrOr:
    return parseLambda();
  default:
    return failOperand();
  }
}

const Expr *Parser::failOperand() {
  if (foundNewline()) {
    fail("an expression");
    return errorExpr();
  }
  std::string help;
  if (at(TokenKind::Underscore))
    help = "'_' is a pattern and has no value";
  else if (at(TokenKind::KwElse))
    help = "an 'else' follows the '}' of its 'if'";
  else if (at(TokenKind::KwLet) || at(TokenKind::KwCheck))
    help = fmt::format("{} stands in a block: {{ {} ...; value }}", describe(peek().kind),
                       spelling(peek()));
  else if (at(TokenKind::KwFn))
    help = fmt::format("functions are declared outside functions; {}", lambdaForm);
  else if (at(TokenKind::Equal) && position > 0 && lastEnd == peek().range.begin)
    help = "values never change; a new one has a name of its own: let y = x + 1";
  else if (at(TokenKind::Plus))
    help = "there is no unary '+'";
  fail("an expression", help);
  return errorExpr();
}

/// `()`, `(a)`, `(a, b)`
const Expr *Parser::parseParenthesized() {
  Token open = advance();
  std::vector<const Expr *> elements;
  bool hasTrailingComma = false;
  {
    NewlineScope lines(*this, true);
    parseList(open, TokenKind::RightParen, [&] {
      elements.push_back(parseExpr());
      hasTrailingComma = at(TokenKind::Comma);
      if (at(TokenKind::Equal))
        fail("',' or ')'", "'==' compares");
    });
  }
  if (elements.size() == 1) {
    if (hasTrailingComma)
      report(rangeFrom(open.range), "a tuple has at least two elements", "leave out the comma");
    return elements[0];
  }
  // The parameters of a function as other languages write it: there are no values of these names.
  if (at(TokenKind::FatArrow) &&
      std::all_of(elements.begin(), elements.end(),
                  [](const Expr *element) { return element->is<NameExpr>(); })) {
    fail("an operator or the end of the expression", std::string(lambdaForm));
    return errorExpr();
  }
  auto *tuple = make<TupleExpr>(open.range);
  tuple->elements = std::move(elements);
  return finish(tuple);
}

const Expr *Parser::parseListExpr() {
  Token open = advance();
  NewlineScope lines(*this, true);
  auto *list = make<ListExpr>(open.range);
  parseList(open, TokenKind::RightBracket, [&] { list->elements.push_back(parseExpr()); });
  return finish(list);
}

/// `|x, (a, b): T| body`, `|| body`
const Expr *Parser::parseLambda() {
  Token open = advance();
  auto *lambda = make<LambdaExpr>(open.range);
  if (open.kind == TokenKind::Pipe) {
    while (!panicking && !at(TokenKind::Pipe)) {
      FnParam param;
      param.pattern = parsePattern();
      if (accept(TokenKind::Colon))
        param.type = parseType();
      lambda->params.push_back(param);
      if (!accept(TokenKind::Comma))
        break;
    }
    expectClose(TokenKind::Pipe, open, "',' or '|' after a parameter");
  }
  lambda->body = parseExpr();
  return finish(lambda);
}

} // namespace sheaf
