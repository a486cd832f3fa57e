#include "runtime/train/optimizer.h"

#include "runtime/device/device.h"
#include "runtime/model/param_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace sheaf::rt {

namespace {

constexpr std::array<std::string_view, 3> kSchedules = {"constant", "linear", "cosine"};

size_t numberOf(const std::string &name, std::span<const std::string_view> names,
                const char *what) {
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i])
      return i;
    all += (i ? ", " : "") + std::string(names[i]);
  }
  throw UserError("there is no " + std::string(what) + " '" + name + "'; there are " + all);
}

UpdateKind updateOf(OptimizerOptions::Kind kind) {
  switch (kind) {
  case OptimizerOptions::Sgd:
    return UpdateKind::Sgd;
  case OptimizerOptions::Momentum:
    return UpdateKind::Momentum;
  case OptimizerOptions::Adam:
    return UpdateKind::Adam;
  case OptimizerOptions::AdamW:
  case OptimizerOptions::Lamb:
    return UpdateKind::AdamW;
  case OptimizerOptions::Adagrad:
    return UpdateKind::Adagrad;
  case OptimizerOptions::RmsProp:
    return UpdateKind::RmsProp;
  }
  return UpdateKind::Sgd;
}

/// Of a sequence with one number each.
std::vector<double> reduced(Device &device, Reduce::Of of, std::span<const ParamPiece> pieces,
                            std::span<const UpdateOperands> operands) {
  std::vector<double> sums(pieces.size());
  Instruction reduce = Reduce{of, pieces, operands, sums.data()};
  device.run({&reduce, 1});
  return sums;
}

} // namespace

std::span<const OptimizerInfo> optimizers() {
  static const std::vector<OptimizerInfo> all = {
      {"sgd", "the gradient times the rate", {}},
      {"momentum", "the gradient and what is left of earlier steps", {"--momentum"}},
      {"adam",
       "a mean of gradients over the root of a mean of their squares",
       {"--beta1", "--beta2", "--epsilon"}},
      {"adamw",
       "that of adam, with weight decay apart from the gradient",
       {"--beta1", "--beta2", "--epsilon"}},
      {"adagrad", "the gradient over the root of all its squares so far", {"--epsilon"}},
      {"rmsprop",
       "the gradient over the root of a mean of its squares",
       {"--rmsprop-decay", "--epsilon"}},
      {"lamb",
       "that of adamw, as long as the rate times the parameter",
       {"--beta1", "--beta2", "--epsilon"}},
  };
  return all;
}

OptimizerOptions::Kind optimizerKind(const std::string &name) {
  std::vector<std::string_view> names;
  for (const OptimizerInfo &info : optimizers())
    names.push_back(info.name);
  return static_cast<OptimizerOptions::Kind>(numberOf(name, names, "optimizer"));
}

LearningRate::Schedule scheduleNamed(const std::string &name) {
  return static_cast<LearningRate::Schedule>(numberOf(name, kSchedules, "schedule"));
}

std::string_view scheduleName(LearningRate::Schedule schedule) { return kSchedules[schedule]; }

double LearningRate::at(int64_t step) const {
  if (step < warmup)
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (schedule == Constant || total <= warmup)
    return peak;
  double done =
      std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(total - warmup));
  return schedule == Linear ? peak * (1 - done) : peak * 0.5 * (1 + std::cos(M_PI * done));
}

Optimizer::Optimizer(Session &session, const OptimizerOptions &options)
    : session_(session), options_(options), updates_(session.model().params.size()),
      states_(session.model().params.size()) {}

Optimizer::~Optimizer() {
  for (const State &state : states_)
    for (uint32_t buffer : state.buffers)
      if (buffer)
        session_.dropBuffer(buffer);
}

void Optimizer::setUpdates(std::vector<ParamUpdate> updates) {
  updates.resize(session_.model().params.size());
  updates_ = std::move(updates);
}

bool Optimizer::has(Part part) const {
  switch (options_.kind) {
  case OptimizerOptions::Sgd:
    return false;
  case OptimizerOptions::Momentum:
    return part == Mean;
  case OptimizerOptions::Adam:
  case OptimizerOptions::AdamW:
  case OptimizerOptions::Lamb:
    return true;
  case OptimizerOptions::Adagrad:
  case OptimizerOptions::RmsProp:
    return part == Squares;
  }
  return false;
}

void Optimizer::makeState(size_t param) {
  const ParamDesc &desc = session_.model().params[param];
  for (Part part : {Mean, Squares})
    if (uint32_t &buffer = states_[param].buffers[part]; has(part) && !buffer)
      buffer = session_.makeBuffer(static_cast<uint64_t>(tensorGranules(desc.shape, desc.dtype)) *
                                       kGranuleBytes,
                                   "what the optimiser remembers of the gradients");
}

void Optimizer::reserve() {
  for (size_t param = 0; param < states_.size(); ++param)
    if (session_.trains(param))
      makeState(param);
}

std::span<const uint8_t> Optimizer::state(size_t param, Part part) const {
  uint32_t buffer = states_[param].buffers[part];
  return buffer ? session_.device().showBuffer(buffer) : std::span<uint8_t>();
}

bool Optimizer::setState(size_t param, Part part, const std::function<void(uint8_t *)> &write) {
  if (!has(part))
    return false;
  makeState(param);
  uint32_t buffer = states_[param].buffers[part];
  write(session_.device().showBuffer(buffer).data());
  session_.device().bufferWritten(buffer);
  return true;
}

std::vector<ParamPiece> Optimizer::piecesOf(std::span<const ParamGradient> gradients) const {
  constexpr int64_t pieceBytes = 32 << 10; // near while they are packed
  constexpr int64_t unit = Session::kRowsPackedApart;
  std::vector<ParamPiece> pieces;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ParamGradient &gradient = gradients[i];
    if (gradient.kind == ParamGradient::None)
      continue;
    RowMatrix matrix = rowMatrix(session_.model().params[i]);
    bool some = gradient.kind == ParamGradient::Rows;
    int64_t count = some ? static_cast<int64_t>(gradient.rows.size()) : matrix.rows;
    int64_t step = std::max<int64_t>(pieceBytes / (matrix.stride * 4) / unit, 1) * unit;
    if (!session_.packsRowsApart(i))
      step = count;
    auto unitOf = [&](int64_t at) { return gradient.rows[static_cast<size_t>(at)] / unit; };
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
      end = std::min(begin + step, count);
      while (some && end < count && unitOf(end) == unitOf(end - 1))
        ++end;
      pieces.push_back(
          {static_cast<uint32_t>(i), begin, end, some ? gradient.rows.data() : nullptr});
    }
  }
  return pieces;
}

UpdateNumbers Optimizer::numbersOf(double rate, double scale, double decay) const {
  auto number = [](double value) { return static_cast<float>(value); };
  auto steps = static_cast<double>(steps_);
  UpdateNumbers numbers{number(rate),
                        number(scale),
                        number(decay),
                        number(options_.epsilon),
                        number(options_.momentum),
                        number(options_.beta1),
                        number(options_.beta2),
                        number(options_.decay)};
  numbers.wideOfMean = 1 / (1 - std::pow(options_.beta1, steps));
  numbers.wideOfSquares = 1 / (1 - std::pow(options_.beta2, steps));
  numbers.ofMean = number(numbers.wideOfMean);
  numbers.ofSquares = number(numbers.wideOfSquares);
  numbers.wideEpsilon = options_.epsilon;
  numbers.wideDecay = decay;
  return numbers;
}

/// LAMB (You and others 2020): a parameter moves in proportion to its own length. Of what the
/// update would be nothing is stored. By parameter.
std::vector<double> Optimizer::lambRatios(std::span<const ParamPiece> pieces,
                                          std::span<UpdateOperands> operands, double scale) const {
  for (size_t param = 0; param < operands.size(); ++param)
    operands[param].numbers = numbersOf(0, scale, decayOf(param));
  Device &device = session_.device();
  std::vector<double> values = reduced(device, Reduce::Values, pieces, operands),
                      changes = reduced(device, Reduce::Changes, pieces, operands);
  std::vector<double> ofValues(operands.size()), ofChanges(operands.size()),
      ratios(operands.size(), 1);
  for (size_t i = 0; i < pieces.size(); ++i) {
    ofValues[pieces[i].param] += values[i];
    ofChanges[pieces[i].param] += changes[i];
  }
  for (size_t param = 0; param < ratios.size(); ++param)
    if (ofValues[param] > 0 && ofChanges[param] > 0)
      ratios[param] = std::sqrt(ofValues[param] / ofChanges[param]);
  return ratios;
}

StepReport Optimizer::step(std::span<const ParamGradient> gradients, double learningRate,
                           double scale) {
  StepReport report;
  bool packs = session_.packsRows();
  std::vector<ParamPiece> pieces = piecesOf(gradients);
  std::vector<UpdateOperands> operands(gradients.size());
  for (size_t param = 0; param < gradients.size(); ++param)
    operands[param].gradient = gradients[param].where();
  std::vector<double> sums = reduced(session_.device(), Reduce::Gradients, pieces, operands);
  double squares = std::accumulate(sums.begin(), sums.end(), 0.0);
  report.norm = scale * std::sqrt(squares);
  if (!std::isfinite(report.norm)) {
    report.skipped = true;
    return report;
  }
  if (options_.clip > 0 && report.norm > options_.clip)
    scale *= options_.clip / report.norm;
  ++steps_;
  std::vector<uint32_t> params;
  for (const ParamPiece &piece : pieces)
    if (params.empty() || params.back() != piece.param)
      params.push_back(piece.param);
  for (uint32_t param : params) {
    makeState(param);
    UpdateOperands &own = operands[param];
    own.kind = updateOf(options_.kind);
    own.value = FloatsAt::rows(session_.model().params[param].id);
    own.mean = FloatsAt::inBuffer(states_[param].buffers[Mean]);
    own.squares = FloatsAt::inBuffer(states_[param].buffers[Squares]);
  }
  std::vector<double> ratios(operands.size(), 1);
  if (options_.kind == OptimizerOptions::Lamb)
    ratios = lambRatios(pieces, operands, scale);
  for (uint32_t param : params) {
    double decay = decayOf(param), rate = learningRate * updates_[param].rate;
    report.changed |= rate > 0 && (squares > 0 || decay > 0);
    operands[param].numbers = numbersOf(rate * ratios[param], scale, decay);
  }
  Instruction update = Update{pieces, operands, packs};
  session_.device().run({&update, 1});
  session_.paramsUpdated(params, packs);
  return report;
}

} // namespace sheaf::rt
