#include "runtime/device/float_environment.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sheaf::rt {

#if defined(__x86_64__)
FloatEnvironment::FloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
FloatEnvironment::~FloatEnvironment() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
FloatEnvironment::FloatEnvironment() {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" ::"r"(uint64_t(0)));
}
FloatEnvironment::~FloatEnvironment() { asm volatile("msr fpcr, %0" ::"r"(saved_)); }
#else
#error "set the floating-point state of this machine here"
#endif

} // namespace sheaf::rt
