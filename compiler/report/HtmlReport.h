//===- HtmlReport.h - A mini-batch as a page --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_REPORT_HTMLREPORT_H
#define SHEAF_COMPILER_REPORT_HTMLREPORT_H

#include <string>
#include <string_view>

namespace sheaf::driver {

/// One page that needs no network and draws the mini-batch of what explainJson() gave: its
/// schedule, where its rows were few, its source with each line's share of time, its memory.
std::string htmlReport(std::string_view explainJson);

/// The same for trainings: {"runs": [{name, config, steps, epochs, profile}]}, where steps and
/// epochs are lines of their logs and profile is what trainProfile() gave, if it is there.
std::string htmlTrainReport(std::string_view json);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_HTMLREPORT_H
