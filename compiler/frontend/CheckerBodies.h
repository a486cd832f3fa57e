//===- CheckerBodies.h - Checking expressions -------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERBODIES_H
#define SHEAF_COMPILER_FRONTEND_CHECKERBODIES_H

#include "compiler/frontend/CheckerEmits.h"
#include "compiler/frontend/CheckerExtents.h"
#include "compiler/frontend/CheckerHost.h"
#include "compiler/frontend/CheckerLists.h"
#include "compiler/frontend/CheckerLoops.h"
#include "compiler/frontend/CheckerPatterns.h"
#include "compiler/frontend/CheckerTypes.h"

#include <functional>
#include <string_view>

namespace sheaf {

/// Expressions. What they call is checked by others, which ask it for arguments.
class BodyChecker : CheckerPart, public LoopBodies {
public:
  BodyChecker(CheckerState &state, ExtentRules &extents, TypeConversion &conversion,
              PatternChecker &patterns, DeclarationChecker &declarations);

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
  size_t beginTrial() override;
  void endTrial(size_t begin, bool keep) override;

  //===--------------------------------------------------------------------===//
  // Names
  //===--------------------------------------------------------------------===//

  /// For a name that is no value: what another language's word is here, or one that is like it.
  std::string suggestValue(const std::string &name) const;
  std::vector<std::string> visibleValues() const;

  //===--------------------------------------------------------------------===//
  // Expressions (CheckerExprs.cpp, Expectations, Parts, Branches, Lambdas)
  //===--------------------------------------------------------------------===//

  E inferInner(const Expr &expr, TypeRef hint);
  bool isLiteralOf(const Expr &expr, TypeRef type) const;
  E literalAs(const Expr &expr, TypeRef type);
  E literalsAs(const Expr &expr, E value, TypeRef type) override;
  TypeRef withLiteralsOf(const Expr &expr, TypeRef type, TypeRef next) override;
  E checkArg(const Arg &arg, const Expectation &expected) override;
  E inferArg(const Arg &arg, TypeRef hint = nullptr) override;
  E require(E value, const Expectation &expected) override;
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
  E inferIndex(const IndexExpr &expr);
  E indexList(const IndexExpr &expr, E base);
  E indexLayers(const IndexExpr &expr, E base);
  E inferField(const FieldExpr &expr);
  E inferList(const ListExpr &expr, TypeRef hint);
  E inferTuple(const TupleExpr &expr, TypeRef hint);
  E inferBlock(const BlockExpr &expr, const Expectation *expected, TypeRef hint);
  void checkLetStmt(const Stmt &stmt, typed::BlockExpr &block);
  void checkCheckStmt(const Stmt &stmt, typed::BlockExpr &block);
  void checkDoStmt(const Stmt &stmt, typed::BlockExpr &block);
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
  bool namesFunction(const Expr &expr) const override;
  E inferFunctionName(const Expr &expr);

  //===--------------------------------------------------------------------===//
  // Calls (CheckerCalls.cpp, CheckerBuiltins.cpp)
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

  std::string listOfTensorHelp(const ops::TensorType &tensor) const;
  E listArg(const Arg &arg, const std::string &what, bool allowLayers, TypeRef hint = nullptr,
            const std::string &order = {}) override;

  //===--------------------------------------------------------------------===//
  // Functions of any rank (CheckerRanks.cpp)
  //===--------------------------------------------------------------------===//

  E callOfAnyRank(FnInfo &fn, E layer, std::vector<Arg> args, SourceRange calleeRange,
                  SourceRange range, uint32_t siteId);
  void ranksOf(const TypeExpr &written, TypeRef given, std::map<std::string, size_t> &ranks);

  ExtentRules &extents;
  TypeConversion &conversion;
  PatternChecker &patterns;
  DeclarationChecker &declarations;
  OperatorCalls operators;
  ListCalls lists;
  HostCalls hosts;
  LoopCalls loops;
  EmitCalls emissions;
  BuiltinTable builtins; ///< what these check

  unsigned depth = 0;
  unsigned trials = 0; ///< that are going on
  std::vector<CallEdge> edges;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERBODIES_H
