#include "runtime/cpu/cpu_device.h"

#include "runtime/cpu/native.h"
#include "runtime/cpu/tiles.h"
#include "runtime/model/error.h"

#include <cstring>

namespace sheaf::rt {

/// The code, if each kernel has some.
static const CpuCode &checkedCode(const Model &model) {
  const CpuCode &code = cpuCode(model);
  for (size_t i = 0; i < code.kernels.size(); ++i)
    if (!code.kernels[i].fn)
      throw InternalError("kernel '" + model.kernels[i].name + "' has no code");
  return code;
}

CpuDevice::CpuDevice(const DeviceSetup &setup)
    : Device({.threads = setup.threads, .products = cpuCode(setup.model).productUnits()}),
      rows_(setup.model.paramGranules, setup.rowBytes,
            setup.model.stored ? std::optional(setup.model.stored->params) : std::nullopt),
      weights_(setup.model, rows_.host(), setup.meter, setup.packed),
      flusher_(setup.model,
               setup.workers ? setup.workers : std::make_shared<Workers>(setup.threads),
               setup.hostile),
      updates_(setup.model, rows_.host()) {
  if (checkedCode(setup.model).tiles && !setup.onlyPacks && !allowTiles())
    throw UserError("the model's kernels use AMX, which this machine or its system does not offer");
}

Ticket CpuDevice::submit(std::span<const Instruction> instructions) {
  for (const Instruction &instruction : instructions) {
    if (const auto *launches = std::get_if<Launches>(&instruction))
      flusher_.run(*launches, rows_.host(), weights_, trace);
    else if (const auto *copy = std::get_if<CopyRows>(&instruction))
      memmove(rows_.host() + copy->to * kGranuleBytes,
              rows_.host() + copy->from.begin * kGranuleBytes, copy->from.granules * kGranuleBytes);
    else if (const auto *fill = std::get_if<FillRows>(&instruction))
      rows_.fill(fill->rows, fill->byte);
    else if (const auto *release = std::get_if<ReleaseRows>(&instruction))
      rows_.release(release->rows);
    else if (const auto *reduce = std::get_if<Reduce>(&instruction))
      updates_.run(*reduce, flusher_.workers());
    else if (const auto *update = std::get_if<Update>(&instruction))
      updates_.run(*update, flusher_.workers(), [&](size_t param, int64_t begin, int64_t end) {
        weights_.packRows(param, begin, end);
      });
    // Copies in and out are of the host's own rows.
  }
  return {};
}

} // namespace sheaf::rt
