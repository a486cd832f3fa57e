//===- param_matrix.h - A parameter as a matrix -----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MODEL_PARAM_MATRIX_H
#define SHEAF_RUNTIME_MODEL_PARAM_MATRIX_H

#include "runtime/model/model.h"

namespace sheaf::rt {

/// Leading axes and rows together, and the last axis.
struct ParamMatrix {
  int64_t rows, columns;
};

inline ParamMatrix matrixOf(const ParamDesc &param) {
  ParamMatrix m{1, param.shape.empty() ? 1 : param.shape.back()};
  for (size_t i = 0; i + 1 < param.shape.size(); ++i)
    m.rows *= param.shape[i];
  return m;
}

/// A parameter of f32 as a matrix in its row layout.
struct RowMatrix {
  int64_t rows, width; ///< floats
  int64_t stride;      ///< floats from row to row
};
inline RowMatrix rowMatrix(const ParamDesc &desc) {
  auto [rows, columns] = matrixOf(desc);
  return {rows, columns, rowGranules(columns, desc.dtype) * kGranuleBytes / 4};
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_PARAM_MATRIX_H
