//===- Oracle.cpp - The slow, obvious interpreter of Programs -------------===//

#include "compiler/oracle/Oracle.h"

#include "compiler/ir/Program.h"
#include "compiler/oracle/Interpreter.h"
#include "runtime/model/keys.h"

#include <new>

namespace sheaf::oracle {
namespace {

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace

void checkWeights(mlir::ModuleOp program, const Weights &weights) {
  for (auto param : program.getOps<ir::ParamOp>()) {
    auto it = weights.find(param.getSymName().str());
    if (it == weights.end() || !it->second)
      throw UserError("no weight is given for parameter '" + param.getSymName().str() + "'");
    auto shape = mlir::cast<mlir::RankedTensorType>(param.getType()).getShape();
    if (shape != llvm::ArrayRef<int64_t>(it->second->shape))
      throw UserError("the weight for parameter '" + param.getSymName().str() + "' has extents " +
                      shapeText(it->second->shape) + ", not " + shapeText(shape));
  }
}

struct Oracle::Impl {
  mlir::ModuleOp program;
  Functions functions;
  Weights weights;
  Precision precision;
  OracleOptions options;
};

Oracle::Oracle(mlir::ModuleOp program, Weights weights, Precision precision, OracleOptions options)
    : impl_(new Impl{program, Functions(program), {}, precision, std::move(options)}) {
  setWeights(std::move(weights));
}

Oracle::~Oracle() = default;

void Oracle::setWeights(Weights weights) {
  checkWeights(impl_->program, weights);
  impl_->weights = std::move(weights);
}

void Oracle::limitCalls(int64_t maxCalls) { impl_->options.maxCalls = maxCalls; }

void Oracle::perturb(uint64_t seed) { impl_->options.perturbation = seed; }

std::vector<Value> Oracle::run(llvm::StringRef name, std::vector<Value> args, int64_t instance) {
  Context context{arithmeticOf(impl_->precision), impl_->precision, impl_->weights, impl_->options};
  return runInstance(impl_->functions.get(name), std::move(args), context, impl_->options,
                     {instance, 0}, nullptr);
}

} // namespace sheaf::oracle
