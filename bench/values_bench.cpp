//===- values_bench.cpp - What it costs to make values --------------------===//
//
// values_bench MODEL.sheafc [ROUNDS]: 64 trees of 2,496 nodes for a model whose one argument is
// data Tree = Leaf(token) | Node(Tree, Tree), such as tests/artefact/golden/v2.sheafc. Prints
// nanoseconds a node: made one by one, in preorder, and added to a batch when they are there.
//
//===----------------------------------------------------------------------===//
#include "sheaf/sheaf.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr size_t kTrees = 64, kLeaves = 20, kNodes = kTrees * (2 * kLeaves - 1);

/// Trees that lean to either side.
sheaf::Preorder forest() {
  sheaf::Preorder written;
  for (size_t tree = 0; tree < kTrees; ++tree) {
    std::vector<size_t> pending{kLeaves};
    while (!pending.empty()) {
      size_t here = pending.back();
      pending.pop_back();
      written.heads.push_back(here > 1);
      if (here == 1) {
        written.numbers.push_back(static_cast<int64_t>((tree + written.heads.size()) % 5));
        continue;
      }
      size_t left = 1 + (tree + here * 7) % (here - 1);
      pending.push_back(here - left);
      pending.push_back(left);
    }
  }
  return written;
}

template <typename Work> void measure(const char *what, int rounds, Work work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    work();
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count() / kNodes);
  }
  std::sort(times.begin(), times.end());
  std::printf("%-28s %8.2f ns a node, least %.2f\n", what, times[times.size() / 2], times[0]);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL.sheafc [ROUNDS]\n", argv[0]);
    return 2;
  }
  int rounds = argc > 2 ? std::atoi(argv[2]) : 200;
  try {
    sheaf::Model model(argv[1]);
    sheaf::Type tree = model.argumentType(0);
    sheaf::Type token = sheaf_type_field_type(model.get(), tree, 0, 0);
    sheaf::Preorder written = forest();
    measure("one by one", rounds, [&] {
      sheaf::Batch batch(model);
      // Backwards, parts are made before what they are parts of.
      std::vector<sheaf_value> ready;
      size_t number = written.numbers.size();
      for (size_t i = written.heads.size(); i-- > 0;) {
        sheaf_value fields[2], value;
        if (written.heads[i] == 0) {
          sheaf::check(sheaf_make_token(batch.get(), token, written.numbers[--number], fields));
          sheaf::check(sheaf_make_data(batch.get(), tree, 0, fields, 1, &value));
        } else {
          for (sheaf_value &field : fields) {
            field = ready.back();
            ready.pop_back();
          }
          sheaf::check(sheaf_make_data(batch.get(), tree, 1, fields, 2, &value));
        }
        ready.push_back(value);
      }
      for (size_t i = ready.size(); i-- > 0;)
        batch.add({ready[i]});
    });
    sheaf::Builder builder(model);
    auto build = [&] {
      builder.instances({builder.preorder(tree, written, kTrees)}, kTrees);
      return builder.finish();
    };
    measure("in preorder", rounds, build);
    sheaf::Values values = build();
    measure("a batch of what is there", rounds, [&] { sheaf::Batch(model).add(values); });
  } catch (const sheaf::Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
