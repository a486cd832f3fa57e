//===- sharing_bench.cpp - Engines that share threads ---------------------===//
//
// sharing_bench CHAINS.sheafc [threads [steps]]: two engines of an artefact of
// tests/artefact/chains.sheaf, each with so many chains of so many steps at a time, one new for
// each that ends. Each in a thread of its own with `threads` workers of its own, and with as many
// for both; and in turns in one thread. Prints chains a second of both, and the ratios to workers
// of their own, medians over rounds in which the three take turns.
//
//===----------------------------------------------------------------------===//
#include "compiler/measure/Timing.h"
#include "runtime/artefact/artefact.h"
#include "runtime/session/executor.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

using namespace sheaf;
using namespace sheaf::rt;
using driver::median;

namespace {

constexpr int kRounds = 15;
constexpr size_t kAtOnce = 16;
constexpr double kRoundNs = 400e6;

/// An engine that always has so many chains to compute, until it is told to stop.
struct Server {
  Server(const Model &model, const SessionOptions &options, Slot steps)
      : session(model, options), engine(session), steps(steps) {}
  void submit(size_t i) {
    arguments[i] = {steps, next++}; // no two compute the same
    engine.submit({.instance = {arguments[i].data(), static_cast<int64_t>(i)},
                   .done = [this, i](const Outcome &) {
                     ++ended;
                     if (!stop.stop_requested())
                       submit(i);
                   }});
  }
  /// Chains that ended by the time that the clock stands at `end`.
  template <typename Step> static size_t serve(std::span<Server *const> all, Step step) {
    auto end = static_cast<double>(clockNow()) + kRoundNs;
    for (Server *server : all)
      for (size_t i = 0; i < kAtOnce; ++i)
        server->submit(i);
    while (static_cast<double>(clockNow()) < end)
      step();
    size_t ended = 0;
    for (Server *server : all) {
      ended += server->ended;
      server->stop.request_stop();
    }
    return ended;
  }

  Session session;
  Engine engine;
  const Slot steps;
  Slot next = 0;
  std::array<std::array<Slot, 2>, kAtOnce> arguments;
  std::stop_source stop;
  size_t ended = 0;
};

enum Way { Own, Shared, Turns, kWays };
constexpr std::array<const char *, kWays> kNames = {"workers of their own", "shared workers",
                                                    "in turns in one thread"};

/// Chains a second.
double serve(const Model &model, Way way, unsigned threads, Slot steps) {
  SessionOptions options;
  options.threads = threads;
  if (way != Own)
    options.workers = makeWorkers(threads);
  Server one(model, options, steps), two(model, options, steps);
  size_t ended = 0;
  if (way == Turns) {
    Executor executor;
    executor.add(one.engine);
    executor.add(two.engine);
    std::array<Server *, 2> both{&one, &two};
    ended = Server::serve(both, [&] { executor.step(); });
  } else {
    size_t other = 0;
    auto run = [](Server *server) {
      return Server::serve(std::span(&server, 1), [&] { server->engine.step(); });
    };
    std::jthread thread([&] { other = run(&two); });
    ended = run(&one);
    thread.join();
    ended += other;
  }
  return static_cast<double>(ended) / kRoundNs * 1e9;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: sharing_bench CHAINS.sheafc [threads [steps]]\n", stderr);
    return 2;
  }
  auto artefact = artefact::Artefact::open(argv[1]);
  unsigned threads = argc > 2 ? static_cast<unsigned>(atoi(argv[2])) : 2;
  Slot steps = argc > 3 ? atoi(argv[3]) : 40;
  std::array<std::vector<double>, kWays> rates, ratios;
  for (int round = 0; round < kRounds; ++round) {
    std::array<double, kWays> rate;
    for (int i = 0; i < kWays; ++i) {
      int way = (i + round) % kWays;
      rate[static_cast<size_t>(way)] = serve(artefact->model(), Way(way), threads, steps);
    }
    for (size_t way = 0; way < kWays; ++way) {
      rates[way].push_back(rate[way]);
      ratios[way].push_back(rate[way] / rate[Own]);
    }
  }
  for (size_t way = 0; way < kWays; ++way)
    printf("%-24s %8.0f chains/s  %5.2f\n", kNames[way], median(rates[way]), median(ratios[way]));
  return 0;
}
