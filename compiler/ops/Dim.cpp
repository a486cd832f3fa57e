//===- Dim.cpp - Extents as normalised polynomials ------------------------===//

#include "compiler/ops/Dim.h"

#include <algorithm>
#include <atomic>
#include <set>

namespace sheaf {
namespace {

/// Graded lexicographic order, greatest first. It is compatible with multiplication, which exact
/// division needs and the order of the map is not.
bool greater(const Dim::Monomial &a, const Dim::Monomial &b) {
  if (a.size() != b.size())
    return a.size() > b.size();
  return a < b;
}

/// a / b as monomials, when b divides a.
std::optional<Dim::Monomial> quotientOf(const Dim::Monomial &a, const Dim::Monomial &b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end()))
    return std::nullopt;
  Dim::Monomial rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

template <typename Terms> auto leading(const Terms &terms) {
  return std::min_element(terms.begin(), terms.end(),
                          [](const auto &x, const auto &y) { return greater(x.first, y.first); });
}

bool isFreshName(const std::string &name) { return name.starts_with('?'); }

} // namespace

Dim::Dim(int64_t constant) {
  if (constant != 0)
    terms_[{}] = constant;
}

Dim Dim::symbol(std::string name) { return term({std::move(name)}, 1); }

Dim Dim::term(Monomial monomial, int64_t coefficient) {
  Dim result;
  if (coefficient != 0)
    result.terms_[std::move(monomial)] = coefficient;
  return result;
}

Dim Dim::fresh() {
  static std::atomic<uint64_t> next = 0;
  return symbol("?" + std::to_string(next.fetch_add(1, std::memory_order_relaxed)));
}

Dim Dim::operator+(const Dim &other) const {
  Dim result = *this;
  for (const auto &[monomial, coefficient] : other.terms_) {
    int64_t &sum = result.terms_[monomial];
    if (__builtin_add_overflow(sum, coefficient, &sum))
      return fresh();
    if (sum == 0)
      result.terms_.erase(monomial);
  }
  return result;
}

Dim Dim::operator-(const Dim &other) const { return *this + other * Dim(-1); }

Dim Dim::operator*(const Dim &other) const {
  Dim result;
  for (const auto &[a, x] : terms_)
    for (const auto &[b, y] : other.terms_) {
      int64_t product;
      if (__builtin_mul_overflow(x, y, &product))
        return fresh();
      Monomial monomial;
      std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(monomial));
      result = result + term(std::move(monomial), product);
    }
  return result;
}

std::optional<Dim> Dim::dividedBy(const Dim &other) const {
  if (other.terms_.empty())
    return std::nullopt;
  auto divisor = leading(other.terms_);
  Dim rest = *this, quotient;
  while (!rest.terms_.empty()) {
    auto lead = leading(rest.terms_);
    auto monomial = quotientOf(lead->first, divisor->first);
    if (!monomial || (divisor->second == -1 && lead->second == INT64_MIN) ||
        lead->second % divisor->second != 0)
      return std::nullopt;
    Dim step = term(*monomial, lead->second / divisor->second);
    Monomial before = lead->first;
    quotient = quotient + step;
    rest = rest - step * other;
    // An overflow made the rest a new symbol, and the leading term did not go.
    if (!rest.terms_.empty() && !greater(before, leading(rest.terms_)->first))
      return std::nullopt;
  }
  return quotient;
}

bool Dim::isConstant() const {
  return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty());
}

int64_t Dim::constant() const { return terms_.empty() ? 0 : terms_.begin()->second; }

Dim Dim::substitute(const std::function<std::optional<Dim>(const std::string &)> &lookup) const {
  Dim result;
  for (const auto &[monomial, coefficient] : terms_) {
    Dim product(coefficient);
    for (const std::string &name : monomial)
      product = product * lookup(name).value_or(symbol(name));
    result = result + product;
  }
  return result;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  for (const auto &[monomial, coefficient] : terms_)
    names.insert(monomial.begin(), monomial.end());
  return {names.begin(), names.end()};
}

std::optional<std::string> Dim::asSymbol() const {
  if (terms_.size() != 1 || terms_.begin()->second != 1 || terms_.begin()->first.size() != 1)
    return std::nullopt;
  return terms_.begin()->first.front();
}

bool Dim::isFresh() const {
  auto name = asSymbol();
  return name && isFreshName(*name);
}

std::string Dim::str() const {
  if (terms_.empty())
    return "0";
  std::vector<std::pair<Monomial, int64_t>> terms(terms_.begin(), terms_.end());
  std::sort(terms.begin(), terms.end(),
            [](const auto &a, const auto &b) { return greater(a.first, b.first); });
  // `1 - n` reads better than `-n + 1`.
  auto positive = std::find_if(terms.begin(), terms.end(), [](auto &t) { return t.second > 0; });
  if (positive != terms.end())
    std::rotate(terms.begin(), positive, positive + 1);

  std::string text;
  for (const auto &[monomial, coefficient] : terms) {
    uint64_t magnitude = coefficient < 0 ? -static_cast<uint64_t>(coefficient) : coefficient;
    if (!text.empty())
      text += coefficient < 0 ? " - " : " + ";
    else if (coefficient < 0)
      text += "-";
    if (monomial.empty() || magnitude != 1) {
      text += std::to_string(magnitude);
      if (!monomial.empty())
        text += "*";
    }
    for (size_t i = 0; i < monomial.size(); ++i)
      text += (i ? "*" : "") + (isFreshName(monomial[i]) ? std::string("?") : monomial[i]);
  }
  return text;
}

} // namespace sheaf
