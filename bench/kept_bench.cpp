//===- kept_bench.cpp - From a prompt that is kept ------------------------===//
//
// kept_bench RESUME.sheafc [words [samples]]: an artefact of models/gpt2.sheaf or llama.sheaf with
// --entry resume. Each sample writes 8 words after a prompt of so many words and one more: once
// from a prompt that the engine keeps, and once from all words; one sample at a time and all at
// once, in turns. Prints medians, and what is kept.
//
//===----------------------------------------------------------------------===//
#include "compiler/measure/Timing.h"
#include "runtime/artefact/artefact.h"
#include "runtime/io/dataset.h"
#include "runtime/session/engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace sheaf;
using namespace sheaf::rt;
using driver::median;

namespace {

constexpr int kRounds = 5, kWritten = 8;

/// resume(caches, text, count, temperature, top_k, top_p)
const Slot *arguments(io::SlotHeap &heap, const std::vector<int32_t> &text, Slot count) {
  auto n = static_cast<int64_t>(text.size());
  Slot args[] = {heap.list(nullptr, 0, 2),
                 heap.tensor(DType::I32, {n}, text.data()),
                 n,
                 count,
                 std::bit_cast<Slot>(0.0),
                 1,
                 std::bit_cast<Slot>(1.0)};
  Slot *slots = heap.allocate(std::size(args));
  return std::copy(std::begin(args), std::end(args), slots) - std::size(args);
}

double milliseconds(uint64_t since) { return static_cast<double>(clockNow() - since) * 1e-6; }

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: kept_bench RESUME.sheafc [words [samples]]\n", stderr);
    return 2;
  }
  int64_t words = argc > 2 ? std::atol(argv[2]) : 512;
  int samples = argc > 3 ? std::atoi(argv[3]) : 8;
  auto artefact = artefact::Artefact::open(argv[1]);
  Session session(artefact->model(), {});
  Engine engine(session);
  io::SlotHeap heap;
  std::mt19937 random(1);
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < words; ++i)
    prompt.push_back(static_cast<int32_t>(random() % 16));
  auto runOut = [&] {
    while (engine.step()) {
    }
  };

  KeptValue caches;
  std::vector<double> ofPrompt;
  for (int round = 0; round < kRounds; ++round) {
    uint64_t start = clockNow();
    engine.submit({.instance = {arguments(heap, prompt, 0)},
                   .keep = true,
                   .done = [&](const Outcome &outcome) {
                     if (outcome.ok())
                       caches = KeptValue(outcome.kept).part(0);
                     else
                       std::fprintf(stderr, "%s\n", outcome.error->what());
                   }});
    runOut();
    ofPrompt.push_back(milliseconds(start));
  }
  if (!caches)
    return 1;
  std::printf("prompt of %ld words: %.2f ms; kept: %.2f MB\n", words, median(ofPrompt),
              static_cast<double>(caches.bytes()) * 1e-6);

  auto run = [&](bool kept, int count) {
    std::vector<const Slot *> args;
    for (int32_t i = 0; i < count; ++i) {
      std::vector<int32_t> text = kept ? std::vector<int32_t>() : prompt;
      text.push_back(i % 16);
      args.push_back(arguments(heap, text, kWritten));
    }
    uint64_t start = clockNow();
    for (const Slot *each : args) {
      Request request{.instance = {each}};
      if (kept)
        request.kept = {{0, caches}};
      engine.submit(std::move(request));
    }
    runOut();
    return milliseconds(start);
  };
  for (int count : {1, samples}) {
    std::vector<double> kept, whole;
    for (int round = 0; round < kRounds; ++round) {
      whole.push_back(run(false, count));
      kept.push_back(run(true, count));
    }
    std::printf("%d at once: %.2f ms from what is kept, %.2f ms from all words: %.1f times\n",
                count, median(kept), median(whole), median(whole) / median(kept));
  }
}
