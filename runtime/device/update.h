//===- update.h - What an optimiser has a device do -------------*- C++ -*-===//
//
// Gradients, parameters and what is remembered of them from step to step are where the device has
// them. Reduce and Update (device.h) go over pieces of parameters, whose sums and changes have one
// order of computation each, on any number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_DEVICE_UPDATE_H
#define SHEAF_RUNTIME_DEVICE_UPDATE_H

#include <cstdint>
#include <span>

namespace sheaf::rt {

/// Where floats in the row layout of a parameter begin.
struct FloatsAt {
  enum Kind : uint8_t {
    None,
    Rows,   ///< from a granule on
    Buffer, ///< memory of the device's beside rows (Device::makeBuffer)
    Host    ///< memory of the host's, which is only read
  } kind = None;
  uint64_t granule = 0;
  uint32_t buffer = 0;
  const float *host = nullptr;

  static FloatsAt rows(uint64_t granule) { return {Rows, granule, 0, nullptr}; }
  static FloatsAt inBuffer(uint32_t buffer) { return {buffer ? Buffer : None, 0, buffer, nullptr}; }
  static FloatsAt onHost(const float *data) { return {Host, 0, 0, data}; }
};

/// A part of a parameter as a matrix (param_matrix.h): rows [begin, end), or, where only some have
/// a gradient, these places in their list.
struct ParamPiece {
  uint32_t param;
  int64_t begin, end;
  const uint32_t *rows = nullptr;
};

/// How the value of a parameter, or what stands for it, changes.
enum class UpdateKind : uint8_t {
  Sgd,
  Momentum,
  Adam,
  AdamW,
  Adagrad,
  RmsProp,
  Add,     ///< the gradient is added
  Clear,   ///< zero
  Approach ///< the value comes nearer to `gradient` by 1 - keep
};

/// The numbers of one parameter in one step.
struct UpdateNumbers {
  float rate = 0, scale = 1, decay = 0, epsilon = 0, momentum = 0, beta1 = 0, beta2 = 0, keep = 0;
  float ofMean = 1, ofSquares = 1; ///< what corrects the start of means at zero
  /// The same in f64, for Reduce::Changes.
  double wideDecay = 0, wideEpsilon = 0, wideOfMean = 1, wideOfSquares = 1;
};

/// What belongs to one parameter.
struct UpdateOperands {
  FloatsAt value, mean, squares, gradient;
  UpdateKind kind = UpdateKind::Sgd;
  UpdateNumbers numbers;
};

/// For each piece a sum of squares, in f64.
struct Reduce {
  enum Of : uint8_t {
    Gradients,
    Values,
    Changes ///< of what AdamW, with these numbers, would change values by, but for the rate
  } of;
  std::span<const ParamPiece> pieces;
  std::span<const UpdateOperands> operands; ///< by parameter
  double *sums;                             ///< one a piece
};

/// Changes the values of pieces, and what is remembered of them. Pieces do not overlap.
struct Update {
  std::span<const ParamPiece> pieces;
  std::span<const UpdateOperands> operands; ///< by parameter
  bool packs = false; ///< values are parameters, and their packed copies follow (packRows)
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_DEVICE_UPDATE_H
