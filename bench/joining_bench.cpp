//===- joining_bench.cpp - Short requests beside long ones ----------------===//
//
// joining_bench CHAINS.sheafc [milliseconds]: requests for an engine at random times, one every so
// many milliseconds, each tenth of 900 steps and the others of 10, of an artefact of
// tests/artefact/chains.sheaf. Once as EngineOptions::joins is by default, and once when all wait
// for all; in turns. Prints how long requests take from the time at which they came.
//
//===----------------------------------------------------------------------===//
#include "compiler/measure/Timing.h"
#include "runtime/artefact/artefact.h"
#include "runtime/session/engine.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

constexpr size_t kRequests = 800;
constexpr Slot kLong = 900, kShort = 10;

struct Times {
  std::vector<double> ofShort, ofLong; ///< milliseconds
};

Times serve(const Model &model, bool joins, double every) {
  Session session(model, {});
  Engine engine(session, {.joins = joins});
  std::mt19937 random(1);
  std::exponential_distribution<double> wait(1e-6 / every);
  std::vector<std::array<Slot, 2>> arguments(kRequests);
  Times times;
  auto comes = static_cast<double>(clockNow());
  for (size_t i = 0; engine.step() || i < kRequests;)
    for (; i < kRequests && comes <= static_cast<double>(clockNow()); ++i, comes += wait(random)) {
      bool isLong = i % 10 == 0;
      arguments[i] = {isLong ? kLong : kShort, static_cast<Slot>(i)};
      engine.submit({.instance = {arguments[i].data(), static_cast<int64_t>(i)},
                     .done = [&times, isLong, comes](const Outcome &) {
                       (isLong ? times.ofLong : times.ofShort)
                           .push_back((static_cast<double>(clockNow()) - comes) * 1e-6);
                     }});
    }
  return times;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: joining_bench CHAINS.sheafc [milliseconds]\n", stderr);
    return 2;
  }
  auto artefact = artefact::Artefact::open(argv[1]);
  double every = argc > 2 ? atof(argv[2]) : 6;
  puts("joins  short, ms: half  nine tenths   long, ms: half  nine tenths");
  for (int i = 0; i < 6; ++i) {
    Times times = serve(artefact->model(), i % 2 == 0, every);
    printf("%-5s  %15.1f  %11.1f   %14.1f  %11.1f\n", i % 2 == 0 ? "yes" : "no",
           driver::quantile(times.ofShort, 0.5), driver::quantile(times.ofShort, 0.9),
           driver::quantile(times.ofLong, 0.5), driver::quantile(times.ofLong, 0.9));
  }
  return 0;
}
