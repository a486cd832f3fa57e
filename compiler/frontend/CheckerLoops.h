//===- CheckerLoops.h - Calls of loops --------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERLOOPS_H
#define SHEAF_COMPILER_FRONTEND_CHECKERLOOPS_H

#include "compiler/frontend/CheckerBuiltins.h"
#include "compiler/frontend/CheckerDecls.h"
#include "compiler/frontend/CheckerTypes.h"

namespace sheaf {

/// What loops ask of expressions, which they check several times.
class LoopBodies : public ArgumentChecker {
public:
  /// A type in which literals of the expression are what they are in `next`.
  virtual TypeRef withLiteralsOf(const Expr &expr, TypeRef type, TypeRef next) = 0;
  /// The value with literals of the expression as they are in `type`.
  virtual typed::Expr *literalsAs(const Expr &expr, typed::Expr *value, TypeRef type) = 0;
  virtual bool namesFunction(const Expr &expr) const = 0;
  /// What is checked until the end, which is told what this gives, is taken back, unless `keep`:
  /// the calls that were found.
  virtual size_t beginTrial() = 0;
  virtual void endTrial(size_t begin, bool keep) = 0;

protected:
  ~LoopBodies() = default;
};

/// `map`, `filter`, `fold`, `scan` and `loop`.
class LoopCalls : BuiltinCalls {
public:
  /// The help where what a fold gives is not of its start value's type.
  static constexpr std::string_view oneAccumulator =
      "the start value and every result must have one type";

  LoopCalls(CheckerState &state, ExtentRules &extents, OperatorCalls &operators, LoopBodies &bodies,
            TypeConversion &conversion, DeclarationChecker &declarations)
      : BuiltinCalls(state, extents, operators, bodies), bodies(bodies), conversion(conversion),
        declarations(declarations) {}

  void addTo(BuiltinTable &table);

private:
  E map(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E filter(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E fold(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E scan(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E loop(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E foldOrScan(std::vector<Arg> args, SourceRange range, TypeRef hint, bool scan);

  /// What is checked while it lives is taken back, unless it is kept: what was reported and bound.
  class Trial {
  public:
    explicit Trial(LoopCalls &checker);
    ~Trial();
    Trial(const Trial &) = delete;
    /// Whether nothing has been reported.
    bool good() const;
    void keep() { isKept = true; }

  private:
    LoopCalls &checker;
    Diagnostics::Mark reported;
    TypeContext::BoundMark bound;
    size_t opened, calls;
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

  LoopBodies &bodies;
  TypeConversion &conversion;
  DeclarationChecker &declarations;

  struct Widened {
    TypeRef type;               ///< null: no other would do
    std::vector<size_t> labels; ///< tieExtents()
  };
  /// By the syntax of a step that did not fit the type of the start value, or whose type is given,
  /// and what `*rows` stand for around it: the type that its loop carries.
  std::map<std::pair<const Expr *, std::map<std::string, size_t>>, Widened> carriedTypes;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERLOOPS_H
