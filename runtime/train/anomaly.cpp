#include "runtime/train/anomaly.h"

#include "runtime/non_finite.h"
#include "runtime/train/gradient_rows.h"

#include <cmath>

namespace sheaf::rt {

namespace {

/// The parameter whose gradient is not finite.
std::optional<size_t> nonFiniteGradient(const Model &model,
                                        std::span<const ParamGradient> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    bool finite = true;
    forEachRow(model.params[i], gradients[i], [&](int64_t begin, int64_t size) {
      for (int64_t j = begin; j < begin + size; ++j)
        finite &= std::isfinite(gradients[i].data[j]);
    });
    if (!finite)
      return i;
  }
  return std::nullopt;
}

} // namespace

std::optional<Anomaly> findAnomaly(Session &session, std::span<const Instance> instances,
                                   float weight) {
  const Model &model = session.model();
  for (const Instance &instance : instances) {
    const Outcome &outcome = session.run({&instance, 1}).front();
    if (!outcome.ok())
      continue;
    float loss = 0;
    session.tensor(model.entry.resultType, outcome.slots).copyTo(&loss);
    std::optional<size_t> param =
        nonFiniteGradient(model, session.backward({&weight, 1}, /*keepRows=*/true));
    if (!param)
      continue;
    Anomaly anomaly;
    anomaly.param = model.params[*param].name;
    anomaly.instance = instance.index;
    anomaly.back = std::isfinite(loss);
    const Schedule &schedule = anomaly.back ? session.backwardSchedule() : session.schedule();
    if (auto found = firstNonFinite(model, schedule, session.rows())) {
      anomaly.kernel = model.kernels[found->kernel].name;
      anomaly.source = model.kernels[found->kernel].source;
      anomaly.value = found->value;
    }
    return anomaly;
  }
  std::vector<float> weights(instances.size(), weight);
  session.run(instances);
  if (std::optional<size_t> param = nonFiniteGradient(model, session.backward(weights))) {
    Anomaly anomaly;
    anomaly.param = model.params[*param].name;
    return anomaly;
  }
  return std::nullopt;
}

std::string Anomaly::message() const {
  std::string text = "the gradient of '" + param + "' is not finite";
  if (instance < 0)
    return text + ", but that of each instance is: their sum overflows";
  text += ": in instance " + std::to_string(instance);
  if (kernel.empty())
    return text;
  return text + ", " + (back ? "on the way back " : "") + "the block " + kernel + " (" + source +
         ") makes " + nonFiniteName(value);
}

} // namespace sheaf::rt
