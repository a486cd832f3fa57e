// Trainings from their first step to their end.
#include "python/native/gradients.h"

#include "sheaf/train.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace sheaf::python {

namespace {

/// A next event that is waited for. It may outlive the call, when that is interrupted.
struct Waited {
  std::shared_ptr<sheaf_training> training;
  Stop stop;
  sheaf_training_event event{};
  sheaf_status status = SHEAF_OK;
  std::string message;

  void run() noexcept {
    event.size = sizeof event;
    status = sheaf_training_next(training.get(), stop.get(), &event);
    if (status != SHEAF_OK)
      message = sheaf_error_message();
  }
};

nb::object textOrNothing(const char *text) { return text ? nb::object(nb::str(text)) : nb::none(); }

nb::dict described(const sheaf_training_event &event) {
  static constexpr const char *kinds[] = {"step", "epoch", "ended", "stopped"};
  nb::dict out;
  out["kind"] = kinds[event.kind];
  out["step"] = event.step;
  out["steps"] = event.steps;
  out["epoch"] = event.epoch;
  out["loss"] = event.loss;
  out["instances"] = event.instances;
  out["failed"] = event.failed;
  out["error"] = textOrNothing(event.error);
  out["norm"] = event.norm;
  out["rate"] = event.rate;
  out["seconds"] = event.forward_seconds + event.backward_seconds + event.update_seconds;
  out["skipped"] = event.skipped != 0;
  out["halved"] = event.halved;
  out["parts"] = event.parts;
  out["changed"] = event.changed != 0;
  out["value"] = event.value;
  out["best"] = event.best != 0;
  out["nothing_changed"] = event.nothing_changed != 0;
  out["diverges"] = event.diverges != 0;
  return out;
}

class Training {
public:
  Training(Session &session, const Values &data, const nb::dict &from, const nb::dict &optimizer)
      : session_(session.handle()), model_(session.model()) {
    OptimizerOptions how(optimizer);
    sheaf_training_options options{};
    options.size = sizeof options;
    auto number = [&](const char *key) { return nb::cast<uint64_t>(from[key]); };
    options.epochs = number("epochs");
    options.batch = number("batch");
    options.accumulate = number("accumulate");
    options.parts = number("parts");
    options.patience = number("patience");
    options.seed = number("seed");
    options.learning_rate = asGiven(nb::cast<double>(from["learning_rate"]));
    auto schedule = nb::cast<std::string>(from["schedule"]);
    options.schedule = schedule.c_str();
    options.warmup = number("warmup");
    options.optimizer = how.get();
    options.sum = nb::cast<bool>(from["sum"]);
    options.average = asGiven(nb::cast<double>(from["average"]));
    std::string directory;
    if (nb::object path = from["directory"]; !path.is_none()) {
      directory = nb::cast<std::string>(path);
      options.directory = directory.c_str();
    }
    options.resume = nb::cast<bool>(from["resume"]);
    options.keep_best = 1;
    options.checkpoint_every = number("checkpoint_every");
    auto keep = nb::cast<int64_t>(from["keep"]);
    options.keep = keep == 0 ? -1 : keep;
    auto names = nb::cast<std::vector<std::string>>(from["frozen"]);
    std::vector<const char *> frozen;
    for (const std::string &name : names)
      frozen.push_back(name.c_str());
    options.frozen = frozen.data();
    options.frozen_count = frozen.size();
    sheaf_values values = valuesFor(model_, data);
    sheaf_training *made = nullptr;
    sheaf_status status;
    {
      Unlocked unlocked;
      status = sheaf_training_create(session_.get(), model_.handle(), &values, &options, &made);
    }
    check(status);
    training_.reset(made, sheaf_training_release);
  }

  void addMeasure(Model &model, const Values &data, nb::object score, bool lessIsBetter) {
    sheaf_measure_options options{};
    options.size = sizeof options;
    std::string name;
    if (!score.is_none()) {
      name = nb::cast<std::string>(score);
      options.score = name.c_str();
    }
    options.less_is_better = lessIsBetter;
    sheaf_values values = valuesFor(model, data);
    check(sheaf_training_add_measure(training_.get(), model.handle(), &values, &options));
  }

  nb::dict next() {
    auto waited = std::make_shared<Waited>();
    waited->training = training_;
    waited->stop = makeStop();
    runWaiting([waited] { waited->run(); }, waited->stop);
    if (waited->status != SHEAF_OK)
      raiseStatus(waited->status, waited->message);
    return described(waited->event);
  }

  /// What was measured when the last epoch ended.
  nb::list measures() const {
    nb::list all;
    for (size_t i = 0; i < sheaf_training_measure_count(training_.get()); ++i) {
      sheaf_measure *measure = nullptr;
      check(sheaf_training_measure(training_.get(), i, &measure));
      std::unique_ptr<sheaf_measure, void (*)(sheaf_measure *)> held(measure,
                                                                     sheaf_measure_release);
      sheaf_scores scores{};
      scores.size = sizeof scores;
      check(sheaf_measure_scores(measure, &scores));
      nb::dict one;
      one["value"] = scores.value;
      one["instances"] = scores.instances;
      one["failed"] = scores.failed;
      one["error"] = textOrNothing(scores.error);
      all.append(one);
    }
    return all;
  }

  void checkpoint() { check(sheaf_training_checkpoint(training_.get())); }
  void save(const std::string &path) { check(sheaf_training_save(training_.get(), path.c_str())); }
  bool restoreBest() {
    int found = 0;
    check(sheaf_training_restore_best(training_.get(), &found));
    return found != 0;
  }

private:
  static sheaf_values valuesFor(Model &model, const Values &data) {
    auto store = std::make_shared<api::ValueStore>(model.shared());
    data.putInto(*store, model);
    return {std::move(store)};
  }

  std::shared_ptr<sheaf_session> session_;
  Model &model_; ///< Python keeps it
  std::shared_ptr<sheaf_training> training_;
};

} // namespace

void bindTraining(nb::module_ &module) {
  nb::class_<Training>(module, "Training")
      .def(nb::init<Session &, const Values &, const nb::dict &, const nb::dict &>(),
           nb::keep_alive<1, 2>())
      .def("add_measure", &Training::addMeasure, nb::arg("model"), nb::arg("data"),
           nb::arg("score").none(), nb::arg("less_is_better"), nb::keep_alive<1, 2>())
      .def("next", &Training::next)
      .def("measures", &Training::measures)
      .def("checkpoint", &Training::checkpoint)
      .def("save", &Training::save)
      .def("restore_best", &Training::restoreBest);
}

} // namespace sheaf::python
