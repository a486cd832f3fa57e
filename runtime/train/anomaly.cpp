#include "runtime/train/anomaly.h"

#include "runtime/session/non_finite.h"
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

/// An instance's loss and the parameter whose gradient is not finite, if there is one.
struct Found {
  float loss = 0;
  std::optional<size_t> param;
};

/// Nothing of an instance that fails, or whose gradients memory does not hold.
std::optional<Found> runAlone(Session &session, const Instance &instance, float weight,
                              bool keepRows) {
  const Model &model = session.model();
  session.keepAll(keepRows);
  const Outcome &outcome = session.run({&instance, 1}).front();
  session.keepAll(false);
  if (!outcome.ok())
    return std::nullopt;
  Found found;
  session.tensor(model.entry.resultType, outcome.slots).copyTo(&found.loss);
  try {
    found.param = nonFiniteGradient(model, session.backward({&weight, 1}, keepRows));
  } catch (const OutOfMemory &) {
    return std::nullopt;
  }
  return found;
}

} // namespace

std::optional<Anomaly> findAnomaly(Session &session, std::span<const Instance> instances,
                                   std::span<const ParamGradient> gradients, float weight) {
  const Model &model = session.model();
  std::optional<size_t> ofAll = nonFiniteGradient(model, gradients);
  if (!ofAll)
    return std::nullopt;
  Anomaly anomaly;
  anomaly.param = model.params[*ofAll].name;
  for (const Instance &instance : instances) {
    std::optional<Found> found = runAlone(session, instance, weight, /*keepRows=*/true);
    bool keepsRows = found.has_value();
    if (!keepsRows)
      found = runAlone(session, instance, weight, /*keepRows=*/false);
    if (!found || !found->param) {
      anomaly.sums &= found.has_value();
      continue;
    }
    anomaly.param = model.params[*found->param].name;
    anomaly.instance = instance.index;
    anomaly.back = std::isfinite(found->loss);
    if (!keepsRows)
      return anomaly;
    const Schedule &schedule = anomaly.back ? session.backwardSchedule() : session.schedule();
    if (auto first = firstNonFinite(model, schedule, session.rows())) {
      anomaly.kernel = model.kernels[first->kernel].name;
      anomaly.source = model.kernels[first->kernel].source;
      anomaly.value = first->value;
    }
    return anomaly;
  }
  return anomaly;
}

std::string Anomaly::message() const {
  std::string text = "the gradient of '" + param + "' is not finite";
  if (instance < 0)
    return text + (sums ? ", but that of each instance is: their sum overflows" : "");
  text += ": in instance " + std::to_string(instance);
  if (kernel.empty())
    return text;
  return text + ", " + (back ? "in the backward pass " : "") + "the block " + kernel + " (" +
         source + ") makes " + nonFiniteName(value);
}

} // namespace sheaf::rt
