//===- Checker.cpp - From syntax trees to typed trees ---------------------===//

#include "compiler/frontend/Checker.h"

#include "compiler/frontend/AstPrinter.h"
#include "compiler/frontend/CheckerImpl.h"
#include "compiler/frontend/CheckerStack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sheaf {

//===----------------------------------------------------------------------===//
// The result
//===----------------------------------------------------------------------===//

CheckedModule::CheckedModule()
    : types(std::make_unique<TypeContext>()), storage(std::make_unique<Storage>()) {}
CheckedModule::CheckedModule(CheckedModule &&) noexcept = default;
CheckedModule &CheckedModule::operator=(CheckedModule &&) noexcept = default;
CheckedModule::~CheckedModule() = default;

const FnInfo *CheckedModule::findFunction(const std::string &name) const {
  for (const FnInfo *fn : functions)
    if (fn->name == name && !fn->isUsed)
      return fn;
  return nullptr;
}

std::vector<std::string> CheckedModule::vocabularies() const {
  return {storage->vocabularies.begin(), storage->vocabularies.end()};
}

std::string CheckedModule::signature(const FnInfo &fn) const {
  std::string text = "fn " + fn.qualifiedName;
  if (!fn.packs.empty()) {
    std::string params;
    for (const FnParam &param : fn.decl->params) {
      params += params.empty() ? "" : ", ";
      if (auto *binding = param.pattern->as<BindingPattern>())
        params += binding->name + ": ";
      params += param.type ? printType(*param.type) : "_";
    }
    return fmt::format("{}({}) -> {}", text, params,
                       fn.decl->result ? printType(*fn.decl->result) : "_");
  }
  if (!fn.typeParams.empty()) {
    text += "<";
    for (size_t i = 0; i < fn.typeParams.size(); ++i)
      text += (i ? ", " : "") + fn.typeParams[i]->name;
    text += ">";
  }
  text += "(";
  for (size_t i = 0; i < fn.paramTypes.size(); ++i) {
    const Pattern &pattern = *fn.decl->params[i].pattern;
    text += i ? ", " : "";
    if (auto *binding = pattern.as<BindingPattern>())
      text += binding->name + ": ";
    text += types->print(fn.paramTypes[i]);
  }
  return text + ") -> " + (fn.result ? types->print(fn.result) : "_") +
         (fn.emits ? " emits " + types->print(fn.emits) : "");
}

CheckedModule check(const Module &module, const CheckOptions &options, Diagnostics &diags) {
  CheckedModule result;
  size_t before = diags.errorCount();
  runOnLargeStack([&] { Checker(module, options, diags, result).run(); });
  result.ok = diags.errorCount() == before;
  return result;
}

std::vector<std::string> dimsWithoutValue(const Module &module, const CheckOptions &options) {
  std::vector<std::string> names;
  for (size_t file = 0; file < module.fileCount(); ++file)
    for (const Decl *decl : module.declsOf(file))
      if (const auto *dim = decl->as<DimDecl>())
        if (!dim->value && !options.dims.contains(dim->name.name))
          names.push_back(dim->name.name);
  return names;
}

std::optional<double>
evaluateNumber(const Expr &expr,
               const std::function<std::optional<double>(const std::string &)> &lookup) {
  if (auto *literal = expr.as<IntLiteralExpr>())
    return static_cast<double>(literal->value);
  if (auto *literal = expr.as<FloatLiteralExpr>())
    return literal->value;
  if (auto *name = expr.as<NameExpr>())
    return lookup(name->name);
  if (auto *field = expr.as<FieldExpr>()) {
    const auto *file = field->base->as<NameExpr>();
    return file ? lookup(file->name + "." + field->field.name) : std::nullopt;
  }
  if (auto *unary = expr.as<UnaryExpr>()) {
    auto operand = evaluateNumber(*unary->operand, lookup);
    if (!operand || unary->op != UnaryOp::Negate)
      return std::nullopt;
    return -*operand;
  }
  auto *binary = expr.as<BinaryExpr>();
  if (!binary)
    return std::nullopt;
  auto a = evaluateNumber(*binary->lhs, lookup), b = evaluateNumber(*binary->rhs, lookup);
  if (!a || !b)
    return std::nullopt;
  switch (binary->op) {
  case BinaryOp::Add:
    return *a + *b;
  case BinaryOp::Sub:
    return *a - *b;
  case BinaryOp::Mul:
    return *a * *b;
  case BinaryOp::Div:
    return *a / *b;
  default:
    return std::nullopt;
  }
}

//===----------------------------------------------------------------------===//
// The order of work
//===----------------------------------------------------------------------===//

void Checker::run() {
  Context fileContext;
  context = &fileContext;
  collectNames();
  if (!linkFiles())
    return; // names that a file would have brought are no mistakes
  checkDims();
  checkData();
  checkLayerHeads();
  for (ParamInfo &param : storage.params)
    if (!param.layer)
      checkParam(param);
  // Expansions are added on the way.
  for (size_t i = 0; i < storage.fns.size(); ++i)
    if (storage.fns[i].ranks.empty())
      checkSignature(storage.fns[i]);
  checkLets();
  checkLayerCycles();
  for (size_t i = 0; i < storage.fns.size(); ++i)
    if (!diags.tooManyErrors())
      checkBody(storage.fns[i]);
  if (diags.hasErrors())
    return;
  checkEntry();
  checkCallGraph();
  checkConstants();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

} // namespace sheaf
