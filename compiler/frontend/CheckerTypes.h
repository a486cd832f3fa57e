//===- CheckerTypes.h - Types and extents as written ------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERTYPES_H
#define SHEAF_COMPILER_FRONTEND_CHECKERTYPES_H

#include "compiler/frontend/CheckerState.h"

namespace sheaf {

/// What becomes of a dim's name that nothing declares.
enum class NewDims {
  Refuse,   ///< a dim must be known
  Quantify, ///< it becomes a dim of the function being declared
  Bind      ///< it becomes a variable, to be bound to what a value brings
};

/// Where a type stands.
struct TypeScope {
  NewDims newDims = NewDims::Refuse;
  /// Names made so far: symbols (Quantify) or variables (Bind).
  std::map<std::string, Dim> made = {};
  std::map<std::string, SourceRange> madeAt = {};
  bool allowUnknown = true;
  bool allowFunction = false; ///< at the top
  bool allowLayer = false;    ///< at the top
};

/// The name of an extent that `*pack` stands for.
std::string nameOfExtent(const std::string &pack, size_t i);

class TypeConversion : CheckerPart {
public:
  explicit TypeConversion(CheckerState &state) : CheckerPart(state) {}

  TypeRef convertType(const TypeExpr &expr, TypeScope &scope);
  std::optional<Dim> evaluateDim(const Expr &expr, TypeScope &scope);
  /// Whether a type is small enough to be walked over; that it is not is reported.
  bool withinLimits(TypeRef type, SourceRange range);
  /// Makes the names that an annotation introduces visible.
  void bindAnnotationDims(const TypeScope &scope);

private:
  TypeRef convertInner(const TypeExpr &expr, TypeScope &scope);
  TypeRef convertNamed(const NamedTypeExpr &expr, TypeScope &scope);
  std::optional<Dim> convertDim(const DimExpr &expr, TypeScope &scope);
  /// The extents that `*rows` stands for; an error makes none.
  std::optional<std::vector<Dim>> convertPack(const DimExpr &expr, TypeScope &scope);
  std::optional<Dim> combineDims(BinaryOp op, const Dim &a, const Dim &b, SourceRange range);
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERTYPES_H
