// libLLVM and libMLIR are not instrumented. Their allocators are inline code that poisons memory
// when it is compiled here and does not unpoison it when it is compiled there, so it must not.
#include "llvm/Support/Compiler.h"

#define __asan_poison_memory_region(address, size)
#define __asan_unpoison_memory_region(address, size)
