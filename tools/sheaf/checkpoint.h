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
  std::optional<double> best; ///< the best measure of an epoch so far
  // Of the epoch that runs.
  double lossSum = 0;
  int64_t instances = 0;
  int64_t skipped = 0; ///< steps
};

/// Writes weights, trainer and progress to `DIRECTORY/checkpoint-STEPS.safetensors`, whole or not
/// at all, and removes older checkpoints but the last `keep`. `metadata`: what weights have beside.
void saveCheckpoint(const std::string &directory, rt::Session &session, rt::Trainer &trainer,
                    const Progress &progress, std::map<std::string, std::string> metadata,
                    int64_t keep);

/// Whether a directory has any, damaged ones included.
bool hasCheckpoints(const std::string &directory);

/// Restores what the newest whole checkpoint of a directory holds; nothing when there is none at
/// all. Damaged ones that are newer are put aside, with a note. Throws UserError when all are
/// damaged, or when it is not of this model.
std::optional<Progress> loadCheckpoint(const std::string &directory, rt::Session &session,
                                       rt::Trainer &trainer);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_CHECKPOINT_H
