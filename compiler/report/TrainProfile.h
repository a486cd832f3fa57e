//===- TrainProfile.h - Where a training's time and memory go ---*- C++ -*-===//
#ifndef SHEAF_COMPILER_REPORT_TRAINPROFILE_H
#define SHEAF_COMPILER_REPORT_TRAINPROFILE_H

#include "compiler/driver/Compiler.h"
#include "runtime/session/session.h"
#include "runtime/train/trainer.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace sheaf::driver {

/// Wall time of the parts of steps.
struct StepTimes {
  double forward = 0, backward = 0, update = 0; ///< seconds
  int64_t steps = 0;

  void add(const rt::TrainingStep &step);
};

/// What the steps of a session of the model came to: time by part, by layer and by kernel, the
/// longest first, and the most memory of each kind.
nlohmann::ordered_json trainProfile(const CompiledModel &model, const rt::Session &session,
                                    const StepTimes &times);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_TRAINPROFILE_H
