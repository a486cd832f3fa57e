//===- value.h - Values that enter and leave a session ----------*- C++ -*-===//
//
// Inputs are made outside a session (by readers or by hand) and are only read by it, so several
// sessions may share them. Outputs live in a session until its next run.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_VALUE_H
#define SHEAF_RUNTIME_MODEL_VALUE_H

#include "runtime/model/error.h"
#include "runtime/model/layout.h"

#include <bit>
#include <memory>
#include <optional>
#include <vector>

namespace sheaf::rt {

struct FreeBytes {
  void operator()(uint8_t *p) const;
};
using AlignedBytes = std::unique_ptr<uint8_t[], FreeBytes>;
/// Zeroed and 64-byte aligned. Throws std::bad_alloc.
AlignedBytes allocateAligned(size_t bytes);

/// A tensor outside the row space, in row layout (layout.h): tensorGranules(shape, dtype) granules.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  AlignedBytes bytes;

  HostTensor() = default;
  HostTensor(DType dtype, std::vector<int64_t> shape);

  int64_t granules() const { return tensorGranules(shape, dtype); }

  /// The slot that stands for this tensor inside an *input*: its address, where a value inside a
  /// session has a TensorHandle. Slots of `?` extents follow it as always.
  Slot inputSlot() const { return std::bit_cast<Slot>(this); }
  static const HostTensor *fromInputSlot(Slot s) { return std::bit_cast<const HostTensor *>(s); }
};

/// One input of Session::run. `args` are the slots of EntryDesc::argTypes, one after the other.
///
/// Inputs follow layout.h, with two differences: a tensor is HostTensor::inputSlot(), and
/// ListObject::buffer is null (a list that may be read but not grown in place).
/// Everything reachable stays alive and unchanged for as long as the outcome is read.
struct Instance {
  const Slot *args = nullptr;
  int64_t index = 0; ///< its number in the data: names it in errors
  /// Of what it emits so many have been delivered by an earlier run, and are not again.
  uint64_t delivered = 0;
  /// It has failed for want of memory in an earlier run, of more instances: counted as one.
  bool isAgain = false;
};

class Kept;

/// What became of one instance: the slots of EntryDesc::resultType, or why there are none.
struct Outcome {
  const Slot *slots = nullptr;
  std::optional<RunError> error;
  uint64_t delivered = 0; ///< of what it emitted, by this run and before
  /// Of an engine's, where its request asked for it: the value, which stays (KeptValue).
  std::shared_ptr<const Kept> kept = nullptr;
  bool ok() const { return !error.has_value(); }
};

/// A tensor of an outcome or a parameter: `data` is in row layout.
struct TensorView {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  const uint8_t *data = nullptr;

  int64_t elements() const;
  /// Bytes from one innermost row to the next, and how many rows there are (1 at rank 0).
  int64_t rowStride() const;
  int64_t rows() const;
  /// Row-major, unpadded, in `dtype`; `out` holds elements() * dtypeBytes(dtype) bytes.
  void copyTo(void *out) const;
  /// The same, as bytes.
  std::vector<uint8_t> rowMajor() const;
};

/// Copies unpadded row-major elements to row layout (padding is left as it is) and back.
void toRowLayout(std::span<const int64_t> shape, DType dtype, const void *rowMajor, uint8_t *rows);
void fromRowLayout(std::span<const int64_t> shape, DType dtype, const uint8_t *rows,
                   void *rowMajor);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_VALUE_H
