//===- optimizer.h - The options of an optimiser ----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_OPTIMIZER_H
#define SHEAF_RUNTIME_API_OPTIMIZER_H

#include "runtime/api/handles.h"
#include "runtime/train/optimizer.h"
#include "sheaf/gradients.h"

#include <vector>

namespace sheaf::api {

/// A number of options: 0 stands for the default, what is below for 0. Throws Invalid for one that
/// is not finite.
double orDefault(double number, double byDefault, const char *name);
/// The same of one that must be less than 1.
double fraction(double number, double byDefault, const char *name);

/// What a training and steps one by one are given for their rates. Throws Invalid.
rt::LearningRate rateOf(double learningRate, const char *schedule, uint64_t warmup);

/// Both throw Invalid.
rt::OptimizerOptions optimizerOptions(const sheaf_optimizer_options &asked);
std::vector<rt::ParamUpdate> paramUpdates(const sheaf_optimizer_options &asked,
                                          const LoadedModel &model);

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_OPTIMIZER_H
