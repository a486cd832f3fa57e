//===- CheckerWalk.h - Walking typed trees ----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERWALK_H
#define SHEAF_COMPILER_FRONTEND_CHECKERWALK_H

#include "compiler/frontend/CheckerTree.h"

namespace sheaf::typed {

/// Calls `visit` on every expression below (and with) `expr`.
template <typename Visit> void walk(const Expr *expr, Visit &&visit) {
  if (!expr)
    return;
  visit(*expr);
  auto all = [&](const std::vector<const Expr *> &exprs) {
    for (const Expr *child : exprs)
      walk(child, visit);
  };
  switch (expr->kind) {
  case ExprKind::Param:
    return walk(expr->to<ParamExpr>().layer, visit);
  case ExprKind::Constant:
    return walk(expr->to<ConstantExpr>().layer, visit);
  case ExprKind::Function:
    return walk(expr->to<FunctionExpr>().layer, visit);
  case ExprKind::Lambda:
    return walk(expr->to<LambdaExpr>().body, visit);
  case ExprKind::LayerLet:
    return walk(expr->to<LayerLetExpr>().layer, visit);
  case ExprKind::LayerList:
    all(expr->to<LayerListExpr>().elements);
    return walk(expr->to<LayerListExpr>().repeated, visit);
  case ExprKind::LayerIndex:
    walk(expr->to<LayerIndexExpr>().list, visit);
    return walk(expr->to<LayerIndexExpr>().index, visit);
  case ExprKind::LayerSlice:
    walk(expr->to<LayerSliceExpr>().list, visit);
    walk(expr->to<LayerSliceExpr>().begin, visit);
    return walk(expr->to<LayerSliceExpr>().end, visit);
  case ExprKind::Call:
    walk(expr->to<CallExpr>().callee, visit);
    return all(expr->to<CallExpr>().args);
  case ExprKind::Apply:
    for (const auto &[symbol, value] : expr->to<ApplyExpr>().extents)
      walk(value, visit);
    return all(expr->to<ApplyExpr>().operands);
  case ExprKind::Scalar:
    return all(expr->to<ScalarExpr>().operands);
  case ExprKind::Builtin:
    return all(expr->to<BuiltinExpr>().args);
  case ExprKind::Construct:
    return all(expr->to<ConstructExpr>().args);
  case ExprKind::Tuple:
    return all(expr->to<TupleExpr>().elements);
  case ExprKind::List:
    return all(expr->to<ListExpr>().elements);
  case ExprKind::Block:
    for (const Stmt &stmt : expr->to<BlockExpr>().stmts)
      walk(stmt.value, visit);
    return walk(expr->to<BlockExpr>().result, visit);
  case ExprKind::If:
    walk(expr->to<IfExpr>().condition, visit);
    walk(expr->to<IfExpr>().thenExpr, visit);
    return walk(expr->to<IfExpr>().elseExpr, visit);
  case ExprKind::Match:
    walk(expr->to<MatchExpr>().scrutinee, visit);
    for (const MatchArm &arm : expr->to<MatchExpr>().arms) {
      walk(arm.guard, visit);
      walk(arm.body, visit);
    }
    return;
  case ExprKind::Open:
    return walk(expr->to<OpenExpr>().inner, visit);
  default:
    return;
  }
}

/// Calls `visit` on a pattern and every pattern in it.
template <typename Visit> void walkPattern(const Pattern &pattern, Visit &&visit) {
  visit(pattern);
  for (const Pattern *arg : pattern.args)
    walkPattern(*arg, visit);
}

} // namespace sheaf::typed

#endif // SHEAF_COMPILER_FRONTEND_CHECKERWALK_H
