//===- TypesDims.cpp - What is known of dims ------------------------------===//

#include "compiler/frontend/Types.h"

#include <algorithm>
#include <cctype>

namespace sheaf {

namespace {

std::string parenthesised(const Dim &dim, const std::string &text) {
  return dim.isConstant() || dim.asSymbol() ? text : "(" + text + ")";
}

} // namespace

std::optional<int64_t> DimContext::valueOf(const std::string &symbol) const {
  if (auto it = values.find(symbol); it != values.end())
    return it->second;
  if (auto it = bindings.find(symbol); it != bindings.end())
    return value(it->second);
  if (auto it = quotientTable.find(symbol); it != quotientTable.end()) {
    const Quotient &q = it->second;
    std::optional<int64_t> a = value(q.numerator), b = value(q.denominator);
    if (!a || !b || *b == 0 || *b == -1 || (!q.remainder && *a % *b != 0))
      return std::nullopt;
    return q.remainder ? *a % *b : *a / *b;
  }
  return std::nullopt;
}

std::optional<int64_t> DimContext::value(const Dim &dim) const {
  if (dim.isConstant())
    return dim.constant();
  Dim result = dim.substitute([&](const std::string &symbol) -> std::optional<Dim> {
    if (std::optional<int64_t> v = valueOf(symbol))
      return Dim(*v);
    return std::nullopt;
  });
  if (!result.isConstant())
    return std::nullopt;
  return result.constant();
}

std::optional<Dim> DimContext::divide(const Dim &a, const Dim &b) const {
  if (b == Dim(0))
    return std::nullopt;
  if (std::optional<Dim> exact = a.dividedBy(b))
    return exact;
  std::optional<int64_t> x = value(a), y = value(b);
  if (x && y && (*y == 0 || *y == -1 || *x % *y != 0))
    return std::nullopt;
  if (a.isConstant() && b.isConstant())
    return Dim(*x / *y);
  std::string name = parenthesised(a, a.str()) + "/" + parenthesised(b, b.str());
  quotientTable[name] = {a, b, false};
  return Dim::symbol(name);
}

std::optional<Dim> DimContext::remainder(const Dim &a, const Dim &b) const {
  if (b == Dim(0))
    return std::nullopt;
  if (a.dividedBy(b))
    return Dim(0);
  if (a.isConstant() && b.isConstant())
    return Dim(b.constant() == -1 ? 0 : a.constant() % b.constant());
  std::string name = parenthesised(a, a.str()) + "%" + parenthesised(b, b.str());
  quotientTable[name] = {a, b, true};
  return Dim::symbol(name);
}

std::optional<Dim> DimContext::exactQuotient(const Dim &a, const Dim &b) const {
  if (std::optional<Dim> exact = a.dividedBy(b))
    return exact;
  std::optional<int64_t> x = value(a), y = value(b);
  if (!x || !y)
    return std::nullopt;
  return divide(a, b);
}

Dim DimContext::makeVariable(const std::string &name) {
  std::string symbol = "'" + std::to_string(nextVariable++);
  varNames[symbol] = name;
  return Dim::symbol(symbol);
}

bool DimContext::isVariable(const std::string &symbol) { return symbol.starts_with('\''); }

bool DimContext::hasFreeVariables(const Dim &dim) const {
  for (const std::string &symbol : resolve(dim).symbols()) {
    if (isVariable(symbol))
      return true;
    if (auto it = quotientTable.find(symbol); it != quotientTable.end())
      if (hasFreeVariables(it->second.numerator) || hasFreeVariables(it->second.denominator))
        return true;
  }
  return false;
}

int64_t floorRemainder(int64_t a, int64_t b) {
  if (b == -1)
    return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t floorQuotient(int64_t a, int64_t b) {
  if (b == -1)
    return static_cast<int64_t>(-static_cast<uint64_t>(a));
  int64_t quotient = a / b;
  return floorRemainder(a, b) != a % b ? quotient - 1 : quotient;
}

Dim DimContext::makeRigid(const std::string &name) {
  int count = ++rigidNames[name];
  if (count == 1)
    return Dim::symbol(name);
  return Dim::symbol(name + "'" + std::to_string(count));
}

Dim DimContext::resolve(const Dim &dim) const {
  if (dim.isConstant())
    return dim;
  return substitute(dim, [&](const std::string &symbol) -> std::optional<Dim> {
    if (auto it = bindings.find(symbol); it != bindings.end())
      return resolve(it->second);
    return std::nullopt;
  });
}

Dim DimContext::substitute(const Dim &dim, const Lookup &lookup) const {
  if (dim.isConstant())
    return dim;
  return dim.substitute([&](const std::string &symbol) -> std::optional<Dim> {
    if (std::optional<Dim> found = lookup(symbol))
      return found;
    auto it = quotientTable.find(symbol);
    if (it == quotientTable.end())
      return std::nullopt;
    Quotient q = it->second;
    Dim a = substitute(q.numerator, lookup), b = substitute(q.denominator, lookup);
    if (a == q.numerator && b == q.denominator)
      return std::nullopt;
    std::optional<Dim> result = q.remainder ? remainder(a, b) : divide(a, b);
    return result ? *result : Dim::fresh();
  });
}

Dim DimContext::canonical(const Dim &dim) const {
  Dim result = resolve(dim);
  for (const auto &[symbol, replacement] : equalities)
    result = substitute(result, [&](const std::string &name) -> std::optional<Dim> {
      if (name == symbol)
        return replacement;
      return std::nullopt;
    });
  if (result.isConstant())
    return result;
  return cancelQuotients(result.substitute([&](const std::string &symbol) -> std::optional<Dim> {
    if (std::optional<int64_t> v = valueOf(symbol))
      return Dim(*v);
    return std::nullopt;
  }));
}

/// Quotients are exact: (a / b) * b is a.
Dim DimContext::cancelQuotients(Dim dim) const {
  // Every step takes a quotient away and brings those inside it, which are smaller.
  for (const std::string &symbol : dim.symbols()) {
    auto it = quotientTable.find(symbol);
    if (it == quotientTable.end() || it->second.remainder)
      continue;
    const Dim numerator = it->second.numerator, denominator = canonical(it->second.denominator);
    // dim = symbol * factor + rest, and as much of the factor as the denominator divides.
    Dim factor, divided;
    for (const auto &[monomial, coefficient] : dim.terms()) {
      auto at = std::find(monomial.begin(), monomial.end(), symbol);
      if (at == monomial.end())
        continue;
      Dim term(coefficient);
      for (auto other = monomial.begin(); other != monomial.end(); ++other)
        if (other != at)
          term = term * Dim::symbol(*other);
      factor = factor + term;
      if (term.dividedBy(denominator))
        divided = divided + term;
    }
    if (factor.dividedBy(denominator))
      divided = factor;
    if (divided == Dim(0))
      continue;
    Dim rest = dim - Dim::symbol(symbol) * divided;
    return canonical(rest + numerator * *divided.dividedBy(denominator));
  }
  return dim;
}

void DimContext::unbindSince(size_t count) {
  for (size_t i = count; i < bound.size(); ++i)
    bindings.erase(bound[i]);
  bound.resize(count);
}

bool DimContext::same(const Dim &a, const Dim &b) const {
  if (isUnknown(a) || isUnknown(b))
    return a == b;
  return a == b || canonical(a) == canonical(b);
}

DimRelation DimContext::unify(const Dim &a, const Dim &b) {
  if (same(a, b))
    return DimRelation::Equal;
  Dim x = resolve(a), y = resolve(b);
  auto tryBind = [&](const Dim &variable, const Dim &to) {
    std::optional<std::string> symbol = variable.asSymbol();
    if (!symbol || !isVariable(*symbol) || isUnknown(to))
      return false;
    std::vector<std::string> used = to.symbols();
    if (std::find(used.begin(), used.end(), *symbol) != used.end())
      return false;
    bindings[*symbol] = to;
    bound.push_back(*symbol);
    return true;
  };
  if (tryBind(x, y) || tryBind(y, x))
    return DimRelation::Equal;
  if (hasFreeVariables(x) || hasFreeVariables(y))
    return DimRelation::Undecided;
  return DimRelation::Different;
}

void DimContext::assume(const Dim &a, const Dim &b) {
  Dim difference = canonical(a) - canonical(b);
  for (const std::string &symbol : difference.symbols()) {
    if (valueOf(symbol))
      continue;
    Dim rest = difference.substitute([&](const std::string &name) -> std::optional<Dim> {
      if (name == symbol)
        return Dim(0);
      return std::nullopt;
    });
    Dim part = difference - rest;
    Dim self = Dim::symbol(symbol);
    if (part == self)
      equalities.emplace_back(symbol, rest * Dim(-1));
    else if (part == self * Dim(-1))
      equalities.emplace_back(symbol, rest);
    else
      continue;
    return;
  }
}

void DimContext::assumeNatural(const Dim &dim) { naturals.push_back(dim); }

bool DimContext::isNatural(const Dim &dim) const {
  auto isSum = [&](const Dim &sum) {
    return std::all_of(sum.terms().begin(), sum.terms().end(), [&](const auto &term) {
      const auto &[monomial, coefficient] = term;
      return coefficient > 0 &&
             std::all_of(monomial.begin(), monomial.end(), [&](const std::string &symbol) {
               if (auto it = quotientTable.find(symbol); it != quotientTable.end())
                 return isNatural(it->second.numerator) && isNatural(it->second.denominator);
               return !ints.contains(symbol);
             });
    });
  };
  Dim known = canonical(dim);
  return isSum(known) || std::any_of(naturals.begin(), naturals.end(), [&](const Dim &natural) {
           return isSum(canonical(dim - natural));
         });
}

void DimContext::nameFresh(const std::string &symbol, const std::string &name) {
  freshNames.emplace(symbol, name);
}

Dim DimContext::named(const Dim &dim) const {
  return resolve(dim).substitute([&](const std::string &symbol) -> std::optional<Dim> {
    auto it = freshNames.find(symbol);
    return it == freshNames.end() ? std::nullopt : std::optional(Dim::symbol(it->second));
  });
}

std::string DimContext::print(const Dim &dim) const { return plainNames(named(dim).str()); }

std::string DimContext::plainNames(const std::string &text) const {
  auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (text[i] == '\'' && end < text.size() &&
           std::isdigit(static_cast<unsigned char>(text[end])))
      ++end;
    bool number = text[i] == '\'' && end > i + 1;
    if (number && (i == 0 || !isWord(text[i - 1]))) {
      auto it = varNames.find(text.substr(i, end - i));
      out += it == varNames.end() ? text.substr(i, end - i) : it->second;
    } else if (!number) {
      out += text[i];
      end = i + 1;
    }
    i = end;
  }
  return out;
}

} // namespace sheaf
