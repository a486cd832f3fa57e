#include "tests/io/io_test_support.h"

#include "runtime/io/types.h"

#include <cmath>
#include <limits>

namespace sheaf::io::test {
namespace {

TEST(Types, AreNamedAsTheSourceWritesThem) {
  Types types;
  auto name = [&](uint32_t type) { return typeName(types.table, type); };
  EXPECT_EQ(name(types.boolean()), "bool");
  EXPECT_EQ(name(types.tensor(rt::DType::Bool, {})), "bool[]");
  EXPECT_EQ(name(types.token()), "token");
  EXPECT_EQ(name(types.tokens({}, {})), "token[]");
  EXPECT_EQ(name(types.tensor(rt::DType::F32, {})), "f32");
  EXPECT_EQ(name(types.tensor(rt::DType::F32, {3, -1, -1}, {"", "n", "?"})), "f32[3, n, ?]");
}

TEST(Output, Numbers) {
  auto text = [](auto value) {
    std::string out;
    appendNumber(out, value);
    return out;
  };
  EXPECT_EQ(text(0.1f), "0.1");
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(16777216.0f), "16777216");
  EXPECT_EQ(text(1e20), "1e+20");
  EXPECT_EQ(text(-0.0f), "-0");
  EXPECT_EQ(text(std::numeric_limits<float>::denorm_min()), "1e-45");
  EXPECT_EQ(text(std::nan("")), "\"NaN\"");
  EXPECT_EQ(text(-std::numeric_limits<float>::infinity()), "\"-Infinity\"");
}

TEST(Output, FloatsRoundTrip) {
  uint32_t bits = 1;
  for (int i = 0; i < 200'000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    float value = std::bit_cast<float>(bits), back = 0;
    if (!std::isfinite(value))
      continue;
    std::string out;
    appendNumber(out, value);
    ASSERT_TRUE(parseFloat(out, back)) << out;
    ASSERT_EQ(std::bit_cast<uint32_t>(back), bits) << out;
  }
}

TEST(Output, TensorsOfAnyShape) {
  Bench bench;
  Types &types = bench.types;
  bench.main = entry({{"a", types.tensor(rt::DType::F32, {2, -1, 2}, {"2", "?", "2"})}});
  EXPECT_EQ(bench.roundTrip("[[[1,2],[3,4],[5,6]],[[7,8],[9,10],[11,12]]]", "d.jsonl"),
            R"({"a":[[[1,2],[3,4],[5,6]],[[7,8],[9,10],[11,12]]]})");
  EXPECT_EQ(bench.roundTrip("[[],[]]", "d.jsonl"), R"({"a":[[],[]]})");
  bench.main = entry({{"a", types.tensor(rt::DType::I64, {-1, 1}, {"?", "1"})}});
  std::string rows = "[[0]";
  for (int i = 1; i < 20; ++i)
    rows += ",[" + std::to_string(i) + "]";
  rows += "]";
  EXPECT_EQ(bench.roundTrip(rows, "d.jsonl"), "{\"a\":" + rows + "}");
  bench.main = entry({{"a", types.tensor(rt::DType::F32, {-1}, {"?"})}});
  std::string wide = "[0";
  for (int i = 1; i < 100; ++i)
    wide += "," + std::to_string(i) + ".5";
  wide += "]";
  EXPECT_EQ(bench.roundTrip(wide, "d.jsonl"), "{\"a\":" + wide + "}");
}

TEST(Output, Strings) {
  std::string out;
  appendJsonString(out, "a\"b\\c\n\t\x01\xFF\xC3\xA9");
  EXPECT_EQ(out, "\"a\\\"b\\\\c\\n\\t\\u0001\xEF\xBF\xBD\xC3\xA9\"");
}

TEST(Output, TokensWithoutVocabularyAreNumbers) {
  Types types;
  uint32_t pair = types.tuple({types.token(), types.list(types.token())});
  rt::Slot element = 7;
  rt::ListObject list{&element, 1, 1, nullptr};
  rt::Slot slots[] = {3, std::bit_cast<rt::Slot>(&list)};
  std::string out;
  JsonValueWriter(types.table, nullptr).append(out, pair, slots);
  EXPECT_EQ(out, "[3,[7]]");
  Vocabularies vocabularies;
  vocabularies.set("", vocabulary({"a", "b", "c"}));
  out.clear();
  JsonValueWriter(types.table, nullptr, &vocabularies).append(out, pair, slots);
  EXPECT_EQ(out, R"(["c",[7]])");
}

} // namespace
} // namespace sheaf::io::test
