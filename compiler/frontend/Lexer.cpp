//===- Lexer.cpp - From text to tokens ------------------------------------===//

#include "compiler/frontend/Lexer.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <utility>

namespace sheaf {

namespace {

// <cctype> depends on the locale.
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool isNameStart(char c) { return isLetter(c) || c == '_'; }
bool isNamePart(char c) { return isNameStart(c) || isDigit(c); }

constexpr std::pair<std::string_view, TokenKind> reservedWords[] = {
    {"fn", TokenKind::KwFn},       {"let", TokenKind::KwLet},     {"match", TokenKind::KwMatch},
    {"if", TokenKind::KwIf},       {"else", TokenKind::KwElse},   {"true", TokenKind::KwTrue},
    {"false", TokenKind::KwFalse}, {"check", TokenKind::KwCheck}, {"_", TokenKind::Underscore},
};

/// Longer spellings stand before their prefixes.
constexpr std::pair<std::string_view, TokenKind> punctuation[] = {
    {"==", TokenKind::EqualEqual},   {"!=", TokenKind::NotEqual},  {"<=", TokenKind::LessEqual},
    {">=", TokenKind::GreaterEqual}, {"&&", TokenKind::AndAnd},    {"||", TokenKind::OrOr},
    {"->", TokenKind::Arrow},        {"=>", TokenKind::FatArrow},  {"::", TokenKind::ColonColon},
    {"+", TokenKind::Plus},          {"-", TokenKind::Minus},      {"*", TokenKind::Star},
    {"/", TokenKind::Slash},         {"%", TokenKind::Percent},    {"@", TokenKind::At},
    {"<", TokenKind::Less},          {">", TokenKind::Greater},    {"!", TokenKind::Bang},
    {"|", TokenKind::Pipe},          {".", TokenKind::Dot},        {",", TokenKind::Comma},
    {";", TokenKind::Semicolon},     {":", TokenKind::Colon},      {"=", TokenKind::Equal},
    {"(", TokenKind::LeftParen},     {")", TokenKind::RightParen}, {"[", TokenKind::LeftBracket},
    {"]", TokenKind::RightBracket},  {"{", TokenKind::LeftBrace},  {"}", TokenKind::RightBrace},
    {"?", TokenKind::Question},
};

/// Characters that editors and papers put in the place of ours.
constexpr std::pair<std::string_view, std::string_view> lookalikes[] = {
    {"−", "-"},  {"–", "-"},  {"—", "-"},  {"×", "*"},  {"·", "*"},   {"÷", "/"},
    {"≤", "<="}, {"≥", ">="}, {"≠", "!="}, {"→", "->"}, {"⇒", "=>"},  {"“", "\""},
    {"”", "\""}, {"∧", "&&"}, {"∨", "||"}, {"¬", "!"},  {"λ", "|x|"},
};

class Lexer {
public:
  Lexer(const SourceText &source, Diagnostics &diags)
      : text(source.text()), first(source.begin()), diags(diags) {}

  std::vector<Token> run() {
    if (text.size() >= std::numeric_limits<uint32_t>::max()) {
      diags.error({first, first}, "the file is too large", "a model file holds less than 4 GiB");
      text = {};
    }
    if (text.starts_with("\xEF\xBB\xBF"))
      pos = 3;
    while (skipBlanks(), pos < text.size() && !diags.tooManyErrors())
      lexToken();
    begin = pos;
    startsLine = true;
    push(TokenKind::End);
    return std::move(tokens);
  }

private:
  char at(size_t index) const { return index < text.size() ? text[index] : '\0'; }
  bool startsWith(std::string_view prefix) const { return text.substr(pos).starts_with(prefix); }

  SourceRange rangeFrom(size_t from) const {
    return {first + static_cast<uint32_t>(from), first + static_cast<uint32_t>(pos)};
  }

  Token &push(TokenKind kind) {
    Token &token = tokens.emplace_back();
    token.kind = kind;
    token.startsLine = std::exchange(startsLine, false);
    token.range = rangeFrom(begin);
    return token;
  }

  void pushError(std::string message, std::string help = {}) {
    diags.error(rangeFrom(begin), std::move(message), std::move(help));
    push(TokenKind::Error);
  }

  void skipBlanks() {
    while (pos < text.size()) {
      char c = text[pos];
      if (c == '\n')
        startsLine = true;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++pos;
      } else if (c == '#' || startsWith("//")) {
        size_t newline = text.find('\n', pos);
        pos = newline == std::string_view::npos ? text.size() : newline;
      } else if (startsWith("/*")) {
        skipBlockComment();
      } else {
        return;
      }
    }
  }

  void skipBlockComment() {
    size_t from = pos;
    size_t close = text.find("*/", pos + 2);
    pos += 2;
    diags.error(rangeFrom(from), "there are no block comments",
                "begin each line of the comment with '//'");
    size_t end = close == std::string_view::npos ? text.size() : close + 2;
    if (text.substr(from, end - from).find('\n') != std::string_view::npos)
      startsLine = true;
    pos = end;
  }

  void lexToken() {
    begin = pos;
    char c = text[pos];
    if (isNameStart(c))
      return lexName();
    if (isDigit(c) || (c == '.' && isDigit(at(pos + 1)) && !afterOperand()))
      return lexNumber();
    if (c == '"')
      return lexString();
    for (auto [spelling, kind] : punctuation) {
      if (startsWith(spelling)) {
        pos += spelling.size();
        push(kind);
        return;
      }
    }
    lexUnknown();
  }

  /// Whether a '.' here selects from what stands directly before it.
  bool afterOperand() const {
    if (tokens.empty() || startsLine)
      return false;
    TokenKind last = tokens.back().kind;
    return last == TokenKind::Identifier || last == TokenKind::RightParen ||
           last == TokenKind::RightBracket || last == TokenKind::RightBrace;
  }

  void lexName() {
    while (isNamePart(at(pos)))
      ++pos;
    std::string_view name = text.substr(begin, pos - begin);
    for (auto [word, kind] : reservedWords)
      if (name == word) {
        push(kind);
        return;
      }
    push(TokenKind::Identifier);
  }

  /// Skips digits and '_' between them, and appends the digits.
  void takeDigits(std::string &digits) {
    while (isDigit(at(pos)) || (at(pos) == '_' && isDigit(at(pos + 1)))) {
      if (text[pos] != '_')
        digits += text[pos];
      ++pos;
    }
  }

  void lexNumber() {
    std::string digits;
    bool isFloat = false;
    takeDigits(digits);
    bool lacksLeadingDigit = digits.empty();
    if (at(pos) == '.' && isDigit(at(pos + 1))) {
      isFloat = true;
      digits += text[pos++];
      takeDigits(digits);
    }
    if (at(pos) == 'e' || at(pos) == 'E') {
      size_t sign = at(pos + 1) == '+' || at(pos + 1) == '-' ? 1 : 0;
      if (isDigit(at(pos + 1 + sign))) {
        isFloat = true;
        digits += text.substr(pos, 1 + sign);
        pos += 1 + sign;
        takeDigits(digits);
      }
    }
    if (isNamePart(at(pos))) {
      while (isNamePart(at(pos)))
        ++pos;
      return pushError("this is neither a number nor a name", "a name cannot begin with a digit");
    }
    if (lacksLeadingDigit)
      return pushError("a number cannot begin with '.'", fmt::format("write '0{}'", digits));
    if (isFloat)
      pushFloat(digits);
    else
      pushInteger(digits);
  }

  void pushInteger(const std::string &digits) {
    int64_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc())
      return pushError("this integer is too large", "the largest is 9223372036854775807");
    push(TokenKind::Integer).integer = value;
  }

  void pushFloat(const std::string &digits) {
    double value = 0;
    auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // Out of range is also said of what is too small, which rounds to zero.
    if (result.ec != std::errc()) {
      size_t exponent = digits.find_first_of("eE");
      bool isTiny =
          exponent == std::string::npos ? digits.starts_with("0.") : digits[exponent + 1] == '-';
      if (!isTiny)
        return pushError("this number is too large for a float");
      value = 0;
    }
    push(TokenKind::Float).number = value;
  }

  void lexString() {
    ++pos;
    while (at(pos) != '"') {
      if (pos >= text.size() || text[pos] == '\n')
        return pushError("this string has no closing '\"'", "a string ends on the line it begins");
      if (text[pos] == '\\') {
        if (std::string_view("nt\"\\").find(at(pos + 1)) == std::string_view::npos ||
            pos + 1 >= text.size()) {
          uint32_t escape = first + static_cast<uint32_t>(pos);
          diags.error({escape, escape + 1}, "unknown escape in a string",
                      R"(the escapes are \n, \t, \" and \\)");
        } else {
          ++pos;
        }
      }
      ++pos;
    }
    ++pos;
    push(TokenKind::String);
  }

  /// Reports a character that begins no token, with the run of such characters after it.
  void lexUnknown() {
    char c = text[pos++];
    if (c == '&')
      return pushError("'&' is not an operator", "write '&&' for 'and'");
    if (c == '^')
      return pushError("'^' is not an operator", "pow(x, y) raises x to the power y");
    if (c == '\'')
      return pushError("unexpected character '''", "strings stand in double quotes");
    if (c > ' ' && c < 0x7F)
      return pushError(fmt::format("unexpected character '{}'", c));
    while ((static_cast<unsigned char>(at(pos)) & 0xC0) == 0x80)
      ++pos;
    std::string_view character = text.substr(begin, pos - begin);
    for (auto [lookalike, ours] : lookalikes)
      if (character == lookalike)
        return pushError(fmt::format("unexpected character '{}'", character),
                         fmt::format("write '{}'", ours));
    bool isTextual = character.size() > 1 && static_cast<unsigned char>(c) >= 0xC2;
    while (pos < text.size() && static_cast<unsigned char>(text[pos]) >= 0x80)
      ++pos;
    if (isTextual)
      return pushError("unexpected characters outside ASCII",
                       "names are made of the letters a-z and A-Z, digits and '_'");
    pushError(fmt::format("unexpected byte 0x{:02X}", static_cast<unsigned char>(c)),
              "a model file is UTF-8 text");
  }

  std::string_view text;
  uint32_t first; ///< the offset of the text
  Diagnostics &diags;
  std::vector<Token> tokens;
  size_t pos = 0;
  size_t begin = 0; ///< of the token being read
  bool startsLine = true;
};

} // namespace

std::vector<Token> lex(const SourceText &text, Diagnostics &diags) {
  return Lexer(text, diags).run();
}

std::string_view describe(TokenKind kind) {
  switch (kind) {
  case TokenKind::End:
    return "end of file";
  case TokenKind::Error:
    return "unreadable text";
  case TokenKind::Identifier:
    return "a name";
  case TokenKind::Integer:
    return "an integer";
  case TokenKind::Float:
    return "a number";
  case TokenKind::String:
    return "a string";
  case TokenKind::KwFn:
    return "'fn'";
  case TokenKind::KwLet:
    return "'let'";
  case TokenKind::KwMatch:
    return "'match'";
  case TokenKind::KwIf:
    return "'if'";
  case TokenKind::KwElse:
    return "'else'";
  case TokenKind::KwTrue:
    return "'true'";
  case TokenKind::KwFalse:
    return "'false'";
  case TokenKind::KwCheck:
    return "'check'";
  case TokenKind::Plus:
    return "'+'";
  case TokenKind::Minus:
    return "'-'";
  case TokenKind::Star:
    return "'*'";
  case TokenKind::Slash:
    return "'/'";
  case TokenKind::Percent:
    return "'%'";
  case TokenKind::At:
    return "'@'";
  case TokenKind::EqualEqual:
    return "'=='";
  case TokenKind::NotEqual:
    return "'!='";
  case TokenKind::Less:
    return "'<'";
  case TokenKind::LessEqual:
    return "'<='";
  case TokenKind::Greater:
    return "'>'";
  case TokenKind::GreaterEqual:
    return "'>='";
  case TokenKind::AndAnd:
    return "'&&'";
  case TokenKind::OrOr:
    return "'||'";
  case TokenKind::Bang:
    return "'!'";
  case TokenKind::Arrow:
    return "'->'";
  case TokenKind::FatArrow:
    return "'=>'";
  case TokenKind::ColonColon:
    return "'::'";
  case TokenKind::Pipe:
    return "'|'";
  case TokenKind::Dot:
    return "'.'";
  case TokenKind::Comma:
    return "','";
  case TokenKind::Semicolon:
    return "';'";
  case TokenKind::Colon:
    return "':'";
  case TokenKind::Equal:
    return "'='";
  case TokenKind::LeftParen:
    return "'('";
  case TokenKind::RightParen:
    return "')'";
  case TokenKind::LeftBracket:
    return "'['";
  case TokenKind::RightBracket:
    return "']'";
  case TokenKind::LeftBrace:
    return "'{'";
  case TokenKind::RightBrace:
    return "'}'";
  case TokenKind::Underscore:
    return "'_'";
  case TokenKind::Question:
    return "'?'";
  }
  return "unreadable text";
}

bool isReservedWord(TokenKind kind) {
  return kind >= TokenKind::KwFn && kind <= TokenKind::KwCheck;
}

std::string unquote(std::string_view literal) {
  std::string value;
  for (size_t i = 1; i + 1 < literal.size(); ++i) {
    char c = literal[i];
    if (c == '\\' && i + 2 < literal.size()) {
      c = literal[++i];
      c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    value += c;
  }
  return value;
}

} // namespace sheaf
