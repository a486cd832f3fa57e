//===- TrainProfile.cpp - Where a training's time and memory go -----------===//
#include "compiler/report/TrainProfile.h"

#include "compiler/report/ReportJson.h"

#include <algorithm>
#include <map>

namespace sheaf::driver {

static const std::string kWithoutLayer = "without a layer";

void StepTimes::add(const rt::TrainingStep &step) {
  forward += step.forwardSeconds;
  backward += step.backwardSeconds;
  update += step.updateSeconds;
  ++steps;
}

Json trainProfile(const CompiledModel &model, const rt::Session &session, const StepTimes &times) {
  const rt::Counters &counters = session.counters();
  struct Part {
    std::string name, place;
    double ms, gflop;
    uint64_t records, launches;
  };
  std::vector<Part> parts;
  std::map<std::string, double> layers;
  for (size_t i = 0; i < counters.kernels.size(); ++i) {
    const rt::KernelCounters &kernel = counters.kernels[i];
    if (!kernel.launches)
      continue;
    const rt::KernelDesc &desc = model.model().kernels[i];
    double ms = static_cast<double>(kernel.nanoseconds) * 1e-6;
    parts.push_back(
        {desc.name, desc.source, ms, kernel.flop * 1e-9, kernel.records, kernel.launches});
    for (const PartShare &part : model.blocks()[i].parts) {
      // The runtime's own kernels are not of the source.
      const std::string &layer = !part.layer.empty()  ? part.layer
                                 : part.calls.empty() ? desc.name
                                                      : kWithoutLayer;
      layers[layer] += ms * part.share;
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) { return a.ms > b.ms; });
  std::vector<std::pair<std::string, double>> byTime(layers.begin(), layers.end());
  std::sort(byTime.begin(), byTime.end(),
            [](const auto &a, const auto &b) { return a.second > b.second; });
  Json json = {{"steps", times.steps},
               {"threads", session.options().threads},
               {"forward_ms", 1e3 * times.forward},
               {"backward_ms", 1e3 * times.backward},
               {"update_ms", 1e3 * times.update},
               {"record_ms", static_cast<double>(counters.recordNanoseconds) * 1e-6},
               {"order_ms", static_cast<double>(counters.orderNanoseconds) * 1e-6}};
  Json layersJson = Json::array(), kernelsJson = Json::array(), memory = Json::object();
  for (const auto &[layer, ms] : byTime)
    layersJson.push_back({{"layer", layer}, {"ms", ms}});
  for (const Part &part : parts)
    kernelsJson.push_back({{"name", part.name},
                           {"place", part.place},
                           {"ms", part.ms},
                           {"gflop", part.gflop},
                           {"records", part.records},
                           {"launches", part.launches}});
  rt::MemoryUse use = session.memory();
  for (const rt::NamedMemoryKind &kind : rt::kMemoryKinds)
    memory[kind.name] = (use.*kind.kind).peak;
  memory["training"] = use.training.peak;
  json["layers"] = layersJson;
  json["kernels"] = kernelsJson;
  json["memory"] = memory;
  return json;
}

} // namespace sheaf::driver
