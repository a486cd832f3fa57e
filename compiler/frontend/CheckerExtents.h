//===- CheckerExtents.h - Extents of values ---------------------*- C++ -*-===//
//
// A `?` extent gets a fresh symbol when its value comes to hand (`open`); where that symbol would
// leave the arm or lambda it was made in, the extent becomes `?` again (`close`).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKEREXTENTS_H
#define SHEAF_COMPILER_FRONTEND_CHECKEREXTENTS_H

#include "compiler/frontend/CheckerState.h"

namespace sheaf {

class ExtentRules : CheckerPart {
public:
  explicit ExtentRules(CheckerState &state) : CheckerPart(state) {}

  /// Replaces open `?` extents by fresh symbols.
  TypeRef open(TypeRef type, std::vector<typed::OpenedDim> &opened);
  E opened(E value);
  /// Makes extents `?` that mention symbols opened since `mark`.
  /// With `ties`, those outside of lists and data that are equal stay so (tiedDim).
  TypeRef close(TypeRef type, size_t mark, bool ties = false);
  /// What a value of type `actual` is under the annotation: its `?` keep what is known of the
  /// value.
  TypeRef mergeAnnotation(TypeRef annotation, TypeRef actual);

  /// The type with other extents of the tensors that it has outside of lists and data, in order.
  TypeRef mapExtents(TypeRef type, const std::function<Dim(const Dim &)> &map);
  /// For each of these extents the first that is known to be equal.
  std::vector<size_t> labelsOf(TypeRef type);
  /// The type in which extents `?` with one label are tied, and others are not.
  TypeRef tieExtents(TypeRef type, const std::vector<size_t> &labels);

  /// The extent that an int expression is, if it is made of extents and literals.
  std::optional<Dim> toDim(const typed::Expr &expr);
  /// The same, if nothing in it is rounded.
  std::optional<Dim> unroundedDim(const typed::Expr &expr);
  /// What is known of how many elements a list has.
  std::optional<Dim> lengthOf(const typed::Expr &list) const;
  /// The type of a list's elements and of one that is added, which has it but for lengths of lists.
  TypeRef withLengthsOfBoth(TypeRef element, TypeRef added);
  static std::optional<Dim> plus(const std::optional<Dim> &a, const std::optional<Dim> &b);
  /// The first quotient of known numbers in an int that leaves a remainder, or null.
  const typed::ScalarExpr *inexactQuotient(const typed::Expr &expr);

private:
  TypeRef open(TypeRef type, std::vector<typed::OpenedDim> &opened, std::vector<unsigned> &path,
               std::map<std::string, Dim> &tied);
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKEREXTENTS_H
