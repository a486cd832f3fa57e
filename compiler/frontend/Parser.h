//===- Parser.h - From text to a syntax tree ------------------*- C++ -*-===//
//
// The parser of a model and the files that it uses.
//
// Newlines: inside ( ) and [ ] they are blank. Elsewhere a newline ends an expression unless the
// line ends where an operand must follow (after an infix operator, a comma, `=`, `=>`, ...) or the
// next line begins with an infix operator other than `-`, or with `.`. `(` and `[` continue an
// expression only on the same line. `else` and the `{` of an `if`, `match`, `fn` or `layer` may
// begin a line.
//
// Words: fn let match if else true false check are reserved; use dim data param layer begin a
// declaration where one may stand and are ordinary names elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_PARSER_H
#define SHEAF_COMPILER_FRONTEND_PARSER_H

#include "compiler/frontend/AST.h"
#include "compiler/frontend/Diagnostics.h"

#include <deque>

namespace sheaf {

/// What a source says: its tree, and what was found on the way.
struct Syntax {
  Module module;
  std::deque<Diagnostic> findings;
  size_t errors = 0; ///< those that are not kept included
};

/// What a source says, if it parses; null for others and for Programs.
std::shared_ptr<const Syntax> soundSyntax(const SourceFile &source);

/// Parses all files of a source. Every input gives a module: what could not be parsed is left out
/// or stands there as an Error node, and then `diags` has an error for it. `diags` must be about
/// `source`.
Module parseModule(const SourceFile &source, Diagnostics &diags);

/// The same of the files that a module uses, whose own declarations are there.
void parseUsed(const SourceFile &source, Diagnostics &diags, Module &module);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_PARSER_H
