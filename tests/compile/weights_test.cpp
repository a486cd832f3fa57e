// Files of weights and sessions, through the C interface and its C++ wrapper.
#include "tests/artefact/message_of.h"

#include "sheaf/compiler.hpp"
#include "sheaf/gradients.hpp"
#include "sheaf/train.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace fs = std::filesystem;

namespace {

const char *const kSource = R"(
dim hidden = 5, vocab
param embedding : f32[vocab, hidden] = normal(0.5)
param out : f32[hidden] = normal(0.5)
fn main(word: token) -> f32 = dot(embedding[word], out)
fn loss(word: token) -> f32 = main(word) * main(word)
)";

class WeightFiles : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(sheaf_compiler_open(SHEAF_COMPILER_FILE), SHEAF_OK) << sheaf_error_message();
  }
  void SetUp() override {
    directory = fs::temp_directory_path() / ("sheaf-weights-" + std::to_string(getpid()));
    fs::create_directories(directory);
    write("m.sheaf", kSource);
    write("v.txt", "<unk>\nyes\nno\n");
    write("d.jsonl", "\"yes\"\n\"no\"\n\"maybe\"\n");
  }
  void TearDown() override { fs::remove_all(directory); }

  std::string path(const std::string &name) const { return directory / name; }
  void write(const std::string &name, const std::string &text) const {
    std::ofstream(path(name)) << text;
  }
  std::string read(const std::string &name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  std::string command(const std::string &arguments) const {
    std::string line = "cd '" + directory.string() + "' && '" SHEAF_COMMAND "' " + arguments +
                       " >out.txt 2>err.txt";
    EXPECT_EQ(std::system(line.c_str()), 0) << read("err.txt");
    return read("out.txt");
  }
  sheaf::Model compiled(uint64_t seed, const std::string &entry = "main") const {
    sheaf::CompileOptions options;
    options.path = path("m.sheaf");
    options.entry = entry;
    options.training = entry == "loss";
    options.seed = seed;
    options.vocabularies = {{"", path("v.txt"), {}, 0}};
    return sheaf::compile(options);
  }
  static sheaf::Model ofText(const std::string &params) {
    sheaf::CompileOptions options;
    options.text = params + "fn main(x: f32) -> f32 = x\n";
    options.training = true;
    return sheaf::compile(options);
  }
  static std::vector<float> weights(const sheaf::Session &session, const sheaf::Model &model) {
    std::vector<float> all;
    for (const std::string &name : sheaf::weightNames(model)) {
      sheaf::Tensor tensor = sheaf::weight(session, model, name);
      all.insert(all.end(), tensor.data<float>(), tensor.data<float>() + tensor.size());
    }
    return all;
  }

  fs::path directory;
};

TEST_F(WeightFiles, SavedWeightsAreThoseOfTheCommand) {
  sheaf::Model model = compiled(3);
  sheaf::Session session;
  sheaf::saveWeights(session, model, path("w.safetensors"), /*vocabularies=*/true);
  EXPECT_EQ(read("w.vocab.txt"), read("v.txt"));
  sheaf::Result result = [&] {
    sheaf::Values data = sheaf::readValues(model, path("d.jsonl"));
    sheaf::Batch batch(model);
    batch.add(data);
    return session.run(batch);
  }();
  std::istringstream lines(command("run m.sheaf --data d.jsonl --weights w.safetensors"));
  for (size_t i = 0; i < 3; ++i) {
    float number = 0;
    lines >> number;
    EXPECT_EQ(number, result[i].tensor().data<float>()[0]) << i;
  }
  command("run m.sheaf --data d.jsonl --weights w.safetensors --verify");
}

TEST_F(WeightFiles, ASessionTakesThemWithoutACompiler) {
  sheaf::Model first = compiled(3);
  sheaf::save(compiled(4), path("m.sheafc"));
  sheaf::Model opened(path("m.sheafc"));
  sheaf::Session session, other;
  sheaf::saveWeights(session, first, path("w.safetensors"));
  std::vector<float> wanted = weights(session, first), before = weights(other, opened);
  EXPECT_NE(wanted, before);
  sheaf::LoadedWeights loaded = sheaf::loadWeights(other, opened, path("w.safetensors"));
  EXPECT_EQ(weights(other, opened), wanted);
  EXPECT_TRUE(loaded.missing.empty() && loaded.unused.empty() && loaded.conversions.empty());
  // Another session has those of the artefact.
  EXPECT_EQ(weights(session, opened), before);
}

TEST_F(WeightFiles, NamesAreMapped) {
  sheaf::Model model =
      ofText("param a : f32[2] = ones\nparam b : f32[2] = ones\nparam c : f32[2] = constant(7)\n");
  sheaf::Model file = ofText("param x_a : f32[2] = constant(2)\nparam x_b : f32[2] = constant(3)\n"
                             "param other : f32[1] = ones\n");
  sheaf::Session session;
  std::string name = path("x.safetensors");
  sheaf::saveWeights(session, file, name);
  sheaf::LoadWeights how;
  how.renames = {"x_*=*"};
  std::vector<float> before = weights(session, model);
  auto refused = [&](const std::string &message) {
    std::string told =
        messageOf([&] { sheaf::loadWeights(session, model, name, how); }, SHEAF_INVALID);
    EXPECT_NE(told.find(message), std::string::npos) << told;
    EXPECT_EQ(weights(session, model), before);
  };
  refused("c: f32[2]");
  how.partial = true;
  sheaf::LoadedWeights loaded = sheaf::loadWeights(session, model, name, how);
  EXPECT_EQ(weights(session, model), (std::vector<float>{2, 2, 3, 3, 7, 7}));
  EXPECT_EQ(loaded.missing, std::vector<std::string>{"c"});
  EXPECT_EQ(loaded.unused, std::vector<std::string>{"other: F32[1]"});
  before = weights(session, model);
  how.strict = true;
  refused("other");
  how.strict = false;
  how.renames.push_back("nothing=a");
  refused("nothing=a");
  how.renames.back() = "no rename";
  refused("no rename");
  how.renames.pop_back();
  how.fresh = {"z*"};
  refused("'z*'");
  how.fresh = {"a", "c"};
  how.partial = false;
  sheaf::setWeight(session, model, "a", [] {
    static float nine[2] = {9, 9};
    static int64_t two = 2;
    return DLTensor{nine, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &two, nullptr, 0};
  }());
  loaded = sheaf::loadWeights(session, model, name, how);
  EXPECT_EQ(weights(session, model), (std::vector<float>{9, 9, 3, 3, 7, 7}));
  EXPECT_EQ(loaded.missing, (std::vector<std::string>{"a", "c"}));
  how = {};
  name = path("nowhere.safetensors");
  before = weights(session, model);
  messageOf([&] { sheaf::loadWeights(session, model, name, how); }, SHEAF_NOT_READABLE);
  EXPECT_EQ(weights(session, model), before);
}

TEST_F(WeightFiles, LoadingThemIsStopped) {
  sheaf::Model model = ofText("param a : f32[2] = ones\n"),
               other = ofText("param a : f32[2] = zeros\n");
  sheaf::Session session;
  sheaf::saveWeights(session, other, path("w.safetensors"));
  std::vector<float> before = weights(session, model);
  sheaf::LoadWeights how;
  how.stop.emplace();
  how.stop->request();
  auto load = [&] { sheaf::loadWeights(session, model, path("w.safetensors"), how); };
  messageOf(load, SHEAF_STOPPED);
  EXPECT_EQ(weights(session, model), before);
  how.stop.emplace();
  load();
  EXPECT_NE(weights(session, model), before);
}

TEST_F(WeightFiles, OfSeveralFilesAndTypes) {
  sheaf::Session session;
  sheaf::saveWeights(session, ofText("param a : f16[2] = constant(2)\n"), path("1.safetensors"));
  sheaf::saveWeights(session, ofText("param b : f32[2] = constant(3)\n"), path("2.safetensors"));
  write("model.safetensors.index.json",
        "{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"2.safetensors\"}}");
  sheaf::Model model = ofText("param a : f32[2] = ones\nparam b : f32[2] = ones\n");
  sheaf::LoadedWeights loaded = sheaf::loadWeights(session, model, directory);
  EXPECT_EQ(weights(session, model), (std::vector<float>{2, 2, 3, 3}));
  EXPECT_EQ(loaded.conversions, "1 tensor is converted, F16 to f32");
}

TEST_F(WeightFiles, OfTrainings) {
  command("train m.sheaf --vocab v.txt --data d.jsonl --epochs 2 -o run");
  sheaf::Model model = compiled(1), loss = compiled(1, "loss");
  sheaf::Session session;
  sheaf::loadWeights(session, model, path("run"));
  std::vector<float> best = weights(session, model);
  sheaf::loadWeights(session, model, path("run/best.safetensors"));
  EXPECT_EQ(weights(session, model), best);
  sheaf::loadWeights(session, model, path("run/checkpoint-2.safetensors"));
  EXPECT_EQ(weights(session, model), best); // of the last epoch
  // Gradients of what ran before are there no more.
  sheaf::Batch batch(loss);
  batch.add(sheaf::readValues(loss, path("d.jsonl")));
  sheaf::Result losses = session.run(batch);
  sheaf::loadWeights(session, loss, path("run"));
  messageOf([&] { sheaf::backward(session, losses); }, SHEAF_INVALID);
  EXPECT_EQ(weights(session, loss), best);
}

TEST_F(WeightFiles, OfOtherVocabulariesAreRefused) {
  sheaf::Session session;
  sheaf::saveWeights(session, compiled(1), path("w.safetensors"));
  write("v.txt", "<unk>\nno\nyes\n");
  sheaf::Model model = compiled(2);
  std::vector<float> before = weights(session, model);
  std::string told =
      messageOf([&] { sheaf::loadWeights(session, model, path("w.safetensors")); }, SHEAF_INVALID);
  EXPECT_NE(told.find("vocabulary"), std::string::npos) << told;
  EXPECT_EQ(weights(session, model), before);
}

TEST_F(WeightFiles, TablesGoByWord) {
  sheaf::Session session;
  sheaf::Model old = compiled(1);
  sheaf::saveWeights(session, old, path("w.safetensors"), /*vocabularies=*/true);
  sheaf::saveWeights(session, old, path("w.bin"), /*vocabularies=*/true);
  sheaf::Tensor table = sheaf::weight(session, old, "embedding");
  write("v.txt", "<unk>\nno\nmaybe\nyes\n");
  sheaf::Model model = compiled(2);
  sheaf::LoadWeights how;
  how.tables = {{"embedding", ""}};
  std::vector<float> before = weights(session, model);
  auto refused = [&](const std::string &file, const std::string &message) {
    std::string told =
        messageOf([&] { sheaf::loadWeights(session, model, path(file), how); }, SHEAF_INVALID);
    EXPECT_NE(told.find(message), std::string::npos) << told;
    EXPECT_EQ(weights(session, model), before);
  };
  refused("w.safetensors", "options.partial");
  how.partial = true;
  sheaf::LoadedWeights loaded = sheaf::loadWeights(session, model, path("w.safetensors"), how);
  EXPECT_EQ(loaded.words, std::vector<std::string>{"embedding: maybe"});
  EXPECT_TRUE(loaded.missing.empty() && loaded.unused.empty());
  auto row = [&](const float *rows, int number) {
    return std::vector<float>(rows + 5 * number, rows + 5 * number + 5);
  };
  const float *from = table.data<float>();
  std::vector<float> now = weights(session, model);
  for (auto [word, number] : {std::pair(0, 0), {1, 2}, {3, 1}})
    EXPECT_EQ(row(now.data(), word), row(from, number)) << word;
  EXPECT_EQ(row(now.data(), 2), row(before.data(), 2));
  // Vectors of words as text.
  write("vectors.txt", "maybe 1 2 3 4 5\nnever 5 6 7 8 9\n");
  loaded = sheaf::loadWeights(session, model, path("vectors.txt"), how);
  EXPECT_EQ(loaded.missing, std::vector<std::string>{"out"});
  EXPECT_EQ(loaded.words.size(), 3u);
  EXPECT_EQ(row(weights(session, model).data(), 2), (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(row(weights(session, model).data(), 1), row(now.data(), 1));
  before = weights(session, model);
  how.renames = {"x=embedding"};
  refused("vectors.txt", "the rename x=embedding is for no tensor of");
  // What a file is, it says itself.
  how.renames = {"out=out"};
  EXPECT_TRUE(sheaf::loadWeights(session, model, path("w.bin"), how).missing.empty());
  how.renames.clear();
  before = weights(session, model);
  how.tables = {{"out", ""}};
  refused("w.safetensors", "has no row for each of the 4 words of token");
  how.tables = {{"embedding", "tag"}};
  refused("w.safetensors", "the model has no words of token<tag>");
  how.tables = {{"nothing", ""}};
  refused("w.safetensors", "no weight 'nothing'");
}

TEST_F(WeightFiles, AndWrongArguments) {
  sheaf::Model model = compiled(1);
  sheaf::Session session;
  EXPECT_EQ(sheaf_session_load_weights(session.get(), model.get(), nullptr, nullptr, nullptr),
            SHEAF_INVALID);
  EXPECT_EQ(sheaf_session_save_weights(session.get(), model.get(), nullptr, nullptr),
            SHEAF_INVALID);
  EXPECT_EQ(sheaf_session_save_weights(session.get(), model.get(), path("no/w").c_str(), nullptr),
            SHEAF_INVALID);
  sheaf_load_weights_options options{};
  EXPECT_EQ(
      sheaf_session_load_weights(session.get(), model.get(), path("w").c_str(), &options, nullptr),
      SHEAF_INVALID); // its size
  EXPECT_EQ(sheaf_loaded_weights_count(nullptr, SHEAF_WEIGHTS_UNUSED), 0u);
  EXPECT_EQ(sheaf_loaded_weights_name(nullptr, SHEAF_WEIGHTS_UNUSED, 0), nullptr);
  EXPECT_STREQ(sheaf_loaded_weights_conversions(nullptr), "");
  sheaf_loaded_weights_release(nullptr);
}

} // namespace
