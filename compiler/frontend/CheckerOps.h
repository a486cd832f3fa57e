//===- CheckerOps.h - Calls of tensor operators -----------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKEROPS_H
#define SHEAF_COMPILER_FRONTEND_CHECKEROPS_H

#include "compiler/frontend/CheckerExtents.h"
#include "compiler/frontend/CheckerPatterns.h"

namespace sheaf {

/// An argument: as written, or already typed (a function value is called with such).
struct Arg {
  const Expr *syntax = nullptr;
  typed::Expr *typed = nullptr;
  SourceRange range;
  const Identifier *name = nullptr;
};

/// What a value must be. `what` is the subject of the message: "the condition of 'if'".
struct Expectation {
  TypeRef type;
  std::string what;
  std::string help = {};
  TypeContext::Postponed *postponed = nullptr;
  /// Of a function whose result type is to be found: what would suit.
  TypeRef resultHint = nullptr;
  /// Of such a function: whether extents of its result that are equal stay so (tiedDim).
  bool keepsTies = false;
};

/// What checks the expressions that operators are called with.
class ArgumentChecker {
public:
  /// The typed expression; `hint` is what would suit (may be null). Its type has no open `?`.
  virtual typed::Expr *infer(const Expr &expr, TypeRef hint = nullptr) = 0;
  virtual typed::Expr *inferArg(const Arg &arg, TypeRef hint = nullptr) = 0;
  /// The typed argument, which fits the expectation.
  virtual typed::Expr *checkArg(const Arg &arg, const Expectation &expected) = 0;
  /// Requires the type of something typed.
  virtual typed::Expr *require(typed::Expr *value, const Expectation &expected) = 0;
  /// The argument as a list; an error if it is none, which is reported, with a help that says in
  /// which order arguments come.
  virtual typed::Expr *listArg(const Arg &arg, const std::string &what, bool allowLayers,
                               TypeRef hint = nullptr, const std::string &order = {}) = 0;

protected:
  ~ArgumentChecker() = default;
};

class OperatorCalls : CheckerPart {
public:
  OperatorCalls(CheckerState &state, ExtentRules &extents, PatternChecker &patterns,
                ArgumentChecker &bodies)
      : CheckerPart(state), extents(extents), patterns(patterns), bodies(bodies) {}

  E applyOp(const ops::Op &op, const std::vector<Arg> &args, SourceRange range);
  E applyInfix(const char *op, std::vector<E> operands, SourceRange range, const std::string &sign);
  /// `einsum("nd,dh->nh", x, w)` as the operators that one would write.
  E einsum(const std::vector<Arg> &args, SourceRange range);
  /// `x[i, a:b]` of a tensor.
  E indexTensor(const IndexExpr &expr, E base);
  std::optional<int64_t> staticInt(const Arg &arg, const std::string &what,
                                   const std::string &help);
  /// Literals beside floats are floats, else ints.
  void settleLiterals(const std::vector<const typed::Expr *> &operands);
  /// How a tensor is made of such a list, or nothing.
  std::string tensorOfListHelp(TypeRef list);
  /// Of `max` and `min` what they reduce and which operator takes two tensors; else nothing.
  std::string elementwiseHelp(const ops::Op &op);
  /// What to write for an index or bound that counts from the end, as in `x[:-1]`.
  std::string fromTheEndHelp(const IndexExpr &expr, const IndexItem &item,
                             const std::string &length) const;

private:
  struct Einsum;

  std::optional<ops::OperandType> operandType(E value, SourceRange range, const std::string &what);
  std::optional<Dim> extentArg(const Arg &arg, typed::ApplyExpr &apply, const std::string &what);
  std::string quotientText(const typed::ScalarExpr &quotient);
  E tensorsOfList(E list);
  E finishApply(typed::ApplyExpr *apply, std::vector<ops::OperandType> operands, SourceRange range);
  static std::string doubleTransposeHelp(const typed::ApplyExpr &apply, const std::string &help);
  std::optional<ops::ShapeResult> refusalByName(const typed::ApplyExpr &apply,
                                                std::vector<ops::OperandType> operands);

  ExtentRules &extents;
  PatternChecker &patterns;
  ArgumentChecker &bodies;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKEROPS_H
