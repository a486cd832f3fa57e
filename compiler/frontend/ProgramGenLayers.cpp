//===- ProgramGenLayers.cpp - Layers picked in functions ------------------===//

#include "compiler/frontend/ProgramGenImpl.h"

#include <fmt/format.h>

namespace sheaf {

using namespace mlir;

const ProgramGenerator::StaticCode *
ProgramGenerator::listCode(std::vector<const StaticCode *> options) {
  std::string key = "list";
  for (const StaticCode *option : options)
    key += fmt::format(" {}", option->id);
  StaticCode code;
  code.kind = StaticCode::LayerList;
  code.options = std::move(options);
  return intern(std::move(code), key);
}

const ProgramGenerator::StaticCode *
ProgramGenerator::choiceCode(std::vector<const StaticCode *> options) {
  std::string key = "choice";
  for (const StaticCode *option : options)
    key += fmt::format(" {}", option->id);
  StaticCode code;
  code.kind = StaticCode::LayerChoice;
  code.options = std::move(options);
  code.valueTypes = {b.getI64Type()};
  return intern(std::move(code), key);
}

ProgramGenerator::StaticValue
ProgramGenerator::mapOptions(const StaticValue &value,
                             const std::function<const StaticCode *(const StaticCode &)> &map) {
  if (stopped || !value.code)
    return {};
  if (value.code->kind != StaticCode::LayerChoice)
    return {map(*value.code), {}};
  std::vector<const StaticCode *> options;
  for (const StaticCode *option : value.code->options) {
    options.push_back(map(*option));
    if (stopped || !options.back())
      return {};
  }
  return {choiceCode(std::move(options)), value.values};
}

ProgramGenerator::StaticValue ProgramGenerator::pickLayer(const StaticValue &list,
                                                          const typed::Expr &index) {
  if (stopped || !list.code)
    return {};
  if (std::optional<int64_t> known = staticInt(index))
    return mapOptions(list, [&](const StaticCode &code) -> const StaticCode * {
      if (*known >= 0 && *known < static_cast<int64_t>(code.options.size()))
        return code.options[static_cast<size_t>(*known)];
      refuse({}, fmt::format("the list has {} layers, so there is none at index {}",
                             code.options.size(), *known));
      return nullptr;
    });
  if (list.code->kind == StaticCode::LayerChoice || list.code->options.empty()) {
    refuse({}, list.code->options.empty()
                   ? "the list of layers is empty"
                   : "two indices of layers that are both known only at run time");
    return {};
  }
  Value i = gen(index);
  auto size = static_cast<int64_t>(list.code->options.size());
  Value low = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, i, constInt(0));
  Value high = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, i, constInt(size));
  auto check = ir::CheckOp::create(
      b, arith::AndIOp::create(b, low, high),
      fmt::format("index {{0}} is out of range for a list of {} layers", size), i);
  // The same int: what the check guards is whatever takes this one.
  Value picked = guarded(check, arith::AddIOp::create(b, i, constInt(0)));
  return {choiceCode(list.code->options), {picked}};
}

ProgramGenerator::StaticValue ProgramGenerator::genStatic(const typed::Expr &expr) {
  if (stopped)
    return {};
  At at(*this, expr.range);
  switch (expr.kind) {
  case typed::ExprKind::Lambda:
    return makeClosure(expr.to<typed::LambdaExpr>());
  case typed::ExprKind::Local: {
    const typed::Variable *variable = expr.to<typed::LocalExpr>().variable;
    if (auto it = frame->statics.find(variable); it != frame->statics.end())
      return it->second;
    refuse({}, fmt::format("what '{}' is must be known at compile time here", variable->name));
    return {};
  }
  case typed::ExprKind::LayerSelf:
    return {codesByKey.at(fmt::format("layer {}", frame->subst->self->path.name)), {}};
  case typed::ExprKind::LayerLet: {
    const auto &let = expr.to<typed::LayerLetExpr>();
    if (!let.layer) {
      auto it = fileLets.find(let.let);
      if (it == fileLets.end()) {
        const StaticCode *code = layerCode(*let.let->value, nullptr, fileLetPath(*let.let));
        it = fileLets.emplace(let.let, code).first;
      }
      return {it->second, {}};
    }
    return mapOptions(genStatic(*let.layer), [&](const StaticCode &code) -> const StaticCode * {
      if (auto it = code.layer->lets.find(let.let); it != code.layer->lets.end())
        return it->second;
      refuse({}, fmt::format("'{}' is used before it is made", let.let->name), "move its 'let' up");
      return nullptr;
    });
  }
  case typed::ExprKind::LayerIndex: {
    const auto &index = expr.to<typed::LayerIndexExpr>();
    return pickLayer(genStatic(*index.list), *index.index);
  }
  case typed::ExprKind::LayerSlice: {
    const auto &slice = expr.to<typed::LayerSliceExpr>();
    return mapOptions(genStatic(*slice.list), [&](const StaticCode &code) -> const StaticCode * {
      auto size = static_cast<int64_t>(code.options.size());
      int64_t low = slice.begin ? staticInt(*slice.begin).value_or(-1) : 0;
      int64_t high = slice.end ? staticInt(*slice.end).value_or(-1) : size;
      if (low < 0 || high > size || low > high) {
        refuse({},
               fmt::format("the list has {} layers, so it has no slice {}:{}", size, low, high));
        return nullptr;
      }
      std::vector<const StaticCode *> options(code.options.begin() + low,
                                              code.options.begin() + high);
      if (slice.reversed)
        std::reverse(options.begin(), options.end());
      return listCode(std::move(options));
    });
  }
  case typed::ExprKind::LayerList: {
    const auto &list = expr.to<typed::LayerListExpr>();
    std::vector<const StaticCode *> options;
    for (const typed::Expr *element : list.elements) {
      StaticValue value = genStatic(*element);
      if (stopped)
        return {};
      if (!value.values.empty() || list.repeated) {
        refuse({}, "the layers of a list must be known at compile time");
        return {};
      }
      options.push_back(value.code);
    }
    if (list.repeated) {
      refuse({}, "layers can be repeated only in a 'let' outside functions");
      return {};
    }
    return {listCode(std::move(options)), {}};
  }
  default:
    refuse({}, "this function or layer must be known at compile time");
    return {};
  }
}

Value ProgramGenerator::choose(Value index, size_t low, size_t high, Type type,
                               const std::function<Value(size_t)> &generate) {
  if (low == high)
    return coerce(generate(low), type);
  size_t middle = (low + high) / 2;
  Value lower = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, index,
                                      constInt(static_cast<int64_t>(middle)));
  return genBranches(
      lower, type, [&] { return choose(index, low, middle, type, generate); },
      [&] { return choose(index, middle + 1, high, type, generate); });
}

Value ProgramGenerator::withLayer(const StaticValue &value, Type type,
                                  const std::function<Value(const StaticCode &)> &generate) {
  if (stopped || !value.code)
    return placeholder(type);
  if (value.code->kind != StaticCode::LayerChoice)
    return coerce(generate(*value.code), type);
  return choose(value.values.front(), 0, value.code->options.size() - 1, type,
                [&](size_t i) { return generate(*value.code->options[i]); });
}

} // namespace sheaf
