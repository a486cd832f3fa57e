//===- update_options.h - The options of an optimiser -----------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_UPDATE_OPTIONS_H
#define SHEAF_TOOLS_SHEAF_UPDATE_OPTIONS_H

#include "runtime/train/trainer.h"
#include "tools/sheaf/options.h"

#include <string>
#include <vector>

namespace sheaf::tool {

/// What a step does with gradients.
struct UpdateOptions {
  std::string optimizer = "adam", schedule = "constant", reduction = "mean";
  double rate = 1e-3, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, decay = 0.99, epsilon = 1e-8;
  double weightDecay = 0, clip = 0;
  std::vector<std::string> frozen, noDecay;
  std::vector<std::string> rates, decays; ///< PATTERN=NUMBER
  std::vector<std::string> rateFactors;   ///< fit::TrainConfig::rateFactors, of what goes on
  std::string warmup = "0", batch = "64", accumulate = "1", parts = "auto";

  /// Returns the options that were added.
  std::vector<CLI::Option *> add(CLI::App &app);
  /// Throws UsageError.
  void check() const;
  /// `seed`: of the order of instances; LearningRate::total is left open. Throws UsageError.
  rt::TrainerOptions trainer(uint64_t seed) const;
  /// What parameters have of their own, by number. Throws UsageError.
  std::vector<rt::ParamUpdate> paramUpdates(const rt::Model &model) const;
};

/// Throws UsageError unless 0 <= value < 1.
void requireFraction(const char *option, double value);

/// Parameters that match the patterns of an option. Throws UsageError for one without any.
std::vector<size_t> paramsOf(const rt::Model &model, const std::string &option,
                             const std::vector<std::string> &patterns);

/// Those of --freeze. Throws UsageError, also when nothing is left that could be trained.
std::vector<size_t> frozenParams(const rt::Model &model, const std::vector<std::string> &patterns);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_UPDATE_OPTIONS_H
