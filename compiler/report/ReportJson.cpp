//===- ReportJson.cpp - Reports for programs ------------------------------===//
#include "compiler/report/ReportJson.h"

namespace sheaf::driver {

namespace {
std::string textOf(const Json &json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}
} // namespace

Json reportJson(std::string_view report, int version, const Json &members) {
  Json json = {{"report", report}, {"version", version}};
  json.update(members);
  return json;
}

std::string jsonText(const Json &json) { return textOf(json, 2); }
std::string jsonLine(const Json &json) { return textOf(json, -1); }

} // namespace sheaf::driver
