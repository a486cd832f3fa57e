//===- chunks_bench.cpp - Short requests beside long prompts --------------===//
//
// chunks_bench [--words N] [--every MS] [--written N] GENERATE.sheafc...: artefacts of
// models/gpt2.sheaf or llama.sheaf with --entry generate, that differ in how a prompt is divided
// (--dim chunk=N). Short requests, some words after 16, come at random times beside prompts of so
// many words, which come twice as slowly as the first artefact alone could read them. Prints of
// each artefact, in turns, how long requests take from the time at which they came, and how long a
// long one takes alone.
//
//===----------------------------------------------------------------------===//
#include "compiler/measure/Timing.h"
#include "runtime/artefact/artefact.h"
#include "runtime/io/dataset.h"
#include "runtime/session/engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

constexpr int kRounds = 2, kLong = 6;

/// generate(text, count)
const Slot *arguments(io::SlotHeap &heap, int64_t words, Slot written, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> text;
  for (int64_t i = 0; i < words; ++i)
    text.push_back(static_cast<int32_t>(random() % 16));
  Slot args[] = {heap.tensor(DType::I32, {words}, text.data()), words, written};
  Slot *slots = heap.allocate(std::size(args));
  return std::copy(std::begin(args), std::end(args), slots) - std::size(args);
}

/// Nanoseconds that this process was at work, which is always: others on the machine do not count.
double now() { return driver::processorSeconds() * 1e9; }
double milliseconds(double since) { return (now() - since) * 1e-6; }

struct Times {
  std::vector<double> ofShort, ofLong, alone; ///< milliseconds
};

/// One model, served again and again.
class Server {
public:
  Server(const char *path, int64_t words, Slot written)
      : artefact_(artefact::Artefact::open(path)), session_(artefact_->model(), {}),
        engine_(session_), long_(arguments(heap_, words, 1, 1)),
        short_(arguments(heap_, 16, written, 2)) {}

  Times times;

  double alone() {
    double start = now();
    submit(long_, start, times.alone);
    while (engine_.step()) {
    }
    return times.alone.back();
  }
  /// Long ones each `gap` milliseconds, short ones at random times, one each `every`.
  void serve(double gap, double every, uint32_t seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> wait(1e-6 / every);
    double start = now();
    double end = start + kLong * gap * 1e6, nextLong = start, nextShort = start + wait(random);
    while (true) {
      bool more = engine_.step();
      double time = now();
      for (; nextLong < end && nextLong <= time; nextLong += gap * 1e6)
        submit(long_, nextLong, times.ofLong);
      for (; nextShort < end && nextShort <= time; nextShort += wait(random))
        submit(short_, nextShort, times.ofShort);
      if (!more && nextLong >= end && nextShort >= end)
        return;
    }
  }

private:
  void submit(const Slot *args, double came, std::vector<double> &into) {
    engine_.submit({.instance = {args}, .done = [came, &into](const Outcome &outcome) {
                      if (!outcome.ok())
                        std::fprintf(stderr, "%s\n", outcome.error->what());
                      into.push_back(milliseconds(came));
                    }});
  }

  std::unique_ptr<artefact::Artefact> artefact_;
  Session session_;
  Engine engine_;
  io::SlotHeap heap_;
  const Slot *long_, *short_;
};

} // namespace

int main(int argc, char **argv) {
  int64_t words = 2048;
  double every = 100;
  Slot written = 8;
  std::vector<const char *> paths;
  for (int i = 1; i < argc; ++i)
    if (!std::strcmp(argv[i], "--words") && i + 1 < argc)
      words = std::atol(argv[++i]);
    else if (!std::strcmp(argv[i], "--every") && i + 1 < argc)
      every = std::atof(argv[++i]);
    else if (!std::strcmp(argv[i], "--written") && i + 1 < argc)
      written = std::atol(argv[++i]);
    else
      paths.push_back(argv[i]);
  if (paths.empty()) {
    fputs("usage: chunks_bench [--words N] [--every MS] [--written N] GENERATE.sheafc...\n",
          stderr);
    return 2;
  }
  std::deque<Server> servers;
  for (const char *path : paths)
    servers.emplace_back(path, words, written);
  double gap = 2 * servers.front().alone();
  servers.front().times = {};
  for (uint32_t round = 0; round < kRounds; ++round)
    for (Server &server : servers) {
      server.alone();
      server.serve(gap, every, round);
    }
  puts("short, ms: half  nine tenths   long, ms: half  nine tenths   alone");
  for (size_t i = 0; i < paths.size(); ++i) {
    const Times &times = servers[i].times;
    std::printf("%15.1f  %11.1f   %14.1f  %11.1f   %5.1f  %s\n",
                driver::quantile(times.ofShort, 0.5), driver::quantile(times.ofShort, 0.9),
                driver::quantile(times.ofLong, 0.5), driver::quantile(times.ofLong, 0.9),
                driver::quantile(times.alone, 0.5), paths[i]);
  }
  return 0;
}
