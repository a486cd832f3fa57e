//===- shrink.h - Texts made smaller ----------------------------*- C++ -*-===//
//
// Delta debugging on the bracket structure of a text, by which both programs and data are put
// together: items of brackets are dropped, alone and many at a time, everything that names
// something is dropped at once, an argument is dropped from every call and from the declaration,
// an expression gives way to a part of it, numbers become small. It knows no grammar: whoever asks
// says which texts are of interest, and ill-formed ones are not.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_TOOLS_SHEAF_SHRINK_H
#define SHEAF_TOOLS_SHEAF_SHRINK_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::tool {

/// A word of a text.
struct Piece {
  enum Kind : uint8_t {
    Word,     ///< a name or a literal
    Number,   ///< an integer
    Open,     ///< a bracket
    Close,    ///< its end
    Comma,    ///< parts items; so does a line's begin in braces and outside of brackets
    Infix,    ///< stands between two parts of an expression
    Boundary, ///< what is behind it is an expression of its own: `=`, `=>`
    Other
  } kind = Word;
  std::string text;
  std::string before;      ///< blanks
  bool startsItem = false; ///< an item may begin here without a comma
};
using Pieces = std::vector<Piece>;

/// A model's source, without comments. Empty when it has no tokens.
Pieces programPieces(std::string_view text);
/// One line of a data file: bracket trees, JSON or words.
Pieces dataPieces(std::string_view text);
std::string textOf(const Pieces &pieces);

/// Makes pieces fewer as long as `keeps` says yes of what is left.
Pieces shrink(Pieces pieces, const std::function<bool(const Pieces &)> &keeps);

/// Makes a list shorter (ddmin): the numbers of [0, count) that are left.
std::vector<size_t> shrinkList(size_t count,
                               const std::function<bool(const std::vector<size_t> &)> &keeps);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_SHRINK_H
