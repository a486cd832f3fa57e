//===- deep.h - How deep what must not recurse is tried ---------*- C++ -*-===//
#ifndef SHEAF_TESTS_DEEP_H
#define SHEAF_TESTS_DEEP_H

#include "runtime/sanitizer.h"

namespace sheaf {

/// Beyond what a stack of frames holds. Under a sanitizer frames are larger and runs take longer.
constexpr int kDeep = rt::kPoisoning ? 200'000 : 1'000'000;

} // namespace sheaf

#endif // SHEAF_TESTS_DEEP_H
