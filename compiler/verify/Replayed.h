//===- Replayed.h - The oracle beside a compiled program --------*- C++ -*-===//
#ifndef SHEAF_COMPILER_VERIFY_REPLAYED_H
#define SHEAF_COMPILER_VERIFY_REPLAYED_H

#include "compiler/driver/Compiler.h"
#include "compiler/oracle/Oracle.h"
#include "compiler/oracle/Replay.h"
#include "runtime/session/session.h"

#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

/// What compiled results and reads may be off: of max(1, max|b|). Allows for rounding to 16 bits.
double allowedError(const CompiledModel &model);

/// Calls after which the oracle gives up an instance that failed as compiled, maybe as endless: so
/// many more than `maxSteps` that one which only this limit keeps from its end is told of.
int64_t mostCalls(int64_t maxSteps);

/// An oracle of a model's program that takes what the compiled one read.
class Replayed {
public:
  /// `program`: the model's, or CompiledModel::roundedProgram().
  Replayed(const CompiledModel &model, mlir::ModuleOp program, oracle::Weights weights,
           oracle::Precision precision, uint64_t sampleSeed);

  /// The result of an instance; of several a tuple; with what it emits, if it does, as in
  /// EntryDesc::emits. Throws RunError, as the instance does, and with
  /// as many calls as `maxCalls`.
  oracle::Value run(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
                    int64_t maxCalls = std::numeric_limits<int64_t>::max());

  /// Oracle::perturb.
  void perturb(uint64_t seed) { oracle_.perturb(seed); }

  oracle::Replay replay;

private:
  const rt::Model &model_;
  oracle::Oracle oracle_;
};

/// The first number that a replayed run found too far from what the compiled program read, with its
/// place, in words; nothing if all are near enough. `allowed`: of each of Replay::reads(), or one
/// for all.
std::string wrongRead(const rt::Model &model, const oracle::Replay &replay,
                      std::span<const double> allowed);
/// The first read of the log that the run did not come to, in words. Only of a run that ended well.
std::string missingRead(const rt::Model &model, const oracle::Replay &replay);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_VERIFY_REPLAYED_H
