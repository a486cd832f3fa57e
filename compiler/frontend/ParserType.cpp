//===- ParserType.cpp - Types and patterns --------------------------------===//

#include "compiler/frontend/Operators.h"
#include "compiler/frontend/ParserImpl.h"

#include <fmt/format.h>

namespace sheaf {

namespace {

constexpr std::pair<std::string_view, HostTypeKind> hostNames[] = {
    {"int", HostTypeKind::Int},
    {"float", HostTypeKind::Float},
    {"bool", HostTypeKind::Bool},
};

std::string dimlessHelp(const TypeExpr &type) {
  const auto *host = type.as<HostTypeExpr>();
  if (!host)
    return "only tensors, tokens and lists have dims; a list is written list<T> or list<T>[n]";
  return fmt::format("a tensor of them is written {}",
                     host->host == HostTypeKind::Float ? "f32[n]" : "i32[n] or i64[n]");
}

} // namespace

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

const TypeExpr *Parser::parseType() {
  Nesting nesting(*this);
  if (panicking)
    return make<ErrorTypeExpr>(foundRange());
  if (at(TokenKind::LeftParen))
    return parseParenthesizedType();
  if (!at(TokenKind::Identifier)) {
    fail("a type", at(TokenKind::LeftBracket) ? "a list is written list<T>" : "");
    return make<ErrorTypeExpr>(foundRange());
  }
  std::optional<Identifier> file = parseQualifier();
  const TypeExpr *type = parseNamedType(file);
  if (at(TokenKind::LeftBracket) && !atNewline() && !panicking) {
    SourceRange dims = peek().range;
    parseTypeDims();
    report(rangeFrom(dims), fmt::format("the type '{}' takes no dims", source.slice(type->range)),
           dimlessHelp(*type));
  }
  if (at(TokenKind::Arrow) && !atNewline())
    failAt(peek().range, "'->' must follow types in parentheses",
           "a function type is written (A) -> B");
  return type;
}

/// `(A, B)`, `(A)`, `()`, and function types.
const TypeExpr *Parser::parseParenthesizedType() {
  Token open = advance();
  std::vector<const TypeExpr *> elements;
  {
    NewlineScope lines(*this, true);
    parseList(open, TokenKind::RightParen, [&] { elements.push_back(parseType()); });
  }
  if (!atNewline() && accept(TokenKind::Arrow)) {
    auto *function = make<FunctionTypeExpr>(open.range);
    function->params = std::move(elements);
    function->result = parseType();
    function->range = rangeFrom(function->range);
    return function;
  }
  if (elements.size() == 1)
    return elements[0];
  auto *tuple = make<TupleTypeExpr>(rangeFrom(open.range));
  tuple->elements = std::move(elements);
  return tuple;
}

std::optional<Identifier> Parser::parseQualifier() {
  if (peek(1).kind != TokenKind::Dot || peek(2).kind != TokenKind::Identifier)
    return std::nullopt;
  Token file = advance();
  advance();
  return Identifier{std::string(spelling(file)), file.range};
}

/// After the qualifier, if there is one.
const TypeExpr *Parser::parseNamedType(const std::optional<Identifier> &file) {
  Token name = advance();
  std::string_view word = spelling(name);
  if (file) {
    auto *named = make<NamedTypeExpr>(join(file->range, name.range));
    named->file = file;
    named->name = {std::string(word), name.range};
    if (at(TokenKind::Less) && !atNewline())
      named->args = parseTypeArgs();
    named->range = rangeFrom(named->range);
    return named;
  }
  bool hasDims = at(TokenKind::LeftBracket) && !atNewline();
  for (const rt::DTypeInfo &info : rt::kDTypes) {
    if (word != info.name || (info.dtype == ElemKind::Bool && !hasDims))
      continue;
    auto *tensor = make<TensorTypeExpr>(name.range);
    tensor->element = info.dtype;
    if (hasDims)
      tensor->dims = parseTypeDims();
    else if (at(TokenKind::LeftParen) && !atNewline())
      fail("'[' before the dims of a tensor", fmt::format("it is written {}[n, h]", word));
    tensor->range = rangeFrom(tensor->range);
    return tensor;
  }
  for (auto [spelt, host] : hostNames) {
    if (word != spelt)
      continue;
    auto *type = make<HostTypeExpr>(name.range);
    type->host = host;
    return type;
  }
  if (word == "token") {
    auto *type = make<TokenTypeExpr>(name.range);
    if (at(TokenKind::Less)) {
      Token open = advance();
      type->vocabulary = expectName("the name of a vocabulary");
      expectGreater(open);
    }
    if (at(TokenKind::LeftBracket) && !atNewline() && !panicking)
      type->dims = parseTypeDims();
    type->range = rangeFrom(type->range);
    return type;
  }
  if (word == "list") {
    auto *list = make<ListTypeExpr>(name.range);
    Token open = peek();
    if (!expect(TokenKind::Less, "'<' after 'list'", "a list is written list<T>")) {
      list->element = make<ErrorTypeExpr>(foundRange());
      return list;
    }
    list->element = parseType();
    expectGreater(open);
    if (at(TokenKind::LeftBracket) && !atNewline() && !panicking) {
      SourceRange start = peek().range;
      std::vector<DimExpr> dims = parseTypeDims();
      if (dims.size() == 1 && dims.front().isPack)
        report(dims.front().range, "a list has one length, so '*' cannot stand here");
      else if (dims.size() == 1)
        list->length = std::move(dims.front());
      else if (!panicking)
        report(rangeFrom(start), fmt::format("a list has one length, not {}", dims.size()),
               "a list of n elements is written list<T>[n]");
    }
    list->range = rangeFrom(list->range);
    return list;
  }
  auto *named = make<NamedTypeExpr>(name.range);
  named->name = {std::string(word), name.range};
  if (at(TokenKind::Less) && !atNewline())
    named->args = parseTypeArgs();
  named->range = rangeFrom(named->range);
  return named;
}

std::vector<const TypeExpr *> Parser::parseTypeArgs() {
  Token open = advance();
  std::vector<const TypeExpr *> args;
  do
    args.push_back(parseType());
  while (accept(TokenKind::Comma));
  expectGreater(open);
  return args;
}

/// Reads the '>' that closes type arguments; of a '>=' only the first half.
bool Parser::expectGreater(const Token &open) {
  if (!panicking && at(TokenKind::GreaterEqual)) {
    Token &token = tokens[position];
    lastEnd = ++token.range.begin;
    token.kind = TokenKind::Equal;
    token.startsLine = false;
    return true;
  }
  return expectClose(TokenKind::Greater, open, "',' or '>'");
}

/// `[n, 4*h, ?]`, the bracket included.
std::vector<DimExpr> Parser::parseTypeDims() {
  Token open = advance();
  NewlineScope lines(*this, true);
  std::vector<DimExpr> dims;
  parseList(open, TokenKind::RightBracket, [&] { dims.push_back(parseDimExpr()); });
  return dims;
}

DimExpr Parser::parseDimExpr() {
  DimExpr dim;
  dim.range = peek().range;
  if (accept(TokenKind::Star)) {
    dim.isPack = true;
    auto *name = make<NameExpr>(peek().range);
    name->name = expectName("the name of the extents after '*'").name;
    dim.expr = name;
    dim.range = rangeFrom(dim.range);
  } else if (!accept(TokenKind::Question)) {
    dim.expr = parseBinary(precedenceOfSums);
    dim.range = rangeFrom(dim.range);
    if (!checkDimExpr(*dim.expr))
      dim.expr = make<ErrorExpr>(dim.range);
  }
  return dim;
}

bool Parser::checkDimExpr(const Expr &expr) {
  const auto *unary = expr.as<UnaryExpr>();
  const auto *field = expr.as<FieldExpr>();
  bool isDim = (field && field->base->is<NameExpr>()) || expr.is<NameExpr>() ||
               expr.is<IntLiteralExpr>() || expr.is<ErrorExpr>() || expr.is<BinaryExpr>() ||
               (unary && unary->op == UnaryOp::Negate);
  if (const auto *binary = expr.as<BinaryExpr>())
    isDim = infoOf(binary->op).precedence >= precedenceOfSums && binary->op != BinaryOp::MatMul;
  if (!isDim) {
    const auto *call = expr.as<CallExpr>();
    const auto *callee = call ? call->callee->as<NameExpr>() : nullptr;
    report(expr.range, "this cannot be a dim",
           callee && callee->name == "len"
               ? "name the length where the list's type is written: list<T>[n], and then n"
               : "a dim is made of names, integers, + - * / and %");
    return false;
  }
  bool areDims = true;
  forEachChild(expr, [&](const Expr &child) { areDims &= checkDimExpr(child); });
  return areDims;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

const Pattern *Parser::parsePattern() {
  Nesting nesting(*this);
  SourceRange start = peek().range;
  const Pattern *head = parsePrimaryPattern();
  if (!accept(TokenKind::ColonColon))
    return head;
  auto *cons = make<ConsPattern>(start);
  cons->head = head;
  cons->tail = parsePattern();
  cons->range = rangeFrom(start);
  return cons;
}

const Pattern *Parser::parsePrimaryPattern() {
  Token token = peek();
  if (panicking)
    return make<ErrorPattern>(foundRange());
  switch (token.kind) {
  case TokenKind::Underscore:
    advance();
    return make<WildcardPattern>(token.range);
  case TokenKind::Identifier:
    return parseNamePattern();
  case TokenKind::Minus:
  case TokenKind::Integer: {
    accept(TokenKind::Minus);
    Token digits = peek();
    if (!expect(TokenKind::Integer, "an integer"))
      return make<ErrorPattern>(foundRange());
    auto *pattern = make<IntPattern>(rangeFrom(token.range));
    pattern->value = token.kind == TokenKind::Minus ? -digits.integer : digits.integer;
    return pattern;
  }
  case TokenKind::KwTrue:
  case TokenKind::KwFalse: {
    advance();
    auto *pattern = make<BoolPattern>(token.range);
    pattern->value = token.kind == TokenKind::KwTrue;
    return pattern;
  }
  case TokenKind::LeftParen: {
    advance();
    auto elements = parsePatternList(token, TokenKind::RightParen);
    if (elements.size() == 1)
      return elements[0];
    auto *tuple = make<TuplePattern>(rangeFrom(token.range));
    tuple->elements = std::move(elements);
    return tuple;
  }
  case TokenKind::LeftBracket: {
    advance();
    auto elements = parsePatternList(token, TokenKind::RightBracket);
    auto *list = make<ListPattern>(rangeFrom(token.range));
    list->elements = std::move(elements);
    return list;
  }
  case TokenKind::Float:
    failAt(token.range, "a pattern cannot be a float", "test it in a guard: x if x < 0.5 => ...");
    return make<ErrorPattern>(token.range);
  case TokenKind::String:
    failAt(token.range, "a pattern cannot be a string");
    return make<ErrorPattern>(token.range);
  default:
    break;
  }
  if (isReservedWord(token.kind) && !atNewline()) {
    Identifier name = takeReservedWord();
    auto *binding = make<BindingPattern>(name.range);
    binding->name = std::move(name.name);
    return binding;
  }
  fail("a pattern", token.kind == TokenKind::Pipe ? "arms do not begin with '|'" : "");
  return make<ErrorPattern>(foundRange());
}

/// A binding or a constructor.
const Pattern *Parser::parseNamePattern() {
  std::optional<Identifier> file = parseQualifier();
  Token token = advance();
  std::string name(spelling(token));
  bool hasArgs = at(TokenKind::LeftParen) && !atNewline();
  if (!isCapitalized(name)) {
    if (hasArgs || file) {
      failAt(token.range, fmt::format("'{}' cannot be a constructor", name),
             "constructors begin with a capital letter");
      return make<ErrorPattern>(token.range);
    }
    auto *binding = make<BindingPattern>(token.range);
    binding->name = std::move(name);
    return binding;
  }
  auto *pattern = make<ConstructorPattern>(file ? join(file->range, token.range) : token.range);
  pattern->file = std::move(file);
  pattern->name = {std::move(name), token.range};
  pattern->hasArgList = hasArgs;
  if (hasArgs) {
    Token open = advance();
    pattern->args = parsePatternList(open, TokenKind::RightParen);
  }
  pattern->range = rangeFrom(pattern->range);
  return pattern;
}

/// The patterns after an opening bracket, and the closing one.
std::vector<const Pattern *> Parser::parsePatternList(const Token &open, TokenKind close) {
  NewlineScope lines(*this, true);
  std::vector<const Pattern *> patterns;
  parseList(open, close, [&] { patterns.push_back(parsePattern()); });
  return patterns;
}

} // namespace sheaf
