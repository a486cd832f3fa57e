//===- Dim.h - Extents as normalised polynomials ----------------*- C++ -*-===//
//
// A tensor extent in the language is a number, a declared `dim`, a per-instance
// dim, or sums, products and quotients of those. `Dim` keeps such an expression
// as a polynomial in normal form, so that equality of two extents is equality of
// their normal forms (docs/language.md, "Dims").
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_DIM_H
#define SHEAF_COMPILER_OPS_DIM_H

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sheaf {

/// An integer polynomial over named symbols, in normal form.
///
/// Symbols are opaque names. A quotient that is not exact as polynomials, and
/// every `?`, is a symbol of its own. Declared dims are substituted by their
/// values where a number is needed, but keep their name for messages. A result with a coefficient
/// beyond 64 bits is a fresh symbol.
class Dim {
public:
  /// A product of symbols with multiplicity, sorted by name; empty for the constant term.
  using Monomial = std::vector<std::string>;

  Dim() = default;
  Dim(int64_t constant);
  static Dim symbol(std::string name);
  /// A fresh symbol that equals only itself; prints as `?`.
  static Dim fresh();

  Dim operator+(const Dim &other) const;
  Dim operator-(const Dim &other) const;
  Dim operator*(const Dim &other) const;
  /// The exact quotient; nullopt when the division leaves a remainder or cannot be decided.
  std::optional<Dim> dividedBy(const Dim &other) const;

  bool isConstant() const;
  /// The value, for constants only.
  int64_t constant() const;
  bool operator==(const Dim &other) const = default;
  auto operator<=>(const Dim &other) const = default;

  /// Replaces symbols by what `lookup` returns; symbols it does not know stay.
  Dim substitute(const std::function<std::optional<Dim>(const std::string &)> &lookup) const;
  /// All symbols that occur, sorted, each once.
  std::vector<std::string> symbols() const;
  /// The name when this is exactly one symbol.
  std::optional<std::string> asSymbol() const;
  bool isFresh() const;

  /// Every term with its coefficient, none zero.
  const std::map<Monomial, int64_t> &terms() const { return terms_; }

  /// Source form, such as `2*hidden + 1`.
  std::string str() const;

private:
  static Dim term(Monomial monomial, int64_t coefficient);

  std::map<Monomial, int64_t> terms_; ///< no zero coefficients
};

} // namespace sheaf

#endif // SHEAF_COMPILER_OPS_DIM_H
