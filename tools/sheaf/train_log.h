//===- train_log.h - What a training tells of its course --------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_TRAIN_LOG_H
#define SHEAF_TOOLS_SHEAF_TRAIN_LOG_H

#include "runtime/io/events.h"

#include <nlohmann/json_fwd.hpp>

#include <fstream>
#include <optional>
#include <string>

namespace sheaf::tool {

/// `log.jsonl` of a directory, and an event file for TensorBoard if wanted.
class TrainLog {
public:
  /// Keeps the lines of steps up to `steps` that are there already: later ones are made again.
  /// Throws UserError.
  TrainLog(const std::string &directory, int64_t steps, bool tensorboard);

  /// Writes a line for what happened (`step`, `epoch`): `members` are `step` and others, of which
  /// the numbers go to TensorBoard under `event`/their names. Returns the line. Throws UserError.
  std::string write(const char *event, const nlohmann::ordered_json &members);

private:
  std::string path_;
  std::ofstream out_;
  std::optional<io::EventFile> events_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TRAIN_LOG_H
