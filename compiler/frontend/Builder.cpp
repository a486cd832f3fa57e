//===- Builder.cpp - Models that a program builds -------------------------===//

#include "compiler/frontend/Builder.h"

#include "compiler/frontend/Lexer.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sheaf {

namespace {

/// Each file that places are in has so many offsets, whether its text is there or not.
constexpr uint32_t hostBytes = uint32_t{1} << 26;
constexpr size_t mostHosts = 48;

bool isName(const std::string &name) {
  SourceFile alone("name", name);
  Diagnostics unheard(alone);
  std::vector<Token> tokens = lex(alone.file(0), unheard);
  return !unheard.hasErrors() && tokens.size() == 2 && tokens[0].kind == TokenKind::Identifier &&
         tokens[0].range == SourceRange{0, static_cast<uint32_t>(name.size())};
}

} // namespace

ModelBuilder::ModelBuilder(std::string name) : decls_(&module().decls) {
  hostNumbers_.emplace(name, 0);
  hosts_.emplace_back(std::move(name), 0u);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

size_t ModelBuilder::hostOf(const std::string &file) {
  auto [it, isNew] = hostNumbers_.try_emplace(file, hosts_.size());
  if (isNew && hosts_.size() == mostHosts)
    throw UserError(fmt::format("a model is built in {} files at most", mostHosts));
  if (isNew)
    hosts_.emplace_back(file, static_cast<uint32_t>(hosts_.size()) * hostBytes);
  return it->second;
}

void ModelBuilder::addText(const std::string &file, std::string text) {
  bool isFirst = file == hosts_.front().name() && module().arena.size() == 0;
  if (hostNumbers_.contains(file) && !isFirst)
    throw UserError(file + ": its text is given after places in it");
  if (text.size() >= hostBytes)
    throw UserError(file + ": what a model is built in has less than 64 MiB");
  if (isFirst) {
    hosts_.front() = SourceText(file, std::move(text), 0);
    return;
  }
  size_t number = hostOf(file);
  hosts_[number] = SourceText(file, std::move(text), hosts_[number].begin());
}

SourceRange ModelBuilder::rangeOf(const Place &place) {
  const SourceText &host = hosts_[hostOf(place.file)];
  uint32_t last = host.begin() + hostBytes - 1;
  auto offsetOf = [&](LineColumn at) {
    at.line = std::min(at.line, hostBytes / SourceText::gridColumns - 1);
    return std::min(host.offsetOf(at), last);
  };
  uint32_t begin = offsetOf(place.begin);
  return {begin, std::max(offsetOf(place.end), begin)};
}

void ModelBuilder::report(SourceRange range, std::string message, std::string help) {
  ++syntax_->errors;
  syntax_->findings.push_back({Severity::Error, range, std::move(message), std::move(help), {}});
}

Identifier ModelBuilder::identifier(const std::string &name, SourceRange range,
                                    const char *capital) {
  if (!isName(name))
    report(range, fmt::format("'{}' is no name", name),
           "a name is made of letters, digits and '_', and is no word of the language");
  else if (capital && !std::isupper(static_cast<unsigned char>(name[0])))
    report(range, fmt::format("the {} '{}' must begin with a capital letter", capital, name));
  return {name, range};
}

std::vector<Identifier> ModelBuilder::identifiers(const Names &names, SourceRange range,
                                                  const char *capital) {
  std::vector<Identifier> all;
  for (const std::string &name : names)
    all.push_back(identifier(name, range, capital));
  return all;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

DimExpr ModelBuilder::dimExpr(const Extent &extent, const Place &at) {
  DimExpr dim;
  dim.range = rangeOf(at);
  dim.isPack = extent.isPack;
  dim.expr = extent.value                        ? number(*extent.value, at)
             : extent.expr || extent.dim.empty() ? extent.expr
                                                 : name(extent.dim, at);
  return dim;
}

std::vector<DimExpr> ModelBuilder::dimExprs(const std::vector<Extent> &extents, const Place &at) {
  std::vector<DimExpr> dims;
  for (const Extent &extent : extents)
    dims.push_back(dimExpr(extent, at));
  return dims;
}

ModelBuilder::T ModelBuilder::tensor(rt::DType element, const std::vector<Extent> &dims, Place at) {
  auto *type = make<TensorTypeExpr>(rangeOf(at));
  type->element = element;
  type->dims = dimExprs(dims, at);
  return type;
}

ModelBuilder::T ModelBuilder::token(const std::string &vocabulary, Place at) {
  auto *type = make<TokenTypeExpr>(rangeOf(at));
  if (!vocabulary.empty())
    type->vocabulary = identifier(vocabulary, type->range);
  return type;
}

ModelBuilder::T ModelBuilder::tokens(const std::vector<Extent> &dims, const std::string &vocabulary,
                                     Place at) {
  auto *type = make<TokenTypeExpr>(rangeOf(at));
  if (!vocabulary.empty())
    type->vocabulary = identifier(vocabulary, type->range);
  type->dims = dimExprs(dims, at);
  return type;
}

ModelBuilder::T ModelBuilder::host(HostTypeKind kind, Place at) {
  auto *type = make<HostTypeExpr>(rangeOf(at));
  type->host = kind;
  return type;
}

ModelBuilder::T ModelBuilder::listOf(T element, Place at) {
  auto *type = make<ListTypeExpr>(rangeOf(at));
  type->element = element;
  return type;
}

ModelBuilder::T ModelBuilder::listOf(T element, const Extent &length, Place at) {
  auto *type = make<ListTypeExpr>(rangeOf(at));
  type->element = element;
  type->length = dimExpr(length, at);
  return type;
}

ModelBuilder::T ModelBuilder::tupleOf(std::vector<T> elements, Place at) {
  if (elements.size() == 1) // parentheses around one thing are no tuple
    return elements.front();
  auto *type = make<TupleTypeExpr>(rangeOf(at));
  type->elements = std::move(elements);
  return type;
}

ModelBuilder::T ModelBuilder::functionOf(std::vector<T> params, T result, Place at) {
  auto *type = make<FunctionTypeExpr>(rangeOf(at));
  type->params = std::move(params);
  type->result = result;
  return type;
}

ModelBuilder::T ModelBuilder::named(const std::string &name, std::vector<T> args,
                                    const std::string &file, Place at) {
  auto *type = make<NamedTypeExpr>(rangeOf(at));
  if (!file.empty())
    type->file = identifier(file, type->range);
  type->name = identifier(name, type->range);
  type->args = std::move(args);
  return type;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

ModelBuilder::P ModelBuilder::any(Place at) { return make<WildcardPattern>(rangeOf(at)); }

ModelBuilder::P ModelBuilder::bind(const std::string &name, Place at) {
  auto *pattern = make<BindingPattern>(rangeOf(at));
  pattern->name = identifier(name, pattern->range).name;
  if (!name.empty() && std::isupper(static_cast<unsigned char>(name[0])))
    report(pattern->range, fmt::format("'{}' begins with a capital letter, so it is a constructor "
                                       "and names nothing",
                                       name));
  return pattern;
}

ModelBuilder::P ModelBuilder::matchNumber(int64_t value, Place at) {
  auto *pattern = make<IntPattern>(rangeOf(at));
  pattern->value = value;
  return pattern;
}

ModelBuilder::P ModelBuilder::matchTruth(bool value, Place at) {
  auto *pattern = make<BoolPattern>(rangeOf(at));
  pattern->value = value;
  return pattern;
}

ModelBuilder::P ModelBuilder::matchTuple(std::vector<P> elements, Place at) {
  if (elements.size() == 1)
    return elements.front();
  auto *pattern = make<TuplePattern>(rangeOf(at));
  pattern->elements = std::move(elements);
  return pattern;
}

ModelBuilder::P ModelBuilder::construct(const std::string &constructor, std::vector<P> args,
                                        const std::string &file, Place at) {
  auto *pattern = make<ConstructorPattern>(rangeOf(at));
  if (!file.empty())
    pattern->file = identifier(file, pattern->range);
  pattern->name = identifier(constructor, pattern->range, "constructor");
  pattern->hasArgList = !args.empty();
  pattern->args = std::move(args);
  return pattern;
}

ModelBuilder::P ModelBuilder::matchList(std::vector<P> elements, Place at) {
  auto *pattern = make<ListPattern>(rangeOf(at));
  pattern->elements = std::move(elements);
  return pattern;
}

ModelBuilder::P ModelBuilder::cons(P head, P tail, Place at) {
  auto *pattern = make<ConsPattern>(rangeOf(at));
  pattern->head = head;
  pattern->tail = tail;
  return pattern;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

ModelBuilder::E ModelBuilder::finished(Expr *expr) {
  uint32_t height = 0;
  forEachChild(*expr, [&](const Expr &child) { height = std::max(height, child.height); });
  expr->height = height + 1;
  if (expr->height <= maxNesting)
    return expr;
  report(expr->range, "nested too deeply",
         fmt::format("at most {} levels are allowed; name the parts with 'let'", maxNesting));
  return make<ErrorExpr>(expr->range);
}

ModelBuilder::E ModelBuilder::number(int64_t value, Place at) {
  auto *literal = make<IntLiteralExpr>(rangeOf(at));
  if (value == INT64_MIN) // its amount is no integer
    report(literal->range, "this integer is too large", "the largest is 9223372036854775807");
  else
    literal->value = std::abs(value);
  return value < 0 ? unary(UnaryOp::Negate, literal, at) : literal;
}

ModelBuilder::E ModelBuilder::number(double value, Place at) {
  auto *literal = make<FloatLiteralExpr>(rangeOf(at));
  if (std::isfinite(value))
    literal->value = std::abs(value);
  else
    report(literal->range, "a number of a model is finite");
  return std::signbit(value) ? unary(UnaryOp::Negate, literal, at) : literal;
}

ModelBuilder::E ModelBuilder::truth(bool value, Place at) {
  auto *literal = make<BoolLiteralExpr>(rangeOf(at));
  literal->value = value;
  return literal;
}

ModelBuilder::E ModelBuilder::text(const std::string &value, Place at) {
  auto *literal = make<StringLiteralExpr>(rangeOf(at));
  literal->value = value;
  return literal;
}

ModelBuilder::E ModelBuilder::name(const std::string &name, Place at) {
  auto *expr = make<NameExpr>(rangeOf(at));
  expr->name = identifier(name, expr->range).name;
  return expr;
}

ModelBuilder::E ModelBuilder::unary(UnaryOp op, E operand, Place at) {
  auto *expr = make<UnaryExpr>(rangeOf(at));
  expr->op = op;
  expr->operand = operand;
  return finished(expr);
}

ModelBuilder::E ModelBuilder::binary(BinaryOp op, E lhs, E rhs, Place at) {
  auto *expr = make<BinaryExpr>(rangeOf(at));
  expr->op = op;
  expr->opRange = expr->range;
  expr->lhs = lhs;
  expr->rhs = rhs;
  return finished(expr);
}

std::vector<Argument> ModelBuilder::arguments(const std::vector<Arg> &args, SourceRange range) {
  std::vector<Argument> all;
  for (const Arg &arg : args) {
    if (arg.name.empty() && !all.empty() && all.back().name)
      report(arg.value->range, "arguments without a name come before those with one");
    Argument &argument = all.emplace_back();
    argument.value = arg.value;
    if (!arg.name.empty())
      argument.name = identifier(arg.name, range);
  }
  return all;
}

ModelBuilder::E ModelBuilder::call(E callee, const std::vector<Arg> &args, Place at) {
  auto *expr = make<CallExpr>(rangeOf(at));
  expr->callee = callee;
  expr->args = arguments(args, expr->range);
  return finished(expr);
}

ModelBuilder::E ModelBuilder::call(const std::string &callee, const std::vector<Arg> &args,
                                   Place at) {
  return call(name(callee, at), args, at);
}

ModelBuilder::E ModelBuilder::field(E base, const std::string &name, Place at) {
  auto *expr = make<FieldExpr>(rangeOf(at));
  expr->base = base;
  expr->field = identifier(name, expr->range);
  return finished(expr);
}

ModelBuilder::E ModelBuilder::index(E base, const std::vector<Index> &items, Place at) {
  auto *expr = make<IndexExpr>(rangeOf(at));
  expr->base = base;
  if (items.empty())
    report(expr->range, "an index is missing");
  for (const Index &index : items)
    expr->items.push_back({!index.index, index.index, index.begin, index.end,
                           index.index ? index.index->range : expr->range});
  return finished(expr);
}

ModelBuilder::E ModelBuilder::list(std::vector<E> elements, Place at) {
  auto *expr = make<ListExpr>(rangeOf(at));
  expr->elements = std::move(elements);
  return finished(expr);
}

ModelBuilder::E ModelBuilder::tuple(std::vector<E> elements, Place at) {
  if (elements.size() == 1)
    return elements.front();
  auto *expr = make<TupleExpr>(rangeOf(at));
  expr->elements = std::move(elements);
  return finished(expr);
}

Stmt ModelBuilder::let(P pattern, E value, T type, Place at) {
  Stmt stmt;
  stmt.range = rangeOf(at);
  stmt.pattern = pattern;
  stmt.type = type;
  stmt.value = value;
  return stmt;
}

Stmt ModelBuilder::let(const std::string &name, E value, T type, Place at) {
  return let(bind(name, at), value, type, at);
}

Stmt ModelBuilder::check(E condition, std::optional<std::string> message, Place at) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Check;
  stmt.range = rangeOf(at);
  stmt.value = condition;
  stmt.message = std::move(message);
  return stmt;
}

Stmt ModelBuilder::run(E call, Place at) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Do;
  stmt.range = rangeOf(at);
  stmt.value = call;
  if (!call->is<CallExpr>())
    report(stmt.range, "only a call can stand as a statement");
  return stmt;
}

ModelBuilder::E ModelBuilder::block(std::vector<Stmt> statements, E result, Place at) {
  auto *expr = make<BlockExpr>(rangeOf(at));
  expr->stmts = std::move(statements);
  expr->result = result;
  return finished(expr);
}

ModelBuilder::E ModelBuilder::asBlock(E expr) {
  if (expr->is<BlockExpr>())
    return expr;
  auto *block = make<BlockExpr>(expr->range);
  block->result = expr;
  return finished(block);
}

ModelBuilder::E ModelBuilder::ifElse(E condition, E then, E otherwise, Place at) {
  auto *expr = make<IfExpr>(rangeOf(at));
  expr->condition = condition;
  expr->thenExpr = asBlock(then);
  expr->elseExpr = otherwise->is<IfExpr>() ? otherwise : asBlock(otherwise);
  return finished(expr);
}

ModelBuilder::E ModelBuilder::match(E scrutinee, const std::vector<Arm> &arms, Place at) {
  auto *expr = make<MatchExpr>(rangeOf(at));
  expr->headRange = expr->range;
  expr->scrutinee = scrutinee;
  if (arms.empty())
    report(expr->range, "a match has at least one arm");
  for (const Arm &arm : arms)
    expr->arms.push_back({arm.pattern, arm.guard, arm.body, arm.pattern->range});
  return finished(expr);
}

std::vector<FnParam> ModelBuilder::params(const std::vector<Param> &params, const Place &at) {
  std::vector<FnParam> all;
  for (const Param &param : params)
    all.push_back({param.pattern ? param.pattern : bind(param.name, at), param.type});
  return all;
}

ModelBuilder::E ModelBuilder::lambda(const std::vector<Param> &given, E body, Place at) {
  auto *expr = make<LambdaExpr>(rangeOf(at));
  expr->params = params(given, at);
  expr->body = body;
  return finished(expr);
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

void ModelBuilder::declare(Decl *decl) {
  bool inLayer = decls_ != &module().decls;
  bool isMember = decl->is<ParamDecl>() || decl->is<LetDecl>() || decl->is<FnDecl>();
  if (inLayer && !isMember)
    report(decl->range, "a layer is made of param, let and fn declarations");
  else
    decls_->push_back(decl);
}

static std::vector<ConfigMember> membersOf(const std::vector<std::string> &names,
                                           SourceRange range) {
  std::vector<ConfigMember> members;
  for (const std::string &name : names)
    members.push_back({name, range});
  return members;
}

void ModelBuilder::use(const std::string &file, const std::string &as, Place at) {
  auto *decl = make<UseDecl>(rangeOf(at));
  decl->path = file;
  decl->pathRange = decl->range;
  decl->problem = "no other files can be used here";
  decl->name = as.empty() ? Identifier{{}, decl->range} : identifier(as, decl->range);
  uses_.emplace_back(decl->range, file);
  useDecls_.push_back(decl);
  declare(decl);
}

void ModelBuilder::dim(const std::string &name, E value, const Names &config, Place at) {
  auto *decl = make<DimDecl>(rangeOf(at));
  decl->name = identifier(name, decl->range);
  decl->config = membersOf(config, decl->range);
  decl->value = value;
  declare(decl);
}

void ModelBuilder::data(const std::string &name, const std::vector<Constructor> &constructors,
                        const Names &typeParams, Place at) {
  auto *decl = make<DataDecl>(rangeOf(at));
  decl->name = identifier(name, decl->range, "type");
  decl->typeParams = identifiers(typeParams, decl->range, "type parameter");
  if (constructors.empty())
    report(decl->range, fmt::format("the type '{}' has no constructor", name));
  for (const Constructor &constructor : constructors) {
    DataConstructor &made = decl->constructors.emplace_back();
    made.range = decl->range;
    made.name = identifier(constructor.name, decl->range, "constructor");
    for (const auto &[field, type] : constructor.fields)
      made.fields.push_back({identifier(field, type->range), type});
  }
  declare(decl);
}

void ModelBuilder::param(const std::string &name, T type, const std::string &initializer,
                         const std::vector<Arg> &args, const Names &stored, Place at) {
  auto *decl = make<ParamDecl>(rangeOf(at));
  decl->name = identifier(name, decl->range);
  decl->type = type;
  decl->init = {identifier(initializer, decl->range), arguments(args, decl->range), decl->range};
  decl->stored = {stored, decl->range};
  declare(decl);
}

void ModelBuilder::fn(const std::string &name, const std::vector<Param> &given, T result, E body,
                      const BuiltFnOptions &options, Place at) {
  auto *decl = make<FnDecl>(rangeOf(at));
  decl->name = identifier(name, decl->range);
  decl->typeParams = identifiers(options.typeParams, decl->range, "type parameter");
  decl->params = params(given, at);
  decl->result = result;
  decl->emits = options.emits;
  decl->body = body;
  for (const FnParam &param : decl->params)
    if (!param.type) {
      report(param.pattern->range, fmt::format("a parameter of '{}' has no type", name));
      return;
    }
  declare(decl);
}

void ModelBuilder::constant(const std::string &name, E value, T type, const Names &config,
                            const Names &stored, Place at) {
  auto *decl = make<LetDecl>(rangeOf(at));
  decl->name = identifier(name, decl->range);
  decl->type = type;
  decl->config = membersOf(config, decl->range);
  decl->value = value;
  decl->stored = {stored, decl->range};
  declare(decl);
}

void ModelBuilder::layer(const std::string &name, const Names &dims,
                         const std::function<void()> &members, Place at) {
  auto *decl = make<LayerDecl>(rangeOf(at));
  decl->name = identifier(name, decl->range, "layer");
  decl->dimParams = identifiers(dims, decl->range, nullptr);
  declare(decl);
  std::vector<const Decl *> *outer = std::exchange(decls_, &decl->members);
  members();
  decls_ = outer;
}

void ModelBuilder::checkConfig(const Names &config, const std::vector<ConfigValue> &values,
                               const std::string &message, const std::optional<ConfigValue> &absent,
                               Place at) {
  auto *decl = make<CheckDecl>(rangeOf(at));
  decl->config = membersOf(config, decl->range);
  for (const ConfigValue &value : values)
    decl->values.push_back({value, decl->range});
  if (absent)
    decl->absent = CheckDecl::Value{*absent, decl->range};
  decl->message = message;
  if (config.empty() || values.empty())
    report(decl->range, "a check of a config.json names a member and what it may be");
  declare(decl);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

void ModelBuilder::settle(const Expr &expr, std::set<const Expr *> &met) {
  if (!met.insert(&expr).second) {
    report(expr.range, "this expression stands in two places of the model",
           "build it for each, or name it with let");
    return;
  }
  const auto *call = expr.as<CallExpr>();
  if (!call)
    return forEachChild(expr, [&](const Expr &child) { settle(child, met); });
  settle(*call->callee, met);
  // The builder made it.
  const_cast<CallExpr *>(call)->siteId = module().callSiteCount++;
  for (const Argument &arg : call->args)
    settle(*arg.value, met);
}

void ModelBuilder::settle(const Decl &decl, std::set<const Expr *> &met) {
  if (const auto *fn = decl.as<FnDecl>())
    settle(*fn->body, met);
  else if (const auto *let = decl.as<LetDecl>())
    settle(*let->value, met);
  else if (const auto *dim = decl.as<DimDecl>(); dim && dim->value)
    settle(*dim->value, met);
  else if (const auto *param = decl.as<ParamDecl>())
    for (const Argument &arg : param->init.args)
      settle(*arg.value, met);
  else if (const auto *layer = decl.as<LayerDecl>())
    for (const Decl *member : layer->members)
      settle(*member, met);
}

SourceFile ModelBuilder::finish(const FileResolver &resolver) && {
  std::set<const Expr *> met;
  for (const Decl *decl : module().decls)
    settle(*decl, met);
  size_t hosts = hosts_.size();
  if (resolver) {
    addUsedFiles(hosts_, hosts, static_cast<uint32_t>(hosts) * hostBytes, uses_, resolver);
    for (size_t i = 0; i < useDecls_.size(); ++i) {
      useDecls_[i]->file = hosts_.front().uses[i].file;
      useDecls_[i]->problem = hosts_.front().uses[i].problem;
    }
  }
  std::shared_ptr<Syntax> syntax = std::move(syntax_);
  SourceFile source(std::move(hosts_), hosts, syntax);
  Diagnostics diags(source);
  diags.take(syntax->findings, syntax->errors);
  parseUsed(source, diags, syntax->module);
  syntax->findings = diags.all();
  syntax->errors = diags.errorCount();
  return source;
}

} // namespace sheaf
