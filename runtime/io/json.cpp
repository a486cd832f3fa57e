#include "runtime/io/json.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace sheaf::io {

JsonPull::JsonPull(std::string_view text, size_t maxDepth) : source_(text), maxDepth_(maxDepth) {}

void JsonPull::fail(size_t offset, std::string message) const {
  throw TextError{offset, std::move(message)};
}

void JsonPull::unexpected(const char *expected) const {
  if (at_ >= source_.size())
    fail(at_, fmt::format("expected {}, found the end of the text", expected));
  size_t length = std::max<size_t>(utf8Length(source_.substr(at_)), 1);
  fail(at_, fmt::format("expected {}, found {}", expected, quoted(source_.substr(at_, length))));
}

void JsonPull::skipSpace() {
  while (at_ < source_.size() && (source_[at_] == ' ' || source_[at_] == '\t' ||
                                  source_[at_] == '\n' || source_[at_] == '\r'))
    ++at_;
}

JsonEvent JsonPull::peek() {
  if (!peeked_) {
    event_ = read();
    peeked_ = true;
  }
  return event_;
}

JsonEvent JsonPull::next() {
  if (peeked_) {
    peeked_ = false;
    return event_;
  }
  return event_ = read();
}

void JsonPull::skip(JsonEvent first) {
  if (first != JsonEvent::BeginObject && first != JsonEvent::BeginArray)
    return;
  size_t outside = stack_.size() - 1;
  while (stack_.size() > outside)
    next();
}

JsonEvent JsonPull::read() {
  skipSpace();
  offset_ = at_;
  bool inObject = !stack_.empty() && stack_.back();
  switch (state_) {
  case Start:
    return value();
  case AfterKey:
    if (at_ >= source_.size() || source_[at_] != ':')
      unexpected("':'");
    ++at_;
    skipSpace();
    offset_ = at_;
    return value();
  case First:
    if (at_ < source_.size() && source_[at_] == (inObject ? '}' : ']'))
      return close(inObject);
    if (!inObject)
      return value();
    break;
  case AfterValue:
    if (stack_.empty()) {
      if (at_ < source_.size())
        unexpected("nothing after the value");
      return JsonEvent::End;
    }
    if (at_ < source_.size() && source_[at_] == (inObject ? '}' : ']'))
      return close(inObject);
    if (at_ >= source_.size() || source_[at_] != ',')
      unexpected(inObject ? "',' or '}'" : "',' or ']'");
    ++at_;
    skipSpace();
    offset_ = at_;
    if (!inObject)
      return value();
    break;
  }
  if (at_ >= source_.size() || source_[at_] != '"')
    unexpected("a member name in double quotes");
  string();
  state_ = AfterKey;
  return JsonEvent::Key;
}

JsonEvent JsonPull::open(bool object) {
  if (stack_.size() >= maxDepth_)
    fail(at_, fmt::format("nested deeper than {}", maxDepth_));
  ++at_;
  stack_.push_back(object);
  state_ = First;
  return object ? JsonEvent::BeginObject : JsonEvent::BeginArray;
}

JsonEvent JsonPull::close(bool object) {
  ++at_;
  stack_.pop_back();
  state_ = AfterValue;
  return object ? JsonEvent::EndObject : JsonEvent::EndArray;
}

JsonEvent JsonPull::word(std::string_view text, JsonEvent event) {
  if (source_.substr(at_, text.size()) != text)
    unexpected("a value");
  at_ += text.size();
  value_ = text;
  state_ = AfterValue;
  return event;
}

JsonEvent JsonPull::value() {
  char c = at_ < source_.size() ? source_[at_] : '\0';
  switch (c) {
  case '{':
    return open(true);
  case '[':
    return open(false);
  case '"':
    string();
    state_ = AfterValue;
    return JsonEvent::String;
  case 't':
    return word("true", JsonEvent::True);
  case 'f':
    return word("false", JsonEvent::False);
  case 'n':
    return word("null", JsonEvent::Null);
  case 'N':
    return word("NaN", JsonEvent::Number);
  case 'I':
    return word("Infinity", JsonEvent::Number);
  default:
    if (c != '-' && (c < '0' || c > '9'))
      unexpected("a value");
    number();
    state_ = AfterValue;
    return JsonEvent::Number;
  }
}

void JsonPull::number() {
  size_t begin = at_;
  auto digits = [&] {
    size_t first = at_;
    while (at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '9')
      ++at_;
    if (at_ == first)
      unexpected("a digit");
  };
  if (source_[at_] == '-') {
    ++at_;
    if (source_.substr(at_).starts_with("Infinity")) {
      at_ += 8;
      value_ = source_.substr(begin, at_ - begin);
      return;
    }
  }
  if (at_ < source_.size() && source_[at_] == '0') {
    ++at_;
    if (at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '9')
      fail(begin, "a number does not begin with 0");
  } else {
    digits();
  }
  if (at_ < source_.size() && source_[at_] == '.') {
    ++at_;
    digits();
  }
  if (at_ < source_.size() && (source_[at_] == 'e' || source_[at_] == 'E')) {
    ++at_;
    if (at_ < source_.size() && (source_[at_] == '+' || source_[at_] == '-'))
      ++at_;
    digits();
  }
  value_ = source_.substr(begin, at_ - begin);
}

uint32_t JsonPull::hex4(size_t at) const {
  uint32_t code = 0;
  for (size_t i = at; i < at + 4; ++i) {
    char c = i < source_.size() ? source_[i] : '\0';
    uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                     : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                            : 16;
    if (digit == 16)
      fail(at - 2, "\\u needs four hexadecimal digits");
    code = code << 4 | digit;
  }
  return code;
}

static void appendUtf8(std::string &out, uint32_t code) {
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

void JsonPull::string() {
  size_t begin = at_++;
  size_t piece = at_;
  verbatim_ = true;
  for (;;) {
    if (at_ >= source_.size())
      fail(begin, "a string without its closing quote");
    unsigned char c = static_cast<unsigned char>(source_[at_]);
    if (c == '"')
      break;
    if (c < 0x20)
      fail(at_, fmt::format("a control character ({}) in a string: write it as an escape",
                            quoted(source_.substr(at_, 1))));
    if (c != '\\') {
      size_t length = utf8Length(source_.substr(at_));
      if (length == 0)
        fail(at_, fmt::format("invalid UTF-8 ({}) in a string", quoted(source_.substr(at_, 1))));
      at_ += length;
      continue;
    }
    if (verbatim_)
      decoded_.clear();
    verbatim_ = false;
    decoded_.append(source_.substr(piece, at_ - piece));
    char escape = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
    size_t escapeAt = at_;
    at_ += 2;
    switch (escape) {
    case '"':
    case '\\':
    case '/':
      decoded_ += escape;
      break;
    case 'b':
      decoded_ += '\b';
      break;
    case 'f':
      decoded_ += '\f';
      break;
    case 'n':
      decoded_ += '\n';
      break;
    case 'r':
      decoded_ += '\r';
      break;
    case 't':
      decoded_ += '\t';
      break;
    case 'u': {
      uint32_t code = hex4(at_);
      at_ += 4;
      if (code >= 0xD800 && code < 0xDC00 && source_.substr(at_).starts_with("\\u")) {
        uint32_t low = hex4(at_ + 2);
        if (low >= 0xDC00 && low < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          at_ += 6;
        }
      }
      if (code >= 0xD800 && code < 0xE000)
        fail(escapeAt, "half of a surrogate pair");
      appendUtf8(decoded_, code);
      break;
    }
    default:
      fail(escapeAt, "an unknown escape in a string");
    }
    piece = at_;
  }
  if (verbatim_) {
    value_ = source_.substr(piece, at_ - piece);
  } else {
    decoded_.append(source_.substr(piece, at_ - piece));
    value_ = decoded_;
  }
  ++at_;
}

std::string describeEvent(JsonEvent event, std::string_view text) {
  switch (event) {
  case JsonEvent::BeginObject:
    return "an object";
  case JsonEvent::EndObject:
    return "'}'";
  case JsonEvent::BeginArray:
    return "an array";
  case JsonEvent::EndArray:
    return "']'";
  case JsonEvent::Key:
    return "a member " + quoted(text);
  case JsonEvent::String:
    return "the string " + quoted(text);
  case JsonEvent::Number:
    return "the number " + std::string(text.substr(0, 40)) + (text.size() > 40 ? "..." : "");
  case JsonEvent::True:
    return "true";
  case JsonEvent::False:
    return "false";
  case JsonEvent::Null:
    return "null";
  case JsonEvent::End:
    break;
  }
  return "the end of the text";
}

void appendJsonString(std::string &out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    unsigned char c = static_cast<unsigned char>(text[0]);
    size_t length = utf8Length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      length = 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

bool parseInteger(std::string_view number, int64_t &value) {
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc() && end == number.data() + number.size())
    return true;
  // 1.0 and 1e3 are integers too, as some writers put them, where a double holds them exactly.
  double real = 0;
  if (!parseDouble(number, real) || std::trunc(real) != real || std::fabs(real) > 0x1p53)
    return false;
  if (number.find_first_of(".eE") == std::string_view::npos)
    return false;
  value = static_cast<int64_t>(real);
  return true;
}

/// Whether a number beyond the range of its type is too small (and not too large): decided by the
/// decimal exponent of its first digit that is not 0.
static bool isTiny(std::string_view number) {
  if (number.starts_with('-'))
    number.remove_prefix(1);
  size_t exponentAt = number.find_first_of("eE");
  std::string_view digits = number.substr(0, exponentAt);
  bool negative = false;
  int64_t exponent = 0;
  if (exponentAt != std::string_view::npos) {
    std::string_view text = number.substr(exponentAt + 1);
    negative = text.starts_with('-');
    if (negative || text.starts_with('+'))
      text.remove_prefix(1);
    auto result = std::from_chars(text.data(), text.data() + text.size(), exponent);
    if (result.ec != std::errc() || exponent > (int64_t{1} << 62))
      return negative;
  }
  size_t point = std::min(digits.find('.'), digits.size());
  size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos)
    return true;
  int64_t leading = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  return leading + (negative ? -exponent : exponent) < 0;
}

template <typename T> static bool parseReal(std::string_view number, T &value) {
  if (number == "NaN") {
    value = std::numeric_limits<T>::quiet_NaN();
    return true;
  }
  if (number == "Infinity" || number == "-Infinity") {
    value = std::numeric_limits<T>::infinity() * (number[0] == '-' ? T(-1) : T(1));
    return true;
  }
  auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    if (!isTiny(number))
      return false;
    value = number.starts_with('-') ? T(-0.0) : T(0);
    return true;
  }
  return result.ec == std::errc() && result.ptr == number.data() + number.size();
}

bool parseDouble(std::string_view number, double &value) { return parseReal(number, value); }
bool parseFloat(std::string_view number, float &value) { return parseReal(number, value); }

} // namespace sheaf::io
