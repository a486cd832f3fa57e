#include "runtime/train/average.h"

#include "runtime/device/device.h"
#include "runtime/model/param_matrix.h"

#include <algorithm>

namespace sheaf::rt {

WeightAverage::WeightAverage(Session &session, double decay) : session_(session), decay_(decay) {
  for (const ParamDesc &param : session.model().params)
    averages_.push_back(
        param.synthetic || param.dtype != DType::F32
            ? 0
            : session.makeBuffer(static_cast<uint64_t>(tensorGranules(param.shape, param.dtype)) *
                                     kGranuleBytes,
                                 "the average of the weights"));
}

WeightAverage::~WeightAverage() {
  for (uint32_t buffer : averages_)
    if (buffer)
      session_.dropBuffer(buffer);
}

void WeightAverage::update() {
  ++updates_;
  auto t = static_cast<double>(updates_);
  UpdateNumbers numbers;
  // The first update takes the parameters as they are.
  numbers.keep = static_cast<float>(updates_ == 1 ? 0 : std::min(decay_, t / (t + 9)));
  const Model &model = session_.model();
  std::vector<ParamPiece> pieces;
  std::vector<UpdateOperands> operands(model.params.size());
  for (size_t i = 0; i < averages_.size(); ++i) {
    if (!averages_[i])
      continue;
    operands[i].kind = UpdateKind::Approach;
    operands[i].value = FloatsAt::inBuffer(averages_[i]);
    operands[i].gradient = FloatsAt::rows(model.params[i].id);
    operands[i].numbers = numbers;
    pieces.push_back({static_cast<uint32_t>(i), 0, matrixOf(model.params[i]).rows});
  }
  Instruction update = Update{pieces, operands};
  session_.device().run({&update, 1});
}

std::span<const uint8_t> WeightAverage::state(size_t index) const {
  return averages_[index] ? session_.device().showBuffer(averages_[index]) : std::span<uint8_t>();
}

bool WeightAverage::setState(size_t index, const std::function<void(uint8_t *)> &write) {
  if (!averages_[index])
    return false;
  write(session_.device().showBuffer(averages_[index]).data());
  session_.device().bufferWritten(averages_[index]);
  return true;
}

TensorView WeightAverage::param(size_t index) const {
  TensorView view = session_.param(index);
  if (averages_[index] && updates_ > 0)
    view.data = state(index).data();
  return view;
}

} // namespace sheaf::rt
