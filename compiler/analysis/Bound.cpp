//===- Bound.cpp - Upper bounds as polynomials ----------------------------===//

#include "compiler/analysis/Bound.h"

#include <algorithm>

namespace sheaf::passes {

Bound Bound::symbol(unsigned symbol) {
  Bound bound;
  bound.terms_[{symbol}] = 1;
  return bound;
}

void Bound::add(const Term &term, double coefficient) {
  if (coefficient > 0)
    terms_[term] += coefficient;
}

Bound &Bound::operator+=(const Bound &other) {
  for (const auto &[term, coefficient] : other.terms_)
    terms_[term] += coefficient;
  return *this;
}

/// See work().
static thread_local uint64_t products = 0;

uint64_t Bound::work() { return products; }

Bound Bound::operator*(const Bound &other) const {
  products += terms_.size() * other.terms_.size();
  Bound product;
  for (const auto &[a, x] : terms_)
    for (const auto &[b, y] : other.terms_) {
      Term term(a.size() + b.size());
      std::merge(a.begin(), a.end(), b.begin(), b.end(), term.begin());
      product.terms_[std::move(term)] += x * y;
    }
  return product;
}

Bound Bound::max(const Bound &a, const Bound &b) {
  Bound larger = a;
  for (const auto &[term, coefficient] : b.terms_) {
    double &own = larger.terms_[term];
    own = std::max(own, coefficient);
  }
  return larger;
}

Bound Bound::less(double number) const {
  Bound rest = *this;
  auto it = rest.terms_.find({});
  if (it == rest.terms_.end() || number <= 0)
    return rest;
  // More than the constant term cannot be taken: the others may be zero.
  if (it->second > number)
    it->second -= number;
  else
    rest.terms_.erase(it);
  return rest;
}

std::optional<double> Bound::constant() const {
  if (terms_.empty())
    return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty())
    return terms_.begin()->second;
  return std::nullopt;
}

bool Bound::has(unsigned symbol) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const auto &entry) {
    return std::binary_search(entry.first.begin(), entry.first.end(), symbol);
  });
}

Bound Bound::substitute(const std::function<const Bound *(unsigned)> &with) const {
  Bound result;
  for (const auto &[term, coefficient] : terms_) {
    Bound product;
    product.terms_[{}] = coefficient;
    for (unsigned symbol : term) {
      const Bound *replacement = with(symbol);
      product = product * (replacement ? *replacement : Bound::symbol(symbol));
    }
    result += product;
  }
  return result;
}

double Bound::at(const std::function<double(unsigned)> &value) const {
  double sum = 0;
  for (const auto &[term, coefficient] : terms_) {
    double product = coefficient;
    for (unsigned symbol : term)
      product *= value(symbol);
    sum += product;
  }
  return sum;
}

} // namespace sheaf::passes
