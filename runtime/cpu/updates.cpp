#include "runtime/cpu/updates.h"

#include "runtime/model/error.h"
#include "runtime/model/param_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sheaf::rt {

namespace {

/// Waking the other threads costs what so many take.
constexpr int64_t kLeastParallelFloats = 64 << 10;

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

SHEAF_UPDATE void updateAdd(float *__restrict w, const float *__restrict gradient, int64_t size) {
  for (int64_t i = 0; i < size; ++i)
    w[i] += gradient[i];
}

SHEAF_UPDATE void approach(float *__restrict average, const float *__restrict value, int64_t size,
                           float keep) {
  for (int64_t i = 0; i < size; ++i)
    average[i] = keep * average[i] + (1 - keep) * value[i];
}

/// One run of elements.
struct Row {
  float *value, *mean, *squares;
  const float *gradient;
  int64_t size;
};

void update(const Row &row, UpdateKind kind, const UpdateNumbers &numbers) {
  switch (kind) {
  case UpdateKind::Sgd:
    return updateSgd(row.value, row.gradient, row.size, numbers);
  case UpdateKind::Momentum:
    return updateMomentum(row.value, row.mean, row.gradient, row.size, numbers);
  case UpdateKind::Adam:
    return updateAdam(row.value, row.mean, row.squares, row.gradient, row.size, numbers);
  case UpdateKind::AdamW:
    return updateAdamW(row.value, row.mean, row.squares, row.gradient, row.size, numbers);
  case UpdateKind::Adagrad:
    return updateAdagrad(row.value, row.squares, row.gradient, row.size, numbers);
  case UpdateKind::RmsProp:
    return updateRmsProp(row.value, row.squares, row.gradient, row.size, numbers);
  case UpdateKind::Add:
    return updateAdd(row.value, row.gradient, row.size);
  case UpdateKind::Clear:
    std::fill_n(row.value, row.size, 0.0F);
    return;
  case UpdateKind::Approach:
    return approach(row.value, row.gradient, row.size, numbers.keep);
  }
}

double sumOfChanges(const Row &row, const UpdateNumbers &n) {
  double sum = 0;
  for (int64_t i = 0; i < row.size; ++i) {
    float g = row.gradient[i] * n.scale;
    double m = n.beta1 * row.mean[i] + (1 - n.beta1) * g,
           v = n.beta2 * row.squares[i] + (1 - n.beta2) * g * g;
    double change = m * n.wideOfMean / (std::sqrt(v * n.wideOfSquares) + n.wideEpsilon) +
                    n.wideDecay * static_cast<double>(row.value[i]);
    sum += change * change;
  }
  return sum;
}

} // namespace

uint32_t Updates::makeBuffer(uint64_t bytes) {
  auto free = std::find_if(buffers_.begin(), buffers_.end(),
                           [](const Buffer &buffer) { return !buffer.bytes; });
  if (free == buffers_.end())
    free = buffers_.emplace(buffers_.end());
  *free = {allocateAligned(static_cast<size_t>(bytes)), bytes};
  return static_cast<uint32_t>(free - buffers_.begin()) + 1;
}

void Updates::dropBuffer(uint32_t buffer) { buffers_.at(buffer - 1) = {}; }

std::span<uint8_t> Updates::buffer(uint32_t number) {
  Buffer &buffer = buffers_.at(number - 1);
  return {buffer.bytes.get(), static_cast<size_t>(buffer.size)};
}

float *Updates::at(const FloatsAt &floats) {
  switch (floats.kind) {
  case FloatsAt::None:
    break;
  case FloatsAt::Rows:
    return reinterpret_cast<float *>(rows_ + floats.granule * kGranuleBytes);
  case FloatsAt::Buffer:
    return reinterpret_cast<float *>(buffer(floats.buffer).data());
  case FloatsAt::Host:
    return const_cast<float *>(floats.host);
  }
  return nullptr;
}

template <typename Visit> void Updates::visitRuns(const ParamPiece &piece, Visit visit) const {
  RowMatrix matrix = rowMatrix(model_.params[piece.param]);
  if (piece.rows)
    for (int64_t i = piece.begin; i < piece.end; ++i)
      visit(piece.rows[i] * matrix.stride, matrix.width);
  else if (matrix.width == matrix.stride)
    visit(piece.begin * matrix.stride, (piece.end - piece.begin) * matrix.width);
  else
    for (int64_t row = piece.begin; row < piece.end; ++row)
      visit(row * matrix.stride, matrix.width);
}

void Updates::forEach(std::span<const ParamPiece> pieces, Workers &workers,
                      const std::function<void(size_t)> &work) const {
  int64_t floats = 0;
  for (const ParamPiece &piece : pieces)
    floats += (piece.end - piece.begin) * matrixOf(model_.params[piece.param]).columns;
  workers.forEach(pieces.size(), floats < kLeastParallelFloats, work);
}

void Updates::run(const Reduce &reduce, Workers &workers) {
  forEach(reduce.pieces, workers, [&](size_t number) {
    const ParamPiece &piece = reduce.pieces[number];
    const UpdateOperands &of = reduce.operands[piece.param];
    const float *gradient = at(of.gradient);
    float *value = at(of.value), *mean = at(of.mean), *squares = at(of.squares);
    double sum = 0;
    visitRuns(piece, [&](int64_t begin, int64_t size) {
      if (reduce.of == Reduce::Gradients)
        sum += sumOfSquares(gradient + begin, size);
      else if (reduce.of == Reduce::Values)
        sum += sumOfSquares(value + begin, size);
      else
        sum += sumOfChanges({value + begin, mean + begin, squares + begin, gradient + begin, size},
                            of.numbers);
    });
    reduce.sums[number] = sum;
  });
}

void Updates::run(const Update &update, Workers &workers,
                  const std::function<void(size_t, int64_t, int64_t)> &pack) {
  forEach(update.pieces, workers, [&](size_t number) {
    const ParamPiece &piece = update.pieces[number];
    const UpdateOperands &of = update.operands[piece.param];
    const float *gradient = at(of.gradient);
    float *value = at(of.value), *mean = at(of.mean), *squares = at(of.squares);
    visitRuns(piece, [&](int64_t begin, int64_t size) {
      rt::update({value + begin, mean ? mean + begin : nullptr, squares ? squares + begin : nullptr,
                  gradient ? gradient + begin : nullptr, size},
                 of.kind, of.numbers);
    });
    if (!update.packs)
      return;
    if (!piece.rows)
      return pack(piece.param, piece.begin, piece.end);
    for (int64_t i = piece.begin; i < piece.end;) {
      int64_t end = i + 1;
      while (end < piece.end && piece.rows[end] == piece.rows[end - 1] + 1)
        ++end;
      pack(piece.param, piece.rows[i], int64_t(piece.rows[end - 1]) + 1);
      i = end;
    }
  });
}

} // namespace sheaf::rt
