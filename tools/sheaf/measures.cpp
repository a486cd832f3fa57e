//===- measures.cpp - Measures as the command tells them ------------------===//
#include "tools/sheaf/measures.h"

#include "tools/sheaf/command.h"
#include "tools/sheaf/progress.h"

#include "runtime/session/non_finite.h"

#include <fmt/format.h>

#include <cmath>

namespace sheaf::tool {

fit::Metric parseMetric(const std::string &text) {
  std::optional<fit::Metric> metric = fit::Metric::parse(text);
  if (!metric)
    throw UsageError(fmt::format("--metric takes FUNCTION or FUNCTION:SCORE, where a score is "
                                 "accuracy, precision, recall or f1, not '{}'",
                                 text));
  return *metric;
}

std::string valueText(const fit::Measure &measure, int decimals) {
  if (measure.instances == 0)
    return "none";
  if (!std::isfinite(measure.value))
    return rt::nonFiniteName(measure.value);
  return decimals < 0 ? fmt::format("{:.6g}", measure.value)
                      : fmt::format("{:.{}f}", measure.value, decimals);
}

driver::Json valueJson(const fit::Measure &measure) {
  return measure.instances == 0 ? driver::Json(nullptr) : driver::Json(measure.value);
}

fit::Data dataOf(const LoadedRun &run) {
  return {run.instances, [&run](int64_t index) { return run.data.name(index); }};
}

std::optional<fit::Measure> evaluate(rt::Session &session, const fit::Data &data,
                                     const fit::Metric &metric, int64_t batch,
                                     std::stop_token stop) {
  Progress bar(metric.function, static_cast<int64_t>(data.instances.size()));
  fit::EvaluateOptions options;
  options.batch = batch;
  options.stop = std::move(stop);
  options.progress = [&](int64_t instances) { bar.step(instances); };
  return fit::evaluate(session, data, metric, options);
}

} // namespace sheaf::tool
