//===- LossDifferences.cpp - Finite differences of a loss -----------------===//
#include "compiler/verify/LossDifferences.h"

#include "compiler/oracle/Convert.h"
#include "compiler/verify/Replayed.h"

#include "mlir/IR/BuiltinOps.h"

namespace sheaf::driver {

LossDifferences::LossDifferences(const CompiledModel &model, std::vector<rt::Instance> instances,
                                 oracle::Weights weights, std::vector<Reads> reads,
                                 uint64_t sampleSeed)
    : model_(model), instances_(std::move(instances)), weights_(std::move(weights)),
      reads_(std::move(reads)), stopped_(instances_.size()),
      replay_(model.readPaths(), allowedError(model)),
      oracle_(model.program(), weights_, oracle::Precision::F64,
              {.sampleSeed = sampleSeed,
               .replay = &replay_,
               .onStopGradient = [this](oracle::TensorPtr x) {
                 std::vector<oracle::TensorPtr> &stopped = stopped_[instance_];
                 if (notesStopped_)
                   stopped.push_back(x);
                 return nextStopped_ < stopped.size() ? stopped[nextStopped_++] : x;
               }}) {
  loss_ = lossWith(weights_);
  notesStopped_ = false;
}

double LossDifferences::lossWith(const oracle::Weights &weights, const Direction *input,
                                 double by) {
  const rt::Model &model = model_.model();
  size_t at = 0; // of the elements of the argument
  auto change = [&](size_t argument, ops::RefTensor &tensor) {
    if (!input || inputName(model.entry.argNames[argument]) != input->param ||
        tensor.dtype != ops::DType::F32)
      return;
    for (double &x : tensor.data) {
      if (at >= input->begin && at < input->end)
        x += by * input->signs[at];
      ++at;
    }
  };
  oracle_.setWeights(weights);
  double sum = 0;
  for (instance_ = 0; instance_ < instances_.size(); ++instance_) {
    nextStopped_ = 0;
    replay_.expect(reads_[instance_]);
    const rt::Instance &instance = instances_[instance_];
    std::vector<oracle::Value> result =
        oracle_.run(model.entry.name,
                    oracle::fromInstance(model.types, model.entry.argTypes, instance.args, change),
                    instance.index);
    sum += oracle::tensor(result.at(0)).data[0];
  }
  return sum / static_cast<double>(instances_.size());
}

double LossDifferences::lossAt(const Direction &direction, double by) {
  if (!weights_.contains(direction.param))
    return lossWith(weights_, &direction, by);
  oracle::Weights weights = weights_;
  auto changed = std::make_shared<ops::RefTensor>(*weights_.at(direction.param));
  for (size_t i = direction.begin; i < direction.end; ++i)
    changed->data[i] += by * direction.signs[i];
  weights[direction.param] = changed;
  return lossWith(weights);
}

Slopes LossDifferences::slopes(const Direction &direction, double step) {
  return {(loss_ - lossAt(direction, -step)) / step, (lossAt(direction, step) - loss_) / step};
}

double LossDifferences::slope(const Direction &direction, double step) {
  return (lossAt(direction, step) - lossAt(direction, -step)) / (2 * step);
}

} // namespace sheaf::driver
