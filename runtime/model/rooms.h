//===- rooms.h - Room that tensors grow into --------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MODEL_ROOMS_H
#define SHEAF_RUNTIME_MODEL_ROOMS_H

#include <cstdint>

namespace sheaf::rt {

/// A tensor that is made longer where there is no room after it goes on elsewhere, with room for as
/// much again; or for so many times what comes, at least, but no more than so many granules of
/// that.
inline constexpr int64_t kLeastRoom = 16, kEnoughRoom = 512;

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_ROOMS_H
