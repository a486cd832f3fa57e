#include "tests/io/io_test_support.h"

namespace sheaf::io::test {
namespace {

struct SentencesTest : ::testing::Test {
  Bench bench;
  Types &types = bench.types;

  SentencesTest() {
    bench.vocabularies.set("", vocabulary({"the", "band", "a|b"}));
    bench.vocabularies.set("tag", vocabulary({"O", "I-MISC"}));
  }
};

TEST_F(SentencesTest, Tagged) {
  bench.main = entry({{"words", types.list(types.token())}});
  EXPECT_EQ(bench.roundTrip("the|O  band|I-MISC x|O\n\na|b|O\n"),
            "{\"words\":[\"the\",\"band\",\"<unk>\"]}\n{\"words\":[\"a|b\"]}");
  bench.main =
      entry({{"words", types.list(types.token())}, {"tags", types.list(types.token("tag"))}});
  EXPECT_EQ(bench.roundTrip("the|O band|I-MISC"),
            R"({"words":["the","band"],"tags":["O","I-MISC"]})");
  bench.main = entry({{"w", types.tokens({-1}, {"n"})}, {"t", types.tokens({-1}, {"n"}, "tag")}});
  EXPECT_EQ(bench.roundTrip("the|O band|I-MISC"), R"({"w":["the","band"],"t":["O","I-MISC"]})");
  EXPECT_EQ(bench.read("the|O band|I-MISC").args(0)[1], 2);
  bench.main = entry({{"w", types.list(types.token())}, {"t", types.list(types.integer())}});
  EXPECT_EQ(bench.roundTrip("the|3 band|-4"), R"({"w":["the","band"],"t":[3,-4]})");
  EXPECT_EQ(bench.error("the|3 band|x", "f"),
            "f:1:12: expected an integer tag for list<int>, found 'x' (a parameter of type "
            "list<token<tag>> takes words)");
  bench.main =
      entry({{"w", types.list(types.token())}, {"t", types.tensor(rt::DType::I32, {-1}, {"n"})}});
  EXPECT_EQ(bench.roundTrip("the|3 band|-4"), R"({"w":["the","band"],"t":[3,-4]})");
  EXPECT_EQ(bench.error("the|3000000000", "f"), "f:1:5: the tag 3000000000 does not fit i32[n]");
}

TEST_F(SentencesTest, BadLines) {
  bench.main = entry({{"words", types.list(types.token())}});
  EXPECT_EQ(bench.error("the|O\nthe|O band x|O", "f"),
            "f:2:7: expected a word and its tag as word|tag, found 'band'");
  EXPECT_EQ(bench.error("the|O\n|O", "f"), "f:2:1: no word before the '|' of '|O'");
  EXPECT_EQ(bench.error("the|O\nband|", "f"), "f:2:5: no tag after the '|' of 'band|'");
  bench.strict = true;
  EXPECT_EQ(bench.error("the|O\nthe|O bad|O", "f"),
            "f:2:7: the word 'bad' is not in the vocabulary of 'token'");
}

TEST_F(SentencesTest, Text) {
  bench.main = entry({{"words", types.list(types.token())}});
  EXPECT_EQ(bench.roundTrip(" the band \r\n\n the\tx"),
            "{\"words\":[\"the\",\"band\"]}\n{\"words\":[\"the\",\"<unk>\"]}");
  bench.main = entry({{"words", types.tokens({2}, {"2"})}});
  EXPECT_EQ(bench.roundTrip("the band"), R"({"words":["the","band"]})");
  EXPECT_EQ(bench.error("the band the", "f"), "f:1:1: token[2] needs 2 words, found 3");
}

TEST_F(SentencesTest, WordsOfTrees) {
  bench.main = entry({{"words", types.list(types.token())}, {"label", types.integer()}});
  EXPECT_EQ(
      bench.roundTrip("(3 (2 the) (1 (2 band) (2 x)))\n(1 the)"),
      "{\"words\":[\"the\",\"band\",\"<unk>\"],\"label\":3}\n{\"words\":[\"the\"],\"label\":1}");
  EXPECT_EQ(bench.error("((2 the) (2 band))", "f"),
            "f:1:1: this tree has no label at its root, but the parameter 'label: int' needs one");
}

TEST_F(SentencesTest, EntriesThatDoNotFit) {
  bench.main = entry({{"words", types.list(types.token())}, {"x", types.real()}}, "tag");
  EXPECT_EQ(bench.error("the band", "f"),
            "f: lines of text cannot give the parameter 'x: float' of 'tag(words: list<token>, x: "
            "float)'; they give one list<token> or token[n]\n  (read as text; a format says "
            "otherwise)");
  bench.options.format = parseDataFormat("tagged");
  EXPECT_EQ(bench.error("the|O", "f"),
            "f: tagged sentences cannot give the parameter 'x: float' of 'tag(words: list<token>, "
            "x: float)'; they give one list<token> or token[n] of words and one of tags (also "
            "list<int>, i32[n] or i64[n])");
  bench.main = entry({});
  EXPECT_EQ(bench.error("the|O", "f"),
            "f: tagged sentences need a parameter of type list<token> or token[n]; 'main()' has "
            "none");
}

TEST(Formats, Detected) {
  auto detect = [](const std::string &text, const std::string &name = "x.txt") {
    return std::string(detectFormat({name, text}).name);
  };
  EXPECT_EQ(detect("(3 (2 a) (2 b))"), "trees");
  EXPECT_EQ(detect("\n  {\"a\": 1}"), "jsonl");
  EXPECT_EQ(detect("[1, 2]"), "jsonl");
  EXPECT_EQ(detect("[[1]]"), "jsonl");
  EXPECT_EQ(detect("[MAX 2 9 ]"), "text");
  EXPECT_EQ(detect("3", "x.jsonl"), "jsonl");
  EXPECT_EQ(detect("3"), "text");
  EXPECT_EQ(detect("a|O b|O"), "tagged");
  EXPECT_EQ(detect("a|O b"), "text");
  EXPECT_EQ(detect(""), "text");
  EXPECT_EQ(userError([] { parseDataFormat("xml"); }),
            "there is no data format 'xml'; there are " + dataFormatNames());
  EXPECT_TRUE(dataFormatNames().starts_with("auto, json, ")) << dataFormatNames();
  EXPECT_TRUE(dataFormatNames().ends_with(" or text")) << dataFormatNames();
  EXPECT_STREQ(parseDataFormat("tagged")->name, "tagged");
  EXPECT_EQ(parseDataFormat("auto"), nullptr);
}

TEST(Datasets, Limits) {
  Bench bench;
  bench.main = entry({{"i", bench.types.integer()}});
  bench.options.limit = 2;
  EXPECT_EQ(bench.read("1\n2\nbroken\n", "d.jsonl").size(), 2);
  EXPECT_EQ(userError([&] {
              VocabularyReader tokens(bench.vocabularies);
              readDataset("/nowhere/x", bench.types.table, bench.main, tokens);
            }),
            "cannot read '/nowhere/x': No such file or directory");
}

TEST(CountTokens, OfTheEntry) {
  Bench bench;
  Types &types = bench.types;
  bench.main = entry({{"words", types.list(types.token())},
                      {"tags", types.list(types.token("tag"))},
                      {"m", types.tensor(rt::DType::F32, {3}, {"vocab"})}});
  SourceText source{"d.jsonl", "{\"words\":[\"b\",\"a\",\"a\"],\"tags\":[\"O\",7],\"m\":[1]}\n"};
  auto counted = countTokens(source, types.table, bench.main);
  ASSERT_EQ(counted.size(), 2u);
  EXPECT_EQ(counted.at("").words.build().size(), 3);
  EXPECT_EQ(counted.at("").words.build().word(1), "a");
  EXPECT_EQ(counted.at("").greatest, -1);
  EXPECT_EQ(counted.at("tag").words.build().word(1), "O");
  EXPECT_EQ(counted.at("tag").greatest, 7);
}

TEST(BuildVocabularies, FromDataAlone) {
  auto words = [](const SourceText &source, const std::string &name = "") {
    Vocabulary v = buildVocabularies(source).at(name);
    std::string text;
    for (int64_t i = 0; i < v.size(); ++i)
      text += std::string(i ? " " : "") + std::string(v.word(i));
    return text;
  };
  EXPECT_EQ(words({"t", "(3 (2 a) (1 (2 b) (2 b)))"}), "<unk> b a");
  EXPECT_EQ(words({"t", "x|O y|P x|P"}), "<unk> x y");
  EXPECT_EQ(words({"t", "x|O y|P x|P"}, "tag"), "<unk> P O");
  EXPECT_EQ(words({"t", "b a b"}), "<unk> b a");
  EXPECT_EQ(words({"t.jsonl", "{\"k\":[\"a\",\"(1 (2 q) (2 q))\",\"(\"]}"}), "<unk> q a (");
  EXPECT_EQ(userError([&] { words({"t", "\n"}); }), "t: no words in the data");
  EXPECT_EQ(userError([&] { words({"t", "x|O\ny"}); }),
            "t:2:1: expected a word and its tag as word|tag, found 'y'");
}

} // namespace
} // namespace sheaf::io::test
