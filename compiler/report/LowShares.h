//===- LowShares.h - Why kernels are far from the peak ----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_REPORT_LOWSHARES_H
#define SHEAF_COMPILER_REPORT_LOWSHARES_H

#include "compiler/report/RunReport.h"

namespace sheaf::driver {

/// Of each kernel with products that has less than half of the peak, why: by what the report has
/// measured, by its plan, and by running its launches again in the session that ran them last.
std::vector<LowShareInfo> explainLowShares(const CompiledModel &model, rt::Session &session,
                                           const RunReport &report, int64_t repetitions);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_LOWSHARES_H
