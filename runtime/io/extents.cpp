#include "runtime/io/extents.h"

#include "runtime/io/text.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace sheaf::io {

void ExtentBinder::clear() {
  bound_.clear();
  expected_.clear();
  unknown_.clear();
}

const ExtentBinder::Binding *ExtentBinder::find(std::string_view name) const {
  for (const Binding &b : bound_)
    if (b.name == name)
      return &b;
  return nullptr;
}

std::optional<int64_t> ExtentBinder::valueOf(std::string_view name) const {
  if (const Binding *binding = find(name))
    return binding->value;
  if (dims_)
    if (auto it = dims_->find(std::string(name)); it != dims_->end())
      return it->second;
  return std::nullopt;
}

void ExtentBinder::bind(std::string name, int64_t value, std::string path) {
  bound_.push_back({std::move(name), value, std::move(path)});
}

void ExtentBinder::expect(std::string expression, int64_t value, std::string path) {
  expected_.push_back({std::move(expression), value, std::move(path)});
}

int64_t ExtentBinder::unknown(const std::string &name, std::string path) {
  if (std::optional<int64_t> value = evaluate(name)) {
    if (*value < 0) // no tensor can have it: let finish() say so
      expect(name, 0, std::move(path));
    return std::max<int64_t>(*value, 0);
  }
  if (std::find(unknown_.begin(), unknown_.end(), name) == unknown_.end())
    unknown_.push_back(name);
  return 0;
}

bool ExtentBinder::mustReread() const {
  return std::any_of(unknown_.begin(), unknown_.end(),
                     [&](const std::string &name) { return evaluate(name).value_or(0) != 0; });
}

void ExtentBinder::beginReread() {
  expected_.clear();
  unknown_.clear();
}

std::string ExtentBinder::finish() const {
  for (const Binding &e : expected_) {
    std::optional<int64_t> value = evaluate(e.name);
    if (!value)
      return fmt::format("{}: the extent {} is {}, but no other field gives it that value", e.path,
                         e.name, e.value);
    if (*value != e.value) {
      std::string where;
      for (const Binding &b : bound_)
        if (e.name.find(b.name) != std::string::npos)
          where +=
              fmt::format("{} {} = {} by {}", where.empty() ? "" : ",", b.name, b.value, b.path);
      return fmt::format("{}: the extent {} is {}, expected {}:{}", e.path, e.name, e.value, *value,
                         where);
    }
  }
  return {};
}

bool ExtentBinder::isPlainName(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         name.find_first_of("+-*/() ") == std::string_view::npos;
}

namespace {

/// Reads sums of products by precedence climbing. The text is the compiler's; brackets nest no
/// deeper than in the program.
class Expression {
public:
  Expression(const ExtentBinder &bound, std::string_view text) : bound_(bound), text_(text) {}

  std::optional<int64_t> run() {
    std::optional<int64_t> value = sum(0);
    skipSpace();
    return at_ == text_.size() ? value : std::nullopt;
  }

private:
  void skipSpace() {
    while (at_ < text_.size() && isSpace(text_[at_]))
      ++at_;
  }
  char next() {
    skipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::optional<int64_t> sum(int depth) {
    std::optional<int64_t> left = product(depth);
    while (left && (next() == '+' || next() == '-')) {
      bool minus = text_[at_++] == '-';
      std::optional<int64_t> right = product(depth);
      int64_t result = 0;
      if (!right || (minus ? __builtin_sub_overflow(*left, *right, &result)
                           : __builtin_add_overflow(*left, *right, &result)))
        return std::nullopt;
      left = result;
    }
    return left;
  }

  std::optional<int64_t> product(int depth) {
    std::optional<int64_t> left = atom(depth);
    while (left && (next() == '*' || next() == '/')) {
      bool divide = text_[at_++] == '/';
      std::optional<int64_t> right = atom(depth);
      int64_t result = 0;
      if (!right || (divide && (*right <= 0 || *left % *right != 0)) ||
          (!divide && __builtin_mul_overflow(*left, *right, &result)))
        return std::nullopt;
      left = divide ? *left / *right : result;
    }
    return left;
  }

  std::optional<int64_t> atom(int depth) {
    char c = next();
    if (c == '(' && depth < 500) {
      ++at_;
      std::optional<int64_t> value = sum(depth + 1);
      if (next() != ')')
        return std::nullopt;
      ++at_;
      return value;
    }
    size_t end = std::min(text_.find_first_of("+-*/() ", at_), text_.size());
    std::string_view word = text_.substr(at_, end - at_);
    if (word.empty())
      return std::nullopt;
    at_ = end;
    if (!std::isdigit(static_cast<unsigned char>(word[0])))
      return bound_.valueOf(word);
    int64_t value = 0;
    for (char digit : word)
      if (!std::isdigit(static_cast<unsigned char>(digit)) ||
          __builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{digit - '0'}, &value))
        return std::nullopt;
    return value;
  }

  const ExtentBinder &bound_;
  std::string_view text_;
  size_t at_ = 0;
};

} // namespace

std::optional<int64_t> ExtentBinder::evaluate(std::string_view expression) const {
  return Expression(*this, expression).run();
}

} // namespace sheaf::io
