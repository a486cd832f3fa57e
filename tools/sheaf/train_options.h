//===- train_options.h - The options of sheaf train -------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_TRAIN_OPTIONS_H
#define SHEAF_TOOLS_SHEAF_TRAIN_OPTIONS_H

#include "runtime/train/trainer.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/update_options.h"

namespace sheaf::tool {

struct TrainOptions {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  std::string dev, metric;
  UpdateOptions update;
  std::string lossScale = "auto";
  double ema = 0;
  std::string epochs = "10", threads = "1", logEvery = "10", keep = "2", checkpointEvery = "0";
  bool tensorboard = false, detectAnomaly = false;
  std::string output, resume;
  FormatOption format; ///< of what is told of an epoch
  /// What the files that a training began with held, by option: written with the options, compared
  /// when it goes on.
  std::map<std::string, std::string> hashes;

  void add(CLI::App &app);
  /// What was given fits together. Throws UsageError.
  void check(const CLI::App &app);

  /// All that a trainer of this many instances needs, but for which parameters it trains. Throws
  /// UsageError.
  rt::TrainerOptions trainer(const rt::Model &model, int64_t instances) const;

  /// The text that `read` takes: the options that the course of a training depends on.
  std::string write() const;
  /// Takes the options of the training in `resume`, which becomes `output`. Throws UserError.
  void read();

private:
  template <typename Self, typename Visit> static void visit(Self &self, Visit field);
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TRAIN_OPTIONS_H
