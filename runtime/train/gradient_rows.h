//===- gradient_rows.h - The rows of a parameter that move ------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_GRADIENT_ROWS_H
#define SHEAF_RUNTIME_TRAIN_GRADIENT_ROWS_H

#include "runtime/model.h"
#include "runtime/train/param_gradient.h"

namespace sheaf::rt {

/// A parameter of f32 as a matrix in its row layout: leading axes and rows together.
struct RowMatrix {
  int64_t rows, width; ///< floats
  int64_t stride;      ///< floats from row to row
};
inline RowMatrix rowMatrix(const ParamDesc &desc) {
  RowMatrix matrix{1, desc.shape.empty() ? 1 : desc.shape.back(), 0};
  for (size_t i = 0; i + 1 < desc.shape.size(); ++i)
    matrix.rows *= desc.shape[i];
  matrix.stride = rowGranules(matrix.width, desc.dtype) * kGranuleBytes / 4;
  return matrix;
}

/// Calls `visit(begin, size)` for the runs of f32 elements of a parameter that have a gradient, in
/// ascending order: `begin` counts floats of its row layout. Padding is left out; a tensor without
/// padding is one run.
template <typename Visit>
void forEachRow(const ParamDesc &desc, const ParamGradient &gradient, Visit visit) {
  if (gradient.kind == ParamGradient::None)
    return;
  auto [rows, width, stride] = rowMatrix(desc);
  if (gradient.kind == ParamGradient::Rows)
    for (uint32_t row : gradient.rows)
      visit(row * stride, width);
  else if (width == stride)
    visit(0, rows * width);
  else
    for (int64_t row = 0; row < rows; ++row)
      visit(row * stride, width);
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_TRAIN_GRADIENT_ROWS_H
