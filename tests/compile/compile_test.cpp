// Compiling through the C interface and its C++ wrapper.
#include "tests/artefact/message_of.h"

#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/io/weights.h"
#include "sheaf/compiler.hpp"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <sstream>
#include <thread>

namespace fs = std::filesystem;

namespace {

// First of all: once a compiler is open, it stays so.
TEST(Compile, SaysWhatIsMissing) {
  std::string message = messageOf([] { sheaf::compile({}); }, SHEAF_INVALID);
  EXPECT_EQ(message, "options has no path, no text and no source");
  sheaf::CompileOptions options;
  options.text = "fn main(x: int) -> int = x\n";
  message = messageOf([&] { sheaf::compile(options); }, SHEAF_NO_COMPILER);
  EXPECT_EQ(message.find("compiling needs libsheaf_compiler, which is installed beside "
                         "libsheaf_runtime"),
            0u)
      << message;
  EXPECT_EQ(sheaf_compiler_open("/nowhere/libsheaf_compiler.so"), SHEAF_NO_COMPILER);
  EXPECT_NE(std::string(sheaf_error_message()).find("/nowhere/libsheaf_compiler.so"),
            std::string::npos);
  EXPECT_EQ(sheaf_compiler_open("libm.so.6"), SHEAF_NO_COMPILER);
  EXPECT_STREQ(sheaf_error_message(), "libm.so.6 is no compiler of Sheaf's");
}

class Compiling : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(sheaf_compiler_open(SHEAF_COMPILER_FILE), SHEAF_OK) << sheaf_error_message();
  }
  void SetUp() override {
    directory =
        fs::temp_directory_path() /
        (std::string("sheaf-") + testing::UnitTest::GetInstance()->current_test_info()->name() +
         std::to_string(getpid()));
    fs::create_directories(directory);
  }
  void TearDown() override { fs::remove_all(directory); }

  std::string path(const std::string &name) const { return directory / name; }
  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string read(const std::string &path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  fs::path directory;
};

sheaf::CompileOptions ofText(const std::string &text) {
  sheaf::CompileOptions options;
  options.text = text;
  options.name = "given.sheaf";
  return options;
}

const std::string kScaled = "dim n = 3\n"
                            "param scale : f32[n] = constant(2.5)\n"
                            "fn main(x: f32[n]) -> f32[n] = x * scale\n"
                            "fn total(x: f32[n]) -> f32 = sum(main(x))\n";

std::vector<float> runVector(const sheaf::Model &model, const std::vector<float> &x) {
  sheaf::Batch batch(model);
  batch.add({batch.makeTensor(model.argumentType(0), {static_cast<int64_t>(x.size())}, x.data())});
  sheaf::Result result = sheaf::Session().run(batch);
  EXPECT_EQ(result.error(0), "");
  sheaf::Tensor tensor = result[0].tensor();
  return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
}

using Floats = std::vector<float>;

TEST_F(Compiling, ExplainsAModelAndAMiniBatch) {
  sheaf::CompileOptions options = ofText(kScaled);
  sheaf::Explanation alone = sheaf::explain(options);
  EXPECT_EQ(alone.text.find("given: 1 parameters"), 0u) << alone.text;
  EXPECT_EQ(alone.page, "");
  EXPECT_EQ(alone.json.find("\"mini_batch\""), std::string::npos);

  sheaf::Model model = sheaf::compile(options);
  sheaf::Session session;
  sheaf::Batch batch(model);
  EXPECT_EQ(messageOf([&] { sheaf::explain(options, session, batch); }, SHEAF_INVALID),
            "the batch has no instances");
  Floats x{1, 2, 3};
  batch.add({batch.makeTensor(model.argumentType(0), {3}, x.data())});
  sheaf::Explanation told = sheaf::explain(options, session, batch, 1);
  EXPECT_NE(told.json.find("\"mini_batch\""), std::string::npos);
  EXPECT_NE(told.text.find("the mini-batch: 1 instances, 1 thread"), std::string::npos);
  EXPECT_EQ(told.page.find("<!"), 0u);

  // What an engine keeps is there alone.
  sheaf::Engine engine(model);
  sheaf_request_options keep{};
  keep.keep = SHEAF_KEEP_ONLY;
  std::optional<sheaf::Kept> kept;
  sheaf::Batch first(model);
  first.add({first.makeTensor(model.argumentType(0), {3}, x.data())});
  engine.submit(first, [&](int64_t, const sheaf::Result &result) { kept = result.kept(); }, keep);
  while (engine.step()) {
  }
  sheaf::Batch from(model);
  from.add({from.makeKept(model.argumentType(0), *kept)});
  EXPECT_EQ(messageOf([&] { sheaf::explain(options, session, from); }, SHEAF_INVALID),
            "the batch has values that an engine keeps: only that engine runs it");

  // Another extent, another number of tokens: values of the one would be read as the other's.
  sheaf::CompileOptions other = ofText(kScaled);
  other.dims["n"] = 4;
  EXPECT_EQ(messageOf([&] { sheaf::explain(other, session, batch); }, SHEAF_INVALID),
            "the mini-batch is of a model with other arguments");
  sheaf_explain_options half{};
  half.size = sizeof half;
  half.session = session.get();
  sheaf_explanation *explanation = nullptr;
  sheaf_compile_options given{};
  given.size = sizeof given;
  given.text = kScaled.c_str();
  EXPECT_EQ(sheaf_explain(&given, &half, &explanation, nullptr), SHEAF_INVALID);
  EXPECT_EQ(explanation, nullptr);
  messageOf([&] { sheaf::explain(ofText("fn main(x: int) -> int = y\n")); }, SHEAF_NOT_COMPILED);
}

TEST_F(Compiling, RunsText) {
  sheaf::Model model = sheaf::compile(ofText(kScaled));
  EXPECT_EQ(model.name(), "given");
  EXPECT_EQ(model.dim("n"), 3);
  EXPECT_EQ(runVector(model, {1, 2, -4}), (Floats{2.5, 5, -10}));
  sheaf::CompileOptions options = ofText(kScaled);
  options.dims["n"] = 2;
  options.entry = "total";
  options.training = true;
  options.without = {"code-motion"};
  options.precision = SHEAF_BF16;
  sheaf::Model total = sheaf::compile(options);
  EXPECT_EQ(total.entry(), "total");
  EXPECT_EQ(runVector(total, {1, 2}), (Floats{7.5}));
}

TEST_F(Compiling, RunsAnEngine) {
  sheaf::Model model = sheaf::compile(ofText("fn main(x: int) -> int = x * 3\n"));
  sheaf_session_options session{};
  session.size = sizeof session;
  session.memory_limit = uint64_t(64) << 20;
  sheaf::Engine engine(model, &session);
  sheaf::Batch batch(model);
  batch.add({batch.makeInt(model.argumentType(0), 14)});
  int64_t found = 0;
  engine.submit(batch, [&](int64_t, const sheaf::Result &result) { found = result[0].toInt(); });
  while (engine.step()) {
  }
  EXPECT_EQ(found, 42);
}

TEST_F(Compiling, TellsErrors) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    sheaf::compile(ofText("fn main(x: f32[3]) -> f32[4] =\n  x + 1.0\n"
                          "fn twice(x: int) -> int = x\nfn twice(x: int) -> int = x\n"));
    FAIL() << "nothing was thrown";
  } catch (const sheaf::CompileError &error) {
    ASSERT_EQ(error.diagnostics().size(), 2u) << error.text();
    const sheaf::Diagnostic &type = error.diagnostics()[0], &twice = error.diagnostics()[1];
    EXPECT_EQ(error.what(), "given.sheaf:2:3: error: " + type.message);
    EXPECT_EQ(type.severity, SHEAF_ERROR);
    EXPECT_EQ(type.file, "given.sheaf");
    EXPECT_EQ(std::make_pair(type.line, type.column), std::make_pair(int64_t(2), int64_t(3)));
    EXPECT_EQ(std::make_pair(type.endLine, type.endColumn),
              std::make_pair(int64_t(2), int64_t(10)));
    EXPECT_NE(type.text.find("given.sheaf:2:3: error: "), std::string::npos);
    EXPECT_NE(type.text.find("^~~~~~~"), std::string::npos) << type.text;
    EXPECT_EQ(twice.line, 4);
    ASSERT_EQ(twice.notes.size(), 1u);
    EXPECT_EQ(twice.notes[0].severity, SHEAF_NOTE);
    EXPECT_EQ(twice.notes[0].line, 3);
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Compiling, TellsWhatDoesNotGoWithTheSource) {
  auto message = [](sheaf::CompileOptions options) {
    return messageOf([&] { sheaf::compile(options); }, SHEAF_INVALID);
  };
  sheaf::CompileOptions dims = ofText(kScaled), without = ofText(kScaled), cpu = ofText(kScaled),
                        none = ofText("fn main(t: token) -> token = t\n"), sizes = none,
                        other = none, words = none, twice = none;
  dims.dims["m"] = 1;
  EXPECT_EQ(message(dims), "given.sheaf: the model declares no dim 'm'; its dims are n");
  without.without = {"nothing"};
  EXPECT_EQ(message(without).find("there is no optimisation 'nothing' to leave out; there are "),
            0u);
  cpu.targetCpu = "i8086";
  EXPECT_NE(message(cpu).find("i8086"), std::string::npos);
  EXPECT_EQ(message(none), "no vocabulary for token: give one, or dim 'vocab' a value");
  sizes.vocabularies = {{"", "", {}, 0}};
  EXPECT_EQ(message(sizes), "the vocabulary of token has size 0");
  other.vocabularies = {{"tag", "", {}, 3}, {"", "", {}, 2}};
  EXPECT_EQ(message(other), "the model has no vocabulary of token<tag>");
  words.vocabularies = {{"", "", {"<unk>", "a", "a"}, 0}};
  EXPECT_EQ(message(words), "word 2 of the vocabulary of token, 'a', is there twice");
  words.vocabularies = {{"", "", {"a"}, 0}};
  EXPECT_EQ(message(words), "word 0 of the vocabulary of token, 'a', is not '<unk>'");
  twice.vocabularies = {{"", "", {}, 3}, {"", "", {}, 3}};
  EXPECT_EQ(message(twice), "the vocabulary of token is given twice");
  sheaf::CompileOptions nul = ofText(std::string("fn\0", 3)), both = ofText(kScaled), missing;
  EXPECT_EQ(message(nul), "given.sheaf: a NUL byte: a source is UTF-8 text");
  both.path = "x";
  EXPECT_EQ(message(both), "options has a path and a text");
  missing.path = "/nowhere.sheaf";
  EXPECT_EQ(messageOf([&] { sheaf::compile(missing); }, SHEAF_NOT_READABLE),
            "cannot read '/nowhere.sheaf': No such file or directory");
}

TEST_F(Compiling, IsForTheTargetThatIsNamed) {
  // Long rows, so that plans follow from caches.
  std::string source = write("m.sheaf", "param w : f32[300, 300] = normal(0.1)\n"
                                        "fn main(x: f32[300]) -> f32[300] = softmax(x @ w)\n");
  std::vector<float> x(300, 0.5f), first;
  std::string host = sheaf_model_cpu(sheaf::compile(ofText(kScaled)).get());
  for (auto [l1, l2] : {std::pair(0, 0), {1 << 10, 1 << 10}, {1 << 30, 1 << 30}, {0, 1 << 21}}) {
    sheaf::CompileOptions options;
    options.path = source;
    options.target = "cpu";
    options.targetCacheL1 = static_cast<uint64_t>(l1);
    options.targetCacheL2 = static_cast<uint64_t>(l2);
    sheaf::Model model = sheaf::compile(options);
    EXPECT_EQ(sheaf_model_cpu(model.get()), host);
    std::vector<float> result = runVector(model, x);
    EXPECT_EQ(first.empty() ? result : first, result) << l1 << " " << l2;
    first = result;
    if (l2 == 1 << 21)
      EXPECT_NE(sheaf::explain(options).text.find(" and 2.0 MB)"), std::string::npos)
          << sheaf::explain(options).text;
  }
  sheaf::CompileOptions none = ofText(kScaled);
  none.target = "abacus";
  EXPECT_EQ(messageOf([&] { sheaf::compile(none); }, SHEAF_INVALID)
                .find("there is no target 'abacus'; there are cpu"),
            0u);
}

TEST_F(Compiling, TakesVocabularies) {
  sheaf::CompileOptions options = ofText("dim vocab\nparam e : f32[vocab] = ones\n"
                                         "fn main(t: token) -> (token, f32) = (t, sum(e))\n");
  options.vocabularies = {{"", "", {"<unk>", "good", "bad"}, 0}};
  sheaf::Model model = sheaf::compile(options);
  EXPECT_EQ(model.token("bad"), 2);
  EXPECT_EQ(model.token("ugly"), 0);
  EXPECT_EQ(model.word(1), "good");
  EXPECT_EQ(model.dim("vocab"), 3);
  options.vocabularies = {{"", write("words.txt", "<unk>\nx\n"), {}, 0}};
  EXPECT_EQ(sheaf::compile(options).token("x"), 1);
  sheaf::Words words({"<unk>", "y", "z"});
  options.vocabularies = {sheaf::vocabularyOf(words)};
  sheaf::Model made = sheaf::compile(options);
  EXPECT_EQ(made.token("z"), 2);
  EXPECT_EQ(sheaf::Words::ofModel(made).hash(), words.hash());
  messageOf([&] { sheaf::Words::ofModel(made, "tag"); }, SHEAF_INVALID);
  sheaf_vocabulary of = sheaf_words_vocabulary(words.get(), "");
  sheaf_compile_options raw{};
  raw.size = sizeof raw;
  raw.text = options.text->c_str();
  raw.vocabularies = &of;
  raw.vocabulary_count = 1;
  sheaf_model *compiled = nullptr;
  ASSERT_EQ(sheaf_compile(&raw, &compiled, nullptr), SHEAF_OK) << sheaf_error_message();
  EXPECT_EQ(sheaf::Model(compiled).token("y"), 1);
  options.vocabularies = {{"", "", {}, 7}};
  EXPECT_EQ(sheaf_vocabulary_size(sheaf::compile(options).get(), ""), 7);
  options.dims["vocab"] = 6;
  EXPECT_EQ(messageOf([&] { sheaf::compile(options); }, SHEAF_INVALID),
            "dim vocab is 6, but the vocabulary of token has 7 entries");
  options.vocabularies.clear();
  EXPECT_EQ(sheaf_vocabulary_size(sheaf::compile(options).get(), ""), 6);
}

TEST_F(Compiling, FindsFiles) {
  // Beside the file, and in the library of layers.
  write("half.sheaf", "fn half(x: f32) -> f32 = x / 2.0\n");
  sheaf::CompileOptions options;
  options.path = write("model.sheaf", "use \"half.sheaf\"\nuse \"lib/lstm.sheaf\"\n"
                                      "let reader = LSTM(2, 3)\n"
                                      "fn main(x: f32) -> f32 = half(x) + sum(reader.last([]))\n");
  sheaf::Model model = sheaf::compile(options);
  EXPECT_EQ(model.name(), "model");
  // By a function, which is not asked for what files of the library use.
  std::vector<std::string> asked;
  sheaf::CompileOptions own = ofText(read(options.path));
  own.resolve = [&](const std::string &used,
                    const std::string &by) -> std::optional<sheaf::UsedFile> {
    asked.push_back(used + " by " + by);
    if (used != "half.sheaf")
      return std::nullopt;
    return sheaf::UsedFile{"cell 3", "fn half(x: f32) -> f32 = x * 0.25\n"};
  };
  sheaf::compile(own);
  EXPECT_EQ(asked, (std::vector<std::string>{"half.sheaf by given.sheaf",
                                             "lib/lstm.sheaf by given.sheaf"}));
  own.resolve = [](const std::string &, const std::string &) -> std::optional<sheaf::UsedFile> {
    return sheaf::UsedFile{"cell 3", "fn half(x: f32) -> f32 = y\n"};
  };
  own.text = "use \"half.sheaf\"\nfn main(x: f32) -> f32 = half(x)\n";
  try {
    sheaf::compile(own);
    FAIL() << "nothing was thrown";
  } catch (const sheaf::CompileError &error) {
    EXPECT_EQ(error.diagnostics()[0].file, "cell 3");
    EXPECT_EQ(error.diagnostics()[0].line, 1);
  }
  own.resolve = [](const std::string &, const std::string &) -> std::optional<sheaf::UsedFile> {
    throw std::runtime_error("no");
  };
  EXPECT_THROW(sheaf::compile(own), std::runtime_error);
  own.resolve = nullptr;
  own.library = path("empty");
  own.name = path("own.sheaf");
  own.text = "use \"lib/lstm.sheaf\"\nfn main(x: f32) -> f32 = x\n";
  EXPECT_THROW(sheaf::compile(own), sheaf::CompileError);
}

TEST_F(Compiling, TakesWeights) {
  sheaf::CompileOptions options = ofText("dim n = 3\nparam w : f32[n, n] = normal(1)\n"
                                         "fn main(x: f32[n]) -> f32[n] = x @ w\n");
  options.dims["n"] = 2;
  options.seed = 5;
  sheaf::Model first = sheaf::compile(options);
  Floats expected = runVector(first, {1, 10});
  options.seed = 6;
  EXPECT_NE(runVector(sheaf::compile(options), {1, 10}), expected);
  {
    sheaf::rt::Session session(first.get()->model->model());
    sheaf::io::saveWeights(
        path("w.safetensors"), session.model(), [&](size_t i) { return session.param(i); },
        sheaf::io::modelMetadata(session.model(), {}));
  }
  // The file says that n is 2.
  options.dims.clear();
  options.weights = path("w.safetensors");
  EXPECT_EQ(runVector(sheaf::compile(options), {1, 10}), expected);
  options.dims["n"] = 4;
  EXPECT_EQ(messageOf([&] { sheaf::compile(options); }, SHEAF_INVALID),
            "dim n=4 contradicts " + options.weights + ", whose weights were made with n=2");
  options.dims.clear();
  options.text = "param v : f32[2] = ones\nfn main(x: f32[2]) -> f32[2] = x * v\n";
  EXPECT_NE(messageOf([&] { sheaf::compile(options); }, SHEAF_INVALID).find(options.weights),
            std::string::npos);
  options.weights = "/nowhere.safetensors";
  EXPECT_NE(messageOf([&] { sheaf::compile(options); }, SHEAF_NOT_READABLE).find("/nowhere"),
            std::string::npos);
  // What no parameter takes is told.
  options.text = "param w : f32[2, 2] = ones\nparam b : f32[2] = constant(3)\n"
                 "fn main(x: f32[2]) -> f32[2] = x @ w + b\n";
  options.weights.clear();
  sheaf::Model larger = sheaf::compile(options);
  {
    sheaf::rt::Session session(larger.get()->model->model());
    sheaf::io::saveWeights(path("more.safetensors"), session.model(),
                           [&](size_t i) { return session.param(i); }, {});
  }
  options.text = "param w : f32[2, 2] = normal(1)\nfn main(x: f32[2]) -> f32[2] = x @ w\n";
  options.weights = path("more.safetensors");
  std::vector<sheaf::Diagnostic> warnings;
  EXPECT_EQ(runVector(sheaf::compile(options, &warnings), {1, 10}), (Floats{11, 11}));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].severity, SHEAF_WARNING);
  EXPECT_EQ(warnings[0].file, "");
  EXPECT_NE(warnings[0].message.find("has tensors that no parameter takes: b: "), std::string::npos)
      << warnings[0].message;
}

TEST_F(Compiling, TakesTensors) {
  sheaf::CompileOptions options = ofText("param w : f32[2, 3] = ones\nparam b : f32[3] = ones\n"
                                         "fn main(x: f32[2]) -> f32[3] = x @ w + b\n");
  // The transpose, as other libraries store weights, and a type that is converted.
  Floats transposed = {1, 4, 2, 5, 3, 6};
  std::vector<double> bias = {100, 200, 300};
  int64_t shape[] = {2, 3}, strides[] = {1, 2};
  options.tensors["fc.w"] = {
      transposed.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
  options.tensors["fc.b"] = {bias.data(), {kDLCPU, 0}, 1, {kDLFloat, 64, 1}, shape + 1, nullptr, 0};
  options.renames = {"fc.*=*"};
  EXPECT_EQ(runVector(sheaf::compile(options), {1, 10}), (Floats{141, 252, 363}));
  auto message = [&] { return messageOf([&] { sheaf::compile(options); }, SHEAF_INVALID); };
  options.renames = {"fc.*=*.*"};
  EXPECT_NE(message().find("fc.*=*.*"), std::string::npos);
  options.renames.clear();
  EXPECT_NE(message().find("options.tensors"), std::string::npos);
  options.renames = {"fc.*=*"};
  options.tensors["fc.b"].shape = shape;
  EXPECT_NE(message().find("options.tensors"), std::string::npos);
  options.tensors["fc.b"].dtype = {kDLInt, 4, 1};
  EXPECT_EQ(message(), "tensor 'fc.b' has elements of a type that no weight is made of");
  options.tensors["fc.b"].device.device_type = static_cast<DLDeviceType>(2);
  options.tensors["fc.b"].dtype = {kDLFloat, 64, 1};
  EXPECT_EQ(message(), "the tensor is not in the CPU's memory");
  options.weights = "w.safetensors";
  EXPECT_EQ(message(), "options has weights and tensors");
}

TEST_F(Compiling, SavesWhatBuildWrites) {
  std::string words = write("v.txt", "<unk>\ngood\nbad\n");
  sheaf::CompileOptions options;
  options.path = SHEAF_MODELS "/treelstm.sheaf";
  options.dims["hidden"] = 24;
  options.vocabularies = {{"", words, {}, 0}};
  options.seed = 3;
  sheaf::Model model = sheaf::compile(options);
  sheaf::save(model, path("saved.sheafc"));
  std::string command = std::string(SHEAF_COMMAND " build ") + options.path +
                        " --store none --dim hidden=24 --vocab " + words + " --seed 3 -o " +
                        path("built.sheafc");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string built = read(path("built.sheafc"));
  EXPECT_GT(built.size(), 10000u);
  EXPECT_EQ(read(path("saved.sheafc")), built);
  sheaf::save(sheaf::Model(path("built.sheafc")), path("again.sheafc"));
  EXPECT_EQ(read(path("again.sheafc")), built);
  EXPECT_NE(messageOf([&] { sheaf::save(model, path("no/where")); }, SHEAF_INVALID).find("where"),
            std::string::npos);
  // An artefact is no source.
  options.path = path("built.sheafc");
  EXPECT_EQ(messageOf([&] { sheaf::compile(options); }, SHEAF_INVALID),
            options.path + ": a compiled model: sheaf_model_load() opens it");
}

TEST_F(Compiling, KeepsCode) {
  sheaf::CompileOptions options = ofText(kScaled);
  options.store = path("store");
  EXPECT_EQ(runVector(sheaf::compile(options), {1, 2, 3}), (Floats{2.5, 5, 7.5}));
  EXPECT_FALSE(fs::is_empty(options.store));
  EXPECT_EQ(runVector(sheaf::compile(options), {1, 2, 3}), (Floats{2.5, 5, 7.5}));
}

TEST_F(Compiling, Differentiates) {
  sheaf::CompileOptions options = ofText("param w : f32[2, 2] = constant(3)\n"
                                         "fn main(x: f32[2]) -> f32 = sum(x @ w) * 0.5\n");
  options.training = true;
  sheaf::Model model = sheaf::compile(options);
  EXPECT_EQ(messageOf([&] { sheaf::Engine engine(model); }, SHEAF_INVALID),
            "an engine runs models that were compiled for inference");
  sheaf::rt::SessionOptions sessionOptions;
  sessionOptions.keepBytes = 0;
  sheaf::rt::Session session(model.get()->model->model(), sessionOptions);
  sheaf::Batch batch(model);
  Floats x = {1, 10};
  batch.add({batch.makeTensor(model.argumentType(0), {2}, x.data())});
  ASSERT_TRUE(session.run(batch.get()->store->instances)[0].ok());
  float one = 1;
  std::span<const sheaf::rt::ParamGradient> gradients = session.backward({&one, 1});
  ASSERT_EQ(gradients.size(), 1u);
  ASSERT_EQ(gradients[0].kind, sheaf::rt::ParamGradient::Dense);
  const float *first = gradients[0].data,
              *second = first + sheaf::rt::kGranuleBytes / sizeof(float);
  EXPECT_EQ((Floats{first[0], first[1], second[0], second[1]}), (Floats{0.5, 0.5, 5, 5}));
}

TEST_F(Compiling, Stops) {
  sheaf::CompileOptions options = ofText("use \"a.sheaf\"\nfn main(x: f32) -> f32 = a(x)\n");
  options.stop.emplace();
  options.resolve = [&](const std::string &,
                        const std::string &) -> std::optional<sheaf::UsedFile> {
    options.stop->request();
    return sheaf::UsedFile{"a.sheaf", "fn a(x: f32) -> f32 = tanh(x)\n"};
  };
  EXPECT_EQ(messageOf([&] { sheaf::compile(options); }, SHEAF_STOPPED),
            "the compilation was stopped");
  // And others go on.
  options.stop.reset();
  options.resolve = [](const std::string &, const std::string &) -> std::optional<sheaf::UsedFile> {
    return sheaf::UsedFile{"a.sheaf", "fn a(x: f32) -> f32 = x * 2.0\n"};
  };
  sheaf::compile(options);
}

TEST_F(Compiling, CompilesSideBySide) {
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      try {
        for (int64_t n = 1; n <= 3; ++n) {
          sheaf::CompileOptions options = ofText("dim n, m\nparam w : f32[n, m] = constant(2)\n"
                                                 "fn grow(x: f32[m], k: int) -> f32[m] = "
                                                 "if k == 0 { x } else { grow(x + 1.0, k - 1) }\n"
                                                 "fn main(x: f32[n]) -> f32[m] = grow(x @ w, 3)\n");
          options.dims = {{"n", n}, {"m", static_cast<int64_t>(t) + 1}};
          sheaf::Model model = sheaf::compile(options);
          Floats x(static_cast<size_t>(n), 1);
          if (runVector(model, x) != Floats(t + 1, 2 * static_cast<float>(n) + 3))
            wrong[t] += " " + std::to_string(n);
        }
      } catch (const std::exception &error) {
        wrong[t] += error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<std::string>(4));
}

TEST_F(Compiling, StructsGrow) {
  struct {
    sheaf_compile_options known;
    uint64_t later;
  } newer{};
  newer.known.size = sizeof newer;
  newer.known.text = "fn main(x: int) -> int = x\n";
  sheaf_model *model = nullptr;
  EXPECT_EQ(sheaf_compile(&newer.known, &model, nullptr), SHEAF_OK) << sheaf_error_message();
  sheaf_model_release(model);
  newer.known.size = offsetof(sheaf_compile_options, length);
  newer.known.path = nullptr;
  newer.known.length = 3;
  EXPECT_EQ(sheaf_compile(&newer.known, &model, nullptr), SHEAF_OK) << sheaf_error_message();
  sheaf_model_release(model);
  newer.known.length = 0;
  newer.later = 1;
  newer.known.size = sizeof newer;
  sheaf_diagnostics *diagnostics = nullptr;
  EXPECT_EQ(sheaf_compile(&newer.known, &model, &diagnostics), SHEAF_INVALID);
  EXPECT_EQ(sheaf_diagnostics_count(diagnostics), 0u);
  EXPECT_STREQ(sheaf_diagnostics_text(diagnostics), "");
  sheaf_diagnostics_release(diagnostics);

  newer.later = 0;
  newer.known.text = "fn main(x: int) -> int = y\n";
  EXPECT_EQ(sheaf_compile(&newer.known, &model, &diagnostics), SHEAF_NOT_COMPILED);
  ASSERT_EQ(sheaf_diagnostics_count(diagnostics), 1u);
  struct {
    sheaf_diagnostic known;
    uint64_t later;
  } more;
  std::memset(&more, 0xff, sizeof more);
  more.known.size = sizeof more;
  ASSERT_EQ(sheaf_diagnostics_get(diagnostics, 0, &more.known), SHEAF_OK);
  EXPECT_EQ(more.later, 0u);
  EXPECT_STREQ(more.known.file, "model.sheaf");
  EXPECT_EQ(more.known.column, 26);
  EXPECT_EQ(more.known.end_column, 27);
  sheaf_diagnostic older{};
  older.size = offsetof(sheaf_diagnostic, column);
  older.column = -7;
  ASSERT_EQ(sheaf_diagnostics_get(diagnostics, 0, &older), SHEAF_OK);
  EXPECT_EQ(older.line, 1);
  EXPECT_EQ(older.column, -7);
  older.size = 0;
  EXPECT_EQ(sheaf_diagnostics_get(diagnostics, 0, &older), SHEAF_INVALID);
  EXPECT_EQ(sheaf_diagnostics_get(diagnostics, 1, &more.known), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "there is no diagnostic 1 but 1");
  EXPECT_EQ(sheaf_diagnostics_note(diagnostics, 0, 0, &more.known), SHEAF_INVALID);
  sheaf_diagnostics_release(diagnostics);
}

} // namespace
