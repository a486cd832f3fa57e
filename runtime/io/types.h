//===- types.h - Types in words ---------------------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_IO_TYPES_H
#define SHEAF_RUNTIME_IO_TYPES_H

#include "runtime/model/layout.h"

#include <string>

namespace sheaf::io {

/// A type as the source writes it: `list<token<tag>>`, `f32[n, 50]`, `(int, Tree)`.
std::string typeName(const rt::TypeTable &types, uint32_t type);

/// `data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)`.
std::string dataDeclaration(const rt::TypeTable &types, uint32_t data);

/// Whether an extent's name says nothing about other extents (`?`).
bool isFreeDim(const std::string &name);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_TYPES_H
