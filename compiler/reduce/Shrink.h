//===- Shrink.h - Texts made smaller ----------------------------*- C++ -*-===//
//
// Delta debugging on the bracket structure of a text, by which both programs and data are put
// together: items of brackets are dropped, alone and many at a time, everything that names
// something is dropped at once, an argument is dropped from every call and from the declaration, a
// result from a function's type and its tuple, names give way to what they stand for, an expression
// to a part of it, numbers become small. It only guesses at the grammar: whoever asks says which
// texts are of interest, and ill-formed ones are not.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_REDUCE_SHRINK_H
#define SHEAF_COMPILER_REDUCE_SHRINK_H

#include "compiler/reduce/Pieces.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace sheaf::reduce {

/// Makes pieces fewer as long as `keeps` says yes of what is left.
Pieces shrink(Pieces pieces, const std::function<bool(const Pieces &)> &keeps);

/// Makes a list shorter (ddmin): the numbers of [0, count) that are left.
std::vector<size_t> shrinkList(size_t count,
                               const std::function<bool(const std::vector<size_t> &)> &keeps);

} // namespace sheaf::reduce

#endif // SHEAF_COMPILER_REDUCE_SHRINK_H
