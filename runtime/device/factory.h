//===- factory.h - How a session gets its device ----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_DEVICE_FACTORY_H
#define SHEAF_RUNTIME_DEVICE_FACTORY_H

#include <memory>

namespace sheaf::rt {

class Device;
class Workers;
struct DeviceSetup;

/// Throws UserError when the machine has no such device or refuses its memory.
using DeviceFactory = std::unique_ptr<Device> (*)(const DeviceSetup &setup);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_DEVICE_FACTORY_H
