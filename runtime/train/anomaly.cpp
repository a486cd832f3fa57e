#include "runtime/train/anomaly.h"

#include "runtime/convert.h"
#include "runtime/train/gradient_rows.h"

#include <cmath>

namespace sheaf::rt {

namespace {

bool isFloat(DType dtype) {
  return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

/// The first element of a tensor that is not finite.
std::optional<double> nonFiniteIn(const TensorView &view) {
  int64_t width = view.shape.empty() ? 1 : view.shape.back(), bytes = dtypeBytes(view.dtype);
  for (int64_t row = 0; row < view.rows(); ++row)
    for (int64_t i = 0; i < width; ++i)
      if (float value = elementAsFloat(view.data + row * view.rowStride() + i * bytes, view.dtype);
          !std::isfinite(value))
        return static_cast<double>(value);
  return std::nullopt;
}

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

std::optional<std::pair<uint32_t, double>>
firstNonFinite(const Model &model, const Schedule &schedule, const uint8_t *rows) {
  for (const ScheduledBucket &bucket : schedule) {
    const KernelDesc &kernel = model.kernels[bucket.kernel];
    for (int64_t i = 0; i < bucket.count; ++i) {
      const int32_t *words = bucket.records + i * kernel.words;
      uint64_t granule = static_cast<uint32_t>(words[kernel.words - 1]);
      for (const RecordTensor &result : kernel.results) {
        TensorView view{result.dtype, {}, rows + granule * kGranuleBytes};
        for (const WordSum &extent : result.extents)
          view.shape.push_back(evaluate(extent, words));
        if (isFloat(view.dtype))
          if (std::optional<double> value = nonFiniteIn(view))
            return std::pair(bucket.kernel, *value);
        granule += static_cast<uint64_t>(tensorGranules(view.shape, view.dtype));
      }
    }
  }
  return std::nullopt;
}

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
      anomaly.kernel = model.kernels[found->first].name;
      anomaly.source = model.kernels[found->first].source;
      anomaly.value = found->second;
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
  const char *what = std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity";
  return text + ", " + (back ? "on the way back " : "") + "the block " + kernel + " (" + source +
         ") makes " + what;
}

} // namespace sheaf::rt
