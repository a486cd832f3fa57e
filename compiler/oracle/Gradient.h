//===- Gradient.h - Gradients of a program ----------------------*- C++ -*-===//
//
// Reverse mode over what the interpreter computes: a run is noted operator by operator, and walked
// backwards by the operators' gradient records, which the interpreter evaluates as well. Of the
// compiled backward pass (blocks, the cut of what is kept, the walk over rows) nothing is used;
// what both share are the records, and those are compared with differences of the program itself.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ORACLE_GRADIENT_H
#define SHEAF_COMPILER_ORACLE_GRADIENT_H

#include "compiler/oracle/Oracle.h"

#include <set>

namespace sheaf::oracle {

/// The gradient of a parameter: nothing (no elements), or one number for each element.
struct ParamGradient {
  std::vector<double> elements;
  /// Whether only whole parts along the first axis can have one, those in `parts`: a table of which
  /// rows were read.
  bool isSparse = true;
  std::set<int64_t> parts;
};

/// By parameter.
using ParamGradients = std::map<std::string, ParamGradient>;

/// Differentiates a program whose parameters of f32 are trained; others are constant, and so is
/// what the program reads.
class GradientOracle {
public:
  /// The program must outlive the oracle. In Bf16 the gradients of products that round their
  /// factors are such products, too.
  explicit GradientOracle(mlir::ModuleOp program, Precision precision = Precision::F64,
                          OracleOptions options = {});
  ~GradientOracle();
  GradientOracle(const GradientOracle &) = delete;
  GradientOracle &operator=(const GradientOracle &) = delete;

  /// Throws as checkWeights does.
  void setWeights(Weights weights);
  /// OracleOptions::maxCalls from the next run on.
  void limitCalls(int64_t maxCalls);
  /// OracleOptions::perturbation from the next run on.
  void perturb(uint64_t seed);

  /// Runs a function whose result is a loss, f32 without axes, and adds `weight` times its
  /// gradient. Returns the loss. Draws are those of this training step; 0 is outside of training.
  /// Throws as Oracle::run does, and then adds nothing. `inputs`, if it is not null, is given the
  /// same for each argument: one number for each element of its tensors of f32, depth first and
  /// left to right.
  double addGradients(llvm::StringRef function, std::vector<Value> args, int64_t instance,
                      uint64_t step, double weight, ParamGradients &gradients,
                      std::vector<std::vector<double>> *inputs = nullptr);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_GRADIENT_H
