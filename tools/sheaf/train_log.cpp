//===- train_log.cpp - What a training tells of its course ----------------===//
#include "tools/sheaf/train_log.h"

#include "compiler/report/ReportJson.h"
#include "runtime/io/text.h"
#include "runtime/model/error.h"

namespace sheaf::tool {

using driver::Json;

TrainLog::TrainLog(const std::string &directory, int64_t steps, bool tensorboard)
    : path_(directory + "/log.jsonl") {
  std::string kept;
  if (std::ifstream before(path_); before) {
    for (std::string line; std::getline(before, line);) {
      Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_object() && json.value("step", INT64_MAX) <= steps)
        kept += line + "\n";
    }
  }
  io::AtomicFile file(path_);
  file.write(kept);
  file.commit();
  out_.open(path_, std::ios::app);
  if (tensorboard)
    events_.emplace(directory, steps + 1);
}

std::string TrainLog::write(const char *event, const Json &members) {
  Json json = driver::reportJson("train", 2, {{"event", event}});
  json.update(members);
  std::string line = driver::jsonLine(json);
  out_ << line << std::flush;
  if (!out_)
    throw UserError(path_ + ": cannot be written");
  if (!events_)
    return line;
  std::vector<std::pair<std::string, double>> numbers;
  for (const auto &[key, value] : members.items())
    if (value.is_number() && key != "step")
      numbers.emplace_back(std::string(event) + "/" + key, value.get<double>());
  events_->scalars(members.at("step").get<int64_t>(), numbers);
  return line;
}

} // namespace sheaf::tool
