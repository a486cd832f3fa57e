//===- training.h - The course of sheaf train -------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_TRAINING_H
#define SHEAF_TOOLS_SHEAF_TRAINING_H

#include "tools/sheaf/evaluate.h"
#include "tools/sheaf/read_notes.h"
#include "tools/sheaf/train_log.h"
#include "tools/sheaf/train_options.h"
#include "tools/sheaf/training_directory.h"

#include "compiler/measure/Peak.h"
#include "compiler/report/TrainProfile.h"
#include "runtime/io/progress.h"
#include "runtime/train/course.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::tool {

/// A metric over other data, which is told after every epoch.
class DevMeasure {
public:
  DevMeasure(const TrainOptions &arguments, const Metric &metric, bool isLoss,
             const io::Vocabularies &trained, const rt::SessionOptions &options, ReadNotes &notes);

  /// Nothing when `stop` said so.
  std::optional<Measure> with(const rt::Session &trained,
                              const std::function<rt::TensorView(size_t)> &get, int64_t batch,
                              const std::function<bool()> &stop);
  const std::string &name() const { return metric_.function; }
  bool isLoss() const { return isLoss_; }
  /// ", dev NAME 0.5"
  std::string text(const Measure &measure) const;
  /// Adds members to a line of the log.
  void log(const Measure &measure, driver::Json &line) const;
  /// Greater is better; nothing of no instances.
  std::optional<double> value(const Measure &measure) const;

private:
  Metric metric_;
  bool isLoss_;
  LoadedRun run_;
  std::unique_ptr<rt::Session> session_;
};

class Training {
public:
  explicit Training(TrainOptions &arguments) : arguments_(arguments) {}
  /// Returns the exit code of the command.
  int run();

private:
  void load();
  void begin();
  void goOn();
  void compareHashes();
  void makeTrainer();
  void makeMeasures();
  rt::TensorView param(size_t index) const;
  void saveWeights(const std::string &name);
  void logStep(const rt::TrainingStep &step);
  void beginEpoch();
  /// False when a signal came: the epoch is yet to be measured.
  bool endEpoch(int64_t epoch);
  void warnAbout(int64_t epoch, const rt::Course &ended);
  bool runEpoch(int64_t epoch);
  void tell(const rt::TrainingStep &step);
  void probePeak();
  std::string lossText() const;
  std::string howItGoes() const;
  void checkpoint();
  bool hasEnded() const;
  std::string whyEnded() const;
  int stopped();
  int finish();
  void report();
  int64_t total() const { return trainer_->stepsPerEpoch() * epochs_; }
  double secondsSince(std::chrono::steady_clock::time_point begin) const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  TrainOptions &arguments_;
  StopSignal stop_;
  int64_t epochs_ = 0, patience_ = 0, keep_ = 0, logEvery_ = 0, checkpointEvery_ = 0;
  ReadNotes notes_; ///< of all data
  LoadedRun data_;
  rt::SessionOptions options_;
  std::unique_ptr<rt::Session> session_;
  std::unique_ptr<rt::Trainer> trainer_;
  std::vector<std::unique_ptr<DevMeasure>> measures_; ///< the last decides which weights are best
  std::optional<TrainingDirectory> directory_;
  rt::Course course_;
  std::optional<TrainLog> log_;
  // The epoch that runs.
  std::unique_ptr<io::Progress> bar_;
  int64_t instances_ = 0, failed_ = 0; ///< since it began or was resumed
  std::string firstFailure_;           ///< of those; told once
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
