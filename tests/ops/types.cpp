#include "tests/ops/types.h"

#include <cctype>
#include <stdexcept>

namespace sheaf::ops::test {
namespace {

class Reader {
public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool take(std::string_view token) {
    skip();
    if (!text_.starts_with(token))
      return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token))
      throw std::runtime_error("expected " + std::string(token) + " at " + std::string(text_));
  }
  bool done() {
    skip();
    return text_.empty();
  }
  char peek() {
    skip();
    return text_.empty() ? '\0' : text_[0];
  }

  std::string word() {
    skip();
    size_t n = 0;
    while (n < text_.size() && (std::isalnum(text_[n]) || text_[n] == '_' || text_[n] == '.'))
      ++n;
    std::string result(text_.substr(0, n));
    text_.remove_prefix(n);
    if (result.empty())
      throw std::runtime_error("expected a name at " + std::string(text_));
    return result;
  }

  Dim dim() {
    Dim sum = take("-") ? Dim(0) - product() : product();
    while (true) {
      if (take("+"))
        sum = sum + product();
      else if (take("-"))
        sum = sum - product();
      else
        return sum;
    }
  }

  std::vector<Dim> dims() {
    std::vector<Dim> result;
    while (!take("]")) {
      result.push_back(dim());
      take(",");
    }
    return result;
  }

private:
  void skip() {
    while (!text_.empty() && text_[0] == ' ')
      text_.remove_prefix(1);
  }

  Dim product() {
    Dim result = factor();
    while (take("*"))
      result = result * factor();
    return result;
  }

  Dim factor() {
    if (take("?"))
      return Dim::fresh();
    std::string name = word();
    return std::isdigit(name[0]) ? Dim(std::stoll(name)) : Dim::symbol(name);
  }

  std::string_view text_;
};

OperandType readType(Reader &in) {
  std::string name = in.word();
  if (name == "list") {
    in.expect("<");
    OperandType element = readType(in);
    in.expect(">");
    element.isList = true;
    if (const TensorType *tensor = element.tensor())
      for (const Dim &dim : tensor->dims)
        element.uniform &= !dim.isFresh();
    if (in.take("["))
      element.length = in.dims().front();
    return element;
  }
  TensorType tensor;
  bool isToken = name == "token";
  if (isToken) {
    tensor.dtype = DType::I32;
    tensor.vocab = "";
    if (in.take("<")) {
      tensor.vocab = in.word();
      in.expect(">");
    }
  }
  if (in.take("[")) {
    tensor.dims = in.dims();
  } else {
    if (isToken)
      return {HostKind::Token, false};
    if (name == "int")
      return {HostKind::Int, false};
    if (name == "float")
      return {HostKind::Float, false};
    if (name == "bool")
      return {HostKind::Bool, false};
  }
  if (isToken)
    return {tensor, false};
  for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::I32, DType::I64, DType::Bool})
    if (name == dtypeName(dtype)) {
      tensor.dtype = dtype;
      return {tensor, false};
    }
  throw std::runtime_error("no type " + name);
}

Dim known(const Dim &d) {
  return d.substitute([](const std::string &name) -> std::optional<Dim> {
    if (name == "hidden")
      return Dim(256);
    if (name == "h")
      return Dim(4);
    if (name == "one")
      return Dim(1);
    return std::nullopt;
  });
}

} // namespace

Dim dim(std::string_view text) { return Reader(text).dim(); }

OperandType type(std::string_view text) {
  Reader in(text);
  OperandType result = readType(in);
  if (!in.done())
    throw std::runtime_error("more than a type in " + std::string(text));
  return result;
}

Attrs attrs(std::string_view text) {
  Attrs result;
  Reader in(text);
  while (!in.done()) {
    std::string name = in.word();
    in.expect("=");
    if (in.take("[")) {
      result[name] = in.dims();
    } else if (std::isdigit(in.peek())) {
      Reader ahead = in;
      std::string number = ahead.word();
      if (number.find('.') != std::string::npos) {
        result[name] = std::stod(number);
        in = ahead;
      } else {
        Dim value = in.dim();
        if (value.isConstant())
          result[name] = value.constant();
        else
          result[name] = value;
      }
    } else {
      Dim value = in.dim();
      if (value.isConstant())
        result[name] = value.constant();
      else
        result[name] = value;
    }
    in.take(",");
  }
  return result;
}

bool StrictOracle::same(const Dim &a, const Dim &b) const { return known(a) == known(b); }

std::optional<int64_t> StrictOracle::value(const Dim &d) const {
  Dim number = known(d);
  return number.isConstant() ? std::optional<int64_t>(number.constant()) : std::nullopt;
}

std::optional<Dim> StrictOracle::quotient(const Dim &a, const Dim &b) const {
  if (auto exact = a.dividedBy(b))
    return exact;
  return known(a).dividedBy(known(b));
}

std::string shapeOf(std::string_view name, const std::vector<std::string> &operands,
                    std::string_view attributes) {
  const Op *op = OpTable::get().find(name);
  if (!op)
    throw std::runtime_error("no operator " + std::string(name));
  std::vector<OperandType> types;
  for (const std::string &operand : operands)
    types.push_back(type(operand));
  ShapeResult result = op->shape(types, attrs(attributes), StrictOracle());
  std::string text;
  if (!result.error.empty()) {
    text = "error: " + result.error;
    if (result.operand >= 0)
      text += " [" + std::to_string(result.operand) + "]";
    if (!result.help.empty())
      text += " (help: " + result.help + ")";
    return text;
  }
  for (const TensorType &t : result.types)
    text += (text.empty() ? "" : "; ") + t.str();
  return text;
}

} // namespace sheaf::ops::test
