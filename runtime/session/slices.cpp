#include "runtime/session/slices.h"

#include <algorithm>

namespace sheaf::rt {

Slices::Slices(const Model &model, uint64_t nanoseconds, bool tiny)
    : model_(model), nanoseconds_(static_cast<double>(nanoseconds)), tiny_(tiny) {
  for (const KernelDesc &desc : model.kernels) {
    Kernel &kernel = kernels_.emplace_back();
    kernel.weights = weightBytes(desc) * kNanosecondsPerByte;
  }
}

void Slices::begin(const Counters &counters) {
  left_ = nanoseconds_;
  isEmpty_ = true;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    kernels_[k].work = 0;
    kernels_[k].launches = 0;
    kernels_[k].before = counters.kernels[k].nanoseconds;
  }
}

int64_t Slices::take(const ScheduledBucket &launch) {
  if (!hasRoom())
    return 0;
  isEmpty_ = false;
  if (tiny_)
    return std::min(launch.count, kTiny);
  Kernel &kernel = kernels_[launch.kernel];
  const KernelDesc &desc = model_.kernels[launch.kernel];
  ++kernel.launches;
  left_ -= kernel.weights;
  double spent = 0;
  int64_t taken = 0;
  while (taken < launch.count && (taken == 0 || spent < kernel.weights || left_ > 0)) {
    const int32_t *record = launch.records + taken++ * desc.words;
    double work = kWorkOfRecord + sumOverRecords(desc.flop, desc.words, {0, 0, record, 1});
    kernel.work += work;
    spent += work * kernel.nanosecondsPerWork;
    left_ -= work * kernel.nanosecondsPerWork;
  }
  return taken;
}

void Slices::end(const Counters &counters, uint64_t nanoseconds) {
  // Counters add up what each thread has taken.
  uint64_t sum = 0;
  for (size_t k = 0; k < kernels_.size(); ++k)
    if (uint64_t now = counters.kernels[k].nanoseconds; now > kernels_[k].before)
      sum += now - kernels_[k].before;
  double share = std::min(1.0, static_cast<double>(nanoseconds) /
                                   static_cast<double>(std::max<uint64_t>(sum, 1)));
  for (size_t k = 0; k < kernels_.size(); ++k) {
    Kernel &kernel = kernels_[k];
    uint64_t now = counters.kernels[k].nanoseconds;
    // (Counters may have been reset.)
    if (kernel.work == 0 || now <= kernel.before)
      continue;
    double took = share * static_cast<double>(now - kernel.before);
    took -= static_cast<double>(kernel.launches) * kernel.weights;
    double measured = std::max(took / kernel.work, kLeast);
    kernel.nanosecondsPerWork =
        kernel.isMeasured ? (kernel.nanosecondsPerWork + measured) / 2 : measured;
    kernel.isMeasured = true;
  }
}

} // namespace sheaf::rt
