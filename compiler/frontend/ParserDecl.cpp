//===- ParserDecl.cpp - Declarations --------------------------------------===//

#include "compiler/frontend/ParserImpl.h"

#include <fmt/format.h>

namespace sheaf {

namespace {

constexpr const char *functionForm = "a function is written fn f(x: T) -> R = body";

constexpr const char *useForm = "another file is used by: use \"lib/lstm.sheaf\"";

/// Words that begin declarations in other languages, and what to write here.
constexpr std::pair<std::string_view, std::string_view> foreignDecls[] = {
    {"def", "functions are declared with 'fn'"},
    {"func", "functions are declared with 'fn'"},
    {"function", "functions are declared with 'fn'"},
    {"fun", "functions are declared with 'fn'"},
    {"class", "layers are declared with 'layer', types with 'data'"},
    {"struct", "types are declared with 'data'"},
    {"enum", "types are declared with 'data'"},
    {"type", "types are declared with 'data'"},
    {"import", useForm},
    {"include", useForm},
    {"from", useForm},
    {"var", "a name is introduced with 'let name = value'"},
    {"val", "a name is introduced with 'let name = value'"},
    {"const", "a name is introduced with 'let name = value'"},
};

} // namespace

void Parser::parseDecls() {
  while (!stopped && !at(TokenKind::End)) {
    if (accept(TokenKind::Semicolon))
      continue;
    size_t begin = position;
    declIndentation = indentationOf(peek());
    beginConstruct();
    parseDecl(decls, /*inLayer=*/false);
    expectEndOf("a declaration");
    if (panicking)
      skipToDecl(begin, /*inLayer=*/false);
  }
}

void Parser::parseDecl(std::vector<const Decl *> &decls, bool inLayer) {
  if (at(TokenKind::KwLet)) {
    decls.push_back(parseTopLet(inLayer));
    return;
  }
  if (at(TokenKind::KwCheck) && !inLayer) {
    decls.push_back(parseCheck());
    return;
  }
  DeclWord word = declWord(peek());
  if (word == DeclWord::Param)
    decls.push_back(parseParam());
  else if (word == DeclWord::Fn)
    decls.push_back(parseFn());
  else if (word == DeclWord::None || inLayer)
    failDecl(inLayer);
  else if (word == DeclWord::Use)
    decls.push_back(parseUse());
  else if (word == DeclWord::Dim)
    parseDims(decls);
  else if (word == DeclWord::Data)
    decls.push_back(parseData());
  else
    decls.push_back(parseLayer());
}

void Parser::failDecl(bool inLayer) {
  std::string help = inLayer ? "a layer is made of param, let and fn declarations"
                             : "a file is made of use, dim, data, param, let, layer, fn "
                               "and check declarations";
  if (at(TokenKind::RightBrace))
    help = "this '}' closes nothing";
  for (auto [word, hint] : foreignDecls)
    if (isName(peek(), word))
      help = hint;
  fail("a declaration", help);
}

void Parser::refuseDecl(std::string message, std::string help) {
  Nesting nesting(*this);
  report(peek().range, std::move(message), std::move(help));
  std::vector<const Decl *> dropped;
  parseDecl(dropped, /*inLayer=*/false);
}

/// `use "file" as name`
const Decl *Parser::parseUse() {
  auto *use = make<UseDecl>(advance().range);
  use->problem = "no other files can be used here";
  if (atNewline() || !at(TokenKind::String)) {
    fail("the name of a file in double quotes", useForm);
    return use;
  }
  Token path = advance();
  use->path = unquote(spelling(path));
  use->pathRange = path.range;
  for (const SourceText::Use &found : source.uses)
    if (found.range == path.range) {
      use->file = found.file;
      use->problem = found.problem;
    }
  if (!atNewline() && isName(peek(), "as")) {
    advance();
    use->name = expectName("the name that qualifies what the file declares");
  }
  use->range = rangeFrom(use->range);
  return use;
}

/// `dim a = 1, b`
void Parser::parseDims(std::vector<const Decl *> &decls) {
  advance();
  do {
    Identifier name = expectName("the name of a dim");
    auto *dim = make<DimDecl>(name.range);
    dim->name = name;
    if (accept(TokenKind::Equal))
      dim->value = parseConfigured(dim->config);
    else if (!atNewline() && at(TokenKind::Integer))
      fail("'=' after the name of a dim");
    dim->range = rangeFrom(dim->range);
    decls.push_back(dim);
  } while (accept(TokenKind::Comma));
}

/// `config "n_embd" else config "hidden_size"`, also none. Whether something stands after `else`,
/// or no member stands there at all.
bool Parser::parseConfigMembers(std::vector<ConfigMember> &config) {
  while (!panicking && isName(peek(), "config") && peek(1).kind == TokenKind::String) {
    advance();
    Token name = advance();
    config.push_back({unquote(spelling(name)), name.range});
    if (!accept(TokenKind::KwElse))
      return false;
  }
  return true;
}

/// `config "n_embd" else config "hidden_size" else 4*heads`, or an expression alone; null where
/// nothing stands after the members.
const Expr *Parser::parseConfigured(std::vector<ConfigMember> &config) {
  return parseConfigMembers(config) ? parseExpr() : nullptr;
}

/// A string, number, `true`, `false` or `null`.
std::optional<CheckDecl::Value> Parser::parseConfigValue() {
  if (panicking)
    return std::nullopt;
  CheckDecl::Value value;
  value.range = peek().range;
  bool isNegative = accept(TokenKind::Minus);
  double sign = isNegative ? -1 : 1;
  if (at(TokenKind::Integer))
    value.value = sign * static_cast<double>(advance().integer);
  else if (at(TokenKind::Float))
    value.value = sign * advance().number;
  else if (!isNegative && at(TokenKind::String))
    value.value = unquote(spelling(advance()));
  else if (!isNegative && (at(TokenKind::KwTrue) || at(TokenKind::KwFalse)))
    value.value = advance().kind == TokenKind::KwTrue;
  else if (!isNegative && isName(peek(), "null"))
    advance();
  else {
    fail("a value", "a member is compared with a string, a number, true, false or null");
    return std::nullopt;
  }
  value.range = rangeFrom(value.range);
  return value;
}

/// `check config "a" else config "b" else "gelu" == "gelu" | "gelu_new", "message"`
const Decl *Parser::parseCheck() {
  constexpr const char *form = "outside functions a check is about the config.json beside the "
                               "weights: check config \"hidden_act\" == \"gelu\" | null";
  auto *check = make<CheckDecl>(advance().range);
  if (!isName(peek(), "config") || peek(1).kind != TokenKind::String) {
    fail("'config' and the name of a member", form);
    return check;
  }
  if (parseConfigMembers(check->config))
    check->absent = parseConfigValue();
  if (!expect(TokenKind::EqualEqual, "'==' and what the member may be", form))
    return check;
  do {
    if (std::optional<CheckDecl::Value> value = parseConfigValue())
      check->values.push_back(std::move(*value));
  } while (accept(TokenKind::Pipe));
  if (accept(TokenKind::Comma)) {
    Token message = peek();
    if (expect(TokenKind::String, "a message in double quotes"))
      check->message = unquote(spelling(message));
  }
  check->range = rangeFrom(check->range);
  return check;
}

/// `as "name" | "other"`, where it stands.
StoredNames Parser::parseStoredNames() {
  StoredNames stored;
  if (panicking || atNewline() || !isName(peek(), "as"))
    return stored;
  stored.range = advance().range;
  do {
    Token name = peek();
    if (!expect(TokenKind::String, "a name in double quotes",
                "what files of weights call it: as \"weight\" | \"gamma\""))
      break;
    stored.names.push_back(unquote(spelling(name)));
  } while (accept(TokenKind::Pipe));
  stored.range = rangeFrom(stored.range);
  return stored;
}

/// `data Name<T> = A(x: T) | B`
const Decl *Parser::parseData() {
  auto *data = make<DataDecl>(advance().range);
  data->name = expectName("the name of a type");
  data->typeParams = parseTypeParams();
  expect(TokenKind::Equal, "'=' and the constructors");
  accept(TokenKind::Pipe);
  do
    parseConstructor(*data);
  while (accept(TokenKind::Pipe));
  if (!atNewline() && at(TokenKind::Comma))
    fail("'|' or end of line", "constructors are separated by '|'");
  data->range = rangeFrom(data->range);
  return data;
}

void Parser::parseConstructor(DataDecl &data) {
  if (panicking)
    return;
  DataConstructor constructor;
  constructor.range = peek().range;
  if (!at(TokenKind::Identifier)) {
    fail("a constructor");
    return;
  }
  Token name = advance();
  constructor.name = {std::string(spelling(name)), name.range};
  if (!isCapitalized(constructor.name.name))
    report(name.range, fmt::format("the constructor '{}' must begin with a capital letter",
                                   constructor.name.name));
  if (at(TokenKind::LeftParen) && !atNewline()) {
    Token open = advance();
    NewlineScope lines(*this, true);
    parseList(open, TokenKind::RightParen, [&] {
      constexpr const char *help = "a field is written name: Type";
      if (!at(TokenKind::Identifier) && !isReservedWord(peek().kind)) {
        fail("the name of a field", help);
        return;
      }
      DataField field;
      field.name = expectName("the name of a field");
      expect(TokenKind::Colon, "':' after the name of a field", help);
      field.type = parseType();
      constructor.fields.push_back(std::move(field));
    });
  }
  constructor.range = rangeFrom(constructor.range);
  data.constructors.push_back(std::move(constructor));
}

/// `param name : type = init as "name"`
const Decl *Parser::parseParam() {
  auto *param = make<ParamDecl>(advance().range);
  param->name = expectName("the name of a param");
  expect(TokenKind::Colon, "':' and the type of the param",
         "a param is written param name : type = initialiser");
  param->type = parseType();
  expect(TokenKind::Equal, "'=' and an initialiser",
         "a param says how it begins, as in '= zeros' or '= glorot'");
  param->init = parseInitializer();
  param->stored = parseStoredNames();
  param->range = rangeFrom(param->range);
  return param;
}

Initializer Parser::parseInitializer() {
  Initializer init;
  init.range = peek().range;
  if (panicking)
    return init;
  if (!at(TokenKind::Identifier)) {
    fail("an initialiser", "write a name, as in 'zeros', 'normal(0.1)' or 'constant(1)'");
    return init;
  }
  init.name = expectName("an initialiser");
  if (at(TokenKind::LeftParen) && !atNewline())
    init.args = parseArgs();
  init.range = rangeFrom(init.range);
  return init;
}

/// `fn name<T>(pattern: Type, ...) -> Type emits Type = body`
const Decl *Parser::parseFn() {
  auto *fn = make<FnDecl>(advance().range);
  fn->name = expectName("the name of a function");
  fn->typeParams = parseTypeParams();
  Token open = peek();
  if (expect(TokenKind::LeftParen, "'(' and the parameters", functionForm)) {
    NewlineScope lines(*this, true);
    parseList(open, TokenKind::RightParen, [&] {
      FnParam param;
      param.pattern = parsePattern();
      expect(TokenKind::Colon, "':' and a type after the parameter",
             "a parameter is written name: Type");
      param.type = parseType();
      fn->params.push_back(param);
      if (at(TokenKind::Equal))
        fail("',' or ')'", "parameters have no default values");
    });
  }
  if (accept(TokenKind::Arrow))
    fn->result = parseType();
  if (!panicking && isName(peek(), "emits")) {
    advance();
    fn->emits = parseType();
  }
  fn->body = parseFnBody();
  fn->range = rangeFrom(fn->range);
  return fn;
}

const Expr *Parser::parseFnBody() {
  if (at(TokenKind::LeftBrace))
    return panicking ? errorExpr() : parseBlock();
  std::string help;
  if (at(TokenKind::Colon))
    help = "the type of the result is written '-> Type'";
  else if (at(TokenKind::FatArrow) || at(TokenKind::EqualEqual))
    help = functionForm;
  if (!expect(TokenKind::Equal, "'=' or '{' before the body of the function", help))
    return errorExpr();
  return parseExpr();
}

/// `let name: Type = value as "name"`, outside functions.
const Decl *Parser::parseTopLet(bool inLayer) {
  auto *let = make<LetDecl>(advance().range);
  if (!panicking && at(TokenKind::LeftParen))
    fail("a name", "a 'let' outside functions gives one name");
  let->name = expectName("a name");
  if (accept(TokenKind::Colon))
    let->type = parseType();
  expect(TokenKind::Equal, "'='", fmt::format("'let' needs a value: let {} = ...", let->name.name));
  let->value = parseConfigured(let->config);
  if (!let->value && !panicking)
    fail("'else' and a value", "which is taken where no config.json is beside the weights");
  if (!let->value)
    let->value = errorExpr();
  if (inLayer && !let->config.empty())
    report(let->config.front().range, "a layer takes nothing of a config.json",
           fmt::format("declare '{}' outside of it", let->name.name));
  let->stored = parseStoredNames();
  let->range = rangeFrom(let->range);
  return let;
}

/// `layer Name(dim, dim) { members }`
const Decl *Parser::parseLayer() {
  auto *layer = make<LayerDecl>(advance().range);
  layer->name = expectName("the name of a layer");
  if (at(TokenKind::LeftParen) && !panicking) {
    Token open = advance();
    NewlineScope lines(*this, true);
    parseList(open, TokenKind::RightParen, [&] {
      Identifier name = expectName("the name of a dim");
      if (!panicking)
        layer->dimParams.push_back(std::move(name));
    });
  }
  Token open = peek();
  uint32_t layerIndentation = declIndentation;
  expect(TokenKind::LeftBrace, "'{' and the members of the layer");
  while (!panicking) {
    if (accept(TokenKind::Semicolon))
      continue;
    if (at(TokenKind::RightBrace) || at(TokenKind::End))
      break;
    size_t begin = position;
    DeclWord word = looksLikeDecl(position) ? declWord(peek()) : DeclWord::None;
    bool isMember = word == DeclWord::None || word == DeclWord::Param || word == DeclWord::Fn;
    if (!isMember && beginsDecl(position)) {
      failAt(peek().range, fmt::format("expected '}}' before '{}'", spelling(peek())))
          .withNote(open.range, "'{' was opened here");
      break;
    }
    declIndentation = indentationOf(peek());
    beginConstruct();
    if (isMember)
      parseDecl(layer->members, /*inLayer=*/true);
    else
      refuseDecl(fmt::format("a '{}' cannot stand in a layer", spelling(peek())),
                 "move it out of the layer");
    expectEndOf("a declaration");
    if (panicking)
      skipToDecl(begin, /*inLayer=*/true);
    declIndentation = layerIndentation;
  }
  expectClose(TokenKind::RightBrace, open);
  layer->range = rangeFrom(layer->range);
  return layer;
}

std::vector<Identifier> Parser::parseTypeParams() {
  std::vector<Identifier> params;
  if (panicking || !at(TokenKind::Less))
    return params;
  Token open = advance();
  do
    params.push_back(expectName("a type variable"));
  while (accept(TokenKind::Comma));
  expectGreater(open);
  return params;
}

} // namespace sheaf
