//===- train_report.cpp - Trainings as a page -----------------------------===//
#include "tools/sheaf/train_report.h"

#include "tools/sheaf/load.h"

#include "compiler/measure/KernelTable.h"
#include "compiler/report/HtmlReport.h"
#include "compiler/report/ReportJson.h"
#include "runtime/io/text.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

namespace sheaf::tool {

namespace {

using driver::Json;

Json readJson(const std::string &path) {
  std::ifstream file(path);
  return file ? Json::parse(file, nullptr, /*allow_exceptions=*/false) : Json(nullptr);
}

Json trainingIn(const std::string &directory) {
  Json config = readJson(directory + "/config.json");
  if (!config.is_object())
    throw UserError(directory + ": no training: config.json cannot be read");
  Json steps = Json::array(), epochs = Json::array();
  std::ifstream log(directory + "/log.jsonl");
  for (std::string text; std::getline(log, text);) {
    Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object() || !line.contains("event"))
      continue; // half a line, of one that is written
    (line["event"] == "epoch" ? epochs : steps).push_back(line);
  }
  Json run = {{"name", directory}, {"config", config}, {"steps", steps}, {"epochs", epochs}};
  if (Json profile = readJson(directory + "/profile.json"); profile.is_object())
    run["profile"] = profile;
  return run;
}

} // namespace

void writeTrainReport(const std::string &path, const std::vector<std::string> &directories) {
  Json runs = Json::array();
  for (const std::string &directory : directories)
    runs.push_back(trainingIn(directory));
  std::string page = driver::htmlTrainReport(driver::jsonLine(Json({{"runs", runs}})));
  io::AtomicFile file(path);
  file.write(page);
  file.commit();
  note(fmt::format("wrote {}: a page of {} ({}), {}", path,
                   io::plural(directories.size(), "training"), fmt::join(directories, ", "),
                   driver::bytesText(static_cast<double>(page.size()))));
}

} // namespace sheaf::tool
