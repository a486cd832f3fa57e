#include "runtime/train/optimizer.h"

#include "runtime/train/gradient_rows.h"

#include <array>
#include <cmath>

namespace sheaf::rt {

namespace {

constexpr std::array<const char *, 7> kKinds = {"sgd",     "momentum", "adam", "adamw",
                                                "adagrad", "rmsprop",  "lamb"};
constexpr std::array<const char *, 3> kSchedules = {"constant", "linear", "cosine"};

template <size_t N>
size_t numberOf(const std::string &name, const std::array<const char *, N> &names,
                const char *what) {
  std::string all;
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i])
      return i;
    all += std::string(i ? ", " : "") + names[i];
  }
  throw UserError("there is no " + std::string(what) + " '" + name + "'; there are " + all);
}

struct UpdateNumbers {
  float rate, scale, decay, epsilon, momentum, beta1, beta2, keep;
  float ofMean, ofSquares; ///< what corrects the start of means at zero
};

// Vectors as wide as the machine's, and the same bits on all: nothing is contracted.
#pragma clang fp contract(off)
#if defined(__x86_64__)
#define SHEAF_UPDATE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHEAF_UPDATE
#endif

/// Sums in f64, eight apart: one order for any machine.
SHEAF_UPDATE double squaresOf(const float *x, int64_t size) {
  std::array<double, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= size; i += 8)
    for (int64_t j = 0; j < 8; ++j)
      sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
  double sum =
      ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (; i < size; ++i)
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

SHEAF_UPDATE void updateSgd(float *w, const float *gradient, int64_t size, const UpdateNumbers &n) {
  for (int64_t i = 0; i < size; ++i)
    w[i] -= n.rate * (gradient[i] * n.scale + n.decay * w[i]);
}

SHEAF_UPDATE void updateMomentum(float *__restrict w, float *__restrict m,
                                 const float *__restrict gradient, int64_t size,
                                 const UpdateNumbers &n) {
  for (int64_t i = 0; i < size; ++i) {
    m[i] = n.momentum * m[i] + (gradient[i] * n.scale + n.decay * w[i]);
    w[i] -= n.rate * m[i];
  }
}

SHEAF_UPDATE void updateAdam(float *__restrict w, float *__restrict m, float *__restrict v,
                             const float *__restrict gradient, int64_t size,
                             const UpdateNumbers &n) {
  for (int64_t i = 0; i < size; ++i) {
    float g = gradient[i] * n.scale + n.decay * w[i];
    m[i] = n.beta1 * m[i] + (1 - n.beta1) * g;
    v[i] = n.beta2 * v[i] + (1 - n.beta2) * g * g;
    w[i] -=
        n.rate * (m[i] * n.ofMean / (__builtin_elementwise_sqrt(v[i] * n.ofSquares) + n.epsilon));
  }
}

/// The decay apart from the gradient.
SHEAF_UPDATE void updateAdamW(float *__restrict w, float *__restrict m, float *__restrict v,
                              const float *__restrict gradient, int64_t size,
                              const UpdateNumbers &n) {
  for (int64_t i = 0; i < size; ++i) {
    float g = gradient[i] * n.scale;
    m[i] = n.beta1 * m[i] + (1 - n.beta1) * g;
    v[i] = n.beta2 * v[i] + (1 - n.beta2) * g * g;
    float change = m[i] * n.ofMean / (__builtin_elementwise_sqrt(v[i] * n.ofSquares) + n.epsilon);
    w[i] -= n.rate * (change + n.decay * w[i]);
  }
}

SHEAF_UPDATE void updateAdagrad(float *__restrict w, float *__restrict v,
                                const float *__restrict gradient, int64_t size,
                                const UpdateNumbers &n) {
  for (int64_t i = 0; i < size; ++i) {
    float g = gradient[i] * n.scale + n.decay * w[i];
    v[i] += g * g;
    w[i] -= n.rate * g / (__builtin_elementwise_sqrt(v[i]) + n.epsilon);
  }
}

SHEAF_UPDATE void updateRmsProp(float *__restrict w, float *__restrict v,
                                const float *__restrict gradient, int64_t size,
                                const UpdateNumbers &n) {
  for (int64_t i = 0; i < size; ++i) {
    float g = gradient[i] * n.scale + n.decay * w[i];
    v[i] = n.keep * v[i] + (1 - n.keep) * g * g;
    w[i] -= n.rate * g / (__builtin_elementwise_sqrt(v[i]) + n.epsilon);
  }
}

} // namespace

OptimizerOptions::Kind optimizerKind(const std::string &name) {
  return static_cast<OptimizerOptions::Kind>(numberOf(name, kKinds, "optimizer"));
}

LearningRate::Schedule scheduleNamed(const std::string &name) {
  return static_cast<LearningRate::Schedule>(numberOf(name, kSchedules, "schedule"));
}

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
    : session_(session), options_(options), decays_(session.model().params.size(), true),
      states_(session.model().params.size()) {}

bool Optimizer::hasMean() const {
  switch (options_.kind) {
  case OptimizerOptions::Momentum:
  case OptimizerOptions::Adam:
  case OptimizerOptions::AdamW:
  case OptimizerOptions::Lamb:
    return true;
  default:
    return false;
  }
}

bool Optimizer::hasSquares() const {
  return options_.kind != OptimizerOptions::Sgd && options_.kind != OptimizerOptions::Momentum;
}

void Optimizer::makeState(size_t param) {
  const ParamDesc &desc = session_.model().params[param];
  auto bytes = static_cast<size_t>(tensorGranules(desc.shape, desc.dtype) * kGranuleBytes);
  State &state = states_[param];
  if (hasMean() && !state.tensors[0])
    state.tensors[0] = allocateAligned(bytes);
  if (hasSquares() && !state.tensors[1])
    state.tensors[1] = allocateAligned(bytes);
}

template <typename Visit>
void Optimizer::visitRows(size_t param, const ParamGradient &gradient, Visit visit) {
  auto *weight = reinterpret_cast<float *>(session_.paramRow(param));
  auto *mean = reinterpret_cast<float *>(states_[param].tensors[0].get());
  auto *squares = reinterpret_cast<float *>(states_[param].tensors[1].get());
  forEachRow(session_.model().params[param], gradient, [&](int64_t begin, int64_t size) {
    visit(Row{weight + begin, mean ? mean + begin : nullptr, squares ? squares + begin : nullptr,
              gradient.data + begin, size});
  });
}

void Optimizer::update(const Row &row, double rate, double scale, double decay) {
  auto number = [](double value) { return static_cast<float>(value); };
  auto steps = static_cast<double>(steps_);
  UpdateNumbers numbers{number(rate),
                        number(scale),
                        number(decay),
                        number(options_.epsilon),
                        number(options_.momentum),
                        number(options_.beta1),
                        number(options_.beta2),
                        number(options_.decay),
                        number(1 / (1 - std::pow(options_.beta1, steps))),
                        number(1 / (1 - std::pow(options_.beta2, steps)))};
  switch (options_.kind) {
  case OptimizerOptions::Sgd:
    return updateSgd(row.weight, row.gradient, row.size, numbers);
  case OptimizerOptions::Momentum:
    return updateMomentum(row.weight, row.mean, row.gradient, row.size, numbers);
  case OptimizerOptions::Adam:
    return updateAdam(row.weight, row.mean, row.squares, row.gradient, row.size, numbers);
  case OptimizerOptions::AdamW:
  case OptimizerOptions::Lamb:
    return updateAdamW(row.weight, row.mean, row.squares, row.gradient, row.size, numbers);
  case OptimizerOptions::Adagrad:
    return updateAdagrad(row.weight, row.squares, row.gradient, row.size, numbers);
  case OptimizerOptions::RmsProp:
    return updateRmsProp(row.weight, row.squares, row.gradient, row.size, numbers);
  }
}

/// LAMB (You and others 2020): a parameter moves in proportion to its own length. Of what the
/// update would be nothing is stored: the state is advanced by update(), with this factor.
double Optimizer::lambRatio(size_t param, const ParamGradient &gradient, double scale,
                            double decay) {
  double weights = 0, changes = 0;
  auto b1 = static_cast<float>(options_.beta1), b2 = static_cast<float>(options_.beta2);
  auto steps = static_cast<double>(steps_);
  double mean = 1 / (1 - std::pow(options_.beta1, steps));
  double squares = 1 / (1 - std::pow(options_.beta2, steps));
  visitRows(param, gradient, [&](const Row &row) {
    weights += squaresOf(row.weight, row.size);
    for (int64_t i = 0; i < row.size; ++i) {
      float g = row.gradient[i] * static_cast<float>(scale);
      double m = b1 * row.mean[i] + (1 - b1) * g, v = b2 * row.squares[i] + (1 - b2) * g * g;
      double change = m * mean / (std::sqrt(v * squares) + options_.epsilon) +
                      decay * static_cast<double>(row.weight[i]);
      changes += change * change;
    }
  });
  return weights > 0 && changes > 0 ? std::sqrt(weights / changes) : 1;
}

/// Some rows at a time, which are packed while they are near.
void Optimizer::updateAndPack(size_t param, const ParamGradient &gradient, double rate,
                              double scale, double decay) {
  const ParamDesc &desc = session_.model().params[param];
  int64_t width = desc.shape.empty() ? 1 : desc.shape.back();
  int64_t stride = rowGranules(width, desc.dtype) * kGranuleBytes / 4;
  constexpr int64_t chunkBytes = 32 << 10, unit = 16; // lines of transposed copies
  int64_t rows = std::max<int64_t>(chunkBytes / (stride * 4) / unit, 1) * unit;
  int64_t first = 0, end = 0; // updated, and not packed yet
  auto pack = [&] {
    if (end > first)
      session_.packRows(param, first, end);
  };
  visitRows(param, gradient, [&](Row run) {
    int64_t row = (run.gradient - gradient.data) / stride;
    for (int64_t left = run.size; left > 0; row = end) {
      if (row != end || end - first >= rows) {
        pack();
        first = end = row;
      }
      int64_t size = std::min(left, (rows - (end - first)) * stride);
      update({run.weight, run.mean, run.squares, run.gradient, size}, rate, scale, decay);
      run.weight += size;
      run.gradient += size;
      run.mean = run.mean ? run.mean + size : nullptr;
      run.squares = run.squares ? run.squares + size : nullptr;
      left -= size;
      end += (size + stride - 1) / stride;
    }
  });
  pack();
}

StepReport Optimizer::step(std::span<const ParamGradient> gradients, double learningRate,
                           double scale) {
  StepReport report;
  bool packs = session_.packsRows();
  double squares = 0;
  for (size_t i = 0; i < gradients.size(); ++i)
    visitRows(i, gradients[i],
              [&](const Row &row) { squares += squaresOf(row.gradient, row.size); });
  report.norm = scale * std::sqrt(squares);
  if (!std::isfinite(report.norm)) {
    report.skipped = true;
    if (packs)
      session_.rowsPacked();
    return report;
  }
  if (options_.clip > 0 && report.norm > options_.clip)
    scale *= options_.clip / report.norm;
  ++steps_;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].kind == ParamGradient::None)
      continue;
    makeState(i);
    double decay = decays_[i] ? options_.weightDecay : 0, rate = learningRate;
    if (options_.kind == OptimizerOptions::Lamb)
      rate *= lambRatio(i, gradients[i], scale, decay);
    if (packs)
      updateAndPack(i, gradients[i], rate, scale, decay);
    else
      visitRows(i, gradients[i], [&](const Row &row) { update(row, rate, scale, decay); });
  }
  if (packs)
    session_.rowsPacked();
  return report;
}

} // namespace sheaf::rt
