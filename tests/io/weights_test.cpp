#include "tests/io/io_test_support.h"

#include "runtime/io/half.h"
#include "runtime/io/weights.h"
#include "runtime/io/word_vectors.h"

#include "runtime/model/convert.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace sheaf::io::test {
namespace {

/// A file from a header and so many bytes of data.
std::string file(const std::string &header, size_t dataBytes) {
  std::string text(8, '\0');
  for (size_t i = 0; i < 8; ++i)
    text[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return text + header + std::string(dataBytes, '\1');
}

SafetensorsFile parse(const std::string &bytes) {
  return SafetensorsFile::parse({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()},
                                "w");
}
std::string error(const std::string &bytes) {
  return userError([&] { parse(bytes); });
}

TEST(Safetensors, Reads) {
  std::string bytes = file(R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[2],)"
                           R"("data_offsets":[4,12]},"a":{"data_offsets":[0,4],"shape":[],)"
                           R"("dtype":"I32"},"e":{"dtype":"F64","shape":[0,5],)"
                           R"("data_offsets":[12,12]}}   )",
                           12);
  SafetensorsFile f = parse(bytes);
  ASSERT_EQ(f.tensors().size(), 3u);
  EXPECT_EQ(f.tensors()[0].name, "a");
  EXPECT_EQ(f.tensors()[0].elements(), 1);
  EXPECT_EQ(f.find("b")->typeName(), "F32[2]");
  EXPECT_EQ(f.find("e")->elements(), 0);
  EXPECT_EQ(f.find("c"), nullptr);
  EXPECT_EQ(f.metadata().at("k"), "v");
  EXPECT_EQ(parse(file("{}", 0)).tensors().size(), 0u);
}

TEST(Safetensors, Lies) {
  EXPECT_EQ(error("abc"), "w: not a safetensors file: 3 bytes, too short for the header's length");
  EXPECT_EQ(error(""), "w: not a safetensors file: 0 bytes, too short for the header's length");
  EXPECT_EQ(error(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
            "w: truncated: the header has 16 bytes, the file only 2 after its length");
  EXPECT_EQ(error(std::string(16, '\xFF')), "w: not a safetensors file: a header of "
                                            "18446744073709551615 bytes is over the limit of "
                                            "100000000");
  EXPECT_EQ(error(file("", 0)), "w: not a safetensors file: the header does not begin with '{'");
  EXPECT_EQ(error(file("[]", 0)), "w: not a safetensors file: the header does not begin with '{'");
  EXPECT_EQ(error(file("{\"a\":", 0)),
            "w: byte 5 of the header: expected a value, found the end of the text");
  EXPECT_EQ(error(file("{} x", 0)),
            "w: byte 3 of the header: expected nothing after the value, found 'x'");
  EXPECT_EQ(error(file("{\"a\":3}", 0)),
            "w: byte 5 of the header: expected an object for tensor 'a', found the number 3");
  EXPECT_EQ(error(file(R"({"a":{"dtype":"F31"}})", 0)),
            "w: byte 14 of the header: tensor 'a' has the unknown dtype 'F31'");
  EXPECT_EQ(error(file(R"({"a":{"dtype":"F32","dtype":"F32"}})", 0)),
            "w: byte 20 of the header: tensor 'a' has the member 'dtype' twice");
  EXPECT_EQ(error(file(R"({"a":{"dtype":"F32","shape":[1]}})", 4)),
            "w: byte 31 of the header: tensor 'a' has no data_offsets");
  EXPECT_EQ(error(file(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)),
            "w: byte 29 of the header: expected an extent of tensor 'a', found the number -1");
  EXPECT_EQ(error(file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,5]}})", 4)),
            "w: byte 52 of the header: expected two data_offsets of tensor 'a', found the number "
            "5");
  EXPECT_EQ(error(file(R"({"__metadata__":{"a":1}})", 0)),
            "w: byte 21 of the header: expected a string for the metadata 'a', found the number 1");
  EXPECT_EQ(error(file(R"({"__metadata__":{"a":"1","a":"2"}})", 0)),
            "w: byte 29 of the header: the metadata 'a' is there twice");
  auto tensor = [](const char *name, const char *shape, const char *offsets) {
    return std::string("\"") + name + R"(":{"dtype":"F32","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}";
  };
  auto both = [&](const std::string &a, const std::string &b) { return "{" + a + "," + b + "}"; };
  EXPECT_EQ(error(file(both(tensor("a", "[1]", "[0,4]"), tensor("a", "[1]", "[4,8]")), 8)),
            "w: byte 54 of the header: 'a' is there twice");
  EXPECT_EQ(error(file("{" + tensor("a", "[3]", "[0,8]") + "}", 8)),
            "w: byte 52 of the header: tensor 'a' is F32[3] of 12 bytes, but its data_offsets are "
            "[0, 8]");
  EXPECT_EQ(error(file("{" + tensor("a", "[1]", "[4,0]") + "}", 8)),
            "w: byte 52 of the header: tensor 'a' is F32[1] of 4 bytes, but its data_offsets are "
            "[4, 0]");
  EXPECT_EQ(error(file("{" + tensor("a", "[4611686018427387904,4]", "[0,0]") + "}", 0)),
            "w: byte 72 of the header: tensor 'a' is too large: F32[4611686018427387904, 4]");
  EXPECT_EQ(error(file("{" + tensor("a", "[4]", "[0,16]") + "}", 12)),
            "w: truncated: the data of tensor 'a' end at byte 16, but there are only 12");
  EXPECT_EQ(error(file(both(tensor("a", "[2]", "[0,8]"), tensor("b", "[2]", "[4,12]")), 12)),
            "w: the data of tensors 'a' and 'b' overlap");
  EXPECT_EQ(error(file(both(tensor("a", "[2]", "[0,8]"), tensor("b", "[2]", "[0,8]")), 8)),
            "w: the data of tensors 'a' and 'b' overlap");
  EXPECT_EQ(error(file(both(tensor("a", "[1]", "[0,4]"), tensor("b", "[1]", "[8,12]")), 12)),
            "w: 4 bytes before the data of tensor 'b' belong to no tensor");
  EXPECT_EQ(error(file("{" + tensor("a", "[1]", "[0,4]") + "}", 5)),
            "w: 1 byte after the last tensor belong to no tensor");
  std::string nested = R"({"a":)" + std::string(1000, '[');
  EXPECT_EQ(error(file(nested, 0)),
            "w: byte 5 of the header: expected an object for tensor 'a', found an array");
}

// What the format's own library accepts.
TEST(Safetensors, ReadsOverWhatItDoesNotKnow) {
  EXPECT_TRUE(parse(file(R"({"__metadata__":null})", 0)).metadata().empty());
  SafetensorsFile f = parse(file(R"({"a":{"more":{"x":[1,{"y":null}]},"dtype":"I32","shape":[],)"
                                 R"("more":2,"data_offsets":[0,4],"note":"z"}})",
                                 4));
  ASSERT_EQ(f.tensors().size(), 1u);
  EXPECT_EQ(f.tensors()[0].typeName(), "I32[]");
  EXPECT_EQ(error(file(R"({"a":{"more":{"x":[1}}})", 0)),
            "w: byte 20 of the header: expected ',' or ']', found '}'");
  EXPECT_EQ(error(file(R"({"__metadata__":[]})", 0)),
            "w: byte 16 of the header: expected an object of strings as __metadata__, found an "
            "array");
}

TEST(Safetensors, OtherKindsAreNamed) {
  using namespace std::string_literals;
  auto kind = [](const std::string &begin) { return error(begin + std::string(32, '\1')); };
  EXPECT_NE(
      kind("PK\x03\x04").find("not a safetensors file, but a zip archive, such as torch.save"),
      std::string::npos);
  EXPECT_NE(kind("\x80\x02").find("a Python pickle"), std::string::npos);
  EXPECT_EQ(kind("GGUF"), "w: not a safetensors file, but a GGUF file");
  EXPECT_EQ(kind("a model's text, with lines\n of 64 bytes and more, as sources have"),
            "w: not a safetensors file, but a text");
  EXPECT_EQ(kind("\x89HDF\r\n"), "w: not a safetensors file, but an HDF5 file");
}

TEST(NamePattern, Stars) {
  EXPECT_TRUE(matches("abc", "abc") && matches("abc", "*") && matches("", "*"));
  EXPECT_TRUE(matches("a.b.c", "a*c") && matches("aab", "*ab") && matches("abab", "*a*b"));
  EXPECT_FALSE(matches("abc", "ab") || matches("ab", "abc") || matches("", "a"));
  EXPECT_FALSE(matches("acb", "a*c") || matches("ab", "*a"));
  std::vector<Rename> renames = {parseRename("bert.*.gamma=*.weight"), parseRename("bert.*=*"),
                                 parseRename("*.x.*=*/*")};
  EXPECT_EQ(renamed("bert.a.gamma", renames), "a.weight");
  EXPECT_EQ(renamed("bert.a.beta", renames), "a.beta");
  EXPECT_EQ(renamed("a.x.b.x.c", renames), "a/b.x.c");
  EXPECT_EQ(renamed("other", renames), "other");
  EXPECT_EQ(userError([] { parseRename("a"); }), "a rename takes FROM=TO, not 'a'");
  EXPECT_EQ(userError([] { parseRename("a*=*b*", "--rename"); }),
            "--rename a*=*b*: '*b*' has more stars than 'a*'");
}

TEST(WordVectors, Reads) {
  Vocabulary words = vocabulary({"a", "b", ". .", "d"});
  auto read = [&](const std::string &text) { return readWordVectors({"g", text}, words); };
  WordVectors v = read("b 1 2\nzzz 3 x\n. . -1e-3 4\r\nb 9 9\na 5 inf\n");
  EXPECT_EQ(v.width, 2);
  EXPECT_EQ(v.words, 5);
  EXPECT_EQ(v.rowOf, (std::vector<int64_t>{-1, 2, 0, 1, -1}));
  EXPECT_EQ(v.values,
            (std::vector<float>{1, 2, -1e-3f, 4, 5, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(v.lack, (std::vector<std::string>{"<unk>", "d"}));
  EXPECT_EQ(read("2 3\na 1 2 3\nb 4 5 6 \n").values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(userError([&] { read("a 1 2\nb 1\n"); }),
            "g:2: expected a word and 2 numbers, found 2 fields");
  EXPECT_EQ(userError([&] { read("a 1 2\nb 1 y\n"); }),
            "g:2:5: expected a number of the vector of 'b', found 'y'");
  EXPECT_TRUE(isWordVectors("the 0.1 -0.2\n") && isWordVectors("400 50\nthe 1 2\n"));
  EXPECT_FALSE(isWordVectors("the cat sat\n") || isWordVectors("") || isWordVectors("a 1\n"));
}

template <typename T> FileTensor tensorOf(const char *type, const std::vector<T> &values) {
  return {"t",
          findFileType(type),
          {static_cast<int64_t>(values.size())},
          {reinterpret_cast<const uint8_t *>(values.data()), values.size() * sizeof(T)}};
}
template <typename T> std::vector<T> as(const std::vector<uint8_t> &bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty())
    std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Safetensors, Converts) {
  std::vector<uint8_t> out;
  std::vector<double> doubles{0.1, -1e300, 1e-300};
  EXPECT_FALSE(convertElements(tensorOf("F64", doubles), rt::DType::F32, out));
  EXPECT_EQ(as<float>(out), (std::vector<float>{0.1f, -std::numeric_limits<float>::infinity(), 0}));
  std::vector<uint16_t> halves{0x3C00, 0xC000, 0x0001};
  EXPECT_FALSE(convertElements(tensorOf("F16", halves), rt::DType::F32, out));
  EXPECT_EQ(as<float>(out), (std::vector<float>{1, -2, 0x1p-24f}));
  EXPECT_FALSE(convertElements(tensorOf("BF16", halves), rt::DType::BF16, out));
  EXPECT_EQ(as<uint16_t>(out), halves);
  std::vector<int64_t> longs{5, -6};
  EXPECT_FALSE(convertElements(tensorOf("I64", longs), rt::DType::F32, out));
  EXPECT_EQ(as<float>(out), (std::vector<float>{5, -6}));
  EXPECT_FALSE(convertElements(tensorOf("I64", longs), rt::DType::I32, out));
  EXPECT_EQ(as<int32_t>(out), (std::vector<int32_t>{5, -6}));
  longs[1] = int64_t{1} << 31;
  EXPECT_EQ(convertElements(tensorOf("I64", longs), rt::DType::I32, out),
            "element 1 is 2147483648, beyond I32");
  std::vector<uint8_t> bools{1, 0};
  EXPECT_FALSE(convertElements(tensorOf("BOOL", bools), rt::DType::Bool, out));
  EXPECT_EQ(as<int32_t>(out), (std::vector<int32_t>{1, 0}));
  bools[1] = 2;
  EXPECT_EQ(convertElements(tensorOf("BOOL", bools), rt::DType::Bool, out),
            "element 1 of BOOL is 2, neither 0 nor 1");
  EXPECT_EQ(convertElements(tensorOf("F64", doubles), rt::DType::I32, out),
            "F64 does not convert to I32");
  EXPECT_EQ(convertElements(tensorOf("U8", bools), rt::DType::F32, out),
            "U8 does not convert to F32");
}

TEST(Half, RoundsOnceAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto h = static_cast<uint16_t>(bits);
    float f = rt::f16ToFloat(h), b = rt::bf16ToFloat(h);
    if (!std::isnan(f)) {
      ASSERT_EQ(toF16(f), h);
    }
    if (!std::isnan(b)) {
      ASSERT_EQ(toBF16(b), h);
    }
  }
  EXPECT_EQ(toF16(65519.99), 0x7BFF);
  EXPECT_EQ(toF16(65520), 0x7C00);
  EXPECT_EQ(toF16(0x1p-25), 0);
  EXPECT_EQ(toF16(0x1.0000001p-25), 1);
  EXPECT_EQ(toF16(1 + 0x1p-11), 0x3C00);
  EXPECT_EQ(toF16(1 + 0x1p-11 + 0x1p-40), 0x3C01); // through float this would be 0x3C00
  EXPECT_EQ(toBF16(1e300), 0x7F80);
  EXPECT_TRUE(std::isnan(rt::f16ToFloat(toF16(std::nan("")))));
}

struct WeightsTest : ::testing::Test {
  TemporaryDirectory directory;
  rt::Model model;
  std::vector<rt::HostTensor> values;

  void param(const char *name, rt::DType dtype, std::vector<int64_t> shape,
             bool synthetic = false) {
    rt::ParamDesc p;
    p.name = name;
    p.dtype = dtype;
    p.shape = shape;
    p.synthetic = synthetic;
    model.params.push_back(p);
    rt::HostTensor tensor(dtype, shape);
    for (int64_t i = 0; i < tensor.granules() * 64; ++i)
      tensor.bytes[static_cast<size_t>(i)] =
          static_cast<uint8_t>(dtype == rt::DType::Bool ? i % 4 == 0 : i % 61);
    values.push_back(std::move(tensor));
  }
  void SetUp() override {
    model.name = "m";
    param("flags", rt::DType::Bool, {3});
    param("layer.w", rt::DType::F32, {3, 20});
    param("made", rt::DType::F32, {2}, true);
    param("b", rt::DType::BF16, {5});
    param("s", rt::DType::F32, {});
  }
  rt::TensorView view(size_t i) const {
    return {values[i].dtype, values[i].shape, values[i].bytes.get()};
  }
  std::string save(std::map<std::string, std::string> metadata = {}) {
    std::string path = directory.file("w.safetensors");
    saveWeights(path, model, [&](size_t i) { return view(i); }, metadata);
    return path;
  }
};

TEST_F(WeightsTest, RoundTrip) {
  std::string path = save({{kSeedKey, "7"}, {kModelKey, "m"}});
  std::vector<size_t> seen;
  auto load = [&](const SetParam &set, const LoadOptions &options = {}) {
    return loadWeights(WeightFile::open(path), model, set, options);
  };
  LoadedWeights loaded = load([&](size_t i, std::span<const uint8_t> bytes) {
    seen.push_back(i);
    std::vector<uint8_t> expected(bytes.size());
    view(i).copyTo(expected.data());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected.begin())) << i;
  });
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 3, 4}));
  EXPECT_EQ(loaded.metadata.at(kSeedKey), "7");
  EXPECT_EQ(loaded.metadata.at("format"), "pt");
  // All data are aligned to their elements.
  SafetensorsFile f = SafetensorsFile::open(path);
  for (const FileTensor &tensor : f.tensors())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data.data()) %
                  static_cast<uintptr_t>(tensor.type->bytes),
              0u);
}

TEST_F(WeightsTest, EveryMismatchIsListed) {
  std::string path = save();
  auto load = [&](const std::string &file) {
    loadWeights(WeightFile::open(file), model,
                [](size_t, std::span<const uint8_t>) { ADD_FAILURE() << "set was called"; });
  };
  model.params[1].shape = {20, 3};
  model.params[3].name = "c";
  model.params[4].dtype = rt::DType::I32;
  EXPECT_EQ(userError([&] { load(path); }),
            path + " does not fit the model 'm':\n"
                   "  missing: c: bf16[5]\n"
                   "  another shape: layer.w: f32[20, 3] in the model, F32[3, 20] in the file\n"
                   "  another type: s: i32[] in the model: F32 does not convert to I32\n"
                   "  not in the model: b: BF16[5]");
  EXPECT_EQ(userError([&] { load(directory.file("none")); }),
            "cannot read '" + directory.file("none") + "': No such file or directory");
  EXPECT_EQ(userError([&] { load("/dev/null"); }), "cannot read '/dev/null': not a regular file");
  std::string empty = directory.write("empty", "");
  EXPECT_EQ(userError([&] { load(empty); }),
            empty + ": not a safetensors file: 0 bytes, too short for the header's length");
}

/// A directory as Hugging Face's libraries write it: two shards and what says what is in them.
struct ShardsTest : WeightsTest {
  void shard(const char *name, std::vector<size_t> params, rt::DType dtype = rt::DType::F32) {
    std::vector<TensorToWrite> tensors;
    for (size_t i : params) {
      TensorToWrite tensor{model.params[i].name, dtype, model.params[i].shape, {}};
      size_t elements = 1;
      for (int64_t extent : tensor.shape)
        elements *= static_cast<size_t>(extent);
      tensor.data.assign(elements * static_cast<size_t>(rt::dtypeBytes(dtype)), 0);
      tensors.push_back(std::move(tensor));
    }
    writeSafetensors(directory.file(name), tensors, {{"format", "pt"}});
  }
  std::string index(std::string_view map) {
    return directory.write(
        "model.safetensors.index.json",
        fmt::format(R"({{"metadata": {{"total_size": 9}}, "weight_map": {}}})", map));
  }
  LoadedWeights load(const std::string &path, const SetParam &set = [](auto...) {}) {
    return loadWeights(WeightFile::open(path), model, set);
  }
  std::string refused() {
    std::string message = userError([&] { load(directory.file("")); });
    std::string place = directory.file("");
    for (size_t at; (at = message.find(place)) != std::string::npos;)
      message.erase(at, place.size());
    return message;
  }
  void SetUp() override {
    model.name = "m";
    param("a", rt::DType::F32, {3, 2});
    param("b", rt::DType::F32, {2});
    shard("1.safetensors", {0}, rt::DType::BF16);
    shard("2.safetensors", {1});
    index(R"({"a": "1.safetensors", "b": "2.safetensors"})");
  }
};

TEST_F(ShardsTest, AreOneFile) {
  std::vector<size_t> seen;
  for (const char *path : {"", "model.safetensors.index.json"}) {
    LoadedWeights loaded = load(directory.file(path), [&](size_t i, auto) { seen.push_back(i); });
    EXPECT_EQ(loaded.conversionText(), "1 tensor is converted, BF16 to f32");
    EXPECT_EQ(loaded.metadata.at("format"), "pt");
  }
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 0, 1}));
  // One file for all goes before.
  shard("model.safetensors", {0, 1}, rt::DType::F16);
  EXPECT_EQ(load(directory.file("")).conversionText(), "2 tensors are converted, F16 to f32");
}

TEST_F(ShardsTest, ThatDoNotFit) {
  model.params[0].shape = {2, 3};
  model.params[1].dtype = rt::DType::I32;
  EXPECT_EQ(refused(),
            "model.safetensors.index.json does not fit the model 'm':\n"
            "  another shape: a: f32[2, 3] in the model, BF16[3, 2] in 1.safetensors\n"
            "  another type: b: i32[2] in the model, but of 2.safetensors: F32 does not convert "
            "to I32");
}

TEST_F(ShardsTest, WithMistakes) {
  struct {
    const char *map, *message;
  } const cases[] = {
      {R"({"a": "1.safetensors", "b": "3.safetensors", "c": "3.safetensors"})",
       "model.safetensors.index.json: the file '3.safetensors' is not there, which has tensor 'b' "
       "and 1 more"},
      {R"({"a": "1.safetensors", "c": "2.safetensors"})",
       "model.safetensors.index.json: tensor 'c' should be in '2.safetensors', which has no such "
       "tensor"},
      {R"({"a": "1.safetensors", "b": "2.safetensors", "a": "2.safetensors"})",
       "model.safetensors.index.json:1:92: the tensor 'a' is there twice"},
      {R"({"a": "../1.safetensors"})",
       "model.safetensors.index.json:1:53: the file of tensor 'a' is '../1.safetensors', which is "
       "no name of a file beside the index"},
      {R"({"a": 1})", "model.safetensors.index.json:1:53: expected the name of the file of tensor "
                      "'a', found the number 1"},
      {R"([])", "model.safetensors.index.json:1:47: expected an object of names of files as "
                "weight_map, found an array"},
  };
  for (const auto &wrong : cases) {
    index(wrong.map);
    EXPECT_EQ(refused(), wrong.message);
  }
  directory.write("model.safetensors.index.json", R"({"metadata": {}})");
  EXPECT_EQ(refused(), "model.safetensors.index.json:1:1: no index of weights: it has no "
                       "'weight_map'");
  shard("2.safetensors", {0, 1});
  index(R"({"a": "1.safetensors", "b": "2.safetensors"})");
  EXPECT_EQ(refused(), "model.safetensors.index.json: tensor 'a' is in two files, '1.safetensors' "
                       "and '2.safetensors'");
  std::string cut = readSource(directory.file("1.safetensors")).text;
  directory.write("1.safetensors", cut.substr(0, cut.size() - 2));
  EXPECT_EQ(refused(), "1.safetensors: truncated: the data of tensor 'a' end at byte 12, but there "
                       "are only 10");
  directory.write("model.safetensors.index.json", "");
  EXPECT_EQ(refused(), "model.safetensors.index.json:1:1: expected a value, found the end of "
                       "the text");
}

/// The length with which a file begins may look like blanks and a brace, as an index does.
TEST_F(ShardsTest, LengthsThatLookLikeText) {
  for (uint64_t length : {uint64_t{123}, uint64_t{0x7b20}, uint64_t{0x7b0a09}}) {
    std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
    header.resize(length, ' ');
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    std::string path = directory.write("model.safetensors", bytes + header + "xy");
    WeightFile file = WeightFile::open(path);
    ASSERT_EQ(file.tensors.size(), 1u) << length;
    EXPECT_EQ(file.tensors[0].name, "a");
  }
}

TEST_F(WeightsTest, WhatIsNotTheModels) {
  std::string path = save();
  model.params.erase(model.params.begin());
  std::vector<size_t> seen;
  auto set = [&](size_t i, std::span<const uint8_t>) { seen.push_back(i); };
  LoadOptions options;
  EXPECT_EQ(loadWeights(WeightFile::open(path), model, set, options).unused,
            (std::vector<std::string>{"flags: BOOL[3]"}));
  options.strict = true;
  EXPECT_EQ(userError([&] { loadWeights(WeightFile::open(path), model, set, options); }),
            path + " does not fit the model 'm':\n  not in the model: flags: BOOL[3]");
  // Nothing in common is one line.
  for (rt::ParamDesc &param : model.params)
    param.name = "x." + param.name;
  EXPECT_EQ(userError([&] { loadWeights(WeightFile::open(path), model, set); }),
            path + ": of another model: it has none of the 3 parameters of the model 'm' "
                   "(x.layer.w: f32[3, 20], x.b: bf16[5], x.s: f32[]), but layer.w: F32[3, 20], "
                   "s: F32[], b: BF16[5], flags: BOOL[3]; rename FROM=TO takes tensors by other "
                   "names");
  options = {};
  options.renames = {{"*", "x.*"}};
  seen.clear();
  EXPECT_TRUE(loadWeights(WeightFile::open(path), model, set, options).idleRenames.empty());
  EXPECT_EQ(seen.size(), 3u);
  // Those that are for no tensor, or that an earlier one leaves none.
  options.renames = {{"q*", "x.*"}, {"*", "x.*"}, {"s", "x.s"}};
  EXPECT_EQ(loadWeights(WeightFile::open(path), model, set, options).idleRenames,
            (std::vector<size_t>{0, 2}));
  options.renames = {{"*b", "x.s"}, {"*", "x.*"}};
  EXPECT_NE(userError([&] {
              loadWeights(WeightFile::open(path), model, set, options);
            }).find("twice: x.s: it is 's' and 'b' of the file"),
            std::string::npos);
}

TEST_F(WeightsTest, WhatFitsIsTaken) {
  std::string path = save();
  model.params[3].name = "c";
  model.params[1].shape = {20, 3};
  std::vector<size_t> seen;
  auto set = [&](size_t i, std::span<const uint8_t>) { seen.push_back(i); };
  LoadOptions options;
  options.partial = true;
  options.adviseShapes = [](const auto &shapes) {
    EXPECT_EQ(shapes.at("layer.w"), (std::vector<int64_t>{3, 20}));
    return std::string("\n  advice");
  };
  EXPECT_EQ(userError([&] { loadWeights(WeightFile::open(path), model, set, options); }),
            path + " does not fit the model 'm':\n  another shape: layer.w: f32[20, 3] in the "
                   "model, F32[3, 20] in the file\n  advice");
  options.fresh = {"layer.*"};
  LoadedWeights loaded = loadWeights(WeightFile::open(path), model, set, options);
  EXPECT_EQ(seen, (std::vector<size_t>{0, 4}));
  EXPECT_EQ(loaded.unloaded, (std::vector<std::string>{"layer.w", "c"}));
  EXPECT_EQ(loaded.unused, (std::vector<std::string>{"b: BF16[5]"}));
}

TEST_F(WeightsTest, RowsOfWords) {
  std::string path = save();
  model.params[1].shape = {4, 20};
  LoadOptions options;
  options.words["layer.w"] = {{2, -1, 0, 0}, 3};
  options.initial = [](size_t i) {
    EXPECT_EQ(i, 1u);
    return std::vector<uint8_t>(4 * 20 * 4, 0x55);
  };
  std::vector<uint8_t> got, table(3 * 20 * 4);
  loadWeights(
      WeightFile::open(path), model,
      [&](size_t i, std::span<const uint8_t> bytes) {
        if (i == 1)
          got.assign(bytes.begin(), bytes.end());
      },
      options);
  view(1).copyTo(table.data());
  ASSERT_EQ(got.size(), 4u * 80);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + 80, table.begin() + 160));
  EXPECT_EQ(got[80], 0x55);
  EXPECT_TRUE(std::equal(got.begin() + 240, got.end(), table.begin()));
}

TEST_F(WeightsTest, Dims) {
  EXPECT_EQ(dimsText({{"b", 2}, {"a", 1}}), "a=1,b=2");
  EXPECT_EQ(storedDims("w", {{kDimsKey, "a=1,b=20"}}),
            (std::map<std::string, int64_t>{{"a", 1}, {"b", 20}}));
  EXPECT_TRUE(storedDims("w", {}).empty());
  EXPECT_EQ(storedConstants("w", {{kConstantsKey, constantsText({{"eps", 1e-6}, {"s", -0.5}})}}),
            (std::map<std::string, double>{{"eps", 1e-6}, {"s", -0.5}}));
  EXPECT_TRUE(storedConstants("w", {}).empty());
  for (const char *wrong : {"a", "=1", "a=", "a=x", "a=0", "a=1,,b=2"})
    EXPECT_NE(userError([&] { storedDims("w", {{kDimsKey, wrong}}); }).find("NAME=NUMBER"),
              std::string::npos)
        << wrong;
  for (const char *wrong : {"a", "=1", "a=", "a=x", "a=inf", "a=1,,b=2"})
    EXPECT_EQ(userError([&] { storedConstants("w", {{kConstantsKey, wrong}}); }),
              std::string("w: its metadata 'sheaf.constants' are not NAME=NUMBER, but '") + wrong +
                  "'")
        << wrong;
}

TEST_F(WeightsTest, ReportsWhatIsNotFinite) {
  auto *w = reinterpret_cast<float *>(values[1].bytes.get());
  w[32 + 17] = std::numeric_limits<float>::quiet_NaN(); // row 1 begins after 32 elements
  w[64 + 3] = std::numeric_limits<float>::infinity();
  w[20] = std::numeric_limits<float>::quiet_NaN(); // padding
  std::string path = save();
  auto ignore = [](size_t, std::span<const uint8_t>) {};
  LoadOptions options;
  EXPECT_TRUE(loadWeights(WeightFile::open(path), model, ignore, options).nonFinite.empty());
  options.findNonFinite = true;
  LoadedWeights loaded = loadWeights(WeightFile::open(path), model, ignore, options);
  ASSERT_EQ(loaded.nonFinite.size(), 1u);
  EXPECT_EQ(loaded.nonFinite[0].message(),
            "'layer.w' has 1 NaN and 1 infinite values, the first at [1, 17]");
}

TEST_F(WeightsTest, VocabularyHash) {
  Vocabularies now;
  now.set("", vocabulary({"a"}));
  std::string hash = now.hashes();
  EXPECT_NO_THROW(checkVocabulary("w", {{kVocabKey, hash}}, now));
  EXPECT_NO_THROW(checkVocabulary("w", {}, now));
  EXPECT_NO_THROW(checkVocabulary("w", {{kVocabKey, "x"}}, {}));
  EXPECT_EQ(userError([&] { checkVocabulary("w", {{kVocabKey, "0123"}}, now); }),
            "w: these weights were made with another vocabulary: '0123' is stored with them, '" +
                hash + "' is in use");
}

} // namespace
} // namespace sheaf::io::test
