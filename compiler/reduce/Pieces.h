//===- Pieces.h - Texts as words --------------------------------*- C++ -*-===//
//
// Programs and data as what the shrinker drops and moves.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_REDUCE_PIECES_H
#define SHEAF_COMPILER_REDUCE_PIECES_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::reduce {

/// A word of a text.
struct Piece {
  enum Kind : uint8_t {
    Word,     ///< a name or a literal
    Number,   ///< an integer
    Open,     ///< a bracket
    Close,    ///< its end
    Comma,    ///< parts items; so does a line's begin in braces and outside of brackets
    Infix,    ///< stands between two parts of an expression
    Boundary, ///< what is after it is an expression of its own: `=`, `=>`
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

} // namespace sheaf::reduce

#endif // SHEAF_COMPILER_REDUCE_PIECES_H
