//===- Caches.h - The caches of this machine --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_TARGET_CACHES_H
#define SHEAF_COMPILER_TARGET_CACHES_H

#include "runtime/cpu/target.h"

#include <string>

namespace sheaf::target {

/// As Linux describes them in files of `directory`; 0 for what it does not tell.
rt::CacheSizes cachesIn(const std::string &directory);

/// Of the core that this process runs on; 0 for what the machine hides, as some virtual ones do.
rt::CacheSizes cachesOfThisMachine();

} // namespace sheaf::target

#endif // SHEAF_COMPILER_TARGET_CACHES_H
