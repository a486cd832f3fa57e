//===- forking_test.cpp - When a call is worth forking --------------------===//

#include "runtime/walk/forking.h"

#include <gtest/gtest.h>

namespace sheaf::rt {
namespace {

TEST(Forking, NamesAreFoundAgain) {
  for (Forking forking : {Forking::Worth, Forking::Always, Forking::Never, Forking::Alternately})
    EXPECT_EQ(forkingByName(forkingName(forking)), forking);
  EXPECT_EQ(forkingByName("sometimes"), std::nullopt);
}

KernelDesc kernelOf(int64_t depth, int64_t width) {
  KernelDesc kernel;
  kernel.weights.push_back({WeightRead::Factor, 0, static_cast<double>(4 * depth * width)});
  return kernel;
}

/// How many may wait when a flush has so many launches of kernel 0.
uint32_t mostBehind(const Model &model, size_t launches) {
  ForkWorth worth(model);
  Schedule schedule(launches);
  for (int i = 0; i < 100; ++i)
    worth.noteFlush(schedule, 0);
  return worth.most();
}

TEST(Forking, WhatFlushesCostAllowsForks) {
  Model small, large;
  small.kernels = {kernelOf(8, 8)};
  large.kernels = {kernelOf(512, 2048)};
  EXPECT_LT(mostBehind(small, 1), 16u);
  EXPECT_GT(mostBehind(large, 1), 32u);
  EXPECT_GT(mostBehind(small, 8), 2 * mostBehind(small, 1));
  // Few launches are usual, before any has been seen.
  uint32_t usual = ForkWorth(small).most();
  EXPECT_GE(usual, mostBehind(small, 1));
  EXPECT_LE(usual, mostBehind(small, 3));
}

TEST(Forking, WhatNoReadDependsOnDoesNotCount) {
  Model model;
  model.kernels = {kernelOf(8, 8), kernelOf(512, 2048)};
  model.kernels[1].deferred = true;
  ForkWorth worth(model);
  uint32_t usual = worth.most();
  Schedule schedule(4);
  for (ScheduledBucket &bucket : schedule)
    bucket.kernel = 1;
  worth.noteFlush(schedule, 0);
  EXPECT_LE(worth.most(), usual);
}

TEST(Forking, AMiniBatchBeginsAnew) {
  Model model;
  model.kernels = {kernelOf(64, 64)};
  ForkWorth worth(model);
  uint32_t usual = worth.most();
  Schedule schedule(50);
  worth.noteFlush(schedule, 10);
  EXPECT_GT(worth.most(), usual);
  worth.begin();
  EXPECT_EQ(worth.most(), usual);
}

} // namespace
} // namespace sheaf::rt
