//===- Lexer.h - From text to tokens --------------------------*- C++ -*-===//
//
// Tokens of a model file. Comments (`//` and `#` to the end of the line) and blanks are dropped;
// newlines survive as `Token::startsLine`, because what they mean depends on the brackets around.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_LEXER_H
#define SHEAF_COMPILER_FRONTEND_LEXER_H

#include "compiler/frontend/Diagnostics.h"
#include "compiler/frontend/Source.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

enum class TokenKind : uint8_t {
  End,
  Error, ///< text that is no token; the lexer has reported it
  Identifier,
  Integer,
  Float,
  String,
  // Reserved words.
  KwFn,
  KwLet,
  KwMatch,
  KwIf,
  KwElse,
  KwTrue,
  KwFalse,
  KwCheck,
  // Punctuation.
  Plus,
  Minus,
  Star,
  Slash,
  Percent,
  At,
  EqualEqual,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  AndAnd,
  OrOr,
  Bang,
  Arrow,
  FatArrow,
  ColonColon,
  Pipe,
  Dot,
  Comma,
  Semicolon,
  Colon,
  Equal,
  LeftParen,
  RightParen,
  LeftBracket,
  RightBracket,
  LeftBrace,
  RightBrace,
  Underscore,
  Question
};

struct Token {
  TokenKind kind = TokenKind::End;
  /// Whether a newline (or the start of the file) lies between this token and the one before.
  bool startsLine = false;
  SourceRange range;
  int64_t integer = 0; ///< of an Integer
  double number = 0;   ///< of a Float
};

/// All tokens of the file, an End token last. Malformed text is reported and becomes Error tokens.
std::vector<Token> lex(const SourceText &text, Diagnostics &diags);

/// How a kind is spelt, for messages: `')'`, `a name`, `an integer`, `end of file`.
std::string_view describe(TokenKind kind);

/// Whether the kind is a reserved word.
bool isReservedWord(TokenKind kind);

/// The value of a String token from its source text, quotes included.
std::string unquote(std::string_view literal);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_LEXER_H
