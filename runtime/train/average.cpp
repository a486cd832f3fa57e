#include "runtime/train/average.h"

namespace sheaf::rt {

namespace {

// As wide as the machine's vectors, and the same bits on all: nothing is contracted.
#pragma clang fp contract(off)
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void approach(float *__restrict average, const float *__restrict value, int64_t size, float keep) {
  for (int64_t i = 0; i < size; ++i)
    average[i] = keep * average[i] + (1 - keep) * value[i];
}

} // namespace

WeightAverage::WeightAverage(const Session &session, double decay)
    : session_(session), decay_(decay) {
  for (const ParamDesc &param : session.model().params)
    averages_.push_back(param.synthetic || param.dtype != DType::F32
                            ? nullptr
                            : allocateAligned(static_cast<size_t>(
                                  tensorGranules(param.shape, param.dtype) * kGranuleBytes)));
}

void WeightAverage::update() {
  ++updates_;
  auto t = static_cast<double>(updates_);
  // The first update takes the parameters as they are.
  auto keep = static_cast<float>(updates_ == 1 ? 0 : std::min(decay_, t / (t + 9)));
  for (size_t i = 0; i < averages_.size(); ++i)
    if (averages_[i]) {
      TensorView value = session_.param(i);
      approach(reinterpret_cast<float *>(averages_[i].get()),
               reinterpret_cast<const float *>(value.data), value.rows() * value.rowStride() / 4,
               keep);
    }
}

TensorView WeightAverage::param(size_t index) const {
  TensorView view = session_.param(index);
  if (averages_[index] && updates_ > 0)
    view.data = averages_[index].get();
  return view;
}

} // namespace sheaf::rt
