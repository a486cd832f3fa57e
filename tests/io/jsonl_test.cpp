#include "tests/deep.h"
#include "tests/io/io_test_support.h"

#include <cmath>
#include <limits>

namespace sheaf::io::test {
namespace {

using rt::DType;

struct JsonlTest : ::testing::Test {
  Bench bench;
  Types &types = bench.types;

  void params(std::vector<std::pair<std::string, uint32_t>> p) { bench.main = entry(std::move(p)); }
  std::string read(const std::string &line) { return bench.roundTrip(line, "d.jsonl"); }
  std::string error(const std::string &line) { return bench.error(line, "d.jsonl"); }
};

TEST_F(JsonlTest, Scalars) {
  params({{"i", types.integer()}, {"x", types.real()}, {"b", types.boolean()}});
  EXPECT_EQ(read(R"({"i": -3, "x": 0.1, "b": true})"), R"({"i":-3,"x":0.1,"b":true})");
  EXPECT_EQ(read("{\"b\":false,\"x\":\"NaN\",\"i\":9223372036854775807}\r\n"),
            R"({"i":9223372036854775807,"x":"NaN","b":false})");
  EXPECT_EQ(read(R"({"i":1e3,"x":-Infinity,"b":true})"), R"({"i":1000,"x":"-Infinity","b":true})");
  EXPECT_EQ(read(R"({"i":2.0,"x":1e-400,"b":true})"), R"({"i":2,"x":0,"b":true})");
  EXPECT_EQ(read(R"({"i":-0,"x":-0,"b":true})"), R"({"i":0,"x":-0,"b":true})");
  EXPECT_EQ(error(R"({"i":1.5,"x":1,"b":true})"),
            "d.jsonl:1:6: $.i: expected an integer of 64 bits, found the number 1.5");
  EXPECT_EQ(error(R"({"i":9223372036854775808,"x":1,"b":true})"),
            "d.jsonl:1:6: $.i: expected an integer of 64 bits, found the number "
            "9223372036854775808");
  EXPECT_EQ(error(R"({"i":"1","x":1,"b":true})"),
            "d.jsonl:1:6: $.i: expected int, found the string '1'");
  EXPECT_EQ(error(R"({"i":1,"x":null,"b":true})"), "d.jsonl:1:12: $.x: expected float, found null");
  EXPECT_EQ(error(R"({"i":1,"x":1e400,"b":true})"),
            "d.jsonl:1:12: $.x: expected a number that a float can hold, found the number 1e400");
  EXPECT_EQ(error(R"({"i":1,"x":1,"b":1})"),
            "d.jsonl:1:18: $.b: expected true or false, found the number 1");
  EXPECT_EQ(error(R"({"i":1,"x":1})"), "d.jsonl:1:13: $: the parameter 'b' is missing");
  EXPECT_EQ(error(R"({"i":1,"i":1})"), "d.jsonl:1:8: $.i: 'i' is given twice");
  EXPECT_EQ(error(R"({"j":1,"x":2})"),
            "d.jsonl:1:13: $: the parameter 'i' is missing; the object has 'j'");
  bench.options.strict = true;
  EXPECT_EQ(error(R"({"j":1})"),
            "d.jsonl:1:2: $: no parameter is named 'j'; the parameters are 'i', 'x', 'b'");
  bench.options.strict = false;
  EXPECT_EQ(error("3"), "d.jsonl:1:1: $: expected an object with the members 'i', 'x', 'b', found "
                        "the number 3");
}

TEST_F(JsonlTest, Syntax) {
  params({{"i", types.integer()}});
  auto syntax = [&](const std::string &line) { return error("1\n\n" + line); };
  EXPECT_EQ(syntax(R"({"i":1)"), "d.jsonl:3:7: expected ',' or '}', found the end of the text");
  EXPECT_EQ(syntax(R"({"i" 1})"), "d.jsonl:3:6: expected ':', found '1'");
  EXPECT_EQ(syntax(R"({i:1})"), "d.jsonl:3:2: expected a member name in double quotes, found 'i'");
  EXPECT_EQ(syntax(R"({"i":1,})"),
            "d.jsonl:3:8: expected a member name in double quotes, found '}'");
  EXPECT_EQ(syntax(R"({"i":01})"), "d.jsonl:3:6: a number does not begin with 0");
  EXPECT_EQ(syntax(R"({"i":1} 2)"), "d.jsonl:3:9: expected nothing after the value, found '2'");
  EXPECT_EQ(syntax(R"({"i":tru})"), "d.jsonl:3:6: expected a value, found 't'");
  EXPECT_EQ(syntax("{\"\xFF\":1}"),
            "d.jsonl:3:3: invalid UTF-8 ('\\xFF'): 'iconv -f LATIN1 -t UTF-8' converts a "
            "file of another encoding, such as Latin-1");
  EXPECT_EQ(syntax("{\"a\tb\":1}"),
            "d.jsonl:3:4: a control character ('\\t') in a string: write it as an escape");
  EXPECT_EQ(syntax(R"({"\ud800":1})"), "d.jsonl:3:3: half of a surrogate pair");
  EXPECT_EQ(syntax(R"({"\x":1})"), "d.jsonl:3:3: an unknown escape in a string");
  EXPECT_EQ(syntax(R"({"\u12g4":1})"), "d.jsonl:3:3: \\u needs four hexadecimal digits");
  EXPECT_EQ(syntax(R"({"i)"), "d.jsonl:3:2: a string without its closing quote");
  EXPECT_EQ(syntax("-"), "d.jsonl:3:2: expected a digit, found the end of the text");
  EXPECT_EQ(error("\n \n"), "d.jsonl: no data: the file has no line that is not blank");
}

TEST_F(JsonlTest, OneParameterAlone) {
  params({{"i", types.integer()}});
  EXPECT_EQ(read("1\n{\"i\":2}"), "{\"i\":1}\n{\"i\":2}");
  EXPECT_EQ(error("{}"), "d.jsonl:1:2: $: the parameter 'i' is missing");
  uint32_t option = types.data("Option");
  types.ctor(option, "Some", {{"value", types.integer()}});
  types.ctor(option, "None", {});
  params({{"o", option}});
  EXPECT_EQ(read("\"None\"\n{\"Some\":[1]}\n{\"o\":{\"Some\":{\"value\":2}}}\n{\"None\":[]}"),
            "{\"o\":\"None\"}\n{\"o\":{\"Some\":[1]}}\n{\"o\":{\"Some\":[2]}}\n{\"o\":\"None\"}");
  EXPECT_EQ(error(R"({"x":1})"), "d.jsonl:1:7: $: expected the parameter 'o' or a constructor of "
                                 "'Option' ('Some', 'None'), found 'x'");
}

TEST_F(JsonlTest, MembersThatNobodyTakes) {
  params({{"i", types.integer()}, {"x", types.list(types.real())}});
  Dataset data = bench.read("{\"id\":{\"a\":[null,{}]},\"i\":1,\"x\":[],\"id\":2,\"note\":\"x\"}\n"
                            "{\"x\":[1],\"i\":2}\n{\"x\":[1],\"i\":2,\"id\":[[]]}",
                            "d.jsonl");
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.report().ignored, (std::map<std::string, int64_t>{{"id", 2}, {"note", 1}}));
  EXPECT_EQ(error(R"({"i":1,"x":[],"y":[})"), "d.jsonl:1:20: expected a value, found '}'");
  // Inside values nothing is.
  uint32_t pair = types.data("Pair");
  types.ctor(pair, "Pair", {{"a", types.integer()}, {"b", types.integer()}});
  params({{"p", pair}});
  EXPECT_EQ(read(R"({"z":1,"p":{"Pair":{"b":2,"a":1}}})"), R"({"p":{"Pair":[1,2]}})");
  EXPECT_EQ(error(R"({"p":{"Pair":{"b":2,"a":1,"c":3}}})"),
            "d.jsonl:1:27: $.p.Pair: no field is named 'c'; the fields are 'a', 'b'");
}

TEST_F(JsonlTest, WhatMayBeAbsent) {
  uint32_t maybe = types.data("Maybe"), outer = types.data("Outer"), word = types.data("Word");
  types.ctor(maybe, "None", {});
  types.ctor(maybe, "Some", {{"x", types.real()}});
  types.ctor(outer, "Has", {{"m", maybe}});
  types.ctor(outer, "Nothing", {});
  types.ctor(word, "Empty", {});
  types.ctor(word, "Is", {{"w", types.token()}});
  bench.vocabularies.set("", vocabulary({"the"}));
  params({{"m", types.list(maybe)}});
  EXPECT_EQ(read(R"([null, 0.5, "None", {"Some": [2]}, {"Some": {"x": 3}}, "NaN"])"),
            R"({"m":["None",{"Some":[0.5]},"None",{"Some":[2]},{"Some":[3]},{"Some":["NaN"]}]})");
  EXPECT_EQ(error("[true]"), "d.jsonl:1:2: $[0]: expected float, found true");
  EXPECT_EQ(error("[{}]"), "d.jsonl:1:3: $[0]: expected a constructor of 'Maybe', found an empty "
                           "object");
  EXPECT_EQ(error(R"([{"Sum":[1]}])"),
            "d.jsonl:1:3: $[0]: 'Sum' is not a constructor of 'Maybe' ('None', 'Some')");
  params({{"o", outer}, {"w", word}});
  EXPECT_EQ(read(R"({"o":null,"w":null})"), R"({"o":"Nothing","w":"Empty"})");
  EXPECT_EQ(read(R"({"o":1,"w":"the"})"), R"({"o":{"Has":[{"Some":[1]}]},"w":{"Is":["the"]}})");
  EXPECT_EQ(read(R"({"o":{"Some":[1]},"w":"Empty"})"),
            R"({"o":{"Has":[{"Some":[1]}]},"w":"Empty"})");
  EXPECT_EQ(read(R"({"o":{"Has":[null]},"w":{"Is":["Is"]}})"),
            R"({"o":{"Has":["None"]},"w":{"Is":["<unk>"]}})");
  EXPECT_EQ(error(R"({"o":null})"), "d.jsonl:1:10: $: the parameter 'w' is missing");
  params({{"o", outer}});
  EXPECT_EQ(read("null\n2\n{\"o\":3}"), "{\"o\":\"Nothing\"}\n{\"o\":{\"Has\":[{\"Some\":[2]}]}}\n{"
                                        "\"o\":{\"Has\":[{\"Some\":[3]}]}}");
  // A type that has itself for its field, or three constructors, has no bare value.
  uint32_t endless = types.data("Endless"), three = types.data("Three");
  types.ctor(endless, "Stop", {});
  types.ctor(endless, "More", {{"m", endless}});
  types.ctor(three, "A", {});
  types.ctor(three, "B", {});
  types.ctor(three, "C", {{"x", types.real()}});
  for (uint32_t type : {endless, three}) {
    params({{"t", type}});
    EXPECT_NE(error("null").find("found null"), std::string::npos);
    EXPECT_NE(error("1").find("found the number 1"), std::string::npos);
    EXPECT_NE(error("{\"t\":{\"x\":1}}").find("'x' is not a constructor"), std::string::npos);
  }
}

TEST_F(JsonlTest, Tokens) {
  bench.vocabularies.set("", vocabulary({"the", "caf\xC3\xA9", "\xF0\x9F\x98\x80"}));
  params({{"w", types.list(types.token())}});
  EXPECT_EQ(read(R"(["the","caf\u00e9","\ud83d\ude00","new",1,""])"),
            "{\"w\":[\"the\",\"caf\xC3\xA9\",\"\xF0\x9F\x98\x80\",\"<unk>\",\"the\",\"<unk>\"]}");
  EXPECT_EQ(error("[1, 4]"), "d.jsonl:1:5: $[1]: the token 4 is not one of the numbers 0 to 3 of "
                             "its vocabulary");
  EXPECT_EQ(error(R"({"w":[-1]})"), "d.jsonl:1:7: $.w[0]: the token -1 is not one of the numbers 0 "
                                    "to 3 of its vocabulary");
  EXPECT_EQ(error("[true]"),
            "d.jsonl:1:2: $[0]: expected token as a word or its number, found true");
  EXPECT_EQ(error("\"the\""),
            "d.jsonl:1:1: $: expected list<token> as an array, found the string 'the'");
  bench.strict = true;
  EXPECT_EQ(error(R"(["the","new"])"),
            "d.jsonl:1:8: $[1]: the word 'new' is not in the vocabulary of 'token'");
  bench.vocabularies.set("", Vocabulary::ofSize(5));
  bench.strict = false;
  EXPECT_EQ(read("[4]"), "{\"w\":[4]}");
  EXPECT_EQ(error("[5]"), "d.jsonl:1:2: $[0]: the token 5 is not one of the numbers 0 to 4 of its "
                          "vocabulary (dim 'vocab' is 5)");
}

TEST_F(JsonlTest, ListsAndTuples) {
  uint32_t pair = types.tuple({types.integer(), types.tuple({types.boolean(), types.real()})});
  params({{"p", types.list(pair)}});
  EXPECT_EQ(read("[[1,[true,2]],[3,[false,4.5]]]"), R"({"p":[[1,[true,2]],[3,[false,4.5]]]})");
  EXPECT_EQ(read("[]"), R"({"p":[]})");
  EXPECT_EQ(error("[[1,[true]]]"), "d.jsonl:1:10: $[0][1]: (bool, float) has 2 elements, found 1");
  EXPECT_EQ(error("[[1,[true,2,3]]]"),
            "d.jsonl:1:13: $[0][1]: (bool, float) has 2 elements, found more");
  EXPECT_EQ(error("[1]"), "d.jsonl:1:2: $[0]: expected (int, (bool, float)) as an array of 2, "
                          "found the number 1");
}

TEST_F(JsonlTest, DataForms) {
  uint32_t t = types.data("T"), n = types.integer(), pair = types.tuple({n, n});
  types.ctor(t, "Node", {{"left", t}, {"pair", pair}, {"right", t}});
  types.ctor(t, "Leaf", {{"value", n}});
  types.ctor(t, "Nil", {});
  params({{"t", t}});
  EXPECT_EQ(read(R"({"Node":{"pair":[1,2],"right":"Nil","left":{"Leaf":[7]}}})"),
            R"({"t":{"Node":[{"Leaf":[7]},[1,2],"Nil"]}})");
  EXPECT_EQ(error(R"({"Node":["Nil",[1,2]]})"),
            "d.jsonl:1:21: $.Node: 'Node' has 3 fields, found 2");
  EXPECT_EQ(error(R"({"Leaf":[1,2]})"), "d.jsonl:1:12: $.Leaf: 'Leaf' has 1 field, found more");
  EXPECT_EQ(error(R"({"Leaf":7})"), "d.jsonl:1:9: $: expected the 1 field of 'Leaf' as an array or "
                                    "an object, found the number 7");
  EXPECT_EQ(error(R"("Leaf")"), R"(d.jsonl:1:1: $: 'Leaf' has 1 field: write {"Leaf": [...]})");
  EXPECT_EQ(error(R"("leaf")"), "d.jsonl:1:1: $: expected T as one of 'Node', 'Leaf', 'Nil', found "
                                "the string 'leaf'");
  EXPECT_EQ(error(R"({"Leaf":[7],"Nil":[]})"), "d.jsonl:1:13: $: a value of 'T' is an object with "
                                               "one member, its constructor; found a member 'Nil'");
  EXPECT_EQ(error(R"({"Node":{"left":{"Lea":[1]}}})"),
            "d.jsonl:1:18: $.Node.left: 'Lea' is not a constructor of 'T' ('Node', 'Leaf', 'Nil')");
  EXPECT_EQ(error(R"({"Node":{"left":{}}})"),
            "d.jsonl:1:18: $.Node.left: expected a constructor of 'T', found an empty object");
  EXPECT_EQ(error(R"({"Node":{"left":"Nil","left":"Nil"}})"),
            "d.jsonl:1:23: $.Node.left: 'left' is given twice");
  EXPECT_EQ(error(R"({"Node":{"left":"Nil","pair":[1,2]}})"),
            "d.jsonl:1:35: $.Node: the field 'right' is missing");
  EXPECT_EQ(error(R"({"Node":{"up":"Nil"}})"), "d.jsonl:1:10: $.Node: no field is named 'up'; the "
                                               "fields are 'left', 'pair', 'right'");
  EXPECT_EQ(error(R"({"Node":[{"Leaf":["x"]}]})"),
            "d.jsonl:1:19: $.Node[0].Leaf[0]: expected int for 'value', found the string 'x'");
  EXPECT_EQ(error(R"-({"Node":["(1 a)"]})-"),
            "d.jsonl:1:10: $.Node[0]: bracket trees cannot build 'T': no constructor is for a word "
            "node such as (2 word); it would have one field of type token and perhaps 'label: "
            "int'\n  data T = Node(left: T, pair: (int, int), right: T) | Leaf(value: int) | Nil");
}

TEST_F(JsonlTest, TreesAsStrings) {
  uint32_t tree = types.binaryTree();
  params({{"t", tree}, {"y", types.integer()}});
  bench.vocabularies.set("", vocabulary({"a", "b"}));
  EXPECT_EQ(read(R"-({"y":1,"t":"(1 (2 a) (3 b))"})-"),
            R"({"t":{"Node":[{"Leaf":["a"]},{"Leaf":["b"]}]},"y":1})");
  EXPECT_EQ(error(R"-({"y":1,"t":"(1 (2 a) x)"})-"),
            "d.jsonl:1:22: $.t: in the tree: expected '(' or ')' after a subtree, found 'x' (a "
            "node has one word or subtrees, not both)");
  EXPECT_EQ(error(R"-({"y":1,"t":"(1 (2 \u0061) x)"})-"),
            "d.jsonl:1:12: $.t: in the tree: expected '(' or ')' after a subtree, found 'x' (a "
            "node has one word or subtrees, not both)");
}

TEST_F(JsonlTest, Tensors) {
  params({{"m", types.tensor(DType::F32, {-1, 2}, {"n", "2"})},
          {"v", types.tensor(DType::F32, {-1}, {"n"})}});
  EXPECT_EQ(read(R"({"m":[[1,2],[3.25,"NaN"],[-1e-3,0.1]],"v":[1,2,3]})"),
            R"({"m":[[1,2],[3.25,"NaN"],[-0.001,0.1]],"v":[1,2,3]})");
  EXPECT_EQ(read(R"({"m":[],"v":[]})"), R"({"m":[],"v":[]})");
  EXPECT_EQ(error(R"({"v":[1,2],"m":[[1,2]]})"),
            "d.jsonl:1:22: $.m: the extent n of f32[n, 2] is 1, but $.v has n = 2");
  EXPECT_EQ(error(R"({"m":[[1,2,3]],"v":[1]})"),
            "d.jsonl:1:13: $.m[0]: expected 2 elements (axis 1 of f32[n, 2]), found 3");
  EXPECT_EQ(error(R"({"m":[1,2],"v":[1]})"), "d.jsonl:1:7: $.m[0]: expected an array (axis 1 of "
                                             "f32[n, 2]), found the number 1");
  EXPECT_EQ(error(R"({"m":[[1,[2]]],"v":[1]})"),
            "d.jsonl:1:10: $.m[0][1]: expected a number, found an array");
  EXPECT_EQ(error(R"({"m":[[1,1e39]],"v":[1]})"),
            "d.jsonl:1:10: $.m[0][1]: expected a number that an f32 can hold, found the number "
            "1e39");
  EXPECT_EQ(error(R"({"m":3,"v":[1]})"),
            "d.jsonl:1:6: $.m: expected f32[n, 2] as an array, found the number 3");
}

TEST_F(JsonlTest, TensorLayout) {
  params({{"m", types.tensor(DType::F32, {-1, -1}, {"n", "?"})}});
  Dataset data = bench.read("[[1,2,3],[4,5,6]]", "d.jsonl");
  const rt::Slot *slots = data.args(0);
  EXPECT_EQ(slots[1], 2);
  EXPECT_EQ(slots[2], 3);
  const rt::HostTensor *tensor = rt::HostTensor::fromInputSlot(slots[0]);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  const float *rows = reinterpret_cast<const float *>(tensor->bytes.get());
  EXPECT_EQ(rows[2], 3);
  EXPECT_EQ(rows[16], 4);
  EXPECT_EQ(error("[[1,2,3],[4,5]]"),
            "d.jsonl:1:14: $[1]: expected 3 elements as in the arrays before, found 2");
}

TEST_F(JsonlTest, OtherElementTypes) {
  params({{"s", types.tensor(DType::F32, {})},
          {"h", types.tensor(DType::F16, {2})},
          {"g", types.tensor(DType::BF16, {2})},
          {"i", types.tensor(DType::I32, {1})},
          {"l", types.tensor(DType::I64, {1})},
          {"b", types.tensor(DType::Bool, {2})}});
  EXPECT_EQ(
      read(
          R"({"s":0.5,"h":[0.5,65504],"g":[1.00390625,"-Infinity"],"i":[-7],"l":[12345678901],"b":[true,false]})"),
      R"({"s":0.5,"h":[0.5,65504],"g":[1,"-Infinity"],"i":[-7],"l":[12345678901],"b":[true,false]})");
  auto with = [](const char *name, const char *value) {
    std::string line = "{";
    line += "\"" + std::string(name) + "\":" + value + "}";
    return line;
  };
  EXPECT_EQ(error(with("h", "[65520,1]")), "d.jsonl:1:7: $.h[0]: expected a number that an f16 can "
                                           "hold, found the number 65520");
  EXPECT_EQ(error(with("g", "[1e39,1]")), "d.jsonl:1:7: $.g[0]: expected a number that a bf16 can "
                                          "hold, found the number 1e39");
  EXPECT_EQ(error(with("i", "[2147483648]")),
            "d.jsonl:1:7: $.i[0]: expected an integer of 32 bits, "
            "found the number 2147483648");
  EXPECT_EQ(error(with("i", "[0.5]")),
            "d.jsonl:1:7: $.i[0]: expected an integer of 64 bits, found the number 0.5");
  EXPECT_EQ(error(with("b", "[0,1]")),
            "d.jsonl:1:7: $.b[0]: expected true or false, found the number 0");
}

TEST_F(JsonlTest, ExtentsAcrossLists) {
  uint32_t row = types.tensor(DType::F32, {-1}, {"k"});
  uint32_t free = types.tensor(DType::F32, {-1}, {"?"});
  params({{"a", types.list(row)}, {"b", types.list(free)}});
  EXPECT_EQ(read(R"({"a":[[1],[2]],"b":[[],[1],[1,2]]})"), R"({"a":[[1],[2]],"b":[[],[1],[1,2]]})");
  EXPECT_EQ(error(R"({"a":[[1],[2,3]],"b":[]})"),
            "d.jsonl:1:15: $.a[1]: the extent k of f32[k] is 2, but $.a[0] has k = 1");
}

TEST_F(JsonlTest, LengthsOfLists) {
  uint32_t row = types.tensor(DType::F32, {-1}, {"n"});
  uint32_t pair = types.list(types.integer(), 2, "2");
  uint32_t data = types.data("D");
  types.ctor(data, "D", {{"pairs", types.list(pair)}});
  params({{"a", types.list(row, -1, "m")},
          {"b", types.list(types.real(), -1, "m + 1")},
          {"c", types.list(types.integer(), -1, "n")},
          {"d", data}});
  const char *right = R"({"a":[[1,2],[3,4]],"b":[1,2,3],"c":[5,6],"d":{"D":[[[1,2],[3,4]]]}})";
  EXPECT_EQ(read(right), right);
  EXPECT_EQ(error(R"({"a":[[1],[2]],"b":[1,2],"c":[5],"d":{"D":[[]]}})"),
            "d.jsonl:1:1: $.b: the extent m + 1 is 2, expected 3: m = 2 by $.a");
  EXPECT_EQ(error(R"({"a":[[1,2]],"b":[1,2],"c":[5],"d":{"D":[[]]}})"),
            "d.jsonl:1:30: $.c: the length n of list<int>[n] is 1, but $.a[0] has n = 2");
  EXPECT_EQ(error(R"({"a":[[1]],"b":[1,2],"c":[5],"d":{"D":[[[1,2],[3]]]}})"),
            "d.jsonl:1:49: $.d.D[0][1]: list<int>[2] has 2 elements, found 1");
}

TEST_F(JsonlTest, ExtentExpressions) {
  params({{"d", types.tensor(DType::F32, {-1}, {"2*n + hidden"})},
          {"v", types.tensor(DType::F32, {-1}, {"n"})}});
  EXPECT_EQ(error(R"({"v":[1],"d":[1,2,3]})"),
            "d.jsonl:1:1: $.d: the extent 2*n + hidden is 3, but "
            "no other field gives it that value");
  std::map<std::string, int64_t> dims{{"hidden", 1}};
  bench.options.dims = &dims;
  EXPECT_EQ(read(R"({"v":[1],"d":[1,2,3]})"), R"({"d":[1,2,3],"v":[1]})");
  EXPECT_EQ(error(R"({"v":[1,2],"d":[1,2,3]})"),
            "d.jsonl:1:1: $.d: the extent 2*n + hidden is 3, expected 5: n = 2 by $.v");
}

TEST_F(JsonlTest, ExtentsThatDataDoNotTell) {
  params({{"m", types.tensor(DType::F32, {-1, -1}, {"n", "k"})},
          {"v", types.tensor(DType::F32, {-1}, {"k"})}});
  // The extent k of m stands in no row of m; v tells it, before or after.
  for (const char *line : {R"({"m":[],"v":[1,2,3]})", R"({"v":[1,2,3],"m":[]})"}) {
    Dataset data = bench.read(line, "d.jsonl");
    EXPECT_EQ(data.args(0)[1], 0);
    EXPECT_EQ(data.args(0)[2], 3);
    EXPECT_EQ(rt::HostTensor::fromInputSlot(data.args(0)[0])->shape, (std::vector<int64_t>{0, 3}));
  }
}

TEST_F(JsonlTest, ExtentsThatCannotBe) {
  params({{"m", types.tensor(DType::F32, {-1, -1}, {"n", "k - 3"})},
          {"v", types.tensor(DType::F32, {-1}, {"k"})}});
  EXPECT_EQ(read(R"({"m":[[5]],"v":[1,2,3,4]})"), R"({"m":[[5]],"v":[1,2,3,4]})");
  for (const char *line : {R"({"m":[],"v":[1,2]})", R"({"v":[1,2],"m":[]})"})
    EXPECT_EQ(error(line), "d.jsonl:1:1: $.m: the extent k - 3 is 0, expected -1: k = 2 by $.v");
}

TEST_F(JsonlTest, TokenTensors) {
  bench.vocabularies.set("", vocabulary({"a", "b"}));
  bench.vocabularies.set("tag", vocabulary({"X"}));
  params({{"w", types.tokens({-1}, {"n"})}, {"t", types.tokens({-1}, {"n"}, "tag")}});
  EXPECT_EQ(read(R"({"w":["a","b",0],"t":["X",1,"Y"]})"),
            R"({"w":["a","b","<unk>"],"t":["X","X","<unk>"]})");
  EXPECT_EQ(error(R"({"w":["a"],"t":[2]})"), "d.jsonl:1:17: $.t[0]: the token<tag> 2 is not one of "
                                             "the numbers 0 to 1 of its vocabulary");
}

TEST_F(JsonlTest, DeepDataAndLists) {
  uint32_t chain = types.data("Chain");
  types.ctor(chain, "More", {{"value", types.integer()}, {"rest", chain}});
  types.ctor(chain, "End", {});
  params({{"c", chain}});
  std::string text;
  for (int i = 0; i < kDeep; ++i)
    text += i % 2 ? R"({"More":[1,)" : R"({"More":{"value":2,"rest":)";
  text += "\"End\"";
  for (int i = kDeep; i-- > 0;)
    text += i % 2 ? "]}" : "}}";
  Dataset data = bench.read(text, "d.jsonl");
  int64_t sum = 0;
  for (auto node = std::bit_cast<const rt::Slot *>(data.args(0)[0]); node[0] == 0;
       node = std::bit_cast<const rt::Slot *>(node[2]))
    sum += node[1];
  EXPECT_EQ(sum, kDeep / 2 * 3);
  std::string once = bench.roundTrip(text, "d.jsonl");
  EXPECT_EQ(bench.roundTrip(once, "d.jsonl"), once);
  // An error far down shows both ends of the path.
  size_t end = text.find("\"End\"");
  text.replace(end, 5, "\"Bad\"");
  EXPECT_EQ(error(text),
            "d.jsonl:1:" + std::to_string(end + 1) +
                ": $.More.rest.More[1].More.rest.More[1].More.rest.More[1]....More.rest.More[1]"
                ".More.rest.More[1].More.rest.More[1]: expected Chain as one of 'More', 'End' for "
                "'rest', found the string 'Bad'");
  EXPECT_EQ(error(std::string(2'000'000, '[')).substr(0, 60),
            "d.jsonl:1:1: $: expected Chain as one of 'More', 'End', foun");
}

TEST_F(JsonlTest, LongList) {
  params({{"xs", types.list(types.integer())}});
  std::string text = "[0";
  for (int i = 1; i < kDeep; ++i)
    text += "," + std::to_string(i);
  text += "]";
  Dataset data = bench.read(text, "d.jsonl");
  auto list = std::bit_cast<const rt::ListObject *>(data.args(0)[0]);
  EXPECT_EQ(list->size, kDeep);
  EXPECT_EQ(list->elementSlots, 1);
  EXPECT_EQ(list->buffer, nullptr);
  EXPECT_EQ(list->elements[kDeep - 1], kDeep - 1);
}

TEST(Json, Numbers) {
  double x = 0;
  EXPECT_TRUE(parseDouble("1e-99999999999999999999999", x));
  EXPECT_EQ(x, 0);
  EXPECT_FALSE(parseDouble("1e99999999999999999999999", x));
  EXPECT_TRUE(parseDouble("0e99999999999999999999999", x));
  EXPECT_TRUE(parseDouble("4.9406564584124654e-324", x));
  EXPECT_EQ(x, std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(parseDouble("0." + std::string(400, '0') + "1", x));
  EXPECT_EQ(x, 0);
  EXPECT_FALSE(parseDouble("1" + std::string(400, '0'), x));
  float f = 0;
  // Halfway between two floats for a reader that rounds through double.
  EXPECT_TRUE(parseFloat("1.00000017881393432617187499", f));
  EXPECT_EQ(f, 1.00000011920928955078125f);
  int64_t i = 0;
  EXPECT_FALSE(parseInteger("1e30", i));
  EXPECT_TRUE(parseInteger("-9223372036854775808", i));
}

TEST(Json, Skip) {
  JsonPull json(R"([{"a":[1,{}]},2])");
  EXPECT_EQ(json.next(), JsonEvent::BeginArray);
  json.skip(json.next());
  EXPECT_EQ(json.next(), JsonEvent::Number);
  EXPECT_EQ(json.text(), "2");
  EXPECT_EQ(json.next(), JsonEvent::EndArray);
  EXPECT_EQ(json.next(), JsonEvent::End);
  EXPECT_EQ(json.next(), JsonEvent::End);
}

} // namespace
} // namespace sheaf::io::test
