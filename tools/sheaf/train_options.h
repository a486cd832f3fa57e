//===- train_options.h - The options of sheaf train -------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_TRAIN_OPTIONS_H
#define SHEAF_TOOLS_SHEAF_TRAIN_OPTIONS_H

#include "runtime/fit/config.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/update_options.h"

namespace sheaf::tool {

struct TrainOptions {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  std::string dev;
  std::vector<std::string> metrics; ///< the first decides which weights are the best
  UpdateOptions update;
  std::string lossScale = "auto";
  double ema = 0;
  std::string epochs = "10", threads = "1", logEvery = "10", keep = "2", checkpointEvery = "0";
  std::string patience = "0";
  bool tensorboard = false, detectAnomaly = false;
  std::string output, resume;
  std::string html;                  ///< a page to write
  std::vector<std::string> compared; ///< directories of other trainings that it shows
  FormatOption format;               ///< of what is told of an epoch
  /// What the files that a training began with held, by option: written with the options, compared
  /// when it goes on.
  std::map<std::string, std::string> hashes;
  std::vector<std::string> changes; ///< what --resume was given other than before
  bool hasChanged(std::string_view option) const;
  std::vector<std::string> history; ///< earlier such changes, and where they were made
  bool hasEnded = false;            ///< and kept no checkpoint
  bool ownWeights = false;          ///< fit::TrainConfig::ownWeights, of what goes on

  void add(CLI::App &app);
  /// What was given fits together. Throws UsageError.
  void check(const CLI::App &app);

  /// All that a trainer of this many instances needs, but for which parameters it trains. Throws
  /// UsageError.
  rt::TrainerOptions trainer(const rt::Model &model, int64_t instances) const;

  /// The options that the course of a training depends on, as `read` takes them.
  fit::TrainConfig config() const;
  /// Takes the options of the training in `resume`, which becomes `output`; those that are given
  /// and may be others where a training goes on stay, and are `changes`. Throws UserError, and
  /// UsageError for others that are given.
  void read(const CLI::App &app);
  /// Whether what takes further rows is hoisted: a training that begins under a memory limit goes
  /// without (`--without hoist-rows`), and stays so. After LimitOptions::check.
  void decideHoisting();

private:
  template <typename Self, typename Visit> static void visit(Self &self, Visit field);
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TRAIN_OPTIONS_H
