// The table of devices in programs that run on a remote one when they are told nothing.
#include "runtime/devices/devices.h"

#include "runtime/null/null_device.h"
#include "tests/devices/remote_device.h"

#include <array>

namespace sheaf::rt {

namespace {

template <typename Kind> std::unique_ptr<Device> make(const DeviceSetup &setup) {
  return std::make_unique<Kind>(setup);
}

constexpr std::array kDevices = {
    DeviceRecord{"remote", make<test::RemoteDevice>},
    DeviceRecord{"cpu", make<CpuDevice>},
    DeviceRecord{"null", make<NullDevice>},
};

} // namespace

std::span<const DeviceRecord> devices() { return kDevices; }

} // namespace sheaf::rt
