//===- Explain.h - What the compiler made of a model ------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_REPORT_EXPLAIN_H
#define SHEAF_COMPILER_REPORT_EXPLAIN_H

#include "compiler/report/RunReport.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace sheaf::driver {

/// What is shared by the whole batch, what was fused into which block, how weights are packed, how
/// depths come about, which form each kernel has; place by place what is recorded, read and called,
/// in which phase, batched with what; and what every pass did or did not do and why.
std::string explainText(const CompiledModel &model);

/// The same as a JSON object, with what a mini-batch did if that is known (docs/reports.md).
/// `source` is the model's file.
std::string explainJson(const CompiledModel &model, const RunReport *report,
                        const SourceFile &source);

/// How much of the code came from the store: a line, and the same as JSON.
std::string storeText(const store::Use &use);
nlohmann::ordered_json storeJson(const store::Use &use);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_EXPLAIN_H
