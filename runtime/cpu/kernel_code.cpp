#include "runtime/cpu/kernel_code.h"

#include "runtime/cpu/packing.h"
#include "runtime/model/error.h"

#include <algorithm>

namespace sheaf::rt {

uint64_t CpuCode::scratchBytes() const {
  uint64_t most = 0;
  for (const CpuKernel &kernel : kernels)
    most = std::max(most, kernel.scratchBytes);
  return most;
}

PackedBytes CpuCode::packedBytes(const Model &model) const {
  PackedBytes bytes;
  PackedCopies copies(model);
  for (size_t i = 0; i < copies.copies.size(); ++i)
    if (i < copies.always)
      bytes.always.push_back(copies.copies[i].bytes);
    else
      bytes.joined += copies.copies[i].bytes;
  for (size_t i = 0; i < model.params.size(); ++i)
    bytes.onlyIn.push_back(copies.onlyIn(i));
  return bytes;
}

std::set<std::string> CpuCode::libraries() const {
  std::set<std::string> names;
  for (const CpuKernel &kernel : kernels)
    for (const WeightUse &use : kernel.weights)
      if (use.library)
        names.insert(use.library->name);
  return names;
}

const CpuCode &cpuCode(const Model &model) {
  static const CpuCode none;
  if (!model.code && model.kernels.empty())
    return none;
  if (!model.code || model.code->target() != CpuCode::kTarget)
    throw InternalError("model '" + model.name + "' has no code for processors");
  const auto &code = static_cast<const CpuCode &>(*model.code);
  if (code.kernels.size() != model.kernels.size())
    throw InternalError("model '" + model.name + "' has no code of some of its kernels");
  return code;
}

CpuCode &cpuCode(Model &model) {
  if (!model.code)
    model.code = ModelCode(std::make_unique<CpuCode>());
  auto &code = static_cast<CpuCode &>(*model.code);
  if (code.target() != CpuCode::kTarget)
    throw InternalError("model '" + model.name + "' has code for another machine");
  if (code.kernels.size() < model.kernels.size())
    code.kernels.resize(model.kernels.size());
  return code;
}

std::vector<WeightRead> weightReads(const CpuKernel &kernel, std::span<const ParamDesc> params) {
  std::vector<WeightRead> reads;
  for (const WeightUse &use : kernel.weights) {
    if (use.kind == WeightUse::Raw) {
      const ParamDesc &param = params[use.param];
      auto bytes = static_cast<double>(dtypeBytes(param.dtype));
      for (int64_t extent : param.shape)
        bytes *= static_cast<double>(extent);
      reads.push_back({WeightRead::AsItIs, use.param, bytes});
      continue;
    }
    double element = use.isBf16() ? 2 : 4;
    for (const PackView &view : use.views)
      for (const PackSegment &segment : view.segments)
        reads.push_back({WeightRead::Factor, segment.param,
                         element * static_cast<double>(segment.kEnd - segment.kBegin) *
                             static_cast<double>(use.width)});
  }
  return reads;
}

} // namespace sheaf::rt
