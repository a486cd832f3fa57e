//===- random_steps.cpp - Random operators that compute --------------------===//

#include "tests/kernels/random_generator.h"

using namespace mlir;

namespace sheaf::test {

using ops::DType;

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

void Generator::unary() {
  /// Results are at most scale * |x| + offset.
  struct Function {
    const char *name;
    double scale, offset;
    bool keepsExact = false, steps = false;
  };
  static constexpr Function functions[] = {{"neg", 1, 0, true},
                                           {"abs", 1, 0, true},
                                           {"relu", 1, 0, true},
                                           {"tanh", 0, 1},
                                           {"sigmoid", 0, 1},
                                           {"sin", 0, 1},
                                           {"cos", 0, 1},
                                           {"silu", 1, 0},
                                           {"gelu", 1, 0},
                                           {"gelu_tanh", 1, 0},
                                           {"erf", 0, 2},
                                           {"softplus", 1, 1},
                                           {"square", 6, 0},
                                           {"exp", 0, 60},
                                           {"sign", 0, 1, true, true},
                                           {"floor", 1, 1, true, true},
                                           {"ceil", 1, 1, true, true}};
  static constexpr const char *ofPositive[] = {"log", "sqrt", "rsqrt"};
  auto t = chooseFloat([](const Tensor &) { return true; });
  if (!t)
    return;
  if (chance(15)) {
    // Numbers that are not near zero.
    Tensor bounded = make("tanh", {*t}, t->dims, t->dtype, 1, false);
    Tensor positive = make("exp", {bounded}, t->dims, t->dtype, 3, false);
    make(ofPositive[below(3)], {positive}, t->dims, t->dtype, 2, false);
    return;
  }
  const Function &f = functions[below(std::size(functions))];
  bool grows = f.name == StringRef("square") || f.name == StringRef("exp");
  if ((f.steps && !t->exact) || (grows && t->bound > 4))
    return;
  make(f.name, {*t}, t->dims, t->dtype, f.scale * t->bound + f.offset, f.keepsExact && t->exact);
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
  bool mayBeEmpty = isNumber(along) ? along == Dim(0) : along != Dim::symbol("m");
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

} // namespace sheaf::test
