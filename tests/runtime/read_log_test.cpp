// What instances read, put in the order of the program.

#include "runtime/walk/read_log.h"
#include "tests/deep.h"

#include <gtest/gtest.h>

namespace sheaf::rt {
namespace {

std::vector<Slot> valuesOf(const ReadLog &log, size_t instance) {
  std::vector<Slot> values;
  for (LoggedRead read : log.of(instance))
    values.push_back(read.value);
  return values;
}

TEST(ReadLog, ForksCountWhereTheyStand) {
  ReadLog log;
  uint32_t first = log.begin(), second = log.begin();
  log.note(first, {0, 1});
  uint32_t child = log.fork(first), empty = log.fork(first);
  uint32_t inner = log.fork(child);
  // In any order of time.
  log.note(first, {0, 5});
  log.note(second, {1, 9});
  log.note(child, {0, 4});
  log.note(inner, {0, 2});
  log.note(inner, {0, 3});
  for (uint32_t thread : {first, second, child, inner, empty})
    log.end(thread);
  EXPECT_EQ(valuesOf(log, 0), (std::vector<Slot>{1, 2, 3, 4, 5}));
  EXPECT_EQ(valuesOf(log, 1), std::vector<Slot>{9});
  EXPECT_EQ(log.of(1)[0].place, 1u);
  log.note(empty, {2, 7});
  EXPECT_EQ(valuesOf(log, 0), (std::vector<Slot>{1, 2, 3, 4, 7, 5}));
}

/// One that failed, or was given up, and what comes after it, has not read all.
TEST(ReadLog, OfFailuresWhatComesBeforeThem) {
  ReadLog log;
  uint32_t thread = log.begin();
  log.note(thread, {0, 1});
  uint32_t before = log.fork(thread), failing = log.fork(thread), behind = log.fork(thread);
  log.note(behind, {0, 4});
  log.end(behind);
  log.note(failing, {0, 3});
  log.note(before, {0, 2});
  log.note(thread, {0, 5});
  EXPECT_EQ(valuesOf(log, 0), (std::vector<Slot>{1, 2}));
  log.end(before);
  EXPECT_EQ(valuesOf(log, 0), (std::vector<Slot>{1, 2, 3}));
  log.end(failing);
  EXPECT_EQ(valuesOf(log, 0), (std::vector<Slot>{1, 2, 3, 4, 5}));
}

TEST(ReadLog, AnInstanceBeginsAgain) {
  ReadLog log;
  uint32_t first = log.begin(), second = log.begin();
  log.note(log.fork(first), {0, 1});
  log.note(first, {0, 2});
  log.note(second, {0, 3});
  log.end(first);
  log.note(log.beginAgain(first), {0, 4});
  EXPECT_EQ(valuesOf(log, 0), std::vector<Slot>{4});
  EXPECT_EQ(valuesOf(log, 1), std::vector<Slot>{3});
}

TEST(ReadLog, WhatRunsAnewIsForgotten) {
  ReadLog log;
  log.note(log.begin(), {0, 1});
  uint32_t again = log.begin();
  log.note(log.fork(again), {0, 2});
  log.keep(3);
  EXPECT_EQ(log.instances(), 2u);
  log.keep(1);
  EXPECT_EQ(log.instances(), 1u);
  EXPECT_EQ(valuesOf(log, 0), std::vector<Slot>{1});
  log.note(log.begin(), {0, 3});
  EXPECT_EQ(valuesOf(log, 1), std::vector<Slot>{3});
  log.clear();
  EXPECT_EQ(log.instances(), 0u);
}

/// As deep as calls fork calls.
TEST(ReadLog, DeepForksTakeNoStack) {
  ReadLog log;
  uint32_t thread = log.begin();
  for (int i = 0; i < kDeep; ++i) {
    uint32_t child = log.fork(thread);
    log.note(thread, {0, i});
    log.end(thread);
    thread = child;
  }
  log.end(thread);
  std::vector<LoggedRead> reads = log.of(0);
  ASSERT_EQ(reads.size(), size_t{kDeep});
  EXPECT_EQ(reads.front().value, kDeep - 1);
  EXPECT_EQ(reads.back().value, 0);
}

} // namespace
} // namespace sheaf::rt
