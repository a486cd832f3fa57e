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

#include "compiler/frontend/CheckerBodies.h"

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <variant>

namespace sheaf {

/// Declarations. What else there is to check has classes of its own, which it holds.
class Checker : CheckerState, DeclarationChecker {
public:
  Checker(const Module &module, const CheckOptions &options, Diagnostics &diags, CheckedModule &out)
      : CheckerState(module, options, diags, out) {}

  void run();

private:
  ExtentRules extents{*this};
  TypeConversion conversion{*this};
  PatternChecker patterns{*this, extents};
  BodyChecker bodies{*this, extents, conversion, patterns, *this};

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
  bool checkLet(LetInfo &let) override;
  void checkLayerCycles();
  void checkBody(FnInfo &fn);
  bool needResult(FnInfo &fn, SourceRange use) override;
  void settle(FnInfo &fn) override;
  void checkEmits(FnInfo &fn);
  void checkEntry();
  void checkCallGraph();
  /// Constants must not draw.
  void checkConstants();
  bool wrapsParameter(const typed::Expr *function) const;

  // Functions of any rank (CheckerRanks.cpp).
  /// Whether a signature has extents `*rows`; then the function is made what waits for calls.
  bool makeGeneric(FnInfo &fn);
  FnInfo *expansionOf(FnInfo &fn, std::map<std::string, size_t> ranks, SourceRange call) override;

  enum class BodyState { Waiting, Active, Done };
  std::map<const FnInfo *, BodyState> bodyStates;
  std::map<const LetInfo *, BodyState> letStates;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERIMPL_H
