//===- random_blocks_test.cpp - Kernels of blocks made at random ----------===//
//
// SHEAF_RANDOM_BLOCKS=n tries n blocks, SHEAF_RANDOM_FIRST=s begins with seed s.
//
//===----------------------------------------------------------------------===//

#include "tests/kernels/random_block.h"

namespace sheaf::test {
namespace {

unsigned fromEnvironment(const char *name, unsigned otherwise) {
  const char *text = std::getenv(name);
  return text ? static_cast<unsigned>(std::stoul(text)) : otherwise;
}

/// A tiling that the tuner may choose, another one for each seed.
kernels::Tuning tuningFor(unsigned seed) {
  std::vector<kernels::Tuning> tiles = kernels::tilesToTry();
  std::vector<int64_t> near = kernels::nearToTry();
  kernels::Tuning tuning = tiles[seed % tiles.size()];
  tuning.near = near[seed / tiles.size() % near.size()];
  return tuning;
}

/// Compares one block on two targets, on one of them also without a rewrite and on each with a
/// tiling of the tuner's, and all but that without a rewrite with each other: with FMA they compute
/// the same bits.
testing::AssertionResult tryBlock(const RandomBlock &block, unsigned seed) {
  constexpr int64_t kRecords = 13;
  std::vector<Results> host, avx2, plain, tuned;
  // The targets are tuned in turn: compiling is what this test's time goes to.
  const char *tunedTarget = seed % 2 ? "host" : "x86-64-v3";
  try {
    if (auto ok = check(block.module, "host", {}, kRecords, block.inputs, host); !ok)
      return ok;
    if (auto ok = check(block.module, "x86-64-v3", {}, kRecords, block.inputs, avx2); !ok)
      return ok;
    if (auto ok =
            check(block.module, tunedTarget, {}, kRecords, block.inputs, tuned, tuningFor(seed));
        !ok)
      return ok;
    static constexpr const char *rewrites[] = {"fuse", "merge", "panels"};
    std::set<std::string> without{rewrites[seed % 3]};
    if (auto ok = check(block.module, "x86-64-v3", without, kRecords, block.inputs, plain); !ok)
      return ok;
  } catch (const std::exception &error) {
    return testing::AssertionFailure() << error.what();
  }
  for (size_t r = 0; r < host.size(); ++r) {
    if (auto ok = same(host[r], avx2[r]); !ok)
      return testing::AssertionFailure() << "record " << r << ", the targets: " << ok.message();
    if (auto ok = same(host[r], tuned[r]); !ok)
      return testing::AssertionFailure()
             << "record " << r << ", " << tuningFor(seed).text() << ": " << ok.message();
  }
  return testing::AssertionSuccess();
}

/// Which of as many parts of the seeds: parts run side by side, and none takes very long.
class RandomBlocks : public testing::TestWithParam<unsigned> {};
constexpr unsigned kParts = 4;

TEST_P(RandomBlocks, AgreeWithReferencesAndAreBatchInvariant) {
  unsigned first = fromEnvironment("SHEAF_RANDOM_FIRST", 1);
  unsigned count = fromEnvironment("SHEAF_RANDOM_BLOCKS", 240);
  int failures = 0;
  for (unsigned seed = first + GetParam(); seed < first + count && failures < 3; seed += kParts) {
    RandomBlock block = randomBlock(seed);
    auto ok = tryBlock(block, seed);
    if (ok)
      continue;
    ++failures;
    // Smaller blocks say more.
    for (size_t only = 0; only < 5; ++only) {
      RandomBlock smaller = randomBlock(seed, only);
      if (smaller.module.size() >= block.module.size())
        continue;
      if (auto small = tryBlock(smaller, seed); !small) {
        block = std::move(smaller);
        ok = std::move(small);
      }
    }
    ADD_FAILURE() << "seed " << seed << ": " << ok.message() << "\n" << block.module;
  }
}
INSTANTIATE_TEST_SUITE_P(Part, RandomBlocks, testing::Range(0u, kParts));

} // namespace
} // namespace sheaf::test
