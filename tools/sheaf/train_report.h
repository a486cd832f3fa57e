//===- train_report.h - Trainings as a page ---------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_TRAIN_REPORT_H
#define SHEAF_TOOLS_SHEAF_TRAIN_REPORT_H

#include <string>
#include <vector>

namespace sheaf::tool {

/// Writes a page with the curves of trainings, of what their directories hold, and where the time
/// and the memory of each went. Throws UserError.
void writeTrainReport(const std::string &path, const std::vector<std::string> &directories);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TRAIN_REPORT_H
