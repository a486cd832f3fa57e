//===- Pieces.cpp - Texts as words ----------------------------------------===//
#include "compiler/reduce/Pieces.h"

#include "compiler/frontend/Lexer.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace sheaf::reduce {

namespace {

Piece::Kind kindOf(TokenKind kind) {
  switch (kind) {
  case TokenKind::Integer:
    return Piece::Number;
  case TokenKind::LeftParen:
  case TokenKind::LeftBracket:
  case TokenKind::LeftBrace:
    return Piece::Open;
  case TokenKind::RightParen:
  case TokenKind::RightBracket:
  case TokenKind::RightBrace:
    return Piece::Close;
  case TokenKind::Comma:
  case TokenKind::Semicolon:
    return Piece::Comma;
  case TokenKind::Plus:
  case TokenKind::Minus:
  case TokenKind::Star:
  case TokenKind::Slash:
  case TokenKind::Percent:
  case TokenKind::At:
  case TokenKind::EqualEqual:
  case TokenKind::NotEqual:
  case TokenKind::Less:
  case TokenKind::LessEqual:
  case TokenKind::Greater:
  case TokenKind::GreaterEqual:
  case TokenKind::AndAnd:
  case TokenKind::OrOr:
  case TokenKind::ColonColon:
  case TokenKind::Pipe:
    return Piece::Infix;
  case TokenKind::Equal:
  case TokenKind::FatArrow:
  case TokenKind::Arrow:
    return Piece::Boundary;
  case TokenKind::Identifier:
  case TokenKind::Float:
  case TokenKind::String:
    return Piece::Word;
  default:
    return Piece::Other;
  }
}

} // namespace

Pieces programPieces(std::string_view text) {
  SourceFile source("reduced.sheaf", std::string(text));
  Diagnostics unheard(source);
  Pieces pieces;
  std::vector<char> open;
  for (const Token &token : lex(source.files().front(), unheard)) {
    if (token.kind == TokenKind::End)
      break;
    Piece piece;
    piece.kind = kindOf(token.kind);
    piece.text = source.slice(token.range);
    if (piece.kind == Piece::Close && !open.empty())
      open.pop_back();
    // A line inside of ( ) or [ ] begins nothing, nor does one that goes on with an operator or
    // after `=`.
    bool blank = (!open.empty() && open.back() != '{') ||
                 (!pieces.empty() && pieces.back().kind == Piece::Boundary);
    if (token.startsLine) {
      piece.before = pieces.empty() ? "" : "\n" + std::string(2 * open.size(), ' ');
      piece.startsItem =
          !blank && piece.kind != Piece::Close && (piece.kind != Piece::Infix || piece.text == "-");
    } else if (!pieces.empty()) {
      size_t end = token.range.begin;
      piece.before = end > 0 && std::isspace(static_cast<unsigned char>(text[end - 1])) ? " " : "";
    }
    if (piece.kind == Piece::Open)
      open.push_back(piece.text[0]);
    // The first of a block is an item too.
    if (!pieces.empty() && pieces.back().text == "{" && piece.kind != Piece::Close)
      piece.startsItem = true;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Pieces dataPieces(std::string_view text) {
  Pieces pieces;
  std::string before;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c))) {
      before += c;
      ++i;
      continue;
    }
    size_t end = i + 1;
    Piece piece;
    if (std::string_view("([{").find(c) != std::string_view::npos) {
      piece.kind = Piece::Open;
    } else if (std::string_view(")]}").find(c) != std::string_view::npos) {
      piece.kind = Piece::Close;
    } else if (c == ',') {
      piece.kind = Piece::Comma;
    } else if (c == ':') {
      piece.kind = Piece::Boundary;
    } else if (c == '"') {
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else {
      while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) &&
             std::string_view("()[]{},:\"").find(text[end]) == std::string_view::npos)
        ++end;
    }
    piece.text = text.substr(i, end - i);
    if (piece.kind == Piece::Word &&
        piece.text.find_first_not_of("0123456789") == std::string::npos)
      piece.kind = Piece::Number;
    piece.before = std::move(before);
    before.clear();
    // Words of a sentence, branches of a tree: after a blank, or where a bracket follows one.
    bool afterBoundary = !pieces.empty() && pieces.back().kind == Piece::Boundary;
    piece.startsItem = piece.kind != Piece::Close && piece.kind != Piece::Comma &&
                       piece.kind != Piece::Boundary && !afterBoundary &&
                       (!piece.before.empty() || piece.kind == Piece::Open);
    pieces.push_back(std::move(piece));
    i = end;
  }
  return pieces;
}

std::string textOf(const Pieces &pieces) {
  std::string text;
  for (const Piece &piece : pieces)
    text += (text.empty() ? "" : piece.before) + piece.text;
  return text;
}

} // namespace sheaf::reduce
