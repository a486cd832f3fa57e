//===- train.cpp - sheaf train --------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/train_report.h"
#include "tools/sheaf/training.h"

#include <memory>

namespace sheaf::tool {

static int runTrain(CLI::App &app, TrainOptions &arguments) {
  bool onlyShows = !arguments.compared.empty() && !arguments.html.empty() &&
                   arguments.resume.empty() && app.get_option("model")->count() == 0;
  if (onlyShows) {
    writeTrainReport(arguments.html, arguments.compared);
    return kOk;
  }
  if (arguments.resume.empty())
    arguments.check(app);
  else
    arguments.read(app);
  return Training(arguments).run();
}

void addTrain(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "train", "trains a model's parameters on data");
  auto arguments = std::make_shared<TrainOptions>();
  arguments->add(*sub);
  sub->callback([arguments, sub, &action] {
    action = [arguments, sub] { return runTrain(*sub, *arguments); };
  });
}

} // namespace sheaf::tool
