// Steps by gradients.
#include "runtime/api/optimizer.h"
#include "runtime/api/gradients.h"
#include "runtime/api/options.h"
#include "runtime/api/weights.h"

#include <algorithm>
#include <cmath>

using namespace sheaf;
using namespace sheaf::api;

struct sheaf_optimizer {
  std::shared_ptr<Running> running;
  std::shared_ptr<RunningModel> origin;
  rt::Optimizer optimizer;
};

double api::orDefault(double number, double byDefault, const char *name) {
  if (!std::isfinite(number))
    throw Invalid(std::string("options.") + name + " is not finite");
  return number < 0 ? 0 : number == 0 ? byDefault : number;
}

double api::fraction(double number, double byDefault, const char *name) {
  double chosen = orDefault(number, byDefault, name);
  if (chosen >= 1)
    throw Invalid(std::string("options.") + name + " is not less than 1");
  return chosen;
}

rt::LearningRate api::rateOf(double learningRate, const char *schedule, uint64_t warmup) {
  rt::LearningRate rate;
  rate.peak = orDefault(learningRate, rate.peak, "learning_rate");
  rate.warmup = countOf(warmup);
  if (schedule)
    rate.schedule = fromArguments([&] { return rt::scheduleNamed(schedule); });
  return rate;
}

sheaf_status sheaf_learning_rate(const sheaf_rate_options *options, uint64_t step, double *rate) {
  return guarded([&] {
    sheaf_rate_options asked = known(options, "sheaf_rate_options");
    rt::LearningRate rates = rateOf(asked.learning_rate, asked.schedule, asked.warmup);
    if (rates.schedule != rt::LearningRate::Constant && asked.steps == 0)
      throw Invalid("options.steps is 0: nothing says where a schedule that is not constant ends");
    rates.total = countOf(asked.steps);
    given(rate, "rate") = rates.at(static_cast<int64_t>(std::min<uint64_t>(step, INT64_MAX - 1)));
  });
}

rt::OptimizerOptions api::optimizerOptions(const sheaf_optimizer_options &asked) {
  rt::OptimizerOptions options;
  options.kind = fromArguments([&] { return rt::optimizerKind(asked.name ? asked.name : "adam"); });
  options.momentum = fraction(asked.momentum, options.momentum, "momentum");
  options.beta1 = fraction(asked.beta1, options.beta1, "beta1");
  options.beta2 = fraction(asked.beta2, options.beta2, "beta2");
  options.decay = fraction(asked.decay, options.decay, "decay");
  options.epsilon = orDefault(asked.epsilon, options.epsilon, "epsilon");
  options.weightDecay = orDefault(asked.weight_decay, options.weightDecay, "weight_decay");
  options.clip = orDefault(asked.clip, options.clip, "clip");
  return options;
}

std::vector<rt::ParamUpdate> api::paramUpdates(const sheaf_optimizer_options &asked,
                                               const LoadedModel &model) {
  std::vector<rt::ParamUpdate> updates(model.model().params.size());
  std::vector<bool> taken(updates.size());
  for (const sheaf_weight_update &update : array(asked.updates, asked.update_count, "updates")) {
    const char *pattern = &given(update.pattern, "a pattern of options.updates");
    for (size_t weight : model.weightsNamed(pattern)) {
      if (taken[weight])
        continue;
      taken[weight] = true;
      updates[weight].rate = orDefault(update.rate, 1, "updates.rate");
      if (update.weight_decay != 0)
        updates[weight].decay = orDefault(update.weight_decay, 0, "updates.weight_decay");
    }
  }
  return updates;
}

sheaf_status sheaf_optimizer_create(sheaf_session *session, sheaf_model *model,
                                    const sheaf_optimizer_options *options,
                                    sheaf_optimizer **optimizer) {
  return guarded([&] {
    std::shared_ptr<Running> running = given(session, "session").running;
    const std::shared_ptr<const LoadedModel> &of = given(model, "model").model;
    given(optimizer, "optimizer");
    sheaf_optimizer_options asked = known(options, "sheaf_optimizer_options");
    if (!of->model().training)
      throw Invalid("the model was not compiled for training");
    rt::OptimizerOptions chosen = optimizerOptions(asked);
    std::vector<rt::ParamUpdate> updates = paramUpdates(asked, *of);
    std::lock_guard lock(running->mutex);
    std::shared_ptr<RunningModel> origin = runningFor(*running, of).shared_from_this();
    rt::Session &changed = *origin->session;
    auto made = std::unique_ptr<sheaf_optimizer>(
        new sheaf_optimizer{std::move(running), std::move(origin), rt::Optimizer(changed, chosen)});
    made->optimizer.setUpdates(std::move(updates));
    *optimizer = made.release();
  });
}

void sheaf_optimizer_release(sheaf_optimizer *optimizer) {
  if (!optimizer)
    return;
  // What it remembers is in memory of the session's device.
  std::shared_ptr<Running> running = optimizer->running;
  std::lock_guard lock(running->mutex);
  delete optimizer;
}

sheaf_status sheaf_optimizer_step(sheaf_optimizer *optimizer, const sheaf_gradients *gradients,
                                  double learning_rate, double scale, sheaf_step_report *report) {
  return guarded([&] {
    given(optimizer, "optimizer");
    given(gradients, "gradients");
    if (!(learning_rate >= 0) || !std::isfinite(learning_rate) || !std::isfinite(scale))
      throw Invalid("the learning rate is below 0, or it or the scale is not finite");
    sheaf_step_report told{};
    if (report)
      tell(told, *report, "step_report");
    RunningModel &origin = *optimizer->origin;
    if (gradients->model != origin.model ||
        (gradients->run && gradients->run->origin != optimizer->origin))
      throw Invalid("the gradients are of another model, or of another session");
    std::unique_lock own(optimizer->running->mutex, std::defer_lock);
    std::unique_lock other(gradients->running->mutex, std::defer_lock);
    if (gradients->run)
      own.lock();
    else
      std::lock(own, other);
    rt::StepReport step = optimizer->optimizer.step(gradientsOf(*gradients), learning_rate, scale);
    told.norm = step.norm;
    told.skipped = step.skipped;
    told.changed = step.changed;
    if (report)
      tell(told, *report, "step_report");
  });
}
