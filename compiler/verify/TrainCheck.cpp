//===- TrainCheck.cpp - Trainings against those in f64 --------------------===//
#include "compiler/verify/TrainCheck.h"

#include "compiler/verify/OracleTrainer.h"
#include "compiler/verify/Replayed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sheaf::driver {

/// Why a step is not what can be compared, or nothing.
static std::string problemOf(const rt::TrainingStep &compiled, const rt::TrainingStep &exact) {
  if (compiled.failed != exact.failed)
    return fmt::format("{} instances fail as compiled, {} in f64; {}", compiled.failed,
                       exact.failed,
                       (compiled.failed > exact.failed ? compiled.error : exact.error)->what());
  auto whose = [](bool ofCompiled, bool ofExact) {
    return ofCompiled && ofExact ? "" : ofCompiled ? " as compiled" : " in f64";
  };
  bool isLost = !std::isfinite(compiled.loss), isExactLost = !std::isfinite(exact.loss);
  if (isLost || isExactLost)
    return fmt::format("the loss is not finite{}", whose(isLost, isExactLost));
  if (compiled.skipped || exact.skipped)
    return fmt::format("the gradients are not finite{}", whose(compiled.skipped, exact.skipped));
  return "";
}

TrainCheckReport checkTraining(const CompiledModel &model, std::span<const rt::Instance> instances,
                               const std::function<void(rt::Session &)> &initialise,
                               const TrainCheckOptions &options) {
  rt::SessionOptions sessionOptions = options.session;
  sessionOptions.keepBytes = 0;
  rt::Session session(model.model(), sessionOptions);
  initialise(session);
  OracleTrainer oracle(model, session, instances, options.trainer);
  rt::Trainer trainer(session, instances, options.trainer);
  for (size_t param : options.frozen) {
    session.freeze(param);
    oracle.freeze(param);
  }
  trainer.optimizer().setUpdates(options.updates);
  oracle.setUpdates(options.updates);
  TrainCheckReport report;
  report.allowed = options.tolerance;
  for (int64_t i = 0; i < options.steps; ++i) {
    rt::TrainingStep compiled = trainer.step();
    // Of those that failed one may be endless, for the oracle, too.
    rt::TrainingStep exact =
        compiled.failed ? oracle.step(mostCalls(options.session.maxSteps)) : oracle.step();
    report.steps.push_back({compiled.loss, exact.loss, compiled.norm, exact.norm});
    // A loss of nothing is compared with the rounding of one.
    double error = std::fabs(compiled.loss - exact.loss) / std::max(std::fabs(exact.loss), 1e-12);
    report.error = std::isnan(error) ? INFINITY : std::max(report.error, error);
    report.failed += compiled.failed;
    report.problem = problemOf(compiled, exact);
    if (!report.problem.empty()) {
      report.problem = fmt::format("step {}: {}", i + 1, report.problem);
      return report;
    }
    if (options.progress)
      options.progress();
  }
  report.ok = report.error <= report.allowed;
  return report;
}

} // namespace sheaf::driver
