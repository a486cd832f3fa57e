//===- Draws.h - What draws random numbers ----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_DRAWS_H
#define SHEAF_COMPILER_FRONTEND_DRAWS_H

#include "compiler/frontend/Checker.h"

#include <map>
#include <set>
#include <vector>

namespace sheaf {

/// Which functions of a checked file may draw, by themselves or by what they call, and the numbers
/// of the sites that keys are split by. What a function does through its function parameters is
/// not counted: it depends on what is passed.
class Draws {
public:
  /// `training`: whether operators that are for training only count.
  Draws(const CheckedModule &checked, bool training);

  /// Whether a call of the operator draws.
  bool draws(const ops::Op &op) const { return op.draws() && (training || !op.trainingOnly); }
  bool mayDraw(const FnInfo &fn) const { return drawing.contains(&fn); }
  /// Of an expression or the body of a lambda.
  bool mayDraw(const typed::Expr &expr) const;
  /// The place, in source order, among the calls, draws and loops over lists of its function.
  /// Training or not makes no difference to it.
  uint32_t siteOf(const typed::Expr &expr) const { return sites.at(&expr); }

private:
  void number(const FnInfo &fn);

  bool training;
  std::vector<const FnInfo *> functions;
  std::set<const FnInfo *> drawing;
  std::map<const typed::Expr *, uint32_t> sites;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_DRAWS_H
