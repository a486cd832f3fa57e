//===- Oracle.h - The slow, obvious interpreter of Programs -----*- C++ -*-===//
//
// What a Program means. The oracle interprets the Program as the front end made it (or after any
// pass before blocks are formed), one instance at a time, operator by operator through the
// references of the operator records. It shares nothing with the compiled path but the Program
// and those records.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ORACLE_ORACLE_H
#define SHEAF_COMPILER_ORACLE_ORACLE_H

#include "compiler/oracle/Value.h"
#include "runtime/model/error.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

namespace sheaf::oracle {

/// What numbers are computed in. Host floats are doubles always.
enum class Precision {
  F64,  ///< nothing is rounded
  F32,  ///< every result of float arithmetic is rounded to f32, those of narrow types as well
  Bf16, ///< as F32, and results of bf16 and f16 tensors and factors of bf16 products are rounded
};

/// Parameters by name, in their declared shapes.
using Weights = std::map<std::string, TensorPtr>;

class Replay;

struct OracleOptions {
  /// Calls that may be open at one time; tail calls do not count.
  int64_t maxDepth = 10'000'000;
  /// Calls, tail calls too, with which a run is given up as endless.
  int64_t maxCalls = std::numeric_limits<int64_t>::max();
  /// What draws follow from, as in rt::SessionOptions.
  uint64_t sampleSeed = 0;
  /// Gives what the program reads; the oracle's own numbers if there is none. It is told before
  /// each run what that reads.
  Replay *replay = nullptr;
  /// With it, in F32 and Bf16, every rounding goes to the number above or below, by a hash of this,
  /// of the operator and of what is rounded (PerturbedArithmetic): a sample of what rounding may
  /// make of the program. Results of narrow types are then rounded in F32 as well.
  std::optional<uint64_t> perturbation = {};
  /// Told every result of `stop_gradient`, in a program before its operators are expanded; what it
  /// returns is taken instead. May be empty.
  std::function<TensorPtr(TensorPtr)> onStopGradient = {};
};

/// Throws UserError when a parameter of the program has no weight or one of another shape.
void checkWeights(mlir::ModuleOp program, const Weights &weights);

class Oracle {
public:
  /// Throws as checkWeights does. The module must outlive the oracle and must not change.
  Oracle(mlir::ModuleOp program, Weights weights, Precision precision, OracleOptions options = {});
  ~Oracle();
  Oracle(const Oracle &) = delete;
  Oracle &operator=(const Oracle &) = delete;

  /// Other weights from the next run on. Throws as checkWeights does.
  void setWeights(Weights weights);
  /// OracleOptions::maxCalls from the next run on.
  void limitCalls(int64_t maxCalls);
  /// OracleOptions::perturbation from the next run on.
  void perturb(uint64_t seed);

  /// Calls a function of the program and returns its results; of an entry that emits also, after
  /// them, the list of what it emitted. The key of an entry that draws is no
  /// part of `args`: it follows from the seed and `instance`, at training step 0. Throws RunError,
  /// naming `instance`, when a check fails, an index is out of range, shapes do not fit, the
  /// recursion is too deep or there are too many calls; InternalError for operations that are no
  /// part of a Program.
  std::vector<Value> run(llvm::StringRef function, std::vector<Value> args, int64_t instance = 0);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_ORACLE_H
