//===- fits.cpp - What `sheaf check --fits` asks --------------------------===//

#include "tools/sheaf/fits.h"

#include "tools/sheaf/command.h"
#include "tools/sheaf/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace sheaf::tool {

namespace {

class Reader {
public:
  explicit Reader(const std::string &text) : text_(text) {}

  bool isAtEnd() {
    skipSpace();
    return at_ == text_.size();
  }
  bool take(const std::string &word) {
    skipSpace();
    if (text_.compare(at_, word.size(), word) != 0)
      return false;
    at_ += word.size();
    return true;
  }
  std::string name() {
    skipSpace();
    size_t begin = at_;
    while (at_ < text_.size() && isOfName(text_[at_]))
      ++at_;
    if (begin == at_)
      fail(begin, "a size stands here, such as batch=64 or words<=512");
    return text_.substr(begin, at_ - begin);
  }
  uint64_t number() {
    skipSpace();
    size_t begin = at_;
    uint64_t number = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      if (number > INT64_MAX / 10 - 1)
        fail(begin, "that is more than there can be");
      number = 10 * number + static_cast<uint64_t>(text_[at_++] - '0');
    }
    if (begin == at_)
      fail(begin, "a number stands here");
    return number;
  }
  size_t at() {
    skipSpace();
    return at_;
  }

  [[noreturn]] void fail(size_t at, const std::string &why) const {
    throw UsageError(fmt::format("--fits: {}\n  {}\n  {}^", why, text_, std::string(at, ' ')));
  }

private:
  static bool isOfName(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '[' ||
           c == ']';
  }
  void skipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
  }

  const std::string &text_;
  size_t at_ = 0;
};

} // namespace

driver::FitsQuestion parseFits(const std::string &text, const std::vector<std::string> &names) {
  driver::FitsQuestion question;
  Reader reader(text);
  std::vector<std::string> seen;
  while (!reader.isAtEnd()) {
    size_t begin = reader.at();
    std::string name = reader.name();
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      reader.fail(begin, fmt::format("'{}' stands here twice", name));
    seen.push_back(name);
    size_t sign = reader.at();
    bool isCount = name == "batch" || name == "threads";
    if (!isCount && std::find(names.begin(), names.end(), name) == names.end()) {
      std::string known;
      for (const std::string &other : names)
        known += (known.empty() ? "" : ", ") + other;
      std::string meant = didYouMean(name, names);
      reader.fail(begin, fmt::format("an instance has no size '{}'{}", name,
                                     !meant.empty()  ? meant
                                     : names.empty() ? "; it has none"
                                                     : "; there are " + known));
    }
    if (isCount ? !reader.take("=") : !reader.take("<="))
      reader.fail(sign, isCount ? fmt::format("'{}=' and a number", name)
                                : fmt::format("'{}<=' and a number", name));
    size_t place = reader.at();
    uint64_t number = reader.number();
    if (isCount && number == 0)
      reader.fail(place, fmt::format("'{}' is 1 at least", name));
    if (name == "batch")
      question.batch = number;
    else if (name == "threads")
      question.threads = number;
    else
      question.most[name] = static_cast<double>(number);
    size_t comma = reader.at();
    if (!reader.isAtEnd() && !reader.take(","))
      reader.fail(comma, "a comma stands between sizes");
  }
  return question;
}

} // namespace sheaf::tool
