//===- OracleTrainer.h - Trainings in f64 -----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_VERIFY_ORACLETRAINER_H
#define SHEAF_COMPILER_VERIFY_ORACLETRAINER_H

#include "compiler/driver/Compiler.h"
#include "compiler/oracle/Gradient.h"
#include "runtime/session/session.h"
#include "runtime/train/trainer.h"

#include <limits>
#include <set>
#include <span>
#include <vector>

namespace sheaf::driver {

/// What rt::Trainer does, with gradients of the oracle, weights and optimiser in f64, one instance
/// at a time: the same order of instances, draws, schedule, clipping, and rows that stay as they
/// are. There are no averages, and losses are not scaled.
class OracleTrainer {
public:
  /// Begins with the weights of the session. Model and instances must outlive this.
  OracleTrainer(const CompiledModel &model, const rt::Session &session,
                std::span<const rt::Instance> instances, const rt::TrainerOptions &options);

  /// A parameter that stays as it is, by number.
  void freeze(size_t param) { frozen_.insert(nameOf(param)); }
  /// As rt::Optimizer::setUpdates().
  void setUpdates(std::span<const rt::ParamUpdate> updates) {
    for (size_t i = 0; i < updates.size(); ++i)
      updatesOf_[nameOf(i)] = updates[i];
  }

  /// The next one. `maxCalls`: after so many an instance fails as endless.
  rt::TrainingStep step(int64_t maxCalls = std::numeric_limits<int64_t>::max());

private:
  struct State {
    std::vector<double> mean, squares;
  };
  /// Elements of a parameter that a step changes, as many as `size` from `begin` on.
  struct Range {
    size_t begin, size;
  };

  const std::string &nameOf(size_t param) const { return model_.params[param].name; }
  void runInstances(size_t begin, size_t end, rt::TrainingStep &step);
  std::vector<Range> rangesOf(const std::string &param) const;
  void update(const std::string &param, double rate, double scale);
  double lambRatio(const std::string &param, const std::vector<Range> &ranges, double scale,
                   double decay);

  const rt::Model &model_;
  std::span<const rt::Instance> instances_;
  rt::TrainerOptions options_;
  oracle::GradientOracle oracle_;
  oracle::Weights weights_;
  oracle::ParamGradients gradients_;
  std::map<std::string, State> states_;
  std::set<std::string> frozen_;
  std::map<std::string, rt::ParamUpdate> updatesOf_;
  int64_t next_ = 0, updates_ = 0;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_VERIFY_ORACLETRAINER_H
