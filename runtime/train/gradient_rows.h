//===- gradient_rows.h - The rows of a parameter that move ------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_TRAIN_GRADIENT_ROWS_H
#define SHEAF_RUNTIME_TRAIN_GRADIENT_ROWS_H

#include "runtime/backward/param_gradient.h"
#include "runtime/model/param_matrix.h"

namespace sheaf::rt {

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
