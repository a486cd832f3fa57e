//===- Bound.h - Upper bounds as polynomials --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_BOUND_H
#define SHEAF_COMPILER_ANALYSIS_BOUND_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace sheaf::passes {

/// A polynomial over symbols, which are numbers of whoever uses it and stand for sizes. Neither
/// symbols nor coefficients are ever negative, so a larger size never makes it smaller, and the
/// larger of two is at most what has the larger coefficient of each term.
class Bound {
public:
  /// Symbols with multiplicity, sorted; empty for the constant term.
  using Term = std::vector<unsigned>;

  Bound() = default;
  Bound(double constant) {
    if (constant > 0)
      terms_[{}] = constant;
  }
  static Bound symbol(unsigned symbol);

  Bound &operator+=(const Bound &other);
  Bound operator+(const Bound &other) const { return Bound(*this) += other; }
  Bound operator*(const Bound &other) const;
  bool operator==(const Bound &other) const = default;
  bool operator<(const Bound &other) const { return terms_ < other.terms_; }

  /// At least the larger of both.
  static Bound max(const Bound &a, const Bound &b);
  /// At least max(0, this - number), for a number that is not negative.
  Bound less(double number) const;
  /// Whether it is at most `other` by the terms alone.
  bool isWithin(const Bound &other) const { return max(*this, other) == other; }

  bool isZero() const { return terms_.empty(); }
  /// The number when it is one.
  std::optional<double> constant() const;
  bool has(unsigned symbol) const;

  /// With symbols replaced; those for which there is nothing stay.
  Bound substitute(const std::function<const Bound *(unsigned)> &with) const;
  /// The value when symbols are these numbers.
  double at(const std::function<double(unsigned)> &value) const;

  /// Products of terms that this thread has made, of all bounds.
  static uint64_t work();

  const std::map<Term, double> &terms() const { return terms_; }
  void add(const Term &term, double coefficient);

private:
  std::map<Term, double> terms_; ///< none is zero
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_BOUND_H
