#include "runtime/train/gradient_sum.h"

#include "runtime/device/device.h"
#include "runtime/model/param_matrix.h"
#include "runtime/train/gradient_rows.h"

#include <algorithm>

namespace sheaf::rt {

GradientSum::GradientSum(const Model &model)
    : model_(model), sums_(model.params.size()), bytes_(model.params.size()) {}

GradientSum::GradientSum(const Model &model, Device &device) : GradientSum(model) {
  device_ = &device;
}

GradientSum::~GradientSum() {
  for (const ParamGradient &sum : sums_)
    if (sum.at.kind == FloatsAt::Buffer)
      device_->dropBuffer(sum.at.buffer);
}

/// Memory for the sum of a parameter, zero.
void GradientSum::make(size_t param) {
  ParamGradient &sum = sums_[param];
  if (sum.at.kind != FloatsAt::None || bytes_[param])
    return;
  const ParamDesc &desc = model_.params[param];
  auto bytes = static_cast<size_t>(tensorGranules(desc.shape, desc.dtype) * kGranuleBytes);
  if (device_) {
    sum.at = FloatsAt::inBuffer(device_->makeBuffer(bytes));
    return;
  }
  bytes_[param] = allocateAligned(bytes);
  sum.data = reinterpret_cast<float *>(bytes_[param].get());
}

/// Adds gradients to the sums where they are, or clears the sums there.
void GradientSum::submit(std::span<const ParamGradient> gradients, bool adds) {
  std::vector<ParamPiece> pieces;
  std::vector<UpdateOperands> operands(gradients.size());
  constexpr int64_t floatsAPiece = 16 << 10;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ParamGradient &gradient = gradients[i];
    if (gradient.kind == ParamGradient::None)
      continue;
    operands[i].kind = adds ? UpdateKind::Add : UpdateKind::Clear;
    operands[i].value = sums_[i].at;
    operands[i].gradient = gradient.where();
    auto [rows, columns] = matrixOf(model_.params[i]);
    bool some = gradient.kind == ParamGradient::Rows;
    int64_t count = some ? static_cast<int64_t>(gradient.rows.size()) : rows;
    int64_t step = std::max<int64_t>(1, floatsAPiece / std::max<int64_t>(1, columns));
    for (int64_t begin = 0; begin < count; begin += step)
      pieces.push_back({static_cast<uint32_t>(i), begin, std::min(begin + step, count),
                        some ? gradient.rows.data() : nullptr});
  }
  Instruction update = Update{pieces, operands};
  device_->run({&update, 1});
}

void GradientSum::show() {
  for (ParamGradient &sum : sums_)
    if (sum.at.kind == FloatsAt::Buffer && sum.kind != ParamGradient::None)
      sum.data = reinterpret_cast<float *>(device_->showBuffer(sum.at.buffer).data());
}

void GradientSum::add(std::span<const ParamGradient> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].kind != ParamGradient::None)
      make(i);
  if (device_)
    submit(gradients, /*adds=*/true);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ParamGradient &gradient = gradients[i];
    if (gradient.kind == ParamGradient::None)
      continue;
    ParamGradient &sum = sums_[i];
    if (!device_)
      forEachRow(model_.params[i], gradient, [&](int64_t begin, int64_t size) {
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
  if (device_)
    submit(sums_, /*adds=*/false);
  for (size_t i = 0; i < sums_.size(); ++i) {
    ParamGradient &sum = sums_[i];
    if (!device_)
      forEachRow(model_.params[i], sum,
                 [&](int64_t begin, int64_t size) { std::fill_n(sum.data + begin, size, 0.0F); });
    sum.kind = ParamGradient::None;
    sum.rows.clear();
  }
}

} // namespace sheaf::rt
