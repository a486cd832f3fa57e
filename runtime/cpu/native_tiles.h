//===- native_tiles.h - Gradients of weights by AMX -------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_NATIVE_TILES_H
#define SHEAF_RUNTIME_CPU_NATIVE_TILES_H

#include <cstdint>

namespace sheaf::rt {

/// Whether this build has the kernel. The processor must have AMX, and leave be given (tiles.h).
#ifdef __x86_64__
inline constexpr bool kTileProducts = true;
#else
inline constexpr bool kTileProducts = false;
#endif

/// ProductRecords (native.h) whose factors are rounded to bf16, in the numeric class *tiles* of
/// docs/numerics.md, `k` being the records in their order. A KernelFn that can walk back.
void tileProducts(const int32_t *records, int64_t begin, int64_t end, int64_t panelBegin,
                  int64_t panelEnd, uint8_t *rows, const void *const *, uint8_t *scratch);
int64_t tileProductScratchBytes();

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_NATIVE_TILES_H
