#include "runtime/device/device.h"

namespace sheaf::rt {

void Device::fill(const RowRange &rows, uint8_t byte) {
  Instruction fill = FillRows{rows, byte};
  submit({&fill, 1});
}

void Device::release(const RowRange &rows) {
  Instruction release = ReleaseRows{rows};
  submit({&release, 1});
}

void Device::copyOut(const RowRange &rows) {
  Instruction copy = CopyOut{rows};
  run({&copy, 1});
}

} // namespace sheaf::rt
