#include "runtime/session/slices.h"

#include <algorithm>
#include <utility>

namespace sheaf::rt {

Slices::Slices(const Model &model, uint64_t nanoseconds, bool tiny)
    : model_(model), nanoseconds_(static_cast<double>(nanoseconds)), tiny_(tiny),
      kernels_(model.kernels.size()) {}

void Slices::begin(const Counters &counters) {
  left_ = nanoseconds_;
  isEmpty_ = true;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    kernels_[k].work = 0;
    kernels_[k].before = counters.kernels[k].nanoseconds;
  }
}

int64_t Slices::take(const ScheduledBucket &launch) {
  if (tiny_)
    return std::exchange(isEmpty_, false) ? std::min(launch.count, kTiny) : 0;
  Kernel &kernel = kernels_[launch.kernel];
  const KernelDesc &desc = model_.kernels[launch.kernel];
  int64_t taken = 0;
  // Any slice has a record.
  for (; taken < launch.count && (left_ > 0 || isEmpty_); ++taken) {
    const int32_t *record = launch.records + taken * desc.words;
    double work = kWorkOfRecord + sumOverRecords(desc.flop, desc.words, {0, 0, record, 1});
    kernel.work += work;
    left_ -= work * kernel.nanosecondsPerWork;
    isEmpty_ = false;
  }
  return taken;
}

void Slices::end(const Counters &counters) {
  for (size_t k = 0; k < kernels_.size(); ++k) {
    Kernel &kernel = kernels_[k];
    uint64_t now = counters.kernels[k].nanoseconds;
    // (Counters may have been reset.)
    if (kernel.work == 0 || now <= kernel.before)
      continue;
    double measured = static_cast<double>(now - kernel.before) / kernel.work;
    kernel.nanosecondsPerWork =
        kernel.isMeasured ? (kernel.nanosecondsPerWork + measured) / 2 : measured;
    kernel.isMeasured = true;
  }
}

} // namespace sheaf::rt
