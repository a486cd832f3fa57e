//===- TrainCheck.cpp - Trainings against those in f64 --------------------===//
#include "compiler/driver/TrainCheck.h"

#include "compiler/driver/OracleTrainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sheaf::driver {

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
  for (size_t param : options.excluded) {
    trainer.optimizer().exclude(param);
    oracle.exclude(param);
  }
  TrainCheckReport report;
  report.allowed = options.tolerance;
  for (int64_t i = 0; i < options.steps; ++i) {
    rt::TrainingStep compiled = trainer.step(), exact = oracle.step();
    report.steps.push_back({compiled.loss, exact.loss, compiled.norm, exact.norm});
    for (const rt::TrainingStep *step : {&compiled, &exact}) {
      if (step->failed)
        report.problem = step->error->what();
      else if (step->skipped)
        report.problem = "the gradients are not finite";
    }
    if (!report.problem.empty()) {
      report.problem = fmt::format("step {}: {}", i + 1, report.problem);
      return report;
    }
    // A loss of nothing is compared with the rounding of one.
    double scale = std::max(std::fabs(exact.loss), 1e-12);
    report.error = std::max(report.error, std::fabs(compiled.loss - exact.loss) / scale);
    if (options.progress)
      options.progress();
  }
  report.ok = report.error <= report.allowed;
  return report;
}

} // namespace sheaf::driver
