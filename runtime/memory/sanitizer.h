//===- sanitizer.h - Hooks that are empty outside sanitizer builds -*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MEMORY_SANITIZER_H
#define SHEAF_RUNTIME_MEMORY_SANITIZER_H

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHEAF_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define SHEAF_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SHEAF_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SHEAF_TSAN 1
#endif

#ifdef SHEAF_ASAN
// LLVM's headers make nothing of these names.
#undef __asan_poison_memory_region
#undef __asan_unpoison_memory_region
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SHEAF_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/// For the innermost loops of what tests do most, where bounds are plain to see.
#if defined(SHEAF_ASAN)
#define SHEAF_NOT_INSTRUMENTED __attribute__((no_sanitize("address", "undefined"), noinline))
#else
#define SHEAF_NOT_INSTRUMENTED
#endif

namespace sheaf::rt {

#ifdef SHEAF_ASAN
constexpr bool kPoisoning = true;
inline void poison(const void *p, size_t n) { __asan_poison_memory_region(p, n); }
inline void unpoison(const void *p, size_t n) { __asan_unpoison_memory_region(p, n); }
#else
constexpr bool kPoisoning = false;
inline void poison(const void *, size_t) {}
inline void unpoison(const void *, size_t) {}
#endif

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_SANITIZER_H
