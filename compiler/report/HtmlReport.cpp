//===- HtmlReport.cpp - A mini-batch as a page ----------------------------===//
#include "compiler/report/HtmlReport.h"

#include "HtmlTemplate.h" // made of report/ by CMake

namespace sheaf::driver {

namespace {

void replace(std::string &text, std::string_view mark, std::string_view with) {
  if (size_t at = text.find(mark); at != std::string::npos)
    text.replace(at, mark.size(), with);
}

std::string pageOf(std::string page, std::string_view script, std::string_view json) {
  // In a script element only `<` could end the data; JSON may write it as an escape.
  std::string data;
  for (char c : json)
    c == '<' ? data += "\\u003c" : data += c;
  replace(page, "/*STYLE*/", kReportCss);
  replace(page, "/*SCRIPT*/", std::string(kCommonJs) + std::string(script));
  replace(page, "/*DATA*/", data);
  return page;
}

} // namespace

std::string htmlReport(std::string_view explainJson) {
  return pageOf(kReportHtml, kReportJs, explainJson);
}

std::string htmlTrainReport(std::string_view json) { return pageOf(kTrainHtml, kTrainJs, json); }

} // namespace sheaf::driver
