//===- train_config.h - What a training was begun with ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_TRAIN_CONFIG_H
#define SHEAF_RUNTIME_API_TRAIN_CONFIG_H

#include "runtime/api/handles.h"
#include "runtime/fit/training.h"

#include <span>

namespace sheaf::api {

/// A measure of a training, as the program gave it.
struct GivenMeasure {
  const fit::DevMeasure &measure;
  const LoadedModel &model;
  const ValueStore &data;
};

/// What `sheaf train --resume` needs to go on with a training that begins: what cannot be said in
/// files is `untold`.
fit::TrainConfig configOf(const LoadedModel &model, const ValueStore &data,
                          const sheaf_session_options &session,
                          const fit::TrainingOptions &options);

/// Sets what is measured, and of which data.
void describeMeasures(std::span<const GivenMeasure> measures, fit::TrainConfig &config);

/// Of a training that is taken up after so many steps: what stands in its directory, and what these
/// options change.
fit::TrainConfig resumedConfig(const std::string &path, const fit::TrainingOptions &options,
                               const rt::Model &model, int64_t steps);

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_TRAIN_CONFIG_H
