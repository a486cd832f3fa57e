//===- float_environment.h - How floats are rounded -------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_DEVICE_FLOAT_ENVIRONMENT_H
#define SHEAF_RUNTIME_DEVICE_FLOAT_ENVIRONMENT_H

#include <cstdint>

namespace sheaf::rt {

/// Sets the floating-point state of kernels and of host code on this thread and puts the old one
/// back: round to nearest, no exception unmasked, denormals kept (IEEE; never flushed), on every
/// thread alike.
class FloatEnvironment {
public:
  FloatEnvironment();
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment &) = delete;
  FloatEnvironment &operator=(const FloatEnvironment &) = delete;

private:
  uint64_t saved_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_DEVICE_FLOAT_ENVIRONMENT_H
