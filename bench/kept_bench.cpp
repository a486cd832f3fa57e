//===- kept_bench.cpp - From a prompt that is kept ------------------------===//
//
// kept_bench RESUME.sheafc [words [samples [rounds]]]: an artefact of models/gpt2.sheaf or
// llama.sheaf with --entry resume. Each sample writes 8 words after a prompt of so many words and
// one more: from a prompt that the engine keeps, with its rows in common and copied, and from all
// words; one sample at a time and all at once, in turns. Prints medians, what is kept, and the
// most that rows took.
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

constexpr int kWritten = 8;

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

/// An engine that keeps a prompt.
class Keeper {
public:
  Keeper(const Model &model, When share) : session_(model, optionsOf(share)) {}

  double readPrompt(const std::vector<int32_t> &prompt) {
    uint64_t start = clockNow();
    engine_.submit({.instance = {arguments(heap_, prompt, 0)},
                    .keep = true,
                    .done = [&](const Outcome &outcome) {
                      if (outcome.ok())
                        caches_ = KeptValue(outcome.kept).part(0);
                      else
                        std::fprintf(stderr, "%s\n", outcome.error->what());
                    }});
    runOut();
    return milliseconds(start);
  }
  const KeptValue &caches() const { return caches_; }

  /// From the prompt that is kept, or from these words and one more.
  double write(const std::vector<int32_t> *prompt, int samples) {
    std::vector<const Slot *> args;
    for (int32_t i = 0; i < samples; ++i) {
      std::vector<int32_t> text = prompt ? *prompt : std::vector<int32_t>();
      text.push_back(i % 16);
      args.push_back(arguments(heap_, text, kWritten));
    }
    uint64_t start = clockNow();
    for (const Slot *each : args) {
      Request request{.instance = {each}};
      if (!prompt)
        request.kept = {{0, caches_}};
      engine_.submit(std::move(request));
    }
    runOut();
    return milliseconds(start);
  }

  const Counters &counters() const { return session_.counters(); }
  double peak() const { return static_cast<double>(session_.memory().rows.peak) * 1e-6; }

private:
  static SessionOptions optionsOf(When share) {
    SessionOptions options;
    options.shareRows = share;
    return options;
  }
  void runOut() {
    while (engine_.step()) {
    }
  }

  Session session_;
  Engine engine_{session_};
  io::SlotHeap heap_;
  KeptValue caches_;
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: kept_bench RESUME.sheafc [words [samples [rounds]]]\n", stderr);
    return 2;
  }
  int64_t words = argc > 2 ? std::atol(argv[2]) : 512;
  int samples = argc > 3 ? std::atoi(argv[3]) : 8;
  int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  auto artefact = artefact::Artefact::open(argv[1]);
  const Model &model = artefact->model();
  std::mt19937 random(1);
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < words; ++i)
    prompt.push_back(static_cast<int32_t>(random() % 16));

  Keeper shares(model, When::Worth), copies(model, When::Never), all(model, When::Worth);
  std::vector<double> ofPrompt{shares.readPrompt(prompt), copies.readPrompt(prompt)};
  if (!shares.caches() || !copies.caches())
    return 1;
  std::printf("prompt of %ld words: %.2f ms; kept: %.2f MB\n", words, median(ofPrompt),
              static_cast<double>(shares.caches().bytes()) * 1e-6);
  for (int count : {1, samples}) {
    std::vector<double> shared, copied, whole;
    for (int round = 0; round < rounds; ++round) {
      whole.push_back(all.write(&prompt, count));
      shared.push_back(shares.write(nullptr, count));
      copied.push_back(copies.write(nullptr, count));
    }
    std::printf("%d at once: %.2f ms from what is kept, %.2f ms with its rows copied, %.2f ms from "
                "all words; rows at most %.1f, %.1f and %.1f MB\n",
                count, median(shared), median(copied), median(whole), shares.peak(), copies.peak(),
                all.peak());
    std::printf("%lu tensors went on with %.1f MB in common\n", shares.counters().sharedTensors,
                static_cast<double>(shares.counters().sharedBytes) * 1e-6);
  }
}
