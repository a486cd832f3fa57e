//===- checkpoint.h - Trainings on disk -------------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_FIT_CHECKPOINT_H
#define SHEAF_RUNTIME_FIT_CHECKPOINT_H

#include "runtime/train/course.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace sheaf::fit {

/// Writes weights, trainer and course to `DIRECTORY/checkpoint-STEPS.safetensors`, whole or not
/// at all, and removes older checkpoints but the last `keep`. `metadata`: what weights have beside.
void saveCheckpoint(const std::string &directory, rt::Session &session, rt::Trainer &trainer,
                    const rt::Course &course, std::map<std::string, std::string> metadata,
                    int64_t keep);

/// Whether a directory has any, damaged ones included.
bool hasCheckpoints(const std::string &directory);

std::string checkpointPath(const std::string &directory, int64_t steps);

/// Removes the oldest ones until so many are left.
void keepCheckpoints(const std::string &directory, int64_t keep);

/// The steps and the measure of the checkpoint at the end of an epoch that was best, of those that
/// are left.
std::optional<std::pair<int64_t, double>> bestCheckpoint(const std::string &directory);

/// Restores what the newest whole checkpoint of a directory holds; nothing when there is none at
/// all. Damaged ones that are newer are put aside (`.damaged`), and `onDamaged`, if it is there, is
/// told what is wrong with each. Throws UserError when all are damaged, or when it is not of this
/// model.
std::optional<rt::Course>
loadCheckpoint(const std::string &directory, rt::Session &session, rt::Trainer &trainer,
               const std::function<void(const std::string &why)> &onDamaged = {});

} // namespace sheaf::fit

#endif // SHEAF_RUNTIME_FIT_CHECKPOINT_H
