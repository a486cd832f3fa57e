//===- devices.h - The table of devices -------------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_DEVICES_DEVICES_H
#define SHEAF_RUNTIME_DEVICES_DEVICES_H

#include "runtime/device/factory.h"

#include <span>
#include <string_view>

namespace sheaf::rt {

struct DeviceRecord {
  std::string_view name;
  DeviceFactory make;
};

/// All that there are; a session that is told nothing else takes the first.
std::span<const DeviceRecord> devices();

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_DEVICES_DEVICES_H
