//===- training.h - A training from its first step to its end ---*- C++ -*-===//
//
//   Training training(session, data, vocabularies, options);
//   training.addMeasure(DevMeasure(metric, devSession, devData));
//   training.keepIn("run");           // weights, checkpoints; may be left out
//   training.begin();                 // or resume()
//   for (;;) {
//     Training::Event event = training.next(stop);
//     ...
//   }
//
// next() is made of the functions below it, which whoever does something between them calls
// himself, as `sheaf train` does.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_FIT_TRAINING_H
#define SHEAF_RUNTIME_FIT_TRAINING_H

#include "runtime/fit/config.h"
#include "runtime/fit/directory.h"
#include "runtime/fit/evaluate.h"
#include "runtime/train/course.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace sheaf::fit {

/// A metric over other data, which is taken after every epoch.
class DevMeasure {
public:
  /// `session`: of a model whose entry is the metric's function, and whose parameters have the
  /// names of those that are trained. It must outlive this, as the data must.
  DevMeasure(Metric metric, rt::Session &session, Data data, bool lessIsBetter)
      : metric_(std::move(metric)), session_(&session), data_(std::move(data)),
        lessIsBetter_(lessIsBetter) {}

  const Metric &metric() const { return metric_; }
  const Data &data() const { return data_; }
  const rt::Model &model() const { return session_->model(); }
  bool lessIsBetter() const { return lessIsBetter_; }

  /// With the weights of another session, of which `get` returns the tensors; nothing when it was
  /// stopped.
  std::optional<Measure> take(const rt::Session &trained,
                              const std::function<rt::TensorView(size_t)> &get,
                              const EvaluateOptions &options);
  /// What says how good that is: greater is better; nothing of no instances.
  std::optional<double> value(const Measure &measure) const;

private:
  Metric metric_;
  rt::Session *session_;
  Data data_;
  bool lessIsBetter_;
};

/// Steps of so many epochs; nothing where there are too many to count.
std::optional<int64_t> stepsOf(const rt::TrainerOptions &options, int64_t instances,
                               int64_t epochs);

struct TrainingOptions {
  rt::TrainerOptions trainer;
  int64_t epochs = 10;                  ///< times through the data
  int64_t patience = 0;                 ///< epochs without a better one that end it; 0: never
  int64_t checkpointEvery = 0;          ///< steps; 0: at the ends of epochs alone
  int64_t keep = 2;                     ///< checkpoints; 0: none when it has ended
  std::vector<size_t> frozen;           ///< parameters that its steps leave as they are
  std::vector<rt::ParamUpdate> updates; ///< by parameter; empty: none has its own
  bool keepBest = false;                ///< in memory: restoreBest()
};

/// The end of an epoch.
struct EpochEnd {
  int64_t epoch = 0;                 ///< from 0
  std::optional<double> loss;        ///< mean over its instances; of none: nothing
  int64_t instances = 0, failed = 0; ///< since it began, or was resumed
  int64_t skipped = 0;               ///< steps
  int64_t halved = 0;                ///< steps (TrainingStep::halved), as `failed`
  std::string
      nonFinite; ///< the first instance whose loss is NaN or infinite, as `failed`; or empty
  std::vector<Measure> measures;                 ///< in the order of addMeasure()
  std::optional<double> value;                   ///< that decides; the greater, the better
  bool isBest = false;                           ///< so far; known when the epoch was kept
  bool nothingChanged = false, diverges = false; ///< what went wrong with it
};

class Training {
public:
  /// `session`: of a model made for training whose entry is a loss, with SessionOptions::keepBytes
  /// 0 and its first weights. All that is given must outlive this. Throws UserError when there are
  /// no instances, or more steps than can be counted.
  Training(rt::Session &session, Data data, const io::Vocabularies &vocabularies,
           const TrainingOptions &options);

  /// The last one that is added decides which weights are the best; without any the loss does.
  void addMeasure(DevMeasure measure) { measures_.push_back(std::move(measure)); }
  const std::vector<DevMeasure> &measures() const { return measures_; }

  //===--- A directory, if something is to be kept --------------------------===//

  /// Throws UserError, also when another training writes there.
  void keepIn(const std::string &directory) { directory_.emplace(directory); }
  Directory *directory() { return directory_ ? &*directory_ : nullptr; }
  /// Makes the directory ready for a training that begins. Throws UserError when it holds another.
  void begin();
  /// Goes on after the newest whole checkpoint of the directory, if there is one. `onDamaged`: see
  /// loadCheckpoint(). Throws UserError.
  bool restore(const std::function<void(const std::string &why)> &onDamaged = {});
  /// Files beside the checkpoints that are missing.
  std::optional<Directory::Rebuilt> restoreFiles();
  /// Writes this to the directory, of a training that goes on when a step has been made with it or
  /// none is left; and keeps up there what the training finds out.
  void keepConfig(TrainConfig config);
  /// Null when there is none.
  const TrainConfig *config() const { return config_ ? &*config_ : nullptr; }

  //===--- The loop ---------------------------------------------------------===//

  /// What comes next: a step, the end of an epoch, or nothing more. What is to be kept then is kept
  /// when it returns. When it was stopped a checkpoint has been written, and another call goes on,
  /// with the same bits. Throws UserError, also when every instance of an epoch failed.
  struct Event {
    enum Kind : uint8_t { Step, Epoch, Ended, Stopped } kind = Ended;
    rt::TrainingStep step;
    EpochEnd epoch;
  };
  Event next(const std::stop_token &stop = {});

  /// One that is stopped changes nothing (TrainingStep::stopped).
  rt::TrainingStep step(const std::stop_token &stop = {});
  /// Whether the last step is followed by a checkpoint.
  bool checkpointIsDue() const;
  /// All steps of an epoch are made, and it is yet to be measured and kept.
  bool epochIsOver() const { return course_.unmeasured; }
  /// Nothing when it was stopped. `progress`: see EvaluateOptions.
  using OnProgress = std::function<void(const DevMeasure &measure, int64_t instances)>;
  std::optional<EpochEnd> measureEpoch(const std::stop_token &stop = {},
                                       const OnProgress &progress = {});
  /// Writes weights and a checkpoint, and tells whether it was the best. Throws UserError when
  /// every instance of the epoch failed, or a file cannot be written: the epoch is yet to be kept.
  void keepEpoch(EpochEnd &end);
  /// Nothing without a directory.
  void checkpoint();
  /// Removes what TrainingOptions::keep does not want when a training has ended.
  void finish();

  //===--- How it stands ----------------------------------------------------===//

  enum class End : uint8_t { None, Epochs, Patience };
  End ended() const;
  const rt::Course &course() const { return course_; }
  /// Counts epochs of which none was better anew.
  void forgetPatience() { course_.epochsSinceBest = 0; }
  int64_t stepsPerEpoch() const { return trainer_.stepsPerEpoch(); }
  int64_t totalSteps() const { return total_; }
  /// Of the epoch that runs, since it began or was resumed.
  int64_t instances() const { return instances_; }
  int64_t failed() const { return failed_; }
  const std::string &firstFailure() const { return firstFailure_; }
  rt::Trainer &trainer() { return trainer_; }
  rt::Session &session() { return session_; }

  /// A weight as it is measured and saved: its average, if there is one.
  rt::TensorView param(size_t index) const;
  /// Writes them to a file of their own.
  void saveWeights(const std::string &path) const;
  /// Gives the session the weights that were best, out of memory or the directory. False when no
  /// epoch was.
  bool restoreBest();

private:
  void saveConfig() const;
  void keepWeights(const std::string &name);
  void keepBest();

  rt::Session &session_;
  Data data_;
  const io::Vocabularies &vocabularies_;
  TrainingOptions options_;
  rt::Trainer trainer_;
  int64_t total_ = 0;
  rt::Course course_;
  std::vector<DevMeasure> measures_;
  std::optional<Directory> directory_;
  std::optional<TrainConfig> config_;
  bool configIsNew_ = false; ///< and not yet in the directory
  int64_t instances_ = 0, failed_ = 0, halved_ = 0;
  std::string firstFailure_;
  std::string nonFinite_;                  ///< EpochEnd::nonFinite
  std::vector<std::vector<uint8_t>> best_; ///< row-major, by parameter
};

} // namespace sheaf::fit

#endif // SHEAF_RUNTIME_FIT_TRAINING_H
