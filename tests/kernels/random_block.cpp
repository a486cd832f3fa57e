//===- random_block.cpp - Blocks made at random ---------------------------===//

#include "tests/kernels/random_block.h"

#include "compiler/ops/Build.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"

#include <random>

using namespace mlir;

namespace sheaf::test {
namespace {

using ops::DType;

/// A tensor of the block.
struct Tensor {
  Value value;
  std::vector<Dim> dims;
  DType dtype = DType::F32;
  double bound = 2;  ///< about the greatest magnitude
  bool exact = true; ///< not rounded: steps and comparisons of it are decided
};

class Generator {
public:
  Generator(MLIRContext &context, unsigned seed)
      : random_(seed), b_(UnknownLoc::get(&context), &context) {}

  RandomBlock run(std::optional<size_t> onlyResult);

private:
  // Choices.
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  int64_t size() {
    static constexpr int64_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  12, 15,
                                        16, 17, 20, 24, 31, 32, 33, 40, 48, 70};
    return sizes[below(chance(70) ? 13 : 20)];
  }
  Dim extent() {
    if (!ragged_ || chance(60))
      return size();
    return Dim::symbol(chance(50) ? "n" : "m");
  }
  DType floatType() { return chance(80) ? DType::F32 : chance(50) ? DType::BF16 : DType::F16; }
  using Test = llvm::function_ref<bool(const Tensor &)>;
  std::optional<Tensor> choose(Test test);
  std::optional<Tensor> chooseFloat(Test test);

  // Making values.
  Tensor argument(std::vector<Dim> dims, DType dtype);
  Value numberArgument(int64_t limit);
  Tensor weight(std::vector<Dim> dims, DType dtype);
  Tensor operand(const std::vector<Dim> &dims, DType dtype);
  Tensor make(StringRef op, ArrayRef<Tensor> operands, std::vector<Dim> dims, DType dtype,
              double bound, bool exact, const ops::CallArgs &args = {}, ValueRange host = {});
  std::optional<ops::Extent> extentValue(const Dim &dim);
  std::optional<std::vector<ops::Extent>> extentValues(const std::vector<Dim> &dims);
  static bool fits(const std::vector<Dim> &dims);
  /// Keeps magnitudes small.
  Tensor tamed(Tensor t);

  // Steps.
  void step();
  void unary();
  void binary();
  void integer();
  void logic();
  void cast();
  void product();
  void gates();
  void softmax();
  void reduction();
  void concat();
  void split();
  void window();
  void pick();
  void gather();
  void transpose();
  void reshape();
  void broadcast();
  void fill();

  std::mt19937 random_;
  ImplicitLocOpBuilder b_;
  Block *body_ = nullptr;
  int64_t numArgs_ = 0;
  bool ragged_ = false;
  std::vector<Tensor> pool_;
  llvm::DenseMap<Value, std::vector<Dim>> argDims_;
  llvm::DenseMap<Value, int64_t> numberLimits_;
  std::map<std::string, Value> numberOf_; ///< the argument that a symbol of extents stands for
};

bool isNumber(const Dim &d) { return d.isConstant(); }
bool isOne(const Dim &d) { return d == Dim(1); }

/// A bound for the number of elements.
int64_t most(const std::vector<Dim> &dims) {
  int64_t total = 1;
  for (const Dim &dim : dims)
    total *= dim.substitute([](auto &) { return std::optional(Dim(18)); }).constant();
  return total;
}

std::optional<std::vector<Dim>> broadcastDims(const std::vector<Dim> &a,
                                              const std::vector<Dim> &b) {
  std::vector<Dim> out = a.size() >= b.size() ? a : b;
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const Dim &x = a[a.size() - i], &y = b[b.size() - i];
    if (x != y && !isOne(x) && !isOne(y))
      return std::nullopt;
    out[out.size() - i] = isOne(x) ? y : x;
  }
  return out;
}

bool Generator::fits(const std::vector<Dim> &dims) {
  return dims.size() <= 3 && most(dims) <= 4000;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<Tensor> Generator::choose(Test test) {
  std::vector<const Tensor *> found;
  for (const Tensor &t : pool_)
    if (test(t))
      found.push_back(&t);
  if (found.empty())
    return std::nullopt;
  // Late ones more often, so that chains grow.
  size_t n = found.size();
  size_t from = chance(50) && n > 4 ? n - 4 : 0;
  return *found[from + static_cast<size_t>(below(static_cast<int64_t>(n - from)))];
}

std::optional<Tensor> Generator::chooseFloat(Test test) {
  auto t = choose([&](const Tensor &t) { return ops::isFloat(t.dtype) && test(t); });
  return t ? std::optional(tamed(*t)) : std::nullopt;
}

Tensor Generator::tamed(Tensor t) {
  if (t.bound <= 30)
    return t;
  return make("tanh", {t}, t.dims, t.dtype, 1, false);
}

Tensor Generator::argument(std::vector<Dim> dims, DType dtype) {
  Tensor t{{}, std::move(dims), dtype, 2, true};
  auto type = ops::tensorType(b_.getContext(), ops::TensorType{dtype, t.dims, {}});
  t.value = body_->insertArgument(static_cast<unsigned>(numArgs_++), type, b_.getLoc());
  argDims_[t.value] = t.dims;
  pool_.push_back(t);
  return t;
}

Value Generator::numberArgument(int64_t limit) {
  Value value =
      body_->insertArgument(static_cast<unsigned>(numArgs_++), b_.getI64Type(), b_.getLoc());
  numberLimits_[value] = limit;
  return value;
}

Tensor Generator::weight(std::vector<Dim> dims, DType dtype) {
  Tensor t{{}, std::move(dims), dtype, 2, true};
  auto type = ops::tensorType(b_.getContext(), ops::TensorType{dtype, t.dims, {}});
  t.value = body_->addArgument(type, b_.getLoc());
  pool_.push_back(t);
  return t;
}

/// A tensor of this very shape: one that is there, an argument or a weight.
Tensor Generator::operand(const std::vector<Dim> &dims, DType dtype) {
  auto same = [&](const Tensor &t) { return t.dims == dims && t.dtype == dtype; };
  if (chance(60))
    if (auto t = choose(same))
      return ops::isFloat(dtype) ? tamed(*t) : *t;
  if (chance(40) && llvm::all_of(dims, isNumber))
    return weight(dims, dtype);
  return argument(dims, dtype);
}

Tensor Generator::make(StringRef op, ArrayRef<Tensor> operands, std::vector<Dim> dims, DType dtype,
                       double bound, bool exact, const ops::CallArgs &args, ValueRange host) {
  SmallVector<Value> values;
  for (const Tensor &t : operands)
    values.push_back(t.value);
  values.append(host.begin(), host.end());
  Tensor t{ops::applyOne(b_, op, values, args), std::move(dims), dtype, bound, exact};
  pool_.push_back(t);
  return t;
}

std::optional<ops::Extent> Generator::extentValue(const Dim &dim) {
  if (dim.isConstant())
    return ops::Extent(b_.getI64IntegerAttr(dim.constant()));
  for (const Tensor &t : pool_)
    for (auto [axis, own] : llvm::enumerate(t.dims))
      if (own == dim)
        return ops::extentOf(b_, t.value, static_cast<int64_t>(axis));
  return std::nullopt;
}

std::optional<std::vector<ops::Extent>> Generator::extentValues(const std::vector<Dim> &dims) {
  std::vector<ops::Extent> out;
  for (const Dim &dim : dims) {
    auto value = extentValue(dim);
    if (!value)
      return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

void Generator::unary() {
  auto t = chooseFloat([](const Tensor &) { return true; });
  if (!t)
    return;
  auto plain = [&](StringRef op, double bound, bool keepsExact = false) {
    make(op, {*t}, t->dims, t->dtype, bound, keepsExact && t->exact);
  };
  switch (below(18)) {
  case 0:
    return plain("neg", t->bound, true);
  case 1:
    return plain("abs", t->bound, true);
  case 2:
    return plain("relu", t->bound, true);
  case 3:
    return plain("tanh", 1);
  case 4:
    return plain("sigmoid", 1);
  case 5:
    return plain("sin", 1);
  case 6:
    return plain("cos", 1);
  case 7:
    return plain("silu", t->bound);
  case 8:
    return plain("gelu", t->bound);
  case 9:
    return plain("softplus", t->bound + 1);
  case 10:
    return t->bound <= 6 ? plain("square", t->bound * t->bound) : plain("tanh", 1);
  case 11:
    return t->bound <= 4 ? plain("exp", std::exp(t->bound)) : plain("sigmoid", 1);
  case 12:
    return t->exact ? plain("sign", 1, true) : plain("tanh", 1);
  case 13:
    return t->exact ? plain("floor", t->bound + 1, true) : plain("abs", t->bound);
  case 14:
    return t->exact ? plain("ceil", t->bound + 1, true) : plain("neg", t->bound);
  default: {
    // Functions of numbers that are not near zero.
    Tensor positive =
        make("exp", {make("tanh", {*t}, t->dims, t->dtype, 1, false)}, t->dims, t->dtype, 3, false);
    const char *names[] = {"log", "sqrt", "rsqrt"};
    make(names[below(3)], {positive}, t->dims, t->dtype, 2, false);
  }
  }
}

void Generator::binary() {
  auto x = chooseFloat([](const Tensor &) { return true; });
  if (!x)
    return;
  auto y = chooseFloat([&](const Tensor &t) {
    auto dims = broadcastDims(x->dims, t.dims);
    return t.dtype == x->dtype && dims && fits(*dims);
  });
  if (!y)
    return;
  if (chance(30)) {
    // A row, a column, one element.
    std::vector<Dim> dims = x->dims;
    for (Dim &dim : dims)
      if (chance(40))
        dim = 1;
    if (chance(50) && !dims.empty())
      dims.erase(dims.begin(), dims.begin() + below(static_cast<int64_t>(dims.size()) + 1));
    y = operand(dims, x->dtype);
  }
  if (chance(50))
    std::swap(x, y);
  std::vector<Dim> dims = *broadcastDims(x->dims, y->dims);
  bool exact = x->exact && y->exact;
  double sum = x->bound + y->bound;
  auto plain = [&](StringRef op, double bound, bool keepsExact = false) {
    make(op, {*x, *y}, dims, x->dtype, bound, keepsExact && exact);
  };
  switch (below(9)) {
  case 0:
  case 1:
    return plain("add", sum);
  case 2:
    return plain("sub", sum);
  case 3:
  case 4:
    return plain("mul", x->bound * y->bound);
  case 5:
    return plain("maximum", sum, true);
  case 6:
    return plain("minimum", sum, true);
  case 7: {
    Tensor divisor =
        make("exp", {make("tanh", {*y}, y->dims, y->dtype, 1, false)}, y->dims, y->dtype, 3, false);
    make("div", {*x, divisor}, dims, x->dtype, 3 * x->bound, false);
    return;
  }
  default:
    if (!exact)
      return plain("add", sum);
    const char *names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    Tensor condition = make(names[below(6)], {*x, *y}, dims, DType::Bool, 1, true);
    if (chance(70))
      make("where", {condition, *x, *y}, dims, x->dtype, sum, true);
  }
}

void Generator::integer() {
  auto isInt = [](const Tensor &t) {
    return (t.dtype == DType::I32 || t.dtype == DType::I64) && t.bound < 1000;
  };
  auto x = choose(isInt);
  if (!x)
    x = argument({extent()}, chance(50) ? DType::I32 : DType::I64);
  auto y = choose([&](const Tensor &t) {
    auto dims = broadcastDims(x->dims, t.dims);
    return isInt(t) && t.dtype == x->dtype && dims && fits(*dims);
  });
  std::vector<Dim> dims = *broadcastDims(x->dims, y->dims);
  double both = (x->bound + 8) * (y->bound + 8);
  const char *names[] = {"add", "sub", "mul", "maximum", "minimum"};
  switch (below(8)) {
  case 5:
    make("neg", {*x}, x->dims, x->dtype, x->bound, true);
    return;
  case 6:
    make("abs", {*x}, x->dims, x->dtype, x->bound, true);
    return;
  case 7:
    make("lt", {*x, *y}, dims, DType::Bool, 1, true);
    return;
  default:
    make(names[below(5)], {*x, *y}, dims, x->dtype, both, true);
  }
}

void Generator::logic() {
  auto x = choose([](const Tensor &t) { return t.dtype == DType::Bool; });
  if (!x)
    x = argument({extent()}, DType::Bool);
  if (chance(30)) {
    make("not", {*x}, x->dims, DType::Bool, 1, true);
    return;
  }
  auto y = choose([&](const Tensor &t) {
    auto dims = broadcastDims(x->dims, t.dims);
    return t.dtype == DType::Bool && dims && fits(*dims);
  });
  make(chance(50) ? "and" : "or", {*x, *y}, *broadcastDims(x->dims, y->dims), DType::Bool, 1, true);
}

void Generator::cast() {
  auto t = choose([](const Tensor &t) { return t.exact; });
  if (!t)
    return;
  DType to[] = {DType::F32, DType::BF16, DType::F16, DType::I32, DType::I64, DType::Bool};
  DType dtype = to[below(6)];
  bool narrow = dtype == DType::BF16 || dtype == DType::F16;
  make(ops::dtypeName(dtype), {*t}, t->dims, dtype, t->bound + 1,
       !narrow && (!ops::isFloat(dtype) || t->bound < 1000));
}

//===----------------------------------------------------------------------===//
// Products and chains
//===----------------------------------------------------------------------===//

void Generator::product() {
  auto x = chooseFloat([](const Tensor &t) { return !t.dims.empty() && t.dims.size() <= 3; });
  if (!x)
    return;
  Dim k = x->dims.back();
  double terms = static_cast<double>(most({k}));
  std::vector<Dim> batch(x->dims.begin(), x->dims.end() - std::min<size_t>(x->dims.size(), 2));
  Tensor y;
  std::vector<Dim> dims(x->dims.begin(), x->dims.end() - 1);
  auto transposed = [&](std::vector<Dim> shape) {
    if (!chance(30))
      return operand(shape, x->dtype);
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    Tensor t = operand(shape, x->dtype);
    int64_t rank = static_cast<int64_t>(shape.size());
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return make("transpose", {t}, shape, t.dtype, t.bound, t.exact,
                {{"axis1", rank - 2}, {"axis2", rank - 1}});
  };
  if (isNumber(k) && chance(55)) {
    Dim n = chance(70) ? Dim(size()) : extent();
    y = isNumber(n) && chance(80) ? weight({k, n}, x->dtype) : transposed({k, n});
    dims.push_back(n);
  } else if (chance(30)) {
    y = operand({k}, x->dtype);
  } else {
    Dim n = extent();
    std::vector<Dim> shape = chance(50) ? batch : std::vector<Dim>();
    if (x->dims.size() == 1 && chance(30))
      shape = {extent()};
    else if (!shape.empty() && chance(20))
      shape[0] = 1;
    std::vector<Dim> outer = shape;
    shape.push_back(k);
    shape.push_back(n);
    y = transposed(shape);
    if (x->dims.size() == 1)
      dims = outer;
    dims.push_back(n);
  }
  if (!fits(dims) || most(dims) * most({k}) > 60000)
    return;
  Tensor p =
      make("matmul", {*x, y}, dims, x->dtype, 1 + std::sqrt(terms) * x->bound * y.bound, false);
  if (chance(40) && !dims.empty()) {
    Tensor bias = chance(70) && isNumber(dims.back()) ? weight({dims.back()}, x->dtype)
                                                      : operand({dims.back()}, x->dtype);
    p = chance(50) ? make("add", {p, bias}, dims, p.dtype, p.bound + bias.bound, false)
                   : make("add", {bias, p}, dims, p.dtype, p.bound + bias.bound, false);
  }
  // Another product of the same shape.
  auto q = chance(50) ? choose([&](const Tensor &t) {
    return t.value != p.value && t.dims == p.dims && t.dtype == p.dtype && !t.exact;
  })
                      : std::nullopt;
  if (q)
    make("add", {p, *q}, dims, p.dtype, p.bound + q->bound, false);
}

void Generator::gates() {
  auto x = chooseFloat([](const Tensor &t) {
    return t.dtype == DType::F32 && !t.dims.empty() && t.dims.size() <= 2 &&
           isNumber(t.dims.back());
  });
  if (!x)
    return;
  int64_t parts = 2 + below(4), h = size();
  std::vector<Dim> dims = x->dims;
  dims.back() = parts * h;
  if (!fits(dims))
    return;
  Tensor p = make("matmul", {*x, weight({x->dims.back(), parts * h}, DType::F32)}, dims, DType::F32,
                  20, false);
  if (chance(60))
    p = make("add", {p, weight({parts * h}, DType::F32)}, dims, DType::F32, 22, false);
  dims.back() = h;
  int64_t axis = static_cast<int64_t>(dims.size()) - 1;
  auto pieces = ops::apply(b_, "split", p.value, {{"parts", parts}, {"axis", axis}});
  std::vector<Tensor> parts_;
  for (Value piece : pieces)
    parts_.push_back({piece, dims, DType::F32, 22, false});
  Tensor cell = operand(dims, DType::F32);
  for (Tensor &part : parts_) {
    Tensor gate = make(chance(70) ? "sigmoid" : "tanh", {part}, dims, DType::F32, 1, false);
    cell = make(chance(70) ? "mul" : "add", {gate, cell}, dims, DType::F32, cell.bound + 1, false);
  }
}

void Generator::softmax() {
  auto x = chooseFloat([](const Tensor &t) { return !t.dims.empty(); });
  if (!x)
    return;
  int64_t axis = below(static_cast<int64_t>(x->dims.size()));
  // The greatest of nothing is -inf, and a sum of nothing is 0.
  if (x->dims[static_cast<size_t>(axis)] == Dim::symbol("n"))
    return;
  std::vector<Dim> reduced = x->dims;
  reduced[static_cast<size_t>(axis)] = 1;
  ops::CallArgs args{{"axis", axis}, {"keepdims", int64_t(1)}};
  Tensor m = make("reduce_max", {*x}, reduced, x->dtype, x->bound, x->exact, args);
  Tensor d = make("sub", {*x, m}, x->dims, x->dtype, 2 * x->bound, false);
  Tensor e = make("exp", {d}, x->dims, x->dtype, 1, false);
  Tensor s = make("reduce_sum", {e}, reduced, x->dtype, 20, false, args);
  make("div", {e, s}, x->dims, x->dtype, 1, false);
}

void Generator::reduction() {
  auto x = choose(
      [](const Tensor &t) { return !t.dims.empty() && t.dtype != DType::Bool && t.bound < 1000; });
  if (!x)
    return;
  int64_t axis = below(static_cast<int64_t>(x->dims.size()));
  Dim along = x->dims[static_cast<size_t>(axis)];
  int64_t keep = below(2);
  std::vector<Dim> dims = x->dims;
  if (keep)
    dims[static_cast<size_t>(axis)] = 1;
  else
    dims.erase(dims.begin() + axis);
  ops::CallArgs args{{"axis", axis}, {"keepdims", keep}};
  bool mayBeEmpty = !isNumber(along) && along != Dim::symbol("m");
  bool isInt = !ops::isFloat(x->dtype);
  double total = x->bound * static_cast<double>(most({along}));
  int64_t which = mayBeEmpty ? 0 : below(4);
  if (which == 0)
    make("reduce_sum", {*x}, dims, x->dtype, total, isInt, args);
  else if (which == 1)
    make("reduce_max", {*x}, dims, x->dtype, x->bound, x->exact, args);
  else if (which == 2)
    make("reduce_min", {*x}, dims, x->dtype, x->bound, x->exact, args);
  else if (x->exact)
    make("argmax", {*x}, dims, DType::I32, 80, true, args);
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

void Generator::concat() {
  auto x = choose([](const Tensor &t) { return !t.dims.empty(); });
  if (!x)
    return;
  int64_t axis = below(static_cast<int64_t>(x->dims.size()));
  size_t at = static_cast<size_t>(axis);
  std::vector<Tensor> pieces{*x};
  std::vector<Dim> dims = x->dims;
  double bound = x->bound;
  bool exact = x->exact;
  for (int64_t i = below(4); i >= 0; --i) {
    std::vector<Dim> shape = x->dims;
    auto y = chance(70) ? choose([&](const Tensor &t) {
      std::vector<Dim> own = t.dims;
      if (t.dtype != x->dtype || own.size() != shape.size())
        return false;
      own[at] = shape[at];
      return own == shape;
    })
                        : std::nullopt;
    if (!y) {
      shape[at] = extent();
      y = operand(shape, x->dtype);
    }
    pieces.push_back(*y);
    dims[at] = dims[at] + y->dims[at];
    bound = std::max(bound, y->bound);
    exact &= y->exact;
  }
  if (chance(50))
    std::reverse(pieces.begin(), pieces.end());
  if (fits(dims))
    make("concat", pieces, dims, x->dtype, bound, exact, {{"axis", axis}});
}

void Generator::split() {
  std::vector<std::tuple<Tensor, size_t, int64_t>> ways;
  for (const Tensor &t : pool_)
    for (auto [axis, dim] : llvm::enumerate(t.dims))
      for (int64_t parts : {2, 3, 4, 5})
        if (dim.isConstant() && dim.constant() % parts == 0)
          ways.push_back({t, axis, parts});
  if (ways.empty())
    return;
  auto [t, axis, parts] = ways[static_cast<size_t>(below(static_cast<int64_t>(ways.size())))];
  std::vector<Dim> dims = t.dims;
  dims[axis] = dims[axis].constant() / parts;
  for (Value piece :
       ops::apply(b_, "split", t.value, {{"parts", parts}, {"axis", static_cast<int64_t>(axis)}}))
    pool_.push_back({piece, dims, t.dtype, t.bound, t.exact});
}

void Generator::window() {
  auto x = choose([](const Tensor &t) {
    return llvm::any_of(t.dims, [](const Dim &d) { return isNumber(d) && d.constant() >= 3; });
  });
  if (!x)
    return;
  size_t axis;
  do
    axis = static_cast<size_t>(below(static_cast<int64_t>(x->dims.size())));
  while (!isNumber(x->dims[axis]) || x->dims[axis].constant() < 3);
  int64_t whole = x->dims[axis].constant(), count = 1 + below(whole),
          start = below(whole - count + 1);
  std::vector<Dim> dims = x->dims;
  dims[axis] = count;
  ops::CallArgs args{{"axis", static_cast<int64_t>(axis)}, {"size", count}, {"start", start}};
  if (chance(40))
    args["start"] = ops::Extent(numberArgument(whole - count + 1));
  if (chance(15)) {
    Value number = numberArgument(count + 1);
    args["size"] = ops::Extent(number);
    std::string symbol = "i" + std::to_string(numberOf_.size());
    numberOf_[symbol] = number;
    dims[axis] = Dim::symbol(symbol);
  }
  make("window", {*x}, dims, x->dtype, x->bound, x->exact, args);
}

void Generator::pick() {
  auto x = choose([](const Tensor &t) {
    return llvm::any_of(t.dims, [](const Dim &d) { return isNumber(d) && d.constant() >= 2; });
  });
  if (!x)
    return;
  size_t axis;
  do
    axis = static_cast<size_t>(below(static_cast<int64_t>(x->dims.size())));
  while (!isNumber(x->dims[axis]) || x->dims[axis].constant() < 2);
  int64_t whole = x->dims[axis].constant();
  std::vector<Dim> dims = x->dims;
  dims.erase(dims.begin() + static_cast<int64_t>(axis));
  Value index = chance(50)
                    ? numberArgument(whole)
                    : Value(arith::ConstantOp::create(b_, b_.getI64IntegerAttr(below(whole))));
  make("pick", {*x}, dims, x->dtype, x->bound, x->exact, {{"axis", static_cast<int64_t>(axis)}},
       index);
}

void Generator::gather() {
  auto x = choose([](const Tensor &t) { return !t.dims.empty() && isNumber(t.dims[0]); });
  if (!x)
    return;
  auto index = choose([](const Tensor &t) {
    return (t.dtype == DType::I32 || t.dtype == DType::I64) && t.dims.size() <= 2;
  });
  if (!index || chance(30)) {
    std::vector<Dim> dims;
    for (int64_t i = below(3); i > 0; --i)
      dims.push_back(extent());
    index = argument(dims, chance(50) ? DType::I32 : DType::I64);
  }
  std::vector<Dim> dims = index->dims;
  dims.insert(dims.end(), x->dims.begin() + 1, x->dims.end());
  if (fits(dims))
    make("gather", {*x, *index}, dims, x->dtype, x->bound, x->exact);
}

void Generator::transpose() {
  auto x = choose([](const Tensor &t) { return t.dims.size() >= 2; });
  if (!x)
    return;
  int64_t rank = static_cast<int64_t>(x->dims.size());
  int64_t first = below(rank), second = below(rank);
  std::vector<Dim> dims = x->dims;
  std::swap(dims[static_cast<size_t>(first)], dims[static_cast<size_t>(second)]);
  make("transpose", {*x}, dims, x->dtype, x->bound, x->exact,
       {{"axis1", first}, {"axis2", second}});
}

void Generator::reshape() {
  auto x = choose([](const Tensor &) { return true; });
  if (!x)
    return;
  std::vector<Dim> dims = x->dims;
  switch (below(4)) {
  case 0: // a new axis
    dims.insert(dims.begin() + below(static_cast<int64_t>(dims.size()) + 1), Dim(1));
    break;
  case 1: // without axes of extent 1
    llvm::erase_if(dims, isOne);
    break;
  case 2: { // all in one
    if (!llvm::all_of(dims, isNumber))
      return;
    dims = {most(dims)};
    break;
  }
  default: { // one axis in two
    if (dims.empty())
      return;
    size_t axis = static_cast<size_t>(below(static_cast<int64_t>(dims.size())));
    if (!isNumber(dims[axis]))
      return;
    int64_t whole = dims[axis].constant(), factor = 1 + below(whole);
    while (whole % factor)
      factor = 1 + below(whole);
    dims[axis] = factor;
    dims.insert(dims.begin() + static_cast<int64_t>(axis), Dim(whole / factor));
    // Two axes in one behind it.
    if (axis + 2 < dims.size() && isNumber(dims[axis + 2])) {
      dims[axis + 1] = dims[axis + 1] * dims[axis + 2];
      dims.erase(dims.begin() + static_cast<int64_t>(axis) + 2);
    }
  }
  }
  auto extents = extentValues(dims);
  if (extents && fits(dims))
    make("reshape", {*x}, dims, x->dtype, x->bound, x->exact, {{"dims", *extents}});
}

void Generator::broadcast() {
  auto x = choose([](const Tensor &t) { return t.dims.size() <= 2; });
  if (!x)
    return;
  std::vector<Dim> dims = x->dims;
  for (Dim &dim : dims)
    if (isOne(dim))
      dim = extent();
  if (chance(60))
    dims.insert(dims.begin(), extent());
  auto extents = extentValues(dims);
  if (extents && fits(dims))
    make("broadcast_to", {*x}, dims, x->dtype, x->bound, x->exact, {{"dims", *extents}});
}

void Generator::fill() {
  if (chance(40)) {
    std::vector<Dim> dims;
    for (int64_t i = below(3); i > 0; --i)
      dims.push_back(extent());
    if (auto extents = extentValues(dims))
      make("full", {}, dims, DType::F32, 2, true,
           {{"value", 0.5 * static_cast<double>(below(4))}, {"dims", *extents}});
    return;
  }
  if (chance(50)) {
    Dim dim = extent();
    if (auto value = extentValue(dim))
      make("iota", {}, {dim}, DType::I32, 70, true, {{"size", *value}});
    return;
  }
  Value host = chance(50) ? numberArgument(5)
                          : Value(body_->insertArgument(static_cast<unsigned>(numArgs_++),
                                                        b_.getF64Type(), b_.getLoc()));
  bool isInt = host.getType().isInteger(64);
  make("scalar", {}, {}, isInt ? DType::I64 : DType::F32, 5, true, {}, host);
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

void Generator::step() {
  using Step = void (Generator::*)();
  static constexpr std::pair<int, Step> steps[] = {
      {22, &Generator::unary},  {26, &Generator::binary},   {5, &Generator::integer},
      {3, &Generator::logic},   {4, &Generator::cast},      {18, &Generator::product},
      {4, &Generator::gates},   {3, &Generator::softmax},   {9, &Generator::reduction},
      {9, &Generator::concat},  {6, &Generator::split},     {6, &Generator::window},
      {4, &Generator::pick},    {5, &Generator::gather},    {6, &Generator::transpose},
      {7, &Generator::reshape}, {4, &Generator::broadcast}, {4, &Generator::fill}};
  int total = 0;
  for (auto &[weight, step] : steps)
    total += weight;
  int64_t at = below(total);
  for (auto &[weight, step] : steps)
    if ((at -= weight) < 0)
      return (this->*step)();
}

RandomBlock Generator::run(std::optional<size_t> onlyResult) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(b_.getLoc());
  b_.setInsertionPointToEnd(module->getBody());
  auto block = ir::BlockOp::create(b_, "block", 0);
  body_ = &block.getBody().emplaceBlock();
  b_.setInsertionPointToEnd(body_);

  ragged_ = chance(40);
  DType dtype = floatType();
  for (int64_t i = 1 + below(3); i > 0; --i) {
    std::vector<Dim> dims;
    for (int64_t rank = chance(55) ? 1 : below(4); rank > 0; --rank)
      dims.push_back(extent());
    if (fits(dims))
      argument(dims, chance(90) ? dtype : DType::I32);
  }
  argument({size()}, dtype);
  size_t given = pool_.size();
  for (int64_t i = 1 + below(chance(80) ? 10 : 30); i > 0; --i)
    step();

  // Late tensors, some of the others, and now and then an argument, or one value twice.
  SmallVector<Value> results;
  for (size_t i = pool_.size(); i-- > given;)
    if (results.size() < 4 && (results.empty() || chance(25)))
      results.push_back(pool_[i].value);
  if (results.empty() || chance(4))
    results.push_back(pool_[static_cast<size_t>(below(static_cast<int64_t>(pool_.size())))].value);
  if (chance(3))
    results.push_back(results.front());
  if (onlyResult)
    results = {results[*onlyResult % results.size()]};
  ir::YieldOp::create(b_, results);
  for (Operation *op = body_->getTerminator()->getPrevNode(), *before; op; op = before) {
    before = op->getPrevNode();
    if (op->use_empty())
      op->erase();
  }
  // So that unused arguments stand in no one's way.
  for (size_t i = body_->getNumArguments(); i-- > 0;) {
    BlockArgument arg = body_->getArgument(static_cast<unsigned>(i));
    if (!arg.use_empty())
      continue;
    argDims_.erase(arg);
    numberLimits_.erase(arg);
    for (auto &[symbol, number] : numberOf_)
      number = number == arg ? Value() : number;
    numArgs_ -= i < static_cast<size_t>(numArgs_);
    body_->eraseArgument(static_cast<unsigned>(i));
  }
  block.setNumArgs(static_cast<uint64_t>(numArgs_));

  RandomBlock out;
  if (failed(verify(*module)))
    throw std::runtime_error("the generator made an invalid block");
  llvm::raw_string_ostream(out.module) << *module;

  std::vector<std::vector<Dim>> dims;
  std::vector<int64_t> limits;
  std::map<std::string, unsigned> numbers;
  for (BlockArgument arg : body_->getArguments()) {
    dims.push_back(argDims_.lookup(arg));
    limits.push_back(numberLimits_.lookup(arg));
    for (auto &[symbol, number] : numberOf_)
      if (number == arg)
        numbers[symbol] = arg.getArgNumber();
  }
  out.inputs.number = [limits](int64_t record, unsigned arg) {
    return limits[arg] ? (record * 3 + arg) % limits[arg] : 0;
  };
  out.inputs.extent = [dims, numbers, number = out.inputs.number](int64_t record, unsigned arg,
                                                                  unsigned axis) {
    return dims[arg][axis]
        .substitute([&](const std::string &symbol) -> std::optional<Dim> {
          if (auto it = numbers.find(symbol); it != numbers.end())
            return number(record, it->second);
          return symbol == "n" ? record * 7 % 12 : symbol == "m" ? 1 + record * 5 % 18 : 3;
        })
        .constant();
  };
  out.inputs.least = -3;
  return out;
}

} // namespace

RandomBlock randomBlock(unsigned seed, std::optional<size_t> onlyResult) {
  DialectRegistry registry;
  ir::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Generator generator(context, seed);
  return generator.run(onlyResult);
}

} // namespace sheaf::test
