//===- CheckerBodies.h - Checking expressions -------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERBODIES_H
#define SHEAF_COMPILER_FRONTEND_CHECKERBODIES_H

#include "compiler/frontend/CheckerExtents.h"
#include "compiler/frontend/CheckerOps.h"
#include "compiler/frontend/CheckerPatterns.h"
#include "compiler/frontend/CheckerTypes.h"

#include <functional>
#include <string_view>

namespace sheaf {

/// What bodies ask of the declarations that they name, which are checked when they are first asked
/// for.
class DeclarationChecker {
public:
  /// The result type is known; checks the body if it takes that. False: it cannot be known.
  virtual bool needResult(FnInfo &fn, SourceRange use) = 0;
  /// Checks the body of a function without a result type, if that has not begun.
  virtual void settle(FnInfo &fn) = 0;
  /// The type of a constant is known. False: it is being checked, so it depends on itself.
  virtual bool checkLet(LetInfo &let) = 0;
  /// A function of any rank for these ranks.
  virtual FnInfo *expansionOf(FnInfo &fn, std::map<std::string, size_t> ranks,
                              SourceRange call) = 0;

protected:
  ~DeclarationChecker() = default;
};

class BodyChecker : CheckerPart, public ArgumentChecker {
public:
  BodyChecker(CheckerState &state, ExtentRules &extents, TypeConversion &conversion,
              PatternChecker &patterns, DeclarationChecker &declarations)
      : CheckerPart(state), extents(extents), conversion(conversion), patterns(patterns),
        declarations(declarations), operators(state, extents, patterns, *this) {}

  E infer(const Expr &expr, TypeRef hint = nullptr) override;
  /// The typed expression, which fits the expectation.
  E check(const Expr &expr, const Expectation &expected);
  /// Whether what is checked may be taken back.
  bool isTrying() const { return trials > 0; }

  struct CallEdge {
    const FnInfo *caller;
    const typed::FunctionExpr *callee;
    std::vector<const typed::Expr *> args;
    SourceRange range;
  };
  const std::vector<CallEdge> &calls() const { return edges; }

private:
  //===--------------------------------------------------------------------===//
  // Names
  //===--------------------------------------------------------------------===//

  /// For a name that is no value: what another language's word is here, or one that is like it.
  std::string suggestValue(const std::string &name) const;
  std::vector<std::string> visibleValues() const;

  //===--------------------------------------------------------------------===//
  // Expressions (CheckerExprs.cpp, Expectations, Parts, Branches, Lambdas)
  //===--------------------------------------------------------------------===//

  /// The help where what a fold gives is not of its start value's type.
  static constexpr std::string_view oneAccumulator =
      "the start value and every result must have one type";

  E inferInner(const Expr &expr, TypeRef hint);
  bool isLiteralOf(const Expr &expr, TypeRef type) const;
  E literalAs(const Expr &expr, TypeRef type);
  E literalsAs(const Expr &expr, E value, TypeRef type);
  TypeRef withLiteralsOf(const Expr &expr, TypeRef type, TypeRef next);
  E checkArg(const Arg &arg, const Expectation &expected) override;
  E inferArg(const Arg &arg, TypeRef hint = nullptr) override;
  /// Requires the type of something typed.
  E require(E value, const Expectation &expected);
  void reportMismatch(SourceRange range, const Expectation &expected, TypeRef actual);
  std::string compareInNumbers(TypeRef expected, TypeRef actual) const;
  std::string openedExtentHelp(TypeRef want, TypeRef have) const;
  std::string lengthHelp(TypeRef want, TypeRef have) const;
  /// The axis of two tensors where two unnamed extents differ, the first; both types print alike.
  std::optional<size_t> axisOfOtherExtent(TypeRef want, TypeRef have) const;

  E inferName(const NameExpr &name);
  /// The value of what files declare; null if it has none as it stands.
  E globalValue(const Named &named, const std::string &name, SourceRange range);
  E paramValue(const ParamInfo &info, E layer, SourceRange range);
  E letValue(LetInfo &info, E layer, SourceRange range);
  E inferUnary(const UnaryExpr &expr, TypeRef hint);
  E inferBinary(const BinaryExpr &expr, TypeRef hint);
  E inferHostBinary(const BinaryExpr &expr, E lhs, E rhs);
  bool isExtent(const typed::Expr &expr) const;
  E floatOf(E value);
  E inferIndex(const IndexExpr &expr);
  E indexList(const IndexExpr &expr, E base);
  E indexLayers(const IndexExpr &expr, E base);
  E inferField(const FieldExpr &expr);
  E inferList(const ListExpr &expr, TypeRef hint);
  E inferTuple(const TupleExpr &expr, TypeRef hint);
  E inferBlock(const BlockExpr &expr, const Expectation *expected, TypeRef hint);
  void checkLetStmt(const Stmt &stmt, typed::BlockExpr &block);
  void checkCheckStmt(const Stmt &stmt, typed::BlockExpr &block);
  /// Takes what comparisons of extents say, of a condition that holds or does not. `certain`: it
  /// has been checked.
  void assumeComparisons(const typed::Expr &condition, bool holds, bool certain);
  bool isNatural(const typed::Expr &expr);
  TypeRef joinBranches(const std::vector<TypeRef> &branches, const std::vector<SourceRange> &ranges,
                       const std::string &what);
  void finishLambda(typed::LambdaExpr &lambda, const Expr &syntax, E body, TypeRef result,
                    const Expectation &expected, size_t mark);
  E inferIf(const IfExpr &expr, const Expectation *expected, TypeRef hint);
  E inferMatch(const MatchExpr &expr, const Expectation *expected, TypeRef hint);
  E checkLambda(const LambdaExpr &expr, const Expectation &expected);
  E inferStandaloneLambda(const LambdaExpr &expr);
  /// A named function, operator, constructor or method where a function value is wanted: becomes a
  /// lambda that calls it.
  E expandFunctionName(const Expr &expr, const Expectation &expected);
  bool namesFunction(const Expr &expr) const;
  E inferFunctionName(const Expr &expr);

  //===--------------------------------------------------------------------===//
  // Calls (CheckerCalls.cpp, CheckerLists.cpp)
  //===--------------------------------------------------------------------===//

  E inferCall(const CallExpr &call, TypeRef hint);
  std::vector<Arg> argsOf(const CallExpr &call);
  /// What to write for `x.name(...)` where x is no layer, for a member that a layer has not, and
  /// for `name(...)` where that is a value of such a type; or nothing.
  std::string methodHelp(const std::string &name) const;
  std::string membersHelp(const std::string &name, const std::vector<std::string> &members) const;
  std::string calledHelp(const std::string &name, TypeRef type);
  /// Calls what a name or field means; `callee` must not be a local variable.
  E callNamed(const Expr &callee, std::vector<Arg> args, SourceRange range, uint32_t siteId,
              TypeRef hint);
  E callFunction(FnInfo &fn, E layer, std::vector<Arg> args, SourceRange calleeRange,
                 SourceRange range, uint32_t siteId);
  E callValue(E callee, const std::vector<Arg> &args, const std::string &name, SourceRange range,
              uint32_t siteId);
  E callGlobal(const Named &named, const std::string &name, std::vector<Arg> &args,
               SourceRange calleeRange, SourceRange range, uint32_t siteId, TypeRef hint);
  /// An error in the place of a call; arguments are looked at all the same.
  E refuseCall(const std::vector<Arg> &args, SourceRange at, std::string message,
               std::string help = {});
  E makeLayer(const LayerInfo &layer, const std::vector<Arg> &args, SourceRange range);
  E construct(const CheckerState::ConstructorRef &ctor, std::vector<Arg> args, SourceRange range,
              TypeRef hint);
  /// Puts named arguments in their places. False: an error was reported.
  bool arrange(std::vector<Arg> &args, const std::vector<std::string> &names,
               const std::string &callee, SourceRange range);

  using BuiltinRule = E (BodyChecker::*)(std::vector<Arg>, SourceRange, TypeRef);
  static const std::map<std::string_view, BuiltinRule> &builtins();
  E builtinMap(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFilter(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFold(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinScan(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinLoop(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E foldOrScan(std::vector<Arg> args, SourceRange range, TypeRef hint, bool scan);
  E builtinZip(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinZipShortest(std::vector<Arg> args, SourceRange range, TypeRef hint);
  struct Zipped {
    std::vector<const typed::Expr *> lists;
    TypeRef row; ///< a tuple of an element of each
  };
  std::optional<Zipped> zipped(const std::vector<Arg> &args, const std::string &name,
                               SourceRange range);
  E builtinRange(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinEnumerate(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinReverse(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinLen(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinShape(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E extentOf(E value, size_t axis, SourceRange range);
  E builtinAppend(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinConcat(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinRows(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinEinsum(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinRead(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinReadAll(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E argOfRead(const Arg &arg);
  TypeRef hostTypeOf(const ops::TensorType &tensor);
  E builtinMin(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinMax(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinAbs(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFloorDiv(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFloorMod(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E floorDivision(const char *name, typed::ScalarOp op, std::vector<Arg> args, SourceRange range);
  /// Types the arguments that stand alone. Whether there are `count` of them and each, if it is not
  /// a number that may still become anything, is one that `isHost` takes; none: one is an error.
  std::optional<bool>
  inferHostArgs(std::vector<Arg> &args, size_t count,
                const std::function<bool(const typed::Expr &, TypeRef)> &isHost);
  E hostOrOp(const char *name, typed::ScalarOp op, size_t count, std::vector<Arg> args,
             SourceRange range);
  E hostMath(typed::ScalarOp op, std::vector<Arg> args, SourceRange range, TypeRef hint);
  template <typed::ScalarOp op>
  E builtinMath(std::vector<Arg> args, SourceRange range, TypeRef hint) {
    return hostMath(op, std::move(args), range, hint);
  }
  E builtinInt(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFloat(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinToken(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E convertScalar(std::vector<Arg> args, SourceRange range, TypeRef to, const char *name);
  bool wantArgs(const std::vector<Arg> &args, size_t least, size_t most, const std::string &name,
                SourceRange range);
  std::string listOfTensorHelp(const ops::TensorType &tensor) const;
  E listArg(const Arg &arg, const std::string &what, bool allowLayers, TypeRef hint = nullptr,
            const std::string &order = {}) override;
  E functionArg(const Arg &arg, std::vector<TypeRef> params, TypeRef result,
                const std::string &what, const std::string &help = {});

  //===--------------------------------------------------------------------===//
  // Functions of any rank (CheckerRanks.cpp)
  //===--------------------------------------------------------------------===//

  E callOfAnyRank(FnInfo &fn, E layer, std::vector<Arg> args, SourceRange calleeRange,
                  SourceRange range, uint32_t siteId);
  void ranksOf(const TypeExpr &written, TypeRef given, std::map<std::string, size_t> &ranks);

  //===--------------------------------------------------------------------===//
  // Loops (CheckerLoops.cpp)
  //===--------------------------------------------------------------------===//

  /// What is checked while it lives is taken back, unless it is kept: what was reported and bound.
  class Trial {
  public:
    explicit Trial(BodyChecker &checker);
    ~Trial();
    Trial(const Trial &) = delete;
    /// Whether nothing has been reported.
    bool good() const;
    void keep() { isKept = true; }

  private:
    BodyChecker &checker;
    Diagnostics::Mark reported;
    TypeContext::BoundMark bound;
    size_t opened, edges;
    bool isKept = false;
  };
  void settleNames(const Expr &expr);

  /// The function of a loop that makes the next of what the loop carries.
  struct CarryingStep {
    std::string loop; ///< `fold`
    std::string what; ///< for messages: `the function`
    const Arg &function;
    std::vector<TypeRef> others; ///< of its parameters after the first
  };
  struct Carried {
    TypeRef type = nullptr;
    E start = nullptr, step = nullptr;
  };
  /// The start value and the step of a loop, and the type of what it carries: `wanted`, or, if that
  /// is null, one that both agree with.
  Carried checkCarried(const CarryingStep &step, const Arg &start, TypeRef wanted);
  TypeRef writtenCarried(const std::vector<const Arg *> &functions);
  TypeRef wantedCarried(TypeRef hint);
  TypeRef widenCarried(const CarryingStep &step, const Arg &begin, TypeRef start,
                       std::vector<size_t> &labels);
  std::vector<size_t> provenTies(const CarryingStep &step, const Arg &start, TypeRef wanted);
  E checkStep(const CarryingStep &step, TypeRef carried, TypeRef result);

  //===--------------------------------------------------------------------===//
  // What functions emit (CheckerEmits.cpp)
  //===--------------------------------------------------------------------===//

  bool mayEmit(TypeRef emits, const std::string &what, SourceRange range);
  E builtinEmit(std::vector<Arg> args, SourceRange range, TypeRef hint);
  void checkDoStmt(const Stmt &stmt, typed::BlockExpr &block);

  ExtentRules &extents;
  TypeConversion &conversion;
  PatternChecker &patterns;
  DeclarationChecker &declarations;
  OperatorCalls operators;

  unsigned depth = 0;
  unsigned trials = 0; ///< that are going on
  struct Widened {
    TypeRef type;               ///< null: no other would do
    std::vector<size_t> labels; ///< tieExtents()
  };
  /// By the syntax of a step that did not fit the type of the start value, or whose type is given,
  /// and what `*rows` stand for around it: the type that its loop carries.
  std::map<std::pair<const Expr *, std::map<std::string, size_t>>, Widened> carriedTypes;
  std::vector<CallEdge> edges;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERBODIES_H
