#include "tests/io/io_test_support.h"

#include <set>

namespace sheaf::io::test {
namespace {

struct FormatsTest : ::testing::Test {
  Bench bench;
  Types &types = bench.types;

  FormatsTest() { bench.vocabularies.set("", vocabulary({"the", "film", "17", ""})); }
};

TEST(Formats, ArraysOfInstances) {
  auto detect = [](const std::string &text, const std::string &name = "x") {
    return std::string(detectFormat({name, text}).name);
  };
  for (const char *name : {"x", "x.json", "x.json.gz"}) {
    EXPECT_EQ(detect("[{\"a\": 1}, {\"a\": 2}]\n", name), "json");
    EXPECT_EQ(detect("\n[\n  1,\n  2\n]\n", name), "json");
    EXPECT_EQ(detect("[{\"a\": [\n1]}]", name), "json");
    EXPECT_EQ(detect("[1, 2]", name), "jsonl");
    EXPECT_EQ(detect("[1, 2]\n[3]\n", name), "jsonl");
    EXPECT_EQ(detect("[{\"A\": []}]\n[{\"A\": []}]\n", name), "jsonl");
    EXPECT_EQ(detect("{\"a\": 1}", name), "jsonl");
  }
  EXPECT_EQ(detect("[\n1\n]", "x.jsonl"), "jsonl");
  EXPECT_EQ(detect("3", "x.json"), "jsonl");
  EXPECT_EQ(detect("", "x.json"), "jsonl");
  EXPECT_EQ(detect("(1 a)", "x.csv"), "csv");
  EXPECT_EQ(detect("(1 a)", "dir.csv/x.tsv.gz"), "tsv");
  EXPECT_EQ(detect("(1 a)", "x.gz"), "trees");
}

TEST(Formats, EachIsWhole) {
  std::set<std::string> names;
  for (const DataFormat *format : dataFormats()) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    EXPECT_TRUE(format->records && format->reader && format->countWords) << format->name;
    EXPECT_EQ(parseDataFormat(format->name), format);
    // A text of it is told by its name or by what it begins with, and has one instance with words.
    std::string name = "x" + std::string(*format->begins ? "" : format->extensions.at(0));
    EXPECT_EQ(&detectFormat({name, format->example}), format) << format->name;
    EXPECT_STRNE(format->description, "");
    ReadOptions options;
    options.format = format;
    EXPECT_GT(buildVocabularies({"x", format->example}, options).at("").size(), 1u) << format->name;
    auto records = format->records(format->example);
    std::string_view record;
    EXPECT_TRUE(records->next(record)) << format->name;
    EXPECT_FALSE(records->next(record)) << format->name;
  }
}

TEST_F(FormatsTest, Array) {
  bench.main = entry({{"i", types.integer()}});
  EXPECT_EQ(bench.roundTrip("\xEF\xBB\xBF[{\"i\": 1},\n {\"i\": 2, \"j\": []}]\n", "d.json"),
            "{\"i\":1}\n{\"i\":2}");
  EXPECT_EQ(bench.error("[{\"i\": 1},\n {\"i\": true}]", "d.json"),
            "d.json:2:8: $.i: expected int, found true");
  EXPECT_EQ(bench.error("[{\"i\": 1},\n {\"i\": 2}}\n", "d.json"),
            "d.json:2:10: expected ',' or ']', found '}'");
  EXPECT_EQ(bench.error("[{\"i\": 1}\n", "d.json"),
            "d.json:2:1: expected ',' or ']', found the end of the text");
  bench.options.format = parseDataFormat("json");
  EXPECT_EQ(bench.roundTrip("[1,2]"), "{\"i\":1}\n{\"i\":2}");
  EXPECT_EQ(bench.error("[1] 2"), "data:1:5: expected nothing after the value, found '2'");
  EXPECT_EQ(bench.error("{\"i\": 1}"), "data:1:1: expected an array of instances, found an object");
  EXPECT_EQ(bench.error("[]"), "data: no data: the file has no element");
  EXPECT_EQ(bench.read("[1,\n\n2]").name(1), "data:3");
}

TEST_F(FormatsTest, Tables) {
  uint32_t maybe = types.data("Maybe"), tree = types.binaryTree();
  types.ctor(maybe, "None", {});
  types.ctor(maybe, "Some", {{"x", types.real()}});
  bench.main = entry({{"words", types.list(types.token())},
                      {"w", types.token()},
                      {"i", types.integer()},
                      {"b", types.boolean()},
                      {"v", types.tensor(rt::DType::F32, {-1}, {"n"})},
                      {"s", types.tensor(rt::DType::F32, {})},
                      {"m", maybe},
                      {"t", tree},
                      {"l", types.list(types.list(types.integer()))}});
  std::string text =
      "id,i,words,w,b,v,s,m,t,l\r\n"
      "1, 3 ,the film,17,True,1 2.5,0.5,,(1 the),[]\r\n"
      "\r\n"
      "\"2,\"\"x\n\",-1,\"the\nfilm\",,FALSE,,1e3,2,\"((the) (film))\",\"[[1, 2], []]\"";
  std::string expected =
      R"({"words":["the","film"],"w":"17","i":3,"b":true,"v":[1,2.5],"s":0.5,"m":"None","t":{"Leaf":["the"]},"l":[]})"
      "\n"
      R"({"words":["the","film"],"w":"","i":-1,"b":false,"v":[],"s":1000,"m":{"Some":[2]},"t":{"Node":[{"Leaf":["the"]},{"Leaf":["film"]}]},"l":[[1,2],[]]})";
  EXPECT_EQ(bench.roundTrip(text, "d.csv"), expected);
  EXPECT_EQ(bench.read(text, "d.csv").report().ignored,
            (std::map<std::string, int64_t>{{"id", 2}}));
  EXPECT_EQ(bench.read(text, "d.csv").name(1), "d.csv:4");
}

TEST_F(FormatsTest, TablesOfTabs) {
  bench.main = entry({{"words", types.list(types.token())}, {"i", types.integer()}});
  EXPECT_EQ(bench.roundTrip("words\ti\nthe, film\t2\n\"the\tfilm\"\t3", "d.tsv"),
            "{\"words\":[\"<unk>\",\"film\"],\"i\":2}\n{\"words\":[\"the\",\"film\"],\"i\":3}");
}

TEST_F(FormatsTest, BadTables) {
  bench.main = entry({{"w", types.token()}, {"i", types.integer()}});
  auto error = [&](const std::string &text) { return bench.error(text, "d.csv"); };
  EXPECT_EQ(error("w,j\na,1"), "d.csv:1:1: no column is named 'i', as a parameter is; the columns "
                               "are 'w', 'j'");
  EXPECT_EQ(error("w,i,w\na,1,b"), "d.csv:1:5: two columns are named 'w'");
  EXPECT_EQ(error("w,i\na,1\nb,x"), "d.csv:3:3: $.i: expected int, found the string 'x'");
  EXPECT_EQ(error("w,i\n\"a\nb\",\n"), "d.csv:3:4: $.i: expected int, found the string ''");
  EXPECT_EQ(error("w,i\na,1,2"), "d.csv:2:5: 3 cells in a row of a table with 2 columns");
  EXPECT_EQ(error("w,i\n1"), "d.csv:2:1: 1 cell in a row of a table with 2 columns");
  EXPECT_EQ(error("w,i\n\"a,1\n"), "d.csv:2:1: a cell without its closing quote");
  EXPECT_EQ(error("w,i\n\"a\"b,1\n"), "d.csv:2:4: text after the closing quote of a cell");
  EXPECT_EQ(error("w,i\n"), "d.csv: no data: the file has no row");
  bench.options.strict = true;
  EXPECT_EQ(error("w,i,k\na,1,2"), "d.csv:1:1: no parameter is named 'k', as a column is");
  // What stands in a cell is one value.
  bench.options.strict = false;
  bench.main = entry({{"l", types.list(types.list(types.integer()))}, {"i", types.integer()}});
  EXPECT_EQ(error("l,i\n\"[], \"\"i\"\": 4\",1"),
            "d.csv:2:1: $.l: expected nothing after the value, found ','");
}

TEST_F(FormatsTest, SkipsWhatCannotBeRead) {
  bench.main = entry({{"i", types.integer()}});
  bench.options.skipBad = 2;
  std::string text = "1\nx\n2\ncaf\xE9\n3\n";
  EXPECT_EQ(bench.roundTrip(text, "d.jsonl"), "{\"i\":1}\n{\"i\":2}\n{\"i\":3}");
  Dataset data = bench.read(text, "d.jsonl");
  EXPECT_EQ(data.report().skipped, 2);
  EXPECT_EQ(data.report().firstSkipped, "d.jsonl:2:1: expected a value, found 'x'");
  EXPECT_EQ(data.name(1), "d.jsonl:3");
  EXPECT_EQ(bench.error(text + "y\n", "d.jsonl"), "d.jsonl:6:1: expected a value, found 'y'");
  EXPECT_EQ(bench.error("x\ny\n", "d.jsonl"), "d.jsonl: no data: every line was skipped; the "
                                              "first: d.jsonl:1:1: expected a value, found 'x'");
  EXPECT_EQ(bench.roundTrip("i\n1\nx\n2\n", "d.csv"), "{\"i\":1}\n{\"i\":2}");
  // Words of what is skipped make no vocabulary.
  bench.main = entry({{"w", types.list(types.token())}});
  auto counted = countTokens({"d.jsonl", "[\"a\"]\n[\"b\", 1.5]\n[\"c\", 4]"}, types.table,
                             bench.main, bench.options);
  EXPECT_EQ(counted.at("").words.build().fileText(), "<unk>\na\nc\n");
  EXPECT_EQ(counted.at("").greatest, 4);
}

TEST_F(FormatsTest, NotUtf8InAnyFormat) {
  bench.main = entry({{"w", types.list(types.token())}});
  struct Case {
    const char *name;
    std::string text, place;
  } cases[] = {{"d.jsonl", "[\"the\"]\n[\"caf\xE9\"]", "d.jsonl:2:6: "},
               {"d.json", "[\n[\"the\"],\n[\"caf\xE9\"]]", "d.json:3:6: "},
               {"d.csv", "w\nthe\ncaf\xE9 the", "d.csv:3:4: "},
               {"d.tsv", "w\tcaf\xE9\nthe\t", "d.tsv:1:6: "},
               {"d.txt", "the\na caf\xE9", "d.txt:2:6: "},
               {"trees", "(1 the)\n(1 caf\xE9)", "trees:2:7: "},
               {"tagged", "the|O\ncaf\xE9|O", "tagged:2:4: "}};
  for (const Case &each : cases)
    EXPECT_TRUE(bench.error(each.text, each.name).starts_with(each.place + "invalid UTF-8"))
        << bench.error(each.text, each.name);
  for (const Case &each : cases) {
    std::string nul = each.text;
    nul[nul.find('\xE9')] = '\0';
    EXPECT_TRUE(bench.error(nul, each.name).starts_with(each.place)) << each.name;
    EXPECT_THROW(buildVocabularies({each.name, each.text}), UserError) << each.name;
    for (const char *mark : {"\xFF\xFE", "\xFE\xFF"})
      EXPECT_EQ(bench.error(mark + each.text, each.name),
                std::string(each.name) + ":1:1: this is UTF-16, and files are UTF-8: 'iconv -f "
                                         "UTF-16 -t UTF-8' converts it");
  }
  // Eight bytes at a time, at every offset, and what is longest of UTF-8.
  for (size_t at = 0; at < 20; ++at) {
    std::string text(20, 'a');
    text[at] = '\xC3';
    EXPECT_TRUE(bench.error(text, "d.txt")
                    .starts_with("d.txt:1:" + std::to_string(at + 1) + ": invalid UTF-8"));
    text.insert(at + 1, "\xA9");
    EXPECT_NO_THROW(bench.read(text, "d.txt"));
  }
}

TEST(BuildVocabularies, OfTables) {
  auto built = buildVocabularies({"t.csv", "text,label\nthe film,1\n\"a, film\",2\n"});
  EXPECT_EQ(built.at("").fileText(), "<unk>\nfilm\nthe\na,\n");
  EXPECT_EQ(buildVocabularies({"t.json", "[\"b\",\n\"a\", \"b\"]"}).at("").fileText(),
            "<unk>\nb\na\n");
}

} // namespace
} // namespace sheaf::io::test
