//===- Reference.h - What references share ----------------------*- C++ -*-===//
//
// For the operator families only. Slow and obvious on purpose.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_REFERENCE_H
#define SHEAF_COMPILER_OPS_REFERENCE_H

#include "compiler/ops/Op.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sheaf::ops {

/// Walks all indices of a shape in row-major order.
template <typename Visit> void forEachIndex(const std::vector<int64_t> &shape, Visit &&visit) {
  int64_t total = 1;
  for (int64_t extent : shape)
    total *= extent;
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t n = 0; n < total; ++n) {
    visit(index);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis])
        break;
      index[axis] = 0;
    }
  }
}

/// The position of an index in the data of a tensor of this shape.
inline int64_t offsetOf(const std::vector<int64_t> &shape, std::span<const int64_t> index) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    offset = offset * shape[axis] + index[axis];
  return offset;
}

/// The position in a tensor of this shape that NumPy's broadcasting puts at `index` of a larger
/// shape.
inline int64_t broadcastOffset(const std::vector<int64_t> &shape,
                               const std::vector<int64_t> &index) {
  int64_t offset = 0;
  size_t skip = index.size() - shape.size();
  for (size_t axis = 0; axis < shape.size(); ++axis)
    offset = offset * shape[axis] + (shape[axis] == 1 ? 0 : index[axis + skip]);
  return offset;
}
inline double broadcastAt(const RefTensor &tensor, const std::vector<int64_t> &index) {
  return tensor.data[broadcastOffset(tensor.shape, index)];
}

/// A shape seen around one axis: `outer` times `extent` times `inner` elements.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(const std::vector<int64_t> &shape, size_t axis) : extent(shape[axis]) {
    for (size_t i = 0; i < shape.size(); ++i)
      (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  }
  int64_t at(int64_t o, int64_t i, int64_t n) const { return (o * extent + i) * inner + n; }
};

/// How much two floats have to change, each by that much, to meet, in units of max(1, |a|, |b|)
/// (Decision::distance).
inline double distanceToMeet(double a, double b) {
  double scale = std::max({1.0, std::fabs(a), std::fabs(b)});
  double distance = a == b ? 0 : std::fabs(a - b) / 2 / scale;
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}
/// Decision::range of places along an axis.
inline std::pair<double, double> placeRange(int64_t extent) {
  return {0, static_cast<double>(extent - 1)};
}
/// Whether a number is a place along an axis.
inline bool isPlace(double value, int64_t extent) {
  return value >= 0 && value < static_cast<double>(extent) && value == std::floor(value);
}

/// An int of 64 bits as the tensor element of an integer type: wraps.
inline double wrapInt(int64_t value, DType dtype) {
  return static_cast<double>(dtype == DType::I32 ? static_cast<int32_t>(value) : value);
}

/// Float to int as Sheaf defines it: truncates, saturates, and makes 0 of NaN.
inline int64_t truncateToInt(double x, DType dtype) {
  if (std::isnan(x))
    return 0;
  int64_t lo = dtype == DType::I32 ? std::numeric_limits<int32_t>::min()
                                   : std::numeric_limits<int64_t>::min();
  int64_t hi = dtype == DType::I32 ? std::numeric_limits<int32_t>::max()
                                   : std::numeric_limits<int64_t>::max();
  if (x <= static_cast<double>(lo))
    return lo;
  if (x >= static_cast<double>(hi))
    return hi;
  return static_cast<int64_t>(x);
}

/// The greater of two numbers; NaN if one is NaN.
inline double maximumOf(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline double minimumOf(double a, double b) { return std::isnan(a) || a < b ? a : b; }

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_REFERENCE_H
