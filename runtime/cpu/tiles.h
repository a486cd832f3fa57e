//===- tiles.h - Leave to use the processor's tiles -------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_TILES_H
#define SHEAF_RUNTIME_CPU_TILES_H

namespace sheaf::rt {

/// Asks the operating system for the registers of AMX, for all threads of the process. False where
/// the processor or the system has none. Safe to call more than once.
bool allowTiles();

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_TILES_H
