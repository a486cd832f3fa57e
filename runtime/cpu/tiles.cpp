#include "runtime/cpu/tiles.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace sheaf::rt {

bool allowTiles() {
#if defined(__x86_64__) && defined(__linux__)
  // ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA of Linux' asm/prctl.h; older headers lack them.
  constexpr long request = 0x1023, tileData = 18;
  static const bool allowed = syscall(SYS_arch_prctl, request, tileData) == 0;
  return allowed;
#else
  return false;
#endif
}

} // namespace sheaf::rt
