//===- Compare.cpp - Agreement of two values ------------------------------===//

#include "compiler/oracle/Compare.h"

#include <cmath>
#include <cstdio>
#include <limits>

namespace sheaf::oracle {
namespace {

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string shapeText(const ops::RefTensor &tensor) {
  ops::TensorType type{tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}, {}};
  return type.str();
}

std::string indexText(const ops::RefTensor &tensor, size_t at) {
  std::string text;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    size_t extent = static_cast<size_t>(tensor.shape[axis]);
    text = (axis ? ", " : "") + std::to_string(at % extent) + text;
    at /= extent;
  }
  return "[" + text + "]";
}

/// Adds one pair of numbers to an error. Equal infinities agree, and so do any two NaN.
void account(TensorError &error, double expected, double actual) {
  if (std::isfinite(expected))
    error.maxAbs = std::max(error.maxAbs, std::fabs(expected));
  if (expected == actual || (std::isnan(expected) && std::isnan(actual)))
    return;
  double difference = std::fabs(expected - actual);
  error.maxError =
      std::max(error.maxError,
               std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity());
}

/// A pair of values and how they are reached: the place in `Comparer::paths_`.
struct Pair {
  Value expected, actual;
  size_t path;
};

class Comparer {
public:
  explicit Comparer(double tolerance) : tolerance_(tolerance) {}

  Comparison run(const Value &expected, const Value &actual) {
    paths_.push_back({0, {}});
    pending_.push_back({expected, actual, 0});
    while (!pending_.empty()) {
      Pair pair = std::move(pending_.back());
      pending_.pop_back();
      if (!compare(pair))
        break;
    }
    return std::move(result_);
  }

private:
  /// One step of a path: `.1` or `[3]` after its parent.
  struct Path {
    size_t parent;
    std::string step;
  };

  std::string pathText(size_t path) const {
    std::string text;
    for (; path != 0; path = paths_[path].parent)
      text = paths_[path].step + text;
    return text;
  }

  void mismatch(const Pair &pair, const std::string &where, const std::string &expected,
                const std::string &actual) {
    if (!result_.ok)
      return;
    result_.ok = false;
    std::string path = pathText(pair.path) + where;
    result_.message =
        (path.empty() ? "" : "at " + path + ": ") + "expected " + expected + ", got " + actual;
  }

  /// False when the structures differ, so that nothing after it can be compared.
  bool compare(const Pair &pair) {
    if (pair.expected.index() != pair.actual.index()) {
      mismatch(pair, "", kind(pair.expected), kind(pair.actual));
      return false;
    }
    if (std::holds_alternative<CellPtr>(pair.expected))
      return compareCells(pair);
    if (std::holds_alternative<TensorPtr>(pair.expected))
      return compareTensors(pair);
    if (auto *x = std::get_if<double>(&pair.expected)) {
      double y = std::get<double>(pair.actual);
      TensorError error;
      account(error, *x, y);
      if (!accept(error))
        mismatch(pair, "", number(*x), number(y));
      return true;
    }
    if (pair.expected != pair.actual)
      mismatch(pair, "", scalar(pair.expected), scalar(pair.actual));
    return true;
  }

  /// Records an error; whether it is within bounds.
  bool accept(const TensorError &error) {
    result_.tensors.push_back(error);
    return error.maxError <= tolerance_ * std::max(1.0, error.maxAbs);
  }

  bool compareTensors(const Pair &pair) {
    const ops::RefTensor &x = tensor(pair.expected), &y = tensor(pair.actual);
    if (x.dtype != y.dtype || x.shape != y.shape) {
      mismatch(pair, "", shapeText(x), shapeText(y));
      return false;
    }
    if (!ops::isFloat(x.dtype)) {
      for (size_t i = 0; i < x.data.size(); ++i)
        if (x.data[i] != y.data[i]) {
          mismatch(pair, indexText(x, i), number(x.data[i]), number(y.data[i]));
          break;
        }
      return true;
    }
    TensorError error;
    for (size_t i = 0; i < x.data.size(); ++i)
      account(error, x.data[i], y.data[i]);
    if (accept(error))
      return true;
    size_t worst = 0;
    for (size_t i = 0; i < x.data.size(); ++i) {
      TensorError here;
      account(here, x.data[i], y.data[i]);
      if (here.maxError == error.maxError) {
        worst = i;
        break;
      }
    }
    mismatch(pair, indexText(x, worst), number(x.data[worst]), number(y.data[worst]));
    return true;
  }

  bool compareCells(const Pair &pair) {
    const Cell &x = cell(pair.expected), &y = cell(pair.actual);
    bool isList = x.kind >= Cell::Kind::Empty;
    if (isList != (y.kind >= Cell::Kind::Empty) || (!isList && x.kind != y.kind)) {
      mismatch(pair, "", kind(pair.expected), kind(pair.actual));
      return false;
    }
    if (x.number != y.number) {
      std::string what = isList ? "a list of " : "constructor ";
      mismatch(pair, "", what + std::to_string(x.number), what + std::to_string(y.number));
      return false;
    }
    std::vector<Value> expected = isList ? elements(pair.expected) : x.children;
    std::vector<Value> actual = isList ? elements(pair.actual) : y.children;
    if (expected.size() != actual.size()) {
      mismatch(pair, "", std::to_string(expected.size()) + " fields",
               std::to_string(actual.size()));
      return false;
    }
    for (size_t i = expected.size(); i-- > 0;) {
      std::string step = std::to_string(i);
      paths_.push_back({pair.path, isList ? "[" + step + "]" : "." + step});
      pending_.push_back({expected[i], actual[i], paths_.size() - 1});
    }
    return true;
  }

  static std::string kind(const Value &value) {
    if (auto *c = std::get_if<CellPtr>(&value))
      return (*c)->kind == Cell::Kind::Tuple  ? "a tuple"
             : (*c)->kind == Cell::Kind::Data ? "a data value"
                                              : "a list";
    static constexpr const char *names[] = {"nothing", "an int", "a float", "a bool", "a tensor"};
    return names[value.index()];
  }

  static std::string scalar(const Value &value) {
    if (auto *flag = std::get_if<bool>(&value))
      return *flag ? "true" : "false";
    if (auto *x = std::get_if<int64_t>(&value))
      return std::to_string(*x);
    return kind(value);
  }

  double tolerance_;
  std::vector<Path> paths_;
  std::vector<Pair> pending_;
  Comparison result_;
};

} // namespace

double Comparison::worst() const {
  double worst = 0;
  for (const TensorError &error : tensors)
    worst = std::max(worst, error.relative());
  return worst;
}

Comparison compare(const Value &expected, const Value &actual, double tolerance) {
  return Comparer(tolerance).run(expected, actual);
}

std::vector<std::vector<double>> floatsOf(const Value &value) {
  std::vector<std::vector<double>> floats;
  std::vector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = std::move(pending.back());
    pending.pop_back();
    if (auto *number = std::get_if<double>(&next)) {
      floats.push_back({*number});
    } else if (std::holds_alternative<TensorPtr>(next)) {
      if (ops::isFloat(tensor(next).dtype))
        floats.push_back(tensor(next).data);
    } else if (std::holds_alternative<CellPtr>(next)) {
      bool isList = cell(next).kind >= Cell::Kind::Empty;
      std::vector<Value> children = isList ? elements(next) : cell(next).children;
      pending.insert(pending.end(), children.rbegin(), children.rend());
    }
  }
  return floats;
}

} // namespace sheaf::oracle
