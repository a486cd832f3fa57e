//===- kernel_code.h - What processors need to run kernels ------*- C++ -*-===//
//
// The code of a model's kernels in the form of the back end `cpu`: functions, how they want
// weights packed, and how a launch may be divided.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_CPU_KERNEL_CODE_H
#define SHEAF_RUNTIME_CPU_KERNEL_CODE_H

#include "runtime/model/model.h"

#include <span>
#include <vector>

namespace sheaf::rt {

/// One run of rows of a parameter that a packed panel contracts over.
struct PackSegment {
  uint32_t param;
  int64_t kBegin, kEnd;    ///< rows [kBegin, kEnd) of the parameter (columns when transposed)
  bool transposed = false; ///< contract over the parameter's last axis instead
};

/// The columns [column, column + width) of a product's right operand, and what they contract over:
/// the segments one after the other. Rank-1 parameters (biases) count as one row.
struct PackView {
  std::vector<PackSegment> segments;
  int64_t column = 0;
};

/// The elements of packed weights.
enum class WeightForm : uint8_t {
  F32,
  Bf16 ///< pairs: two k together, in 32 bits a column
};

/// How a kernel wants a weight.
///
/// Raw: the address of the parameter in the row space.
/// Panels: for panel p, for k ascending, for view g, for v < vectors: `lanes` consecutive f32 of
/// columns (p * vectors + v) * lanes ... of the view; zero beyond `width`. One panel after the
/// other, 64-byte aligned.
/// PanelsByView: the same, but inside of a panel for view g, for k ascending.
/// Panels of bf16 hold factors (floatToFactor), and two k are taken together: 32 bits for each
/// column, k in the lower half and k + 1 in the upper one. The rows of each segment are filled up
/// to a multiple of `depthMultiple` with zeros.
/// Foreign: a LibraryProduct that `library` made of the views side by side, of `width` columns
/// each, for rows that are `aStride` and `cStride` floats apart. Artefacts have none.
struct WeightUse {
  enum Kind : uint8_t { Raw, Panels, PanelsByView, Foreign } kind = Raw;
  uint32_t param = 0; ///< Raw
  std::vector<PackView> views;
  int64_t width = 0;
  int64_t lanes = 16;
  int64_t vectors = 1;
  WeightForm form = WeightForm::F32;
  int64_t depthMultiple = 1;
  const Library *library = nullptr;
  int64_t aStride = 0, cStride = 0;

  bool isBf16() const { return form == WeightForm::Bf16; }
};

/// Runs records [begin, end) of a bucket, or for kernels with panels, pieces
/// [panelBegin, panelEnd) of their columns. With CpuKernel::serpentine panelBegin may be the
/// greater of the two: pieces [panelEnd, panelBegin), if there are any, and panels of weights are
/// then walked from the last to the first. `weights` are the kernel's weight uses in order (packed
/// or raw); `scratch` is private to the call and 64-byte aligned.
using KernelFn = void (*)(const int32_t *records, int64_t begin, int64_t end, int64_t panelBegin,
                          int64_t panelEnd, uint8_t *rows, const void *const *weights,
                          uint8_t *scratch);

struct CpuKernel {
  KernelFn fn = nullptr;
  std::vector<WeightUse> weights; ///< in the order in which the code is given them
  uint64_t scratchBytes = 0;      ///< per running thread, beside temporaries
  uint32_t panels = 0;            ///< > 1: may be split by columns into so many pieces
  bool serpentine = false;        ///< can walk what all records share last to first, too (KernelFn)
};

struct CpuCode final : KernelCode {
  static constexpr std::string_view kTarget = "cpu";

  std::vector<CpuKernel> kernels; ///< one for each of the model's
  bool tiles = false;             ///< they use AMX (tiles.h)

  std::unique_ptr<KernelCode> clone() const override { return std::make_unique<CpuCode>(*this); }
  std::string_view target() const override { return kTarget; }
  uint64_t scratchBytes() const override;
  PackedBytes packedBytes(const Model &model) const override;
  ProductUnits productUnits() const override;
  std::set<std::string> libraries() const override;
};

/// That of a model. Throws InternalError when it has kernels and no such code of each.
const CpuCode &cpuCode(const Model &model);
/// The same, with an element for each of the model's kernels: those that there are not are made.
CpuCode &cpuCode(Model &model);

/// What a kernel reads of parameters, as KernelDesc::weights.
std::vector<WeightRead> weightReads(const CpuKernel &kernel, std::span<const ParamDesc> params);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_KERNEL_CODE_H
