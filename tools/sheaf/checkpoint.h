//===- checkpoint.h - Trainings on disk -------------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_CHECKPOINT_H
#define SHEAF_TOOLS_SHEAF_CHECKPOINT_H

#include "runtime/train/trainer.h"

#include <map>
#include <optional>
#include <string>

namespace sheaf::tool {

/// What a training remembers beside weights and the optimiser's state.
struct Progress {
  int64_t steps = 0;
  int64_t skipped = 0;
  std::optional<double> best; ///< the best measure of an epoch so far
  // Of the epoch that runs.
  double lossSum = 0;
  int64_t instances = 0;
};

/// Writes weights, optimiser and progress to `DIRECTORY/checkpoint-STEPS.safetensors`, whole or not
/// at all, and removes older checkpoints but the last `keep`.
void saveCheckpoint(const std::string &directory, rt::Session &session, rt::Optimizer &optimizer,
                    const Progress &progress, int64_t keep);

/// Restores what the newest checkpoint of a directory holds; nothing when there is none. Throws
/// UserError when it is not of this model.
std::optional<Progress> loadCheckpoint(const std::string &directory, rt::Session &session,
                                       rt::Optimizer &optimizer);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_CHECKPOINT_H
