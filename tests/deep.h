//===- deep.h - How deep what must not recurse is tried ---------*- C++ -*-===//
#ifndef SHEAF_TESTS_DEEP_H
#define SHEAF_TESTS_DEEP_H

#include "runtime/memory/sanitizer.h"

namespace sheaf {

/// Beyond what a stack of frames holds. Under a sanitizer frames are larger and runs take longer.
#if defined(SHEAF_ASAN) || defined(SHEAF_TSAN)
constexpr int kDeep = 200'000;
#else
constexpr int kDeep = 1'000'000;
#endif

} // namespace sheaf

#endif // SHEAF_TESTS_DEEP_H
