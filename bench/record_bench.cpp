//===- record_bench.cpp - What recording, bucketing and launching cost ----===//
//
// record_bench [repetitions]: nanoseconds a record for shapes of programs whose kernels do nothing.
// The best of the repetitions, each of them a whole mini-batch after a first one.
//
//===----------------------------------------------------------------------===//
#include "runtime/cpu/kernel_code.h"
#include "runtime/session/session.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace sheaf::rt;

namespace {

void nothing(const int32_t *, int64_t, int64_t, int64_t, int64_t, uint8_t *, const void *const *,
             uint8_t *) {}

enum : uint32_t { kLeaf, kNode };

struct Tensor {
  uint32_t id, depth;
};

Tensor leaf(Context *context, int32_t word) {
  int32_t *record = sheaf_record(context, kLeaf, 0, 2);
  record[0] = word;
  return {static_cast<uint32_t>(record[1]), 1};
}

Tensor node(Context *context, Tensor l, Tensor r) {
  uint32_t depth = std::max(l.depth, r.depth);
  int32_t *record = sheaf_record(context, kNode, depth, 2);
  record[0] = static_cast<int32_t>(l.id);
  record[1] = static_cast<int32_t>(r.id);
  return {static_cast<uint32_t>(record[2]), depth + 1};
}

Tensor balanced(Context *context, int64_t leaves) {
  if (leaves == 1)
    return leaf(context, 5);
  Tensor l = balanced(context, leaves / 2);
  return node(context, l, balanced(context, leaves - leaves / 2));
}

void trees(Context *context, const Slot *args, Slot *results) {
  results[0] = balanced(context, args[0]).id;
}

void chain(Context *context, const Slot *args, Slot *results) {
  Tensor x = leaf(context, 1);
  for (Slot i = 0; i < args[0]; ++i)
    x = node(context, x, {0, 0});
  results[0] = x.id;
}

void row(Context *context, const Slot *args, Slot *results) {
  for (Slot i = 0; i < args[0]; ++i)
    results[0] = leaf(context, 1).id;
}

uint64_t words(int32_t left, int32_t right) {
  return static_cast<uint32_t>(left) | uint64_t(static_cast<uint32_t>(right)) << 32;
}

/// A record of every `Period` stands a second time right after itself.
template <Slot Period> void looked(Context *context, const Slot *args, Slot *results) {
  for (Slot i = 0; i < args[0]; ++i) {
    auto left = static_cast<int32_t>(i - (i % Period == Period - 1));
    results[0] = sheaf_record_once2(context, kNode, 1, 2, words(left, left));
  }
}

/// 100 different ones.
void known(Context *context, const Slot *args, Slot *results) {
  for (Slot i = 0; i < args[0]; ++i) {
    results[0] = sheaf_record_once2(context, kNode, 1, 2, words(static_cast<int32_t>(i % 100), 0));
  }
}

void conses(Context *context, const Slot *args, Slot *results) {
  ListObject *list = sheaf_list_new(context, 1, 0);
  for (Slot i = 0; i < args[0]; ++i)
    list = sheaf_list_cons(context, &i, list);
  results[0] = list->size;
}

Model makeModel(EntryFn entry) {
  Model model;
  model.types.types.resize(1);
  model.kernels.resize(2);
  model.kernels[kLeaf].name = "leaf";
  model.kernels[kLeaf].words = 2;
  model.kernels[kNode].name = "node";
  model.kernels[kNode].words = 3;
  cpuCode(model).kernels[kLeaf].fn = cpuCode(model).kernels[kNode].fn = nothing;
  model.kernels[kNode].flop = {{1e6, {}}}; // look-ups go on where something is found
  model.entry.argTypes = {0};
  model.entry.resultType = 0;
  model.entry.fn = entry;
  return model;
}

void measure(const char *what, EntryFn entry, Slot size, size_t batch, int repetitions,
             int64_t operations) {
  Model model = makeModel(entry);
  Session session(model);
  std::vector<Instance> instances;
  for (size_t i = 0; i < batch; ++i)
    instances.push_back({&size, static_cast<int64_t>(i)});
  double record = 1e30, flush = 1e30, whole = 1e30;
  for (int i = 0; i <= repetitions; ++i) {
    session.resetCounters();
    auto start = std::chrono::steady_clock::now();
    session.run(instances);
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i == 0)
      continue;
    double n = operations ? static_cast<double>(operations)
                          : static_cast<double>(session.counters().records);
    record = std::min(record, static_cast<double>(session.counters().recordNanoseconds) / n);
    flush = std::min(flush, static_cast<double>(session.counters().flushNanoseconds) / n);
    whole = std::min(whole, seconds * 1e9 / n);
  }
  MemoryUse memory = session.memory();
  std::printf("%-34s %8.2f %8.2f %8.2f %10llu %10.1f\n", what, record, flush, whole,
              static_cast<unsigned long long>(session.counters().launches),
              static_cast<double>(memory.records.now + memory.heap.now) / (1 << 20));
}

} // namespace

int main(int argc, char **argv) {
  int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  std::printf("%-34s %8s %8s %8s %10s %10s\n", "ns a record (cons)", "record", "flush", "whole",
              "launches", "MB");
  measure("64 balanced trees of 20 leaves", trees, 20, 64, repetitions * 20, 0);
  measure("256 balanced trees of 40 leaves", trees, 40, 256, repetitions, 0);
  measure("4096 balanced trees of 64 leaves", trees, 64, 4096, repetitions, 0);
  measure("1 row of 1000000", row, 1000000, 1, repetitions, 0);
  measure("64 chains of 100", chain, 100, 64, repetitions, 0);
  measure("1 chain of 1000000", chain, 1000000, 1, repetitions, 0);
  measure("100000 instances of 1 record", row, 1, 100000, repetitions, 0);
  measure("1 row of 2000", row, 2000, 1, repetitions * 20, 0);
  measure("the same, looked up, none known", looked<int64_t(1) << 40>, 2000, 1, repetitions * 20,
          2000);
  measure("the same, a 32nd known", looked<32>, 2000, 1, repetitions * 20, 2000);
  measure("the same, all but 100 known", known, 2000, 1, repetitions * 20, 2000);
  measure("1000000 looked up, a 32nd known", looked<32>, 1000000, 1, repetitions, 1000000);
  measure("1000000 conses", conses, 1000000, 1, repetitions, 1000000);
}
