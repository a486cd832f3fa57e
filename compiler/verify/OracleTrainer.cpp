//===- OracleTrainer.cpp - Trainings in f64 -------------------------------===//
#include "compiler/verify/OracleTrainer.h"

#include "compiler/oracle/Convert.h"
#include "runtime/model/error.h"

#include "mlir/IR/BuiltinOps.h"

#include <cmath>

namespace sheaf::driver {

namespace {

using Kind = rt::OptimizerOptions::Kind;

oracle::OracleOptions oracleOptions(const rt::Session &session) {
  oracle::OracleOptions options;
  options.sampleSeed = session.options().sampleSeed;
  return options;
}

} // namespace

OracleTrainer::OracleTrainer(const CompiledModel &model, const rt::Session &session,
                             std::span<const rt::Instance> instances,
                             const rt::TrainerOptions &options)
    : model_(model.model()), instances_(instances), options_(options),
      oracle_(model.program(), oracle::Precision::F64, oracleOptions(session)),
      weights_(oracle::weightsOf(session)) {}

void OracleTrainer::runInstances(size_t begin, size_t end, rt::TrainingStep &step) {
  std::vector<uint32_t> order = rt::instanceOrder(options_.seed, step.epoch, instances_.size());
  for (size_t i = begin; i < end; ++i) {
    const rt::Instance &instance = instances_[order[i]];
    try {
      step.loss += oracle_.addGradients(
          model_.entry.name,
          oracle::fromInstance(model_.types, model_.entry.argTypes, instance.args), instance.index,
          static_cast<uint64_t>(step.number) + 1, 1, gradients_);
      ++step.instances;
    } catch (const RunError &error) {
      if (step.failed++ == 0)
        step.error = error;
    }
  }
}

rt::TrainingStep OracleTrainer::step(int64_t maxCalls) {
  rt::TrainingStep result;
  result.number = next_++;
  rt::StepInstances which = rt::instancesOf(options_, result.number, instances_.size());
  result.epoch = which.epoch;
  gradients_.clear();
  oracle_.setWeights(weights_);
  oracle_.limitCalls(maxCalls);
  runInstances(which.begin, which.end, result);
  auto count = static_cast<double>(std::max<int64_t>(result.instances, 1));
  result.loss /= count;
  result.rate = options_.rate.at(result.number);
  for (const std::string &name : frozen_)
    gradients_.erase(name);

  double scale = 1 / (options_.sum ? 1 : count), squares = 0;
  for (const auto &[name, gradient] : gradients_)
    for (double g : gradient.elements)
      squares += g * g;
  result.norm = scale * std::sqrt(squares);
  result.skipped = !std::isfinite(result.norm);
  if (result.skipped)
    return result;
  if (options_.optimizer.clip > 0 && result.norm > options_.optimizer.clip)
    scale *= options_.optimizer.clip / result.norm;
  ++updates_;
  for (const auto &[name, gradient] : gradients_)
    if (!gradient.elements.empty())
      update(name, result.rate, scale);
  return result;
}

std::vector<OracleTrainer::Range> OracleTrainer::rangesOf(const std::string &param) const {
  const oracle::ParamGradient &gradient = gradients_.at(param);
  if (!gradient.isSparse)
    return {{0, gradient.elements.size()}};
  std::vector<Range> ranges;
  size_t size = gradient.elements.size() / static_cast<size_t>(weights_.at(param)->shape.front());
  for (int64_t part : gradient.parts)
    ranges.push_back({static_cast<size_t>(part) * size, size});
  return ranges;
}

void OracleTrainer::update(const std::string &param, double rate, double scale) {
  const rt::OptimizerOptions &o = options_.optimizer;
  const std::vector<double> &gradient = gradients_.at(param).elements;
  State &state = states_[param];
  state.mean.resize(gradient.size(), 0);
  state.squares.resize(gradient.size(), 0);
  const rt::ParamUpdate &own = updatesOf_[param];
  double decay = own.decay.value_or(o.weightDecay);
  rate *= own.rate;
  std::vector<Range> ranges = rangesOf(param);
  if (o.kind == Kind::Lamb)
    rate *= lambRatio(param, ranges, scale, decay);
  auto changed = std::make_shared<ops::RefTensor>(*weights_.at(param));
  bool decaysApart = o.kind == Kind::AdamW || o.kind == Kind::Lamb;
  auto updates = static_cast<double>(updates_);
  double ofMean = 1 / (1 - std::pow(o.beta1, updates));
  double ofSquares = 1 / (1 - std::pow(o.beta2, updates));
  for (Range range : ranges)
    for (size_t i = range.begin; i < range.begin + range.size; ++i) {
      double &w = changed->data[i], &m = state.mean[i], &v = state.squares[i];
      double g = gradient[i] * scale + (decaysApart ? 0 : decay * w), change = g;
      switch (o.kind) {
      case Kind::Sgd:
        break;
      case Kind::Momentum:
        change = m = o.momentum * m + g;
        break;
      case Kind::Adam:
      case Kind::AdamW:
      case Kind::Lamb:
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        change = m * ofMean / (std::sqrt(v * ofSquares) + o.epsilon);
        break;
      case Kind::Adagrad:
        v += g * g;
        change = g / (std::sqrt(v) + o.epsilon);
        break;
      case Kind::RmsProp:
        v = o.decay * v + (1 - o.decay) * g * g;
        change = g / (std::sqrt(v) + o.epsilon);
        break;
      }
      w -= rate * (change + (decaysApart ? decay * w : 0));
    }
  weights_[param] = std::move(changed);
}

/// By how much LAMB's rate differs: the length of the rows that change over that of the change.
double OracleTrainer::lambRatio(const std::string &param, const std::vector<Range> &ranges,
                                double scale, double decay) {
  const rt::OptimizerOptions &o = options_.optimizer;
  const std::vector<double> &gradient = gradients_.at(param).elements;
  const State &state = states_.at(param);
  auto updates = static_cast<double>(updates_);
  double weights = 0, changes = 0;
  for (Range range : ranges)
    for (size_t i = range.begin; i < range.begin + range.size; ++i) {
      double w = weights_.at(param)->data[i], g = gradient[i] * scale;
      double m = o.beta1 * state.mean[i] + (1 - o.beta1) * g;
      double v = o.beta2 * state.squares[i] + (1 - o.beta2) * g * g;
      double change = m / (1 - std::pow(o.beta1, updates)) /
                          (std::sqrt(v / (1 - std::pow(o.beta2, updates))) + o.epsilon) +
                      decay * w;
      weights += w * w;
      changes += change * change;
    }
  return weights > 0 && changes > 0 ? std::sqrt(weights / changes) : 1;
}

} // namespace sheaf::driver
