//===- measure.h - What sheaf_measure is ------------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_MEASURE_H
#define SHEAF_RUNTIME_API_MEASURE_H

#include "runtime/api/failure.h"
#include "runtime/fit/evaluate.h"
#include "sheaf/train.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::api {

struct TakenMeasure {
  explicit TakenMeasure(fit::Measure taken);

  struct Cell {
    int64_t actual, predicted, times;
  };
  fit::Measure measure;
  std::optional<FailedInstance> failed; ///< the first
  std::vector<Cell> cells;
};

/// Instances with the places that they were read at; `store` must outlive it.
fit::Data dataOf(const ValueStore &store);

/// Of a model whose entry is to be measured. Throws Invalid.
fit::Metric metricOf(const sheaf_measure_options &options, const LoadedModel &model);

/// Throws Invalid unless the values are of this model.
const std::shared_ptr<const ValueStore> &valuesOf(const sheaf_values *values,
                                                  const std::shared_ptr<const LoadedModel> &model);

/// Throws Invalid unless `from` has all weights of `to`, of the same types.
void requireWeights(const LoadedModel &from, const LoadedModel &to);

} // namespace sheaf::api

struct sheaf_measure {
  std::shared_ptr<const sheaf::api::TakenMeasure> taken;
};

#endif // SHEAF_RUNTIME_API_MEASURE_H
