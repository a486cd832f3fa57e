#include "runtime/walk/forking.h"

#include <algorithm>
#include <iterator>

namespace sheaf::rt {

namespace {

struct Named {
  Forking forking;
  std::string_view name;
};
constexpr Named kNames[] = {{Forking::Worth, "worth"},
                            {Forking::Always, "always"},
                            {Forking::Never, "never"},
                            {Forking::Alternately, "alternately"}};

// As measured on several machines; no more than the order of magnitude matters.
constexpr double kForkNs = 200;
constexpr double kFlushNs = 400;
constexpr double kLaunchNs = 300;
/// Of weights that a launch reads once more. Most of it is hidden by the work of its rows.
constexpr double kByteNs = 1.0 / 400;
/// How much of what the last flush cost counts.
constexpr double kNew = 0.25;

} // namespace

std::string_view forkingName(Forking forking) {
  return std::find_if(std::begin(kNames), std::end(kNames),
                      [&](const Named &named) { return named.forking == forking; })
      ->name;
}

std::optional<Forking> forkingByName(std::string_view name) {
  auto it = std::find_if(std::begin(kNames), std::end(kNames),
                         [&](const Named &named) { return named.name == name; });
  return it == std::end(kNames) ? std::nullopt : std::optional(it->forking);
}

ForkWorth::ForkWorth(const Model &model) {
  double demanded = 0, sum = 0;
  for (const KernelDesc &kernel : model.kernels) {
    // What no read depends on runs as often whatever is forked.
    double cost = kernel.deferred ? 0 : kLaunchNs + kByteNs * weightBytes(kernel);
    launchCost_.push_back(cost);
    // What stands in for others is no launch more.
    demanded += !kernel.deferred && !kernel.joined;
    sum += kernel.joined ? 0 : cost;
  }
  // Few flushes have fewer than two launches: what is read, and the step that led there.
  usual_ = cost_ = kFlushNs + (demanded > 0 ? 2 * sum / demanded : 0);
}

void ForkWorth::noteFlush(const Schedule &schedule, size_t begin) {
  double cost = kFlushNs;
  for (size_t i = begin; i < schedule.size(); ++i)
    cost += launchCost_[schedule[i].kernel];
  cost_ += kNew * (cost - cost_);
}

uint32_t ForkWorth::most() const { return static_cast<uint32_t>(cost_ / kForkNs); }

} // namespace sheaf::rt
