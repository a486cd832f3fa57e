//===- Operators.h - Spelling and precedence of operators -----*- C++ -*-===//
//
// The table of binary operators that the parser reads by and the printer writes by.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_OPERATORS_H
#define SHEAF_COMPILER_FRONTEND_OPERATORS_H

#include "compiler/frontend/AST.h"
#include "compiler/frontend/Lexer.h"

#include <string_view>

namespace sheaf {

/// Higher binds tighter. Unary operators bind tighter than binary ones, postfix forms tightest.
enum Precedence : int {
  lowestPrecedence = 0, ///< anything goes: lambdas and what takes braces too
  precedenceOfOr,
  precedenceOfAnd,
  precedenceOfComparisons, ///< not associative
  precedenceOfCons,        ///< to the right
  precedenceOfSums,
  precedenceOfProducts,
  precedenceOfUnary,
  precedenceOfPostfix,
};

struct BinaryOpInfo {
  BinaryOp op;
  TokenKind token;
  Precedence precedence;
  std::string_view spelling;
};

/// In the order of BinaryOp.
inline constexpr BinaryOpInfo binaryOps[] = {
    {BinaryOp::Or, TokenKind::OrOr, precedenceOfOr, "||"},
    {BinaryOp::And, TokenKind::AndAnd, precedenceOfAnd, "&&"},
    {BinaryOp::Eq, TokenKind::EqualEqual, precedenceOfComparisons, "=="},
    {BinaryOp::Ne, TokenKind::NotEqual, precedenceOfComparisons, "!="},
    {BinaryOp::Lt, TokenKind::Less, precedenceOfComparisons, "<"},
    {BinaryOp::Le, TokenKind::LessEqual, precedenceOfComparisons, "<="},
    {BinaryOp::Gt, TokenKind::Greater, precedenceOfComparisons, ">"},
    {BinaryOp::Ge, TokenKind::GreaterEqual, precedenceOfComparisons, ">="},
    {BinaryOp::Cons, TokenKind::ColonColon, precedenceOfCons, "::"},
    {BinaryOp::Add, TokenKind::Plus, precedenceOfSums, "+"},
    {BinaryOp::Sub, TokenKind::Minus, precedenceOfSums, "-"},
    {BinaryOp::Mul, TokenKind::Star, precedenceOfProducts, "*"},
    {BinaryOp::Div, TokenKind::Slash, precedenceOfProducts, "/"},
    {BinaryOp::Mod, TokenKind::Percent, precedenceOfProducts, "%"},
    {BinaryOp::MatMul, TokenKind::At, precedenceOfProducts, "@"},
};

constexpr const BinaryOpInfo &infoOf(BinaryOp op) { return binaryOps[static_cast<int>(op)]; }

/// `+`, `==`, ...: for messages too.
constexpr std::string_view spellingOf(BinaryOp op) { return infoOf(op).spelling; }

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_OPERATORS_H
