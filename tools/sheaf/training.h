//===- training.h - The course of sheaf train -------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_TRAINING_H
#define SHEAF_TOOLS_SHEAF_TRAINING_H

#include "tools/sheaf/measures.h"
#include "tools/sheaf/progress.h"
#include "tools/sheaf/read_notes.h"
#include "tools/sheaf/train_log.h"
#include "tools/sheaf/train_options.h"

#include "compiler/measure/Peak.h"
#include "compiler/report/TrainProfile.h"
#include "runtime/fit/training.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::tool {

/// Drives a fit::Training as the options say, and tells of it.
class Training {
public:
  explicit Training(TrainOptions &arguments) : arguments_(arguments) {}
  /// Returns the exit code of the command.
  int run();

private:
  /// The other data for a metric.
  struct DevRun {
    LoadedRun run;
    std::unique_ptr<rt::Session> session;
  };

  void load();
  void begin();
  void goOn();
  void compareHashes();
  void makeTraining();
  void addMeasure(const fit::Metric &metric, bool isLoss);
  void makeMeasures();
  void logStep(const rt::TrainingStep &step);
  void beginEpoch();
  /// False when a signal came: the epoch is yet to be measured.
  bool endEpoch();
  void warnAbout(const fit::EpochEnd &end);
  bool runEpoch(int64_t epoch);
  void tellParts();
  void tell(const rt::TrainingStep &step, bool isFirstFailure);
  void probePeak();
  std::string howItGoes() const;
  std::string whyEnded() const;
  int stopped();
  int finish();
  void report();
  const rt::Course &course() const { return training_->course(); }
  bool hasEnded() const { return training_->ended() != fit::Training::End::None; }
  double secondsSince(std::chrono::steady_clock::time_point begin) const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  TrainOptions &arguments_;
  StopSignal stop_;
  int64_t epochs_ = 0, patience_ = 0, keep_ = 0, logEvery_ = 0, checkpointEvery_ = 0;
  ReadNotes notes_;                   ///< of all data
  InputFiles files_{/*hashed=*/true}; ///< until the training begins
  LoadedRun data_;
  rt::SessionOptions options_;
  std::unique_ptr<rt::Session> session_;
  std::vector<std::unique_ptr<DevRun>> dev_; ///< in the order of the training's measures
  std::optional<fit::Training> training_;
  std::optional<TrainLog> log_;
  // The epoch that runs.
  std::unique_ptr<Progress> bar_;
  bool toldHalved_ = false;
  bool failedAny_ = false; ///< whether an instance failed in any epoch, in training or a measure,
                           ///< or an epoch went wrong
  std::chrono::steady_clock::time_point begin_;
  // How fast it goes.
  std::optional<driver::PeakProbe> probe_;
  double peak_ = 0, flop_ = 0; ///< GFLOP/s of the threads; of the session when the epoch began
  double seconds_ = 0;         ///< of the epochs that have ended here, without measures
  int64_t before_ = 0;         ///< steps done when this process took the training up
  driver::StepTimes times_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TRAINING_H
