// Measures of a model over data.
#include "runtime/api/measure.h"
#include "runtime/api/options.h"
#include "runtime/api/weights.h"

#include "runtime/io/types.h"

#include <cmath>
#include <limits>

using namespace sheaf;
using namespace sheaf::api;

api::TakenMeasure::TakenMeasure(fit::Measure taken) : measure(std::move(taken)) {
  if (measure.firstFailed)
    failed.emplace(*measure.firstFailed, measure.firstPlace);
  if (measure.confusion)
    for (const auto &[which, times] : measure.confusion->counts())
      cells.push_back({which.first, which.second, times});
}

fit::Data api::dataOf(const ValueStore &store) {
  fit::Data data{store.instances};
  if (store.file)
    data.nameOf = [file = store.file](int64_t index) { return file->dataset.name(index); };
  return data;
}

fit::Metric api::metricOf(const sheaf_measure_options &options, const LoadedModel &model) {
  fit::Metric metric{model.model().entry.name};
  if (options.score) {
    std::optional<fit::Metric> scored = fit::Metric::parse(metric.function + ":" + options.score);
    if (!scored)
      throw Invalid(std::string("options.score is accuracy, precision, recall or f1, not '") +
                    options.score + "'");
    metric = *scored;
  }
  fromArguments([&] { fit::requireMeasure(model.model(), metric); });
  return metric;
}

const std::shared_ptr<const ValueStore> &
api::valuesOf(const sheaf_values *values, const std::shared_ptr<const LoadedModel> &model) {
  const std::shared_ptr<const ValueStore> &store = given(values, "data").store;
  if (store->model != model)
    throw Invalid("the data are values of another model");
  return store;
}

void api::requireWeights(const LoadedModel &from, const LoadedModel &to) {
  for (const rt::ParamDesc &param : to.model().params) {
    if (param.synthetic)
      continue;
    const rt::ParamDesc *source = nullptr;
    for (const rt::ParamDesc &other : from.model().params)
      if (!other.synthetic && other.name == param.name)
        source = &other;
    if (!source)
      throw Invalid("the model '" + from.model().name + "' has no weight '" + param.name +
                    "', which '" + to.model().entry.name + "' takes");
    if (source->shape != param.shape || source->dtype != param.dtype)
      throw Invalid("the weight '" + param.name + "' has another type in '" +
                    from.model().entry.name + "' than in '" + to.model().entry.name + "'");
  }
}

sheaf_status sheaf_measure_take(sheaf_session *session, sheaf_model *model,
                                const sheaf_values *data, const sheaf_measure_options *options,
                                sheaf_measure **measure) {
  return guarded([&] {
    std::shared_ptr<Running> running = given(session, "session").running;
    const std::shared_ptr<const LoadedModel> &of = given(model, "model").model;
    given(measure, "measure");
    sheaf_measure_options asked = known(options, "sheaf_measure_options");
    std::shared_ptr<const ValueStore> store = valuesOf(data, of);
    fit::Metric metric = metricOf(asked, *of);
    fit::EvaluateOptions how;
    how.batch = countOf(asked.batch, how.batch);
    how.stop = tokenOf(asked.stop);
    std::lock_guard lock(running->mutex);
    RunningModel &origin = runningFor(*running, of);
    ++origin.runs;
    origin.session->setStep(0);
    std::optional<fit::Measure> taken = fit::evaluate(*origin.session, dataOf(*store), metric, how);
    if (!taken)
      throw Stopped("the measure was stopped");
    *measure = new sheaf_measure{std::make_shared<TakenMeasure>(std::move(*taken))};
  });
}

void sheaf_measure_release(sheaf_measure *measure) { delete measure; }

sheaf_status sheaf_measure_scores(const sheaf_measure *measure, sheaf_scores *scores) {
  return guarded([&] {
    const TakenMeasure &taken = *given(measure, "measure").taken;
    const fit::Measure &of = taken.measure;
    sheaf_scores told{};
    told.value = of.instances ? of.value : std::numeric_limits<double>::quiet_NaN();
    told.instances = static_cast<uint64_t>(of.instances);
    told.failed = static_cast<uint64_t>(of.failed);
    told.error = of.failed ? of.error.c_str() : nullptr;
    if (of.confusion) {
      rt::ClassScores scored = of.scores();
      told.has_classes = 1;
      told.accuracy = of.confusion->accuracy();
      told.precision = scored.precision;
      told.recall = scored.recall;
      told.f1 = scored.f1;
      told.predictions = static_cast<uint64_t>(of.confusion->total());
      told.cells = taken.cells.size();
    }
    tell(told, given(scores, "scores"), "scores");
  });
}

sheaf_status sheaf_measure_failure(const sheaf_measure *measure, sheaf_failure *failure) {
  return guarded([&] {
    tell(failureOf(given(measure, "measure").taken->failed), given(failure, "failure"), "failure");
  });
}

sheaf_status sheaf_measure_cell(const sheaf_measure *measure, size_t cell, int64_t *actual,
                                int64_t *predicted, uint64_t *times) {
  return guarded([&] {
    const TakenMeasure &taken = *given(measure, "measure").taken;
    if (cell >= taken.cells.size())
      throw Invalid("there is no cell " + std::to_string(cell) + " but " +
                    std::to_string(taken.cells.size()));
    given(actual, "actual") = taken.cells[cell].actual;
    given(predicted, "predicted") = taken.cells[cell].predicted;
    given(times, "times") = static_cast<uint64_t>(taken.cells[cell].times);
  });
}

sheaf_status sheaf_session_copy_weights(sheaf_session *session, sheaf_model *from,
                                        sheaf_model *to) {
  return guarded([&] {
    std::shared_ptr<Running> running = given(session, "session").running;
    const std::shared_ptr<const LoadedModel> &source = given(from, "from").model;
    const std::shared_ptr<const LoadedModel> &target = given(to, "to").model;
    requireWeights(*source, *target);
    std::lock_guard lock(running->mutex);
    const rt::Session &has = *runningFor(*running, source).session;
    RunningModel &gets = runningFor(*running, target);
    ++gets.runs;
    fit::copyParams(has, [&](size_t index) { return has.param(index); }, *gets.session);
  });
}
