//===- ReportJson.h - Reports for programs ----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_REPORT_REPORTJSON_H
#define SHEAF_COMPILER_REPORT_REPORTJSON_H

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace sheaf::driver {

using Json = nlohmann::ordered_json;

/// An object that says first what it is: `report`, the name of its schema in docs/schemas, and that
/// schema's `version`.
Json reportJson(std::string_view report, int version, const Json &members);

/// JSON as every report is printed, with a line end; bytes that are no UTF-8 are replaced.
std::string jsonText(const Json &json);
/// The same in one line.
std::string jsonLine(const Json &json);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_REPORTJSON_H
