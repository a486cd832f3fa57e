//===- random_block.cpp - Blocks made at random ----------------------------===//

#include "compiler/ops/Verify.h"
#include "tests/kernels/random_generator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace sheaf::test {

using ops::DType;

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

Value Generator::hostArgument(Type type) {
  return body_->insertArgument(static_cast<unsigned>(numArgs_++), type, b_.getLoc());
}

/// An int below `limit`.
Value Generator::numberArgument(int64_t limit, unsigned bits) {
  Value value = hostArgument(b_.getIntegerType(bits));
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
  // A product of others.
  if (dim.asSymbol() || dim.terms().size() != 1)
    return std::nullopt;
  const auto &[symbols, coefficient] = *dim.terms().begin();
  Value product = arith::ConstantOp::create(b_, b_.getI64IntegerAttr(coefficient));
  for (const std::string &symbol : symbols) {
    auto factor = extentValue(Dim::symbol(symbol));
    if (!factor)
      return std::nullopt;
    product = arith::MulIOp::create(b_, product, ops::extentValue(b_, *factor));
  }
  return ops::Extent(product);
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
      {7, &Generator::reshape}, {4, &Generator::broadcast}, {4, &Generator::fill},
      {4, &Generator::flip}};
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

RandomBlock randomBlock(unsigned seed, std::optional<size_t> onlyResult) {
  DialectRegistry registry;
  ops::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Generator generator(context, seed);
  return generator.run(onlyResult);
}

} // namespace sheaf::test
