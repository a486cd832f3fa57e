#include "runtime/measure/clock.h"

#include <cstdio>
#include <cstring>
#include <memory>

namespace sheaf::rt {

#ifdef __x86_64__

namespace {

/// Linux checks at start and while it runs that the counter is steady and the same on all cores,
/// and uses another clock where it is not.
bool systemTrustsCounter() {
  std::unique_ptr<FILE, int (*)(FILE *)> file(
      fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re"), fclose);
  char name[8] = {};
  return file && fgets(name, sizeof(name), file.get()) && strcmp(name, "tsc\n") == 0;
}

struct Moment {
  uint64_t tick;
  uint64_t nanoseconds;
};

/// The pair that was read closest together of a few: an interrupt between the two would count.
Moment momentNow() {
  Moment best{};
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    uint64_t before = __rdtsc();
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    uint64_t after = __rdtsc();
    if (after - before < least) {
      least = after - before;
      best = {
          before + least / 2,
          static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count())};
    }
  }
  return best;
}

} // namespace

TickScale measureTickScale() {
  if (!systemTrustsCounter())
    return {};
  Moment first = momentNow(), last = first;
  while (last.nanoseconds - first.nanoseconds < kCalibrationNs)
    last = momentNow();
  if (last.tick <= first.tick)
    return {};
  return {first.tick,
          static_cast<uint64_t>(
              (static_cast<unsigned __int128>(last.nanoseconds - first.nanoseconds) << 32) /
              (last.tick - first.tick))};
}

#else

TickScale measureTickScale() { return {}; }

#endif

} // namespace sheaf::rt
