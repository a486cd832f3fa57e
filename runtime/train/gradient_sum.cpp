#include "runtime/train/gradient_sum.h"

#include "runtime/train/gradient_rows.h"

#include <algorithm>

namespace sheaf::rt {

GradientSum::GradientSum(const Model &model)
    : model_(model), sums_(model.params.size()), bytes_(model.params.size()) {}

void GradientSum::add(std::span<const ParamGradient> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ParamGradient &gradient = gradients[i];
    if (gradient.kind == ParamGradient::None)
      continue;
    const ParamDesc &desc = model_.params[i];
    ParamGradient &sum = sums_[i];
    if (!bytes_[i]) {
      bytes_[i] = allocateAligned(
          static_cast<size_t>(tensorGranules(desc.shape, desc.dtype) * kGranuleBytes));
      sum.data = reinterpret_cast<float *>(bytes_[i].get());
    }
    forEachRow(desc, gradient, [&](int64_t begin, int64_t size) {
      float *to = sum.data + begin;
      const float *from = gradient.data + begin;
      for (int64_t j = 0; j < size; ++j)
        to[j] += from[j];
    });
    if (gradient.kind == ParamGradient::Dense || sum.kind == ParamGradient::Dense) {
      sum.kind = ParamGradient::Dense;
      sum.rows.clear();
      continue;
    }
    sum.kind = ParamGradient::Rows;
    std::vector<uint32_t> rows;
    std::set_union(sum.rows.begin(), sum.rows.end(), gradient.rows.begin(), gradient.rows.end(),
                   std::back_inserter(rows));
    sum.rows = std::move(rows);
  }
}

void GradientSum::clear() {
  for (size_t i = 0; i < sums_.size(); ++i) {
    ParamGradient &sum = sums_[i];
    forEachRow(model_.params[i], sum,
               [&](int64_t begin, int64_t size) { std::fill_n(sum.data + begin, size, 0.0F); });
    sum.kind = ParamGradient::None;
    sum.rows.clear();
  }
}

} // namespace sheaf::rt
