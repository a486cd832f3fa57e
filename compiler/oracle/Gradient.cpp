//===- Gradient.cpp - Gradients of a program ------------------------------===//

#include "compiler/oracle/Gradient.h"

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/oracle/Interpreter.h"
#include "compiler/oracle/Tape.h"
#include "compiler/oracle/Vjp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sheaf::oracle {
namespace {

using ops::RefTensor;

/// A tensor of f32 in an argument, and its gradient.
struct Input {
  size_t argument;
  TensorPtr tensor;
  ParamGradient gradient = {};
};

/// All of them, depth first and left to right.
std::vector<Input> inputsOf(llvm::ArrayRef<Value> args) {
  std::vector<Input> inputs;
  for (auto [number, argument] : llvm::enumerate(args)) {
    std::vector<Value> pending{argument};
    while (!pending.empty()) {
      Value value = std::move(pending.back());
      pending.pop_back();
      if (const TensorPtr *tensor = std::get_if<TensorPtr>(&value)) {
        if ((*tensor)->dtype == ops::DType::F32)
          inputs.push_back({number, *tensor});
      } else if (const CellPtr *cell = std::get_if<CellPtr>(&value)) {
        for (const Value &child : llvm::reverse((*cell)->children))
          pending.push_back(child);
      }
    }
  }
  return inputs;
}

/// The walk over a tape from its end.
class Sweep {
public:
  Sweep(Vjps &vjps, const Context &context, ParamGradients &gradients,
        llvm::MutableArrayRef<Input> inputs)
      : vjps_(vjps),
        interpreter_(context, /*maxDepth=*/1, /*maxCalls=*/std::numeric_limits<int64_t>::max()) {
    for (const auto &[name, tensor] : context.weights)
      if (tensor->dtype == ops::DType::F32)
        params_[tensor.get()] = &gradients[name];
    for (Input &input : inputs)
      params_[input.tensor.get()] = &input.gradient;
  }

  void run(Tape &tape, const TensorPtr &loss, double weight) {
    RefTensor seed = *loss;
    seed.data.assign(1, weight);
    add(loss.get(), std::make_shared<const RefTensor>(std::move(seed)));
    for (; !tape.entries.empty(); tape.entries.pop_back())
      goBack(tape, tape.entries.back());
  }

private:
  /// A sum of gradients: one that was given, or one of this walk's own.
  struct Sum {
    TensorPtr given;
    std::shared_ptr<RefTensor> own;
  };

  static RefTensor zerosLike(const RefTensor &x) {
    RefTensor zeros;
    zeros.dtype = x.dtype;
    zeros.shape = x.shape;
    zeros.data.assign(x.data.size(), 0);
    return zeros;
  }

  /// Where gradients of a tensor can be added to: all elements, as they are now.
  std::vector<double> &elementsOf(const RefTensor *x) {
    if (auto it = params_.find(x); it != params_.end()) {
      it->second->elements.resize(x->data.size(), 0);
      return it->second->elements;
    }
    Sum &sum = sums_[x];
    if (!sum.own)
      sum.own = std::make_shared<RefTensor>(sum.given ? *sum.given : zerosLike(*x));
    sum.given = sum.own;
    return sum.own->data;
  }

  static void addTo(std::vector<double> &sum, size_t begin, const RefTensor &gradient) {
    for (size_t i = 0; i < gradient.data.size(); ++i)
      sum[begin + i] += gradient.data[i];
  }

  void add(const RefTensor *x, const TensorPtr &gradient) {
    if (gradient->data.size() != x->data.size())
      throw InternalError("a gradient has other extents than what it is of");
    bool isParam = params_.contains(x);
    if (Sum *sum = isParam ? nullptr : &sums_[x]; sum && !sum->given) {
      sum->given = gradient;
      return;
    }
    if (isParam)
      params_.at(x)->isSparse = false;
    addTo(elementsOf(x), 0, *gradient);
  }

  /// To one part along the first axis.
  void addPart(const RefTensor *x, int64_t part, const TensorPtr &gradient) {
    addTo(elementsOf(x), static_cast<size_t>(part) * gradient->data.size(), *gradient);
    if (auto it = params_.find(x); it != params_.end())
      it->second->parts.insert(part);
  }

  /// Null when there is none; then, or afterwards, nothing asks again.
  TensorPtr take(const Value &result) {
    auto *tensor = std::get_if<TensorPtr>(&result);
    auto it = tensor ? sums_.find(tensor->get()) : sums_.end();
    if (it == sums_.end())
      return {};
    TensorPtr gradient = it->second.given;
    sums_.erase(it);
    return gradient;
  }

  void goBack(const Tape &tape, const Tape::Entry &entry) {
    if (mlir::isa<ir::RowsOp>(entry.step->op))
      return ofRows(entry);
    const ops::Op &record = *entry.step->record;
    switch (record.gradient.kind) {
    case ops::Gradient::Rule:
      return byRule(tape, entry);
    case ops::Gradient::Rows:
      if (auto *address = std::get_if<ops::HostAddress>(&record.batch);
          address && address->kind == ops::HostAddress::Row)
        return ofRow(entry);
      if (auto *movement = std::get_if<ops::Movement>(&record.batch);
          movement && movement->kind == ops::Movement::Stack)
        return ofStack(tape, entry);
      [[fallthrough]];
    default:
      throw InternalError("the oracle does not know the gradient of " + record.name);
    }
  }

  void ofRows(const Tape::Entry &entry) {
    const RefTensor *x = &tensor(entry.operands[0]);
    int64_t part = 0;
    for (const Value &row : elements(entry.results[0])) {
      if (TensorPtr gradient = take(row))
        addPart(x, part, gradient);
      ++part;
    }
  }

  void ofRow(const Tape::Entry &entry) {
    if (TensorPtr gradient = take(entry.results[0]))
      addPart(&tensor(entry.operands[0]), toInt(entry.operands[1]), gradient);
  }

  void ofStack(const Tape &tape, const Tape::Entry &entry) {
    TensorPtr gradient = take(entry.results[0]);
    if (!gradient)
      return;
    const ops::Attr &attr = entry.step->parts.attrs.at("axis");
    int64_t axis = std::get<int64_t>(attr);
    auto rank = static_cast<int64_t>(gradient->shape.size());
    ops::AxisView view(gradient->shape, static_cast<size_t>(axis < 0 ? axis + rank : axis));
    int64_t place = 0;
    for (const Value &element : elements(entry.operands[0])) {
      if (tape.isActive(element)) {
        RefTensor part = zerosLike(tensor(element));
        for (int64_t o = 0; o < view.outer; ++o)
          for (int64_t n = 0; n < view.inner; ++n)
            part.data[static_cast<size_t>(o * view.inner + n)] =
                gradient->data[static_cast<size_t>(view.at(o, place, n))];
        add(&tensor(element), std::make_shared<const RefTensor>(std::move(part)));
      }
      ++place;
    }
  }

  void byRule(const Tape &tape, const Tape::Entry &entry) {
    std::vector<bool> arrived, wanted;
    std::vector<Value> args(entry.operands.begin(), entry.operands.end());
    args.insert(args.end(), entry.results.begin(), entry.results.end());
    for (const Value &result : entry.results) {
      TensorPtr gradient = take(result);
      arrived.push_back(gradient != nullptr);
      if (gradient)
        args.push_back(std::move(gradient));
    }
    if (llvm::none_of(arrived, [](bool has) { return has; }))
      return;
    for (const Value &operand : entry.operands)
      wanted.push_back(tape.isActive(operand));
    auto apply = mlir::cast<ir::ApplyOp>(entry.step->op);
    const Vjp &vjp = vjps_.get(apply, arrived, wanted);
    std::vector<Value> gradients;
    try {
      gradients = interpreter_.run(*vjp.function, args);
    } catch (const Failure &failure) {
      throw InternalError("the gradient of " + apply.getOp().str() + ": " + failure.message);
    }
    for (auto [operand, gradient] : llvm::zip(vjp.operands, gradients)) {
      const RefTensor *x = &tensor(entry.operands[operand]);
      if (operand == 0 && gathersRows(entry, *x))
        addTaken(x, tensor(entry.operands[1]), tensor(gradient));
      else
        add(x, std::get<TensorPtr>(gradient));
    }
  }

  /// Whether what is read of a parameter are rows that a vector of ints names.
  bool gathersRows(const Tape::Entry &entry, const RefTensor &x) const {
    auto *movement = std::get_if<ops::Movement>(&entry.step->record->batch);
    return movement && movement->kind == ops::Movement::Gather && params_.contains(&x) &&
           x.shape.size() > 1 && tensor(entry.operands[1]).shape.size() == 1;
  }

  void addTaken(const RefTensor *x, const RefTensor &indices, const RefTensor &gradient) {
    addTo(elementsOf(x), 0, gradient);
    for (double index : indices.data)
      params_.at(x)->parts.insert(std::clamp<int64_t>(int64_t(index), 0, x->shape[0] - 1));
  }

  Vjps &vjps_;
  Interpreter interpreter_;
  llvm::DenseMap<const RefTensor *, ParamGradient *> params_;
  llvm::DenseMap<const RefTensor *, Sum> sums_;
};

mlir::OwningOpRef<mlir::ModuleOp> expanded(mlir::ModuleOp program) {
  // A parsed program brings only what it uses; expansions and rules make these.
  program.getContext()->loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = program.clone();
  (*module)->setAttr(ops::kTrainingAttr, mlir::UnitAttr::get(program.getContext()));
  if (mlir::failed(ops::expandAll(*module)))
    throw InternalError("the operators could not be expanded");
  return module;
}

} // namespace

struct GradientOracle::Impl {
  mlir::OwningOpRef<mlir::ModuleOp> program;
  Functions functions;
  Vjps vjps;
  Weights weights;
  Precision precision;
  OracleOptions options;
};

GradientOracle::GradientOracle(mlir::ModuleOp program, Precision precision, OracleOptions options) {
  mlir::OwningOpRef<mlir::ModuleOp> module = expanded(program);
  mlir::ModuleOp op = *module;
  impl_.reset(new Impl{std::move(module),
                       Functions(op),
                       Vjps(program.getContext()),
                       {},
                       precision,
                       std::move(options)});
}

GradientOracle::~GradientOracle() = default;

void GradientOracle::setWeights(Weights weights) {
  checkWeights(*impl_->program, weights);
  impl_->weights = std::move(weights);
}

void GradientOracle::limitCalls(int64_t maxCalls) { impl_->options.maxCalls = maxCalls; }

void GradientOracle::perturb(uint64_t seed) { impl_->options.perturbation = seed; }

double GradientOracle::addGradients(llvm::StringRef function, std::vector<Value> args,
                                    int64_t instance, uint64_t step, double weight,
                                    ParamGradients &gradients,
                                    std::vector<std::vector<double>> *inputs) {
  llvm::DenseSet<const RefTensor *> params;
  for (const auto &[name, tensor] : impl_->weights)
    if (tensor->dtype == ops::DType::F32)
      params.insert(tensor.get());
  std::vector<Input> given;
  if (inputs)
    given = inputsOf(args);
  for (const Input &input : given)
    params.insert(input.tensor.get());
  size_t arguments = args.size();
  Tape tape(std::move(params));
  Context context{arithmeticOf(impl_->precision), impl_->precision, impl_->weights, impl_->options};
  std::vector<Value> results = runInstance(impl_->functions.get(function), std::move(args), context,
                                           impl_->options, {instance, step}, &tape);
  const auto &loss = std::get<TensorPtr>(results.at(0));
  if (tape.isActive(loss))
    Sweep(impl_->vjps, context, gradients, given).run(tape, loss, weight);
  if (inputs) {
    inputs->assign(arguments, {});
    for (Input &input : given) {
      std::vector<double> &to = (*inputs)[input.argument];
      input.gradient.elements.resize(input.tensor->data.size(), 0);
      to.insert(to.end(), input.gradient.elements.begin(), input.gradient.elements.end());
    }
  }
  return loss->data.at(0);
}

} // namespace sheaf::oracle
