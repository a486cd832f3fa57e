//===- measures.h - Measures as the command tells them ----------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_MEASURES_H
#define SHEAF_TOOLS_SHEAF_MEASURES_H

#include "tools/sheaf/load.h"

#include "compiler/report/ReportJson.h"
#include "runtime/fit/evaluate.h"

#include <stop_token>
#include <string>

namespace sheaf::tool {

/// `--metric FUNCTION` or `--metric FUNCTION:SCORE`. Throws UsageError.
fit::Metric parseMetric(const std::string &text);

/// "0.5", "NaN", or "none" of no instances. `decimals`: after the point; -1: six digits in all.
std::string valueText(const fit::Measure &measure, int decimals = -1);
/// Null of no instances.
driver::Json valueJson(const fit::Measure &measure);

/// What was loaded, with its places; `run` must outlive it.
fit::Data dataOf(const LoadedRun &run);

/// fit::evaluate() with a progress bar.
std::optional<fit::Measure> evaluate(rt::Session &session, const fit::Data &data,
                                     const fit::Metric &metric, int64_t batch,
                                     std::stop_token stop = {});

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_MEASURES_H
