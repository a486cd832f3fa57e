// Values of the oracle: lists against vectors, and deep values.

#include "compiler/oracle/Value.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace sheaf::oracle {
namespace {

std::vector<int64_t> ints(const Value &list) {
  std::vector<int64_t> result;
  for (const Value &v : elements(list))
    result.push_back(std::get<int64_t>(v));
  return result;
}

Value listOf(const std::vector<int64_t> &numbers) {
  return makeList({numbers.begin(), numbers.end()});
}

TEST(OracleLists, Empty) {
  EXPECT_EQ(length(makeList({})), 0);
  EXPECT_TRUE(elements(makeList({})).empty());
  EXPECT_EQ(length(concat(makeList({}), makeList({}))), 0);
  EXPECT_EQ(length(slice(listOf({1, 2}), 1, 1)), 0);
}

TEST(OracleLists, AgreeWithVectors) {
  std::mt19937 random(1);
  Value list = makeList({});
  std::vector<int64_t> model;
  for (int64_t round = 0; round < 3000; ++round) {
    int64_t n = static_cast<int64_t>(model.size());
    switch (random() % 5) {
    case 0:
      list = concat(list, listOf({round}));
      model.push_back(round);
      break;
    case 1:
      list = concat(listOf({round}), list);
      model.insert(model.begin(), round);
      break;
    case 2: {
      int64_t lo = static_cast<int64_t>(random() % (n + 1));
      int64_t hi = lo + static_cast<int64_t>(random() % (n - lo + 1));
      Value part = slice(list, lo, hi);
      std::vector<int64_t> expected(model.begin() + lo, model.begin() + hi);
      ASSERT_EQ(ints(part), expected);
      list = concat(part, list);
      model.insert(model.begin(), expected.begin(), expected.end());
      break;
    }
    case 3:
      if (n > 200) {
        list = slice(list, n / 2, n);
        model.erase(model.begin(), model.begin() + n / 2);
      }
      break;
    default:
      if (n > 0) {
        int64_t at = static_cast<int64_t>(random() % n);
        ASSERT_EQ(std::get<int64_t>(element(list, at)), model[at]);
      }
    }
    ASSERT_EQ(length(list), static_cast<int64_t>(model.size()));
  }
  EXPECT_EQ(ints(list), model);
}

TEST(OracleLists, StayBalanced) {
  Value list = makeList({});
  for (int64_t i = 0; i < 100'000; ++i)
    list = concat(list, listOf({i}));
  EXPECT_LE(cell(list).height, 25);
  EXPECT_EQ(std::get<int64_t>(element(list, 77'777)), 77'777);
}

TEST(OracleValues, DeepValuesAreDestroyedWithoutRecursion) {
  Value chain = makeData(0, {});
  for (int64_t i = 0; i < 2'000'000; ++i)
    chain = i % 2 ? makeData(1, {i, chain}) : makeTuple({makeList({chain, i})});
  chain = Value();
}

} // namespace
} // namespace sheaf::oracle
