//===- random_movement.cpp - Random operators that move --------------------===//

#include "tests/kernels/random_generator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace sheaf::test {

using ops::DType;

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
  auto x = choose([](const Tensor &t) {
    return !t.dims.empty() && isNumber(t.dims[0]) && t.dims[0] != Dim(0);
  });
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
    make("take", {*x, *index}, dims, x->dtype, x->bound, x->exact);
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

void Generator::flip() {
  auto x = choose([](const Tensor &t) { return !t.dims.empty(); });
  if (x)
    make("flip", {*x}, x->dims, x->dtype, x->bound, x->exact,
         {{"axis", below(static_cast<int64_t>(x->dims.size()))}});
}

void Generator::reshape() {
  auto x = choose([](const Tensor &) { return true; });
  if (!x)
    return;
  std::vector<Dim> dims = x->dims;
  switch (below(5)) {
  case 3: { // two axes in one
    if (dims.size() < 2)
      return;
    size_t axis = static_cast<size_t>(below(static_cast<int64_t>(dims.size()) - 1));
    dims[axis] = dims[axis] * dims[axis + 1];
    dims.erase(dims.begin() + static_cast<int64_t>(axis) + 1);
    break;
  }
  case 0: // a new axis
    dims.insert(dims.begin() + below(static_cast<int64_t>(dims.size()) + 1), Dim(1));
    break;
  case 1: // without axes of extent 1
    llvm::erase_if(dims, isOne);
    break;
  case 2: { // all in one
    Dim all = 1;
    for (const Dim &dim : dims)
      all = all * dim;
    dims = {all};
    break;
  }
  default: { // one axis in two
    if (dims.empty())
      return;
    size_t axis = static_cast<size_t>(below(static_cast<int64_t>(dims.size())));
    if (!isNumber(dims[axis]))
      return;
    int64_t whole = dims[axis].constant(), factor;
    do
      factor = 1 + below(std::max<int64_t>(whole, 1));
    while (whole % factor);
    dims[axis] = factor;
    dims.insert(dims.begin() + static_cast<int64_t>(axis), Dim(whole / factor));
    // Two axes in one after it.
    if (axis + 2 < dims.size()) {
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
    auto value = extentValue(dim);
    if (!value)
      return;
    if (auto size = dyn_cast<Value>(*value); size && chance(50)) {
      // Host arithmetic in the block.
      Value two = arith::ConstantOp::create(b_, b_.getI64IntegerAttr(2));
      value = Value(arith::MulIOp::create(b_, size, two));
      dim = dim * Dim(2);
    }
    make("iota", {}, {dim}, DType::I32, 70, true, {{"size", *value}});
    return;
  }
  switch (below(3)) {
  case 0:
    make("scalar", {}, {}, DType::I64, 5, true, {}, numberArgument(5));
    return;
  case 1:
    make("scalar", {}, {}, DType::Bool, 1, true, {}, numberArgument(2, 1));
    return;
  default:
    make("scalar", {}, {}, DType::F32, 2, true, {}, hostArgument(b_.getF64Type()));
  }
}

} // namespace sheaf::test
