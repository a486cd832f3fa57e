// Trainings through the C interface and its C++ wrapper, against those of the command.
#include "tests/artefact/message_of.h"

#include "runtime/artefact/artefact.h"
#include "sheaf/compiler.hpp"
#include "sheaf/gradients.hpp"
#include "sheaf/train.hpp"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>

namespace fs = std::filesystem;

namespace {

const char *const kSource = R"(
dim hidden = 8, vocab
param embedding : f32[vocab, hidden] = normal(0.5)
param w : f32[hidden, hidden] = glorot
param b : f32[hidden] = zeros
param out_w : f32[hidden, 3] = glorot

fn scores(words: list<token>) -> f32[3] =
  dropout(fold(|h, word| tanh(embedding[word] + h @ w + b), zeros(hidden), words), 0.2) @ out_w
fn loss(words: list<token>, label: int) -> f32 = cross_entropy(scores(words), label)
fn right(words: list<token>, label: int) -> bool = read(argmax(scores(words))) == label
fn classes(words: list<token>, label: int) -> (int, int) = (read(argmax(scores(words))), label)
)";

class Trained : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(sheaf_compiler_open(SHEAF_COMPILER_FILE), SHEAF_OK) << sheaf_error_message();
    directory = fs::temp_directory_path() / ("sheaf-train-" + std::to_string(getpid()));
    fs::create_directories(directory);
    write("m.sheaf", kSource);
    std::string words = "<unk>\n", train, dev;
    for (int i = 0; i < 9; ++i)
      words += "w" + std::to_string(i) + "\n";
    for (int i = 0; i < 45; ++i) {
      std::string line = "{\"words\": [";
      for (int j = 0; j <= i % 4; ++j)
        line += (j ? ", \"w" : "\"w") + std::to_string((i * 5 + 2 * j) % 9) + "\"";
      line += "], \"label\": " + std::to_string((i + i / 3) % 3) + "}\n";
      (i % 3 ? train : dev) += line;
    }
    write("v.txt", words);
    write("train.jsonl", train);
    write("dev.jsonl", dev);
    loss.emplace(compiled("loss", /*training=*/true));
    right.emplace(compiled("right", /*training=*/false));
  }
  static void TearDownTestSuite() {
    loss.reset();
    right.reset();
    fs::remove_all(directory);
  }
  void TearDown() override {
    for (const fs::directory_entry &entry : fs::directory_iterator(directory))
      if (entry.is_directory())
        fs::remove_all(entry);
  }

  static std::string path(const std::string &name) { return directory / name; }
  static void write(const std::string &name, const std::string &text) {
    std::ofstream(path(name)) << text;
  }
  static std::string read(const std::string &name) {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  static sheaf::Model compiled(const std::string &entry, bool training) {
    sheaf::CompileOptions options;
    options.path = path("m.sheaf");
    options.name = "m.sheaf"; // as the command is given it
    options.entry = entry;
    options.training = options.dropout = training;
    options.seed = 5;
    options.vocabularies = {{"", path("v.txt"), {}, 0}};
    return sheaf::compile(options);
  }
  /// Runs the command in the directory.
  static void command(const std::string &arguments) {
    std::string line = "cd '" + directory.string() + "' && '" SHEAF_COMMAND "' " + arguments +
                       " >out.txt 2>err.txt";
    ASSERT_EQ(std::system(line.c_str()), 0) << read("out.txt") << read("err.txt");
  }
  /// What the command is given beside, as `options()` says it.
  static std::string train(const std::string &more) {
    return "train m.sheaf --vocab v.txt --data train.jsonl --dev dev.jsonl --metric right --batch "
           "4 "
           "--accumulate 2 --optimizer adamw --weight-decay 0.01 --no-decay b --lr-for "
           "'out_*=0.02' "
           "--lr 0.01 --clip 1 --ema 0.9 --checkpoint-every 2 --keep 99 --seed 5 " +
           more;
  }
  static constexpr sheaf_weight_update kUpdates[] = {{"b", 0, -1}, {"out_*", 2, 0}};
  static sheaf_training_options options(sheaf_optimizer_options &optimizer) {
    optimizer = {};
    optimizer.size = sizeof optimizer;
    optimizer.name = "adamw";
    optimizer.weight_decay = 0.01;
    optimizer.clip = 1;
    optimizer.updates = kUpdates;
    optimizer.update_count = std::size(kUpdates);
    sheaf_training_options options{};
    options.batch = 4;
    options.accumulate = 2;
    options.seed = 5;
    options.learning_rate = 0.01;
    options.optimizer = &optimizer;
    options.average = 0.9;
    options.checkpoint_every = 2;
    options.keep = 99;
    return options;
  }
  static void expectEqualFiles(const std::string &one, const std::string &other) {
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(path(one)))
      if (std::string name = entry.path().filename();
          name.ends_with(".safetensors") || name.ends_with(".vocab.txt"))
        names.push_back(name);
    EXPECT_GT(names.size(), 4u);
    for (const std::string &name : names)
      EXPECT_TRUE(read(one + "/" + name) == read(other + "/" + name)) << name;
  }

  static fs::path directory;
  static std::optional<sheaf::Model> loss, right;
};
fs::path Trained::directory;
std::optional<sheaf::Model> Trained::loss, Trained::right;

TEST_F(Trained, HasTheBytesOfTheCommand) {
  command(train("--epochs 3 --schedule cosine --warmup 3 -o command"));
  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 3;
  how.schedule = "cosine";
  how.warmup = 3;
  std::string mine = path("mine");
  how.directory = mine.c_str();
  sheaf::Session session(2);
  sheaf::Training training(session, *loss, sheaf::readValues(*loss, path("train.jsonl")), how);
  sheaf::Values dev = sheaf::readValues(*right, path("dev.jsonl"));
  training.addMeasure(*right, dev);
  uint64_t steps = 0, epochs = 0;
  for (const sheaf_training_event &event : training) {
    steps += event.kind == SHEAF_TRAINING_STEP;
    EXPECT_EQ(event.step, steps);
    EXPECT_EQ(event.steps, 12u);
    if (event.kind == SHEAF_TRAINING_STEP)
      EXPECT_EQ(event.rate, sheaf::learningRate({0, 0.01, "cosine", 3, 12}, event.step - 1));
    EXPECT_TRUE(std::isfinite(event.loss));
    if (event.kind != SHEAF_TRAINING_EPOCH)
      continue;
    ++epochs;
    EXPECT_EQ(event.epoch, epochs);
    EXPECT_EQ(event.instances, 30u);
    EXPECT_EQ(training.measures(), 1u);
    EXPECT_EQ(training.measure(0).value(), event.value);
  }
  EXPECT_EQ(epochs, 3u);
  expectEqualFiles("command", "mine");
}

TEST_F(Trained, RatesFollowSchedules) {
  EXPECT_EQ(sheaf::learningRate({}, 5), 0.001);
  EXPECT_EQ(sheaf::learningRate({0, 0.5, nullptr, 4, 0}, 1), 0.25);
  EXPECT_EQ(sheaf::learningRate({0, 0.5, "linear", 0, 10}, 5), 0.25);
  EXPECT_EQ(sheaf::learningRate({0, 0.5, "linear", 0, 10}, 99), 0);
  double rate = 0;
  EXPECT_EQ(sheaf_learning_rate(nullptr, 0, &rate), SHEAF_OK);
  EXPECT_EQ(rate, 0.001);
  EXPECT_EQ(sheaf_learning_rate(nullptr, 0, nullptr), SHEAF_INVALID);
  messageOf([] { sheaf::learningRate({0, 0, "cosine", 0, 0}, 0); }, SHEAF_INVALID);
  messageOf([] { sheaf::learningRate({0, 0, "steep", 0, 1}, 0); }, SHEAF_INVALID);
}

TEST_F(Trained, GoesOnWithWhatTheCommandBegan) {
  command(train("--epochs 4 -o whole"));
  command(train("--epochs 2 -o begun"));
  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 4;
  std::string begun = path("begun");
  how.directory = begun.c_str();
  sheaf::Session session;
  sheaf::Values data = sheaf::readValues(*loss, path("train.jsonl"));
  EXPECT_NE(messageOf([&] { sheaf::Training(session, *loss, data, how); }, SHEAF_INVALID)
                .find("holds a training"),
            std::string::npos);
  how.resume = 1;
  {
    sheaf::Training training(session, *loss, data, how);
    training.addMeasure(*right, sheaf::readValues(*right, path("dev.jsonl")));
    sheaf_training_event event = training.next();
    EXPECT_EQ(event.step, 9u);
    EXPECT_EQ(event.epoch, 3u);
    while (training.next().kind != SHEAF_TRAINING_ENDED) {
    }
  }
  expectEqualFiles("whole", "begun");
  // And the command reads what was written.
  command("eval m.sheaf --metric right --data dev.jsonl --weights begun/checkpoint-14.safetensors");
  command("train --resume begun --epochs 5");
}

TEST_F(Trained, BeginsWhatTheCommandGoesOnWith) {
  command(train("--epochs 4 -o whole"));
  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 2;
  std::string mine = path("mine");
  how.directory = mine.c_str();
  {
    sheaf::Session session;
    sheaf::Training training(session, *loss, sheaf::readValues(*loss, path("train.jsonl")), how);
    training.addMeasure(*right, sheaf::readValues(*right, path("dev.jsonl")));
    for (const sheaf_training_event &event : training)
      EXPECT_EQ(event.failed, 0u);
  }
  command("train --resume mine");
  EXPECT_NE(read("err.txt").find("this training has ended, after 2 epochs"), std::string::npos);
  EXPECT_EQ(read("err.txt").find("has changed"), std::string::npos) << read("err.txt");
  command("train --resume mine --epochs 4");
  expectEqualFiles("whole", "mine");
  EXPECT_NE(read("mine/config.json").find("after step 8: --epochs \\\"4\\\" instead of \\\"2\\\""),
            std::string::npos);
  command("eval m.sheaf --metric right --data dev.jsonl --weights mine");
  command("run m.sheaf --entry right --data dev.jsonl --weights mine");
  // The program goes on with it, and changes what it changes there, too; that it had ended is none
  // of the options.
  std::string config = read("mine/config.json");
  const std::string ended = "\"ended\": false";
  ASSERT_NE(config.find(ended), std::string::npos);
  write("mine/config.json", config.replace(config.find(ended), ended.size(), "\"ended\": true"));
  how.epochs = 5;
  how.resume = 1;
  sheaf::Session session;
  sheaf::Training training(session, *loss, sheaf::readValues(*loss, path("train.jsonl")), how);
  training.addMeasure(*right, sheaf::readValues(*right, path("dev.jsonl")));
  while (training.next().kind != SHEAF_TRAINING_ENDED) {
  }
  EXPECT_NE(read("mine/config.json").find("after step 16: --epochs \\\"5\\\" instead of \\\"4\\\""),
            std::string::npos);
  EXPECT_NE(read("mine/config.json").find("\"metric\": [\n    \"right\"\n  ]"), std::string::npos);
  EXPECT_EQ(read("mine/config.json").find("--ended"), std::string::npos);
}

TEST_F(Trained, WantsToBeToldWhatNoFileSays) {
  command("train m.sheaf --vocab v.txt --data train.jsonl --epochs 2 --seed 5 -o whole");
  sheaf::CompileOptions made;
  made.text = kSource;
  made.name = "m.sheaf";
  made.entry = "loss";
  made.training = made.dropout = true;
  made.seed = 5;
  made.vocabularies = {{"", path("v.txt"), {}, 0}};
  sheaf::Model model = sheaf::compile(made);
  sheaf_read_options reading{};
  reading.limit = 30; // all of them, but who knows
  sheaf_training_options how{};
  how.epochs = 2;
  how.seed = 5;
  std::string mine = path("mine");
  how.directory = mine.c_str();
  auto begun = [&](int steps) {
    sheaf::Session session;
    sheaf::Training training(session, model, sheaf::readValues(model, path("train.jsonl"), reading),
                             how);
    for (int i = 0; i < steps; ++i)
      training.next();
  };
  begun(0);
  std::string resume = "train m.sheaf --resume mine --data train.jsonl";
  auto fails = [&](const std::string &arguments, int code, const std::string &message) {
    std::string line = "cd '" + directory.string() + "' && '" SHEAF_COMMAND "' " + arguments +
                       " >out.txt 2>err.txt";
    EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), code);
    EXPECT_NE(read("err.txt").find(message), std::string::npos) << read("err.txt");
  };
  fails(resume, 1, "mine: no checkpoint yet, and only the program that began this training has");
  fs::remove_all(mine);
  begun(2); // the epoch with its step
  fails("train --resume mine", 2, "mine was begun by a program, which did not tell model");
  fails("train --resume mine m.sheaf", 2, "which did not tell --data");
  fails(resume + " --dev dev.jsonl", 2, "--dev is given with --resume");
  command(resume);
  expectEqualFiles("whole", "mine");
  command("train --resume mine"); // it stands there now
  EXPECT_NE(read("mine/config.json").find("\"model\": \"m.sheaf\""), std::string::npos);
  write("mine/config.json", "{\n  \"lr\": 1e-3,,\n}");
  fails("train --resume mine", 1, "mine/config.json:2:14: ");
  write("mine/config.json", "{\"lr\": true}");
  fails("train --resume mine", 1, "mine/config.json: 'lr' is missing or wrong");
}

TEST_F(Trained, TakesValuesOfMemory) {
  sheaf::Values read = sheaf::readValues(*loss, path("train.jsonl"));
  EXPECT_EQ(read.size(), 30u);
  EXPECT_STREQ(sheaf_values_place(read.get(), 3), (path("train.jsonl") + ":4").c_str());
  // The same, made here.
  std::ifstream lines(path("train.jsonl"));
  sheaf::Type list = loss->argumentType(0), number = loss->argumentType(1);
  sheaf::Type token = sheaf_type_child(loss->get(), list, 0);
  std::vector<int64_t> tokens, labels;
  std::vector<uint64_t> offsets{0};
  for (std::string line; std::getline(lines, line);) {
    for (size_t at = line.find("\"w"); at != std::string::npos; at = line.find("\"w", at + 1))
      if (std::isdigit(static_cast<unsigned char>(line[at + 2])))
        tokens.push_back(1 + line[at + 2] - '0');
    offsets.push_back(tokens.size());
    labels.push_back(line[line.size() - 2] - '0');
  }
  auto vectorOf = [](std::vector<int64_t> &numbers, int64_t &size) {
    size = static_cast<int64_t>(numbers.size());
    return DLTensor{numbers.data(), {kDLCPU, 0}, 1, {kDLInt, 64, 1}, &size, nullptr, 0};
  };
  int64_t tokenCount = 0, labelCount = 0;
  DLTensor tokenTensor = vectorOf(tokens, tokenCount), labelTensor = vectorOf(labels, labelCount);
  sheaf_value_builder *raw = nullptr;
  ASSERT_EQ(sheaf_builder_create(loss->get(), &raw), SHEAF_OK);
  sheaf_value words, lists, numbers;
  ASSERT_EQ(sheaf_builder_numbers(raw, token, &tokenTensor, &words), SHEAF_OK);
  ASSERT_EQ(sheaf_builder_lists(raw, list, words, offsets.data(), labels.size(), &lists), SHEAF_OK);
  ASSERT_EQ(sheaf_builder_numbers(raw, number, &labelTensor, &numbers), SHEAF_OK);
  sheaf_value arguments[] = {lists, numbers};
  ASSERT_EQ(sheaf_builder_instances(raw, arguments, 2, labels.size(), nullptr), SHEAF_OK);
  sheaf_values *values = nullptr;
  ASSERT_EQ(sheaf_builder_finish(raw, &values), SHEAF_OK);
  sheaf_builder_release(raw);
  sheaf::Values made(values);
  EXPECT_EQ(sheaf_values_place(made.get(), 3), nullptr);
  EXPECT_EQ(sheaf::reportOf(made).words, 0u);

  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 2;
  for (const auto &[data, file] : {std::pair(read, "read"), {made, "made"}}) {
    sheaf::Session session;
    sheaf::Training training(session, *loss, data, how);
    for (const sheaf_training_event &event : training)
      EXPECT_EQ(event.failed, 0u);
    training.save(path(std::string(file) + ".safetensors"));
  }
  EXPECT_TRUE(read.size() && this->read("read.safetensors") == this->read("made.safetensors"));
}

TEST_F(Trained, MakesVocabulariesOfData) {
  command("train m.sheaf --data train.jsonl --epochs 1 --seed 5 -o command");
  sheaf::CompileOptions options;
  options.path = path("m.sheaf");
  options.entry = "loss";
  options.training = options.dropout = true;
  options.seed = 5;
  options.wordsOf = path("train.jsonl");
  sheaf::Model model = sheaf::compile(options);
  EXPECT_EQ(sheaf_vocabulary_size(model.get(), ""), 10);
  sheaf_training_options how{};
  how.epochs = 1;
  how.seed = 5;
  std::string mine = path("mine");
  how.directory = mine.c_str();
  sheaf::Session session;
  sheaf::Training training(session, model, sheaf::readValues(model, path("train.jsonl")), how);
  while (training.next().kind != SHEAF_TRAINING_ENDED) {
  }
  expectEqualFiles("command", "mine");
  options.wordsFormat = "trees";
  EXPECT_NE(messageOf([&] { sheaf::compile(options); }, SHEAF_INVALID).find("train.jsonl"),
            std::string::npos);
  options.wordsOf = path("nowhere.jsonl");
  messageOf([&] { sheaf::compile(options); }, SHEAF_NOT_READABLE);
}

TEST_F(Trained, TrainsWhatWasSaved) {
  std::string saved = path("loss.sheafc");
  sheaf::save(*loss, saved);
  command("build m.sheaf --train --vocab v.txt --seed 5 -o built.sheafc");
  EXPECT_TRUE(read("loss.sheafc") == read("built.sheafc"));
  sheaf::Model opened(saved);
  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 2;
  for (const sheaf::Model *model : {&*loss, &opened}) {
    sheaf::Session session;
    sheaf::Training training(session, *model, sheaf::readValues(*model, path("train.jsonl")), how);
    for (const sheaf_training_event &event : training)
      EXPECT_EQ(event.failed, 0u);
    training.save(path(model == &opened ? "opened.safetensors" : "compiled.safetensors"));
  }
  EXPECT_TRUE(read("opened.safetensors") == read("compiled.safetensors"));
}

TEST_F(Trained, SavesModelsWithoutKernels) {
  sheaf::CompileOptions options;
  options.text = "param w : f32 = constant(2)\nfn main(x: f32) -> f32 = w\n";
  options.training = true;
  sheaf::save(sheaf::compile(options), path("bare.sheafc"));
  sheaf::Model model(path("bare.sheafc"));
  sheaf::Session session;
  sheaf::Batch batch(model);
  float x = 1;
  batch.add({batch.makeTensor(model.argumentType(0), {}, &x)});
  EXPECT_EQ(sheaf::backward(session, session.run(batch)).weight("w").data<float>()[0], 1);
}

TEST_F(Trained, RefusesDamagedGradients) {
  std::string saved = path("loss.sheafc");
  sheaf::save(*loss, saved);
  std::string bytes = read("loss.sheafc");
  using sheaf::artefact::Description;
  const Description whole =
      sheaf::artefact::parse({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  const sheaf::rt::Model &model = whole.model;
  size_t back = 0, weights = 0, words = 0;
  for (size_t i = 0; i < model.gradients.size(); ++i) {
    if (model.gradients[i].kernel >= 0)
      back = i;
    if (!model.gradients[i].weights.empty())
      weights = i;
    if (!model.gradients[i].words.empty())
      words = i;
  }
  sheaf::artefact::verify(whole);
  auto refuses = [&](auto change, const char *field = "model.training") {
    Description damaged = whole;
    change(damaged.model);
    try {
      sheaf::artefact::verify(damaged);
      ADD_FAILURE() << "was taken";
    } catch (const sheaf::artefact::ArtefactError &error) {
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
  };
  using sheaf::rt::Model;
  refuses([&](Model &m) { m.gradients[back].kernel = 0; });
  refuses([&](Model &m) { m.gradients[back].kernel = 1 << 20; });
  refuses([&](Model &m) { m.gradients[back].words.pop_back(); });
  refuses([&](Model &m) {
    m.gradients[words].words[0].source = {sheaf::rt::RowSource::Output, 99};
    m.gradients[words].words[0].kind = sheaf::rt::BackwardWord::Row;
  });
  refuses([&](Model &m) { m.gradients[weights].weights[0].param = 999; });
  refuses([&](Model &m) { m.gradients[weights].weights[0].right.index = 999; });
  refuses([&](Model &m) { m.gradients[weights].weights[0].rows = {{1, {999}}}; });
  refuses([&](Model &m) { m.gradients[back].outputs.push_back({{}, {{{1, {999}}}}}); });
  refuses([&](Model &m) { m.gradients[back].wanted.resize(99); });
  refuses([&](Model &m) { m.kernels[0].results.push_back({{}, {{{1, {999}}}}}); },
          "model.kernels[0].results");
  refuses([&](Model &m) { m.gradients.resize(m.kernels.size() + 1); });
}

/// Trainings beside each other divide the threads of one object, measures included, and come to the
/// weights of one alone.
TEST_F(Trained, SharesWorkersWithOthers) {
  sheaf::Values data = sheaf::readValues(*loss, path("train.jsonl")),
                dev = sheaf::readValues(*right, path("dev.jsonl"));
  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 2;
  auto train = [&](sheaf::Session session, const std::string &file) {
    sheaf::Training training(session, *loss, data, how);
    training.addMeasure(*right, dev);
    for (const sheaf_training_event &event : training)
      EXPECT_EQ(event.failed, 0u);
    training.save(path(file));
  };
  train(sheaf::Session(), "alone.safetensors");
  std::optional<sheaf::Workers> workers(2);
  sheaf_session_options shared{};
  shared.size = sizeof shared;
  shared.workers = workers->get();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, session = sheaf::Session(shared), i]() mutable {
      train(std::move(session), "shared" + std::to_string(i) + ".safetensors");
    });
  workers.reset(); // the sessions hold them
  for (std::thread &thread : threads)
    thread.join();
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(read("alone.safetensors") == read("shared" + std::to_string(i) + ".safetensors"));
}

TEST_F(Trained, StopsAndGoesOn) {
  sheaf::Values data = sheaf::readValues(*loss, path("train.jsonl"));
  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 3;
  sheaf::Session whole, session;
  sheaf::Training undisturbed(whole, *loss, data, how), training(session, *loss, data, how);
  for (const sheaf_training_event &event : undisturbed)
    EXPECT_EQ(event.failed, 0u);
  undisturbed.save(path("whole.safetensors"));
  sheaf::Stop before;
  before.request();
  EXPECT_EQ(training.next(before).kind, SHEAF_TRAINING_STOPPED);
  // Stops that come before, in and after steps, as it happens.
  for (int spins = 0;; spins += 500) {
    sheaf::Stop stop;
    std::atomic<bool> ready = false, begun = false;
    std::thread stopper([&] {
      ready = true;
      while (!begun)
        std::this_thread::yield();
      for (volatile int i = 0; i < spins; i = i + 1) {
      }
      stop.request();
    });
    while (!ready)
      std::this_thread::yield();
    begun = true;
    sheaf_training_event event = training.next(stop);
    stopper.join();
    if (event.kind == SHEAF_TRAINING_ENDED)
      break;
  }
  training.save(path("stopped.safetensors"));
  EXPECT_TRUE(read("whole.safetensors") == read("stopped.safetensors"));
}

TEST_F(Trained, KeepsAnEpochThatCouldNotBeWritten) {
  sheaf::Values data = sheaf::readValues(*loss, path("train.jsonl"));
  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 1;
  std::string where = path("unwritten"), undisturbedWhere = path("written");
  how.directory = undisturbedWhere.c_str();
  sheaf::Session whole, session;
  sheaf::Training undisturbed(whole, *loss, data, how);
  for (const sheaf_training_event &event : undisturbed)
    EXPECT_EQ(event.failed, 0u);
  how.directory = where.c_str();
  sheaf::Training training(session, *loss, data, how);
  fs::create_directories(where + "/best.safetensors/in the way");
  int failed = 0;
  for (;;) {
    try {
      sheaf_training_event event = training.next();
      if (event.kind == SHEAF_TRAINING_ENDED)
        break;
      if (event.kind == SHEAF_TRAINING_EPOCH) {
        EXPECT_EQ(event.best, 1);
        EXPECT_EQ(event.instances, 30u);
      }
    } catch (const sheaf::Error &) {
      if (++failed == 2)
        fs::remove_all(where + "/best.safetensors");
      ASSERT_LE(failed, 2);
    }
  }
  EXPECT_EQ(failed, 2);
  expectEqualFiles("written", "unwritten");
}

TEST_F(Trained, LeavesFrozenWeightsInItsStepsAlone) {
  command(train("--epochs 1 --freeze 'out_*' --freeze b -o command"));
  sheaf::Values data = sheaf::readValues(*loss, path("train.jsonl"));
  sheaf_optimizer_options optimizer;
  sheaf_training_options how = options(optimizer);
  how.epochs = 1;
  std::string mine = path("mine");
  how.directory = mine.c_str();
  const char *const frozen[] = {"out_*", "b"};
  how.frozen = frozen;
  how.frozen_count = 2;
  sheaf::Session session;
  auto weightOf = [&](const char *name) {
    DLManagedTensor *tensor = nullptr;
    EXPECT_EQ(sheaf_session_weight(session.get(), loss->get(), name, &tensor), SHEAF_OK);
    const auto *floats = static_cast<const float *>(tensor->dl_tensor.data);
    std::vector<float> copy(floats, floats + tensor->dl_tensor.shape[0]);
    tensor->deleter(tensor);
    return copy;
  };
  std::vector<float> before = weightOf("out_w"), w = weightOf("w");
  {
    sheaf::Training training(session, *loss, data, how);
    training.addMeasure(*right, sheaf::readValues(*right, path("dev.jsonl")));
    while (training.next().kind != SHEAF_TRAINING_ENDED) {
    }
  }
  expectEqualFiles("command", "mine");
  EXPECT_EQ(weightOf("out_w"), before);
  EXPECT_NE(weightOf("w"), w);
  // The next training has all of them, but for what the session freezes.
  how.directory = nullptr;
  how.frozen_count = 0;
  sheaf::freeze(session, *loss, "w");
  w = weightOf("w");
  sheaf::Training(session, *loss, data, how).next();
  EXPECT_NE(weightOf("out_w"), before);
  EXPECT_EQ(weightOf("w"), w);
  sheaf::unfreeze(session, *loss, "w");
  sheaf::Training(session, *loss, data, how).next();
  EXPECT_NE(weightOf("w"), w);

  const char *const none[] = {"out_v"}, *const all[] = {"*"}, *const null[] = {nullptr};
  for (auto [patterns, message] :
       {std::pair(none, "no weight of the model is called 'out_v'"),
        {all, "options.frozen leaves no weight that could be trained"}}) {
    how.frozen = patterns;
    how.frozen_count = 1;
    EXPECT_EQ(messageOf([&] { sheaf::Training(session, *loss, data, how); }, SHEAF_INVALID),
              message);
  }
  for (const char *const *patterns : {null, static_cast<const char *const *>(nullptr)}) {
    how.frozen = patterns;
    messageOf([&] { sheaf::Training(session, *loss, data, how); }, SHEAF_INVALID);
  }
}

TEST_F(Trained, TakesAllInstancesAtOnce) {
  sheaf::Values data = sheaf::readValues(*loss, path("train.jsonl"));
  sheaf_training_options how{};
  how.batch = UINT64_MAX;
  how.epochs = 2;
  sheaf::Session session;
  sheaf::Training training(session, *loss, data, how);
  sheaf_training_event event = training.next();
  EXPECT_EQ(event.steps, 2u);
  EXPECT_EQ(event.instances, 30u);
}

TEST_F(Trained, RunsWhatWasBest) {
  sheaf::Values data = sheaf::readValues(*loss, path("train.jsonl"));
  sheaf::Model classes = compiled("classes", /*training=*/false);
  sheaf::Values dev = sheaf::readValues(*right, path("dev.jsonl")),
                pairs = sheaf::readValues(classes, path("dev.jsonl"));
  sheaf::Session session;
  sheaf_training_options how{};
  how.epochs = 60;
  how.batch = 8;
  how.patience = 3;
  how.learning_rate = 0.05;
  how.keep_best = 1;
  sheaf::Training training(session, *loss, data, how);
  EXPECT_FALSE(training.restoreBest());
  training.addMeasure(classes, pairs, {0, "precision", 0, nullptr, 0});
  training.addMeasure(*right, dev);
  double best = -1;
  uint64_t epochs = 0;
  for (const sheaf_training_event &event : training)
    if (event.kind == SHEAF_TRAINING_EPOCH) {
      ++epochs;
      EXPECT_EQ(event.best != 0, event.value > best);
      best = std::max(best, event.value);
      sheaf_scores scores = training.measure(0).scores();
      EXPECT_EQ(scores.value, scores.precision);
      EXPECT_EQ(scores.accuracy, training.measure(1).value());
    }
  EXPECT_LT(epochs, 60u);
  EXPECT_TRUE(training.restoreBest());
  sheaf::copyWeights(session, *loss, *right);
  sheaf::copyWeights(session, *loss, classes);
  EXPECT_EQ(sheaf::Measure(session, *right, dev).value(), best);
  sheaf_measure_options accuracy{};
  accuracy.score = "accuracy";
  accuracy.batch = 4;
  sheaf::Measure measure(session, classes, pairs, accuracy);
  sheaf_scores scores = measure.scores();
  EXPECT_EQ(scores.value, best);
  EXPECT_EQ(scores.predictions, 15u);
  EXPECT_EQ(scores.error, nullptr);
  uint64_t total = 0, correct = 0;
  for (size_t i = 0; i < scores.cells; ++i) {
    sheaf::Measure::Cell cell = measure.cell(i);
    total += cell.times;
    correct += cell.actual == cell.predicted ? cell.times : 0;
  }
  EXPECT_EQ(total, 15u);
  EXPECT_EQ(static_cast<double>(correct) / 15, best);
  EXPECT_EQ(messageOf([&] { measure.cell(99); }, SHEAF_INVALID),
            "there is no cell 99 but " + std::to_string(scores.cells));
}

TEST_F(Trained, TellsOfWhatIsReadOver) {
  write("bad.jsonl", "{\"words\": [\"w1\", \"nowhere\"], \"label\": 1}\n"
                     "{\"words\": [7], \"label\"}\n"
                     "{\"words\": [\"w2\"], \"label\": 2, \"id\": 3}\n");
  std::string bad = path("bad.jsonl");
  std::string message = messageOf([&] { sheaf::readValues(*loss, bad); }, SHEAF_INVALID);
  EXPECT_EQ(message.find(bad + ":2:"), 0u) << message;
  sheaf_read_options options{};
  options.skip_bad = 1;
  sheaf::Values values = sheaf::readValues(*loss, bad, options);
  EXPECT_EQ(values.size(), 2u);
  EXPECT_STREQ(sheaf_values_place(values.get(), 1), (bad + ":3").c_str());
  sheaf_read_report report = sheaf::reportOf(values);
  EXPECT_EQ(report.skipped, 1u);
  EXPECT_EQ(std::string(report.first_skipped).find(bad + ":2:"), 0u);
  EXPECT_EQ(report.unknown_words, 1u);
  options = {};
  options.strict_words = 1;
  EXPECT_NE(
      messageOf([&] { sheaf::readValues(*loss, bad, options); }, SHEAF_INVALID).find("nowhere"),
      std::string::npos);
  options = {};
  options.limit = 1;
  EXPECT_EQ(sheaf::readValues(*loss, bad, options).size(), 1u);
  options.format = "runes";
  EXPECT_NE(messageOf([&] { sheaf::readValues(*loss, bad, options); }, SHEAF_INVALID).find("runes"),
            std::string::npos);
  sheaf::Stop stop;
  stop.request();
  options = {};
  options.stop = stop.get();
  messageOf([&] { sheaf::readValues(*loss, bad, options); }, SHEAF_STOPPED);
  messageOf([&] { sheaf::readValues(*loss, path("nowhere.jsonl")); }, SHEAF_NOT_READABLE);
}

TEST_F(Trained, TellsOfInstancesThatFail) {
  write("far.jsonl", "{\"words\": [\"w1\"], \"label\": 7}\n{\"words\": [\"w2\"], \"label\": 1}\n");
  sheaf::Values data = sheaf::readValues(*loss, path("far.jsonl"));
  sheaf::Session session;
  sheaf::Training training(session, *loss, data, {});
  sheaf_training_event event = training.next();
  EXPECT_EQ(event.failed, 1u);
  EXPECT_EQ(event.instances, 1u);
  EXPECT_EQ(std::string(event.error).find(path("far.jsonl") + ":1: "), 0u) << event.error;
  sheaf::Failure failure = training.failure();
  EXPECT_EQ(failure.instance, 0);
  EXPECT_EQ(failure.cause, SHEAF_PROGRAM);
  EXPECT_EQ(failure.place, path("far.jsonl") + ":1");
  EXPECT_EQ(failure.file, "m.sheaf");
  EXPECT_EQ(failure.line, 10);
  EXPECT_EQ(event.error, failure.place + ": instance 0: m.sheaf:10: " + failure.message);
  EXPECT_EQ(training.next().kind, SHEAF_TRAINING_EPOCH);
  EXPECT_EQ(training.failure().instance, -1);
  sheaf::Measure measure(session, *loss, data);
  failure = measure.failure();
  EXPECT_EQ(failure.instance, 0);
  EXPECT_EQ(failure.place, path("far.jsonl") + ":1");
  EXPECT_EQ(failure.line, 10);
  EXPECT_EQ(measure.scores().error, failure.place + ": instance 0: " + failure.text);
  sheaf::Measure well(session, *right, sheaf::readValues(*right, path("dev.jsonl")));
  EXPECT_EQ(well.failure().instance, -1);
}

TEST_F(Trained, RefusesWhatDoesNotGoTogether) {
  sheaf::Values data = sheaf::readValues(*loss, path("train.jsonl")),
                dev = sheaf::readValues(*right, path("dev.jsonl"));
  sheaf::Session session;
  auto refused = [&](auto what) { return messageOf(what, SHEAF_INVALID); };
  EXPECT_EQ(refused([&] { sheaf::Training(session, *loss, dev); }),
            "the data are values of another model");
  EXPECT_EQ(refused([&] { sheaf::Training(session, *right, dev); }),
            "the model was not compiled for training");
  sheaf_training_options how{};
  how.schedule = "steep";
  EXPECT_NE(refused([&] { sheaf::Training(session, *loss, data, how); }).find("steep"),
            std::string::npos);
  how = {};
  how.learning_rate = NAN;
  EXPECT_EQ(refused([&] { sheaf::Training(session, *loss, data, how); }),
            "options.learning_rate is not finite");
  how = {};
  how.average = 1;
  EXPECT_EQ(refused([&] { sheaf::Training(session, *loss, data, how); }),
            "options.average is not less than 1");
  how = {};
  how.resume = 1;
  EXPECT_EQ(refused([&] { sheaf::Training(session, *loss, data, how); }),
            "options.resume is for trainings with a directory");
  how = {};
  how.epochs = UINT64_MAX;
  how.batch = 1;
  EXPECT_EQ(refused([&] { sheaf::Training(session, *loss, data, how); }),
            "a training of more steps than can be counted");
  sheaf::Training training(session, *loss, data);
  EXPECT_EQ(refused([&] { training.checkpoint(); }), "the training has no directory");
  EXPECT_EQ(refused([&] { training.measure(0); }), "there is no measure 0 but 0");
  EXPECT_EQ(refused([&] { training.addMeasure(*loss, data); }),
            "a measure is of a model of its own, compiled without training");
  EXPECT_EQ(refused([&] { training.addMeasure(*right, dev, {0, "speed", 0, nullptr, 0}); }),
            "options.score is accuracy, precision, recall or f1, not 'speed'");
  EXPECT_NE(refused([&] {
              training.addMeasure(*right, dev, {0, "f1", 0, nullptr, 0});
            }).find("its result is a number"),
            std::string::npos);
  sheaf::CompileOptions other;
  other.text = "param w : f32[2] = ones\nfn main(x: int) -> f32 = sum(w)\n";
  sheaf::Model wider = sheaf::compile(other);
  EXPECT_EQ(refused([&] { sheaf::copyWeights(session, *loss, wider); }),
            "the weight 'w' has another type in 'loss' than in 'main'");
  sheaf_training_event event{};
  EXPECT_EQ(sheaf_training_next(training.get(), nullptr, &event), SHEAF_INVALID);
  EXPECT_NE(std::string(sheaf_error_message()).find("sizeof(sheaf_training_event)"),
            std::string::npos);
  EXPECT_EQ(training.next().step, 1u);
}

} // namespace
