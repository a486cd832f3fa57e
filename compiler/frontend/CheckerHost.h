//===- CheckerHost.h - Calls of functions of host scalars -------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERHOST_H
#define SHEAF_COMPILER_FRONTEND_CHECKERHOST_H

#include "compiler/frontend/CheckerBuiltins.h"

namespace sheaf {

/// Whether an int is made of dims and literals alone: beside floats it is one.
bool isExtent(TypeContext &types, const typed::Expr &expr);

/// Functions of ints and floats that are known while the program walks an instance; conversions;
/// reads of tensors, which give such.
class HostCalls : BuiltinCalls {
public:
  using BuiltinCalls::BuiltinCalls;

  void addTo(BuiltinTable &table);
  /// An int as a float.
  E floatOf(E value);

private:
  E read(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E readAll(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E argOfRead(const Arg &arg);
  TypeRef hostTypeOf(const ops::TensorType &tensor);

  E floorDivision(const char *name, typed::ScalarOp op, std::vector<Arg> args, SourceRange range);
  /// Types the arguments that stand alone. Whether there are `count` of them and each, if it is not
  /// a number that may still become anything, is one that `isHost` takes; none: one is an error.
  std::optional<bool>
  inferHostArgs(std::vector<Arg> &args, size_t count,
                const std::function<bool(const typed::Expr &, TypeRef)> &isHost);
  E hostOrOp(const char *name, typed::ScalarOp op, size_t count, std::vector<Arg> args,
             SourceRange range);
  E hostMath(typed::ScalarOp op, const char *name, std::vector<Arg> args, SourceRange range,
             TypeRef hint);
  E convertScalar(std::vector<Arg> args, SourceRange range, TypeRef to, const char *name);
  E token(std::vector<Arg> args, SourceRange range, TypeRef hint);
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERHOST_H
