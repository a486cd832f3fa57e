//===- AstPrinter.h - Syntax trees as source text -------------*- C++ -*-===//
//
// Prints syntax trees in a normal form that the parser reads back: parsing what `printModule`
// printed and printing again gives the same text. Comments are not part of the tree. Error nodes
// print as `<error>`.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_ASTPRINTER_H
#define SHEAF_COMPILER_FRONTEND_ASTPRINTER_H

#include "compiler/frontend/AST.h"

#include <string>

namespace sheaf {

std::string printModule(const Module &module);
std::string printDecl(const Decl &decl);
std::string printExpr(const Expr &expr);
std::string printPattern(const Pattern &pattern);
std::string printType(const TypeExpr &type);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_ASTPRINTER_H
