#include "runtime/train/optimizer.h"

#include "runtime/train/gradient_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace sheaf::rt {

/// The numbers of one parameter in one step.
struct UpdateNumbers {
  float rate, scale, decay, epsilon, momentum, beta1, beta2, keep;
  float ofMean, ofSquares; ///< what corrects the start of means at zero
};

namespace {

/// Waking the other threads costs what so many take.
constexpr int64_t kLeastParallelFloats = 64 << 10;

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

// Vectors as wide as the machine's, and the same bits on all: nothing is contracted.
#pragma clang fp contract(off)
#if defined(__x86_64__)
#define SHEAF_UPDATE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHEAF_UPDATE
#endif

/// Sums in f64, eight apart: one order for any machine.
SHEAF_UPDATE double sumOfSquares(const float *x, int64_t size) {
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
      states_(session.model().params.size()), tensors_(session.model().params.size()) {}

void Optimizer::setUpdates(std::vector<ParamUpdate> updates) {
  updates.resize(session_.model().params.size());
  updates_ = std::move(updates);
}

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

std::vector<Optimizer::Piece> Optimizer::piecesOf(std::span<const ParamGradient> gradients) const {
  constexpr int64_t pieceBytes = 32 << 10; // near while they are packed
  constexpr int64_t unit = Session::kRowsPackedApart;
  std::vector<Piece> pieces;
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
      pieces.push_back({static_cast<uint32_t>(i), begin, end, (end - begin) * matrix.width});
    }
  }
  return pieces;
}

template <typename Visit>
void Optimizer::visitRuns(const Piece &piece, const ParamGradient &gradient, Visit visit) const {
  RowMatrix matrix = rowMatrix(session_.model().params[piece.param]);
  if (gradient.kind == ParamGradient::Rows)
    for (int64_t i = piece.begin; i < piece.end; ++i)
      visit(gradient.rows[static_cast<size_t>(i)] * matrix.stride, matrix.width);
  else if (matrix.width == matrix.stride)
    visit(piece.begin * matrix.stride, (piece.end - piece.begin) * matrix.width);
  else
    for (int64_t row = piece.begin; row < piece.end; ++row)
      visit(row * matrix.stride, matrix.width);
}

template <typename Visit>
void Optimizer::visitRows(const Piece &piece, const ParamGradient &gradient, Visit visit) {
  auto [weight, mean, squares] = tensors_[piece.param];
  visitRuns(piece, gradient, [&](int64_t begin, int64_t size) {
    visit(Row{weight + begin, mean ? mean + begin : nullptr, squares ? squares + begin : nullptr,
              gradient.data + begin, size});
  });
}

void Optimizer::forEach(std::span<const Piece> pieces,
                        const std::function<void(const Piece &)> &work) {
  int64_t floats = 0;
  for (const Piece &piece : pieces)
    floats += piece.floats;
  session_.forEach(pieces.size(), floats < kLeastParallelFloats,
                   [&](size_t i) { work(pieces[i]); });
}

template <typename Value> double Optimizer::sumOver(std::span<const Piece> pieces, Value value) {
  std::vector<double> sums(pieces.size());
  forEach(pieces, [&](const Piece &piece) {
    sums[static_cast<size_t>(&piece - pieces.data())] = value(piece);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

UpdateNumbers Optimizer::numbersOf(double rate, double scale, double decay) const {
  auto number = [](double value) { return static_cast<float>(value); };
  auto steps = static_cast<double>(steps_);
  return {number(rate),
          number(scale),
          number(decay),
          number(options_.epsilon),
          number(options_.momentum),
          number(options_.beta1),
          number(options_.beta2),
          number(options_.decay),
          number(1 / (1 - std::pow(options_.beta1, steps))),
          number(1 / (1 - std::pow(options_.beta2, steps)))};
}

void Optimizer::update(const Row &row, const UpdateNumbers &numbers) {
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
double Optimizer::lambRatio(std::span<const Piece> pieces, const ParamGradient &gradient,
                            double scale, double decay) {
  auto b1 = static_cast<float>(options_.beta1), b2 = static_cast<float>(options_.beta2);
  auto steps = static_cast<double>(steps_);
  double mean = 1 / (1 - std::pow(options_.beta1, steps));
  double squares = 1 / (1 - std::pow(options_.beta2, steps));
  double weights = sumOver(pieces, [&](const Piece &piece) {
    double sum = 0;
    visitRows(piece, gradient, [&](const Row &row) { sum += sumOfSquares(row.weight, row.size); });
    return sum;
  });
  double changes = sumOver(pieces, [&](const Piece &piece) {
    double sum = 0;
    visitRows(piece, gradient, [&](const Row &row) {
      for (int64_t i = 0; i < row.size; ++i) {
        float g = row.gradient[i] * static_cast<float>(scale);
        double m = b1 * row.mean[i] + (1 - b1) * g, v = b2 * row.squares[i] + (1 - b2) * g * g;
        double change = m * mean / (std::sqrt(v * squares) + options_.epsilon) +
                        decay * static_cast<double>(row.weight[i]);
        sum += change * change;
      }
    });
    return sum;
  });
  return weights > 0 && changes > 0 ? std::sqrt(weights / changes) : 1;
}

/// What was updated, while it is near.
void Optimizer::pack(const Piece &piece, const ParamGradient &gradient) {
  if (gradient.kind == ParamGradient::Dense)
    return session_.packRows(piece.param, piece.begin, piece.end);
  for (int64_t i = piece.begin; i < piece.end;) {
    const uint32_t *rows = gradient.rows.data();
    int64_t end = i + 1;
    while (end < piece.end && rows[end] == rows[end - 1] + 1)
      ++end;
    session_.packRows(piece.param, rows[i], int64_t(rows[end - 1]) + 1);
    i = end;
  }
}

StepReport Optimizer::step(std::span<const ParamGradient> gradients, double learningRate,
                           double scale) {
  StepReport report;
  bool packs = session_.packsRows();
  std::vector<Piece> pieces = piecesOf(gradients);
  double squares = sumOver(pieces, [&](const Piece &piece) {
    double sum = 0;
    const ParamGradient &gradient = gradients[piece.param];
    visitRuns(piece, gradient, [&](int64_t begin, int64_t size) {
      sum += sumOfSquares(gradient.data + begin, size);
    });
    return sum;
  });
  report.norm = scale * std::sqrt(squares);
  if (!std::isfinite(report.norm)) {
    report.skipped = true;
    return report;
  }
  if (options_.clip > 0 && report.norm > options_.clip)
    scale *= options_.clip / report.norm;
  ++steps_;
  std::vector<UpdateNumbers> numbers(gradients.size());
  for (auto first = pieces.begin(); first != pieces.end();) {
    size_t param = first->param;
    auto last = std::find_if(first, pieces.end(), [&](const Piece &p) { return p.param != param; });
    makeState(param);
    auto floatsOf = [](const AlignedBytes &bytes) {
      return reinterpret_cast<float *>(bytes.get());
    };
    tensors_[param] = {reinterpret_cast<float *>(session_.paramRow(param)),
                       floatsOf(states_[param].tensors[0]), floatsOf(states_[param].tensors[1])};
    double decay = decayOf(param), rate = learningRate * updates_[param].rate;
    report.changed |= rate > 0 && (squares > 0 || decay > 0);
    if (options_.kind == OptimizerOptions::Lamb)
      rate *= lambRatio({first, last}, gradients[param], scale, decay);
    numbers[param] = numbersOf(rate, scale, decay);
    first = last;
  }
  forEach(pieces, [&](const Piece &piece) {
    visitRows(piece, gradients[piece.param],
              [&](const Row &row) { update(row, numbers[piece.param]); });
    if (packs)
      pack(piece, gradients[piece.param]);
  });
  if (packs)
    session_.rowsPacked();
  return report;
}

} // namespace sheaf::rt
