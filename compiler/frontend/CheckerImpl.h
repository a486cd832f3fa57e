//===- CheckerImpl.h - The checker class ------------------------*- C++ -*-===//
//
// Behind Checker.h, private to Checker*.cpp.
//
// Order: names, dims, data types, signatures, lets, bodies, and last what needs the call graph. A
// function without a result type is checked when its type is first asked for.
//
// Errors: what went wrong has type Error, which agrees with everything, so one mistake gives one
// message.
//
// Dims: every dim has a symbol of its own in the whole file (`n`, `n'2`), so no two dims of one
// name are mistaken for each other. A callee's dims become variables at each call.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERIMPL_H
#define SHEAF_COMPILER_FRONTEND_CHECKERIMPL_H

#include "compiler/frontend/CheckerExtents.h"
#include "compiler/frontend/CheckerOps.h"
#include "compiler/frontend/CheckerPatterns.h"
#include "compiler/frontend/CheckerTypes.h"

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <variant>

namespace sheaf {

/// Declarations, and the bodies of functions. What else there is to check has classes of its own,
/// which it holds.
class Checker : CheckerState, ArgumentChecker {
public:
  Checker(const Module &module, const CheckOptions &options, Diagnostics &diags, CheckedModule &out)
      : CheckerState(module, options, diags, out) {}

  void run();

private:
  ExtentRules extents{*this};
  TypeConversion conversion{*this};
  PatternChecker patterns{*this, extents};
  OperatorCalls operators{*this, extents, patterns, *this};

  //===--------------------------------------------------------------------===//
  // Names
  //===--------------------------------------------------------------------===//

  /// For a name that is no value: what another language's word is here, or one that is like it.
  std::string suggestValue(const std::string &name) const;
  std::vector<std::string> visibleValues() const;

  //===--------------------------------------------------------------------===//
  // Declarations (CheckerDecls.cpp)
  //===--------------------------------------------------------------------===//

  void collectNames();
  void collectName(const Decl &decl);
  /// Refuses what a file that is used cannot have.
  void refuseParam(const Decl &decl, const std::string &what);
  // Files (CheckerFiles.cpp).
  /// Whether all files that are used are there.
  bool linkFiles();
  void linkUse(size_t file, const UseDecl &use);
  void checkFileCycles();
  std::string nameOfType(const std::string &name) const;
  void clash(const UseDecl &use, const std::string &name, SourceRange first, SourceRange second);
  void collectLayer(LayerInfo &layer);
  void checkDims();
  std::optional<int64_t> valueOfDim(const DeclaredDim &declared, const DimDecl &decl);
  void checkData();
  void checkDataIsRegular();
  void checkDataIsFinite();
  void checkLayerHeads();
  void checkParam(ParamInfo &param);
  void checkSignature(FnInfo &fn);
  void checkLets();
  void checkLet(LetInfo &let);
  void checkLayerCycles();
  void checkBody(FnInfo &fn);
  /// The result type is known; checks the body if it takes that. False: it cannot be known.
  bool needResult(FnInfo &fn, SourceRange use);
  void checkEntry();
  void checkCallGraph();
  /// Constants must not draw.
  void checkConstants();
  bool wrapsParameter(const typed::Expr *function) const;

  //===--------------------------------------------------------------------===//
  // Expressions (CheckerExprs.cpp, Expectations, Parts, Branches, Lambdas)
  //===--------------------------------------------------------------------===//

  /// The help where what a fold gives is not of its start value's type.
  static constexpr std::string_view oneAccumulator =
      "the start value and every result must have one type";

  E infer(const Expr &expr, TypeRef hint = nullptr) override;
  E inferInner(const Expr &expr, TypeRef hint);
  /// The typed expression, which fits the expectation.
  E check(const Expr &expr, const Expectation &expected);
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
  /// Calls what a name or field means; `callee` must not be a local variable.
  /// What to write for `x.name(...)` where x is no layer, for a member that a layer has not, and
  /// for `name(...)` where that is a value of such a type; or nothing.
  std::string methodHelp(const std::string &name) const;
  std::string membersHelp(const std::string &name, const std::vector<std::string> &members) const;
  std::string calledHelp(const std::string &name, TypeRef type);
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
  E construct(const ConstructorRef &ctor, std::vector<Arg> args, SourceRange range, TypeRef hint);
  /// Puts named arguments in their places. False: an error was reported.
  bool arrange(std::vector<Arg> &args, const std::vector<std::string> &names,
               const std::string &callee, SourceRange range);

  using BuiltinRule = E (Checker::*)(std::vector<Arg>, SourceRange, TypeRef);
  static const std::map<std::string_view, BuiltinRule> &builtins();
  E builtinMap(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFilter(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFold(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinScan(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinLoop(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E foldOrScan(std::vector<Arg> args, SourceRange range, TypeRef hint, bool scan);
  E builtinZip(std::vector<Arg> args, SourceRange range, TypeRef hint);
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

  /// Whether a signature has extents `*rows`; then the function is made what waits for calls.
  bool makeGeneric(FnInfo &fn);
  FnInfo *expansionOf(FnInfo &fn, std::map<std::string, size_t> ranks, SourceRange call);
  E callOfAnyRank(FnInfo &fn, E layer, std::vector<Arg> args, SourceRange calleeRange,
                  SourceRange range, uint32_t siteId);
  void ranksOf(const TypeExpr &written, TypeRef given, std::map<std::string, size_t> &ranks);

  //===--------------------------------------------------------------------===//
  // Loops (CheckerLoops.cpp)
  //===--------------------------------------------------------------------===//

  /// What is checked while it lives is taken back, unless it is kept: what was reported and bound.
  class Trial {
  public:
    explicit Trial(Checker &checker);
    ~Trial();
    Trial(const Trial &) = delete;
    /// Whether nothing has been reported.
    bool good() const;
    void keep() { isKept = true; }

  private:
    Checker &checker;
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

  void checkEmits(FnInfo &fn);
  bool mayEmit(TypeRef emits, const std::string &what, SourceRange range);
  E builtinEmit(std::vector<Arg> args, SourceRange range, TypeRef hint);
  void checkDoStmt(const Stmt &stmt, typed::BlockExpr &block);

  enum class BodyState { Waiting, Active, Done };
  std::map<const FnInfo *, BodyState> bodies;
  std::map<const LetInfo *, BodyState> letStates;
  unsigned depth = 0;
  unsigned trials = 0; ///< that are going on
  struct Widened {
    TypeRef type;               ///< null: no other would do
    std::vector<size_t> labels; ///< tieExtents()
  };
  /// By the syntax of a step that did not fit the type of the start value, or whose type is given,
  /// and what `*rows` stand for around it: the type that its loop carries.
  std::map<std::pair<const Expr *, std::map<std::string, size_t>>, Widened> carriedTypes;

  struct CallEdge {
    const FnInfo *caller;
    const typed::FunctionExpr *callee;
    std::vector<const typed::Expr *> args;
    SourceRange range;
  };
  std::vector<CallEdge> edges;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERIMPL_H
