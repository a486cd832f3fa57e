// Whole trainings: stopped at any moment, taken up again, measured, best weights.
#include "compiler/driver/Compiler.h"
#include "runtime/artefact/artefact.h"
#include "runtime/cpu/packing.h"
#include "runtime/fit/checkpoint.h"
#include "runtime/fit/training.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <unistd.h>

using namespace sheaf;
namespace fs = std::filesystem;

namespace {

const char *const kModel = R"(
dim hidden = 8
param in_w  : f32[1, hidden] = glorot
param h_w   : f32[hidden, hidden] = orthogonal
param out_w : f32[hidden] = glorot

fn predict(x: f32[n, 1]) -> f32 =
  dot(fold(|h, row| tanh(row @ in_w + h @ h_w), zeros(hidden), rows(x)), out_w)
fn loss(x: f32[n, 1], y: f32) -> f32 = square(predict(x) - y)
fn near(x: f32[n, 1], y: f32) -> bool = read(square(predict(x) - y)) < 0.01
fn picky(x: f32[n, 1], y: f32) -> f32 = {
  check read(y) > 9.0
  square(predict(x) - y)
}
)";

std::unique_ptr<driver::CompiledModel> compileEntry(const std::string &entry, bool training) {
  SourceFile source("fit", kModel);
  driver::CompileOptions options;
  options.entry = entry;
  options.training = training;
  Diagnostics diags(source);
  std::unique_ptr<driver::CompiledModel> compiled = driver::compile(source, options, diags);
  EXPECT_FALSE(diags.hasErrors()) << diags.render();
  return compiled;
}

/// Sequences and a number that follows from them.
struct Sequences {
  std::vector<std::unique_ptr<rt::HostTensor>> tensors;
  std::vector<std::vector<rt::Slot>> args;
  std::vector<rt::Instance> instances;

  explicit Sequences(int count) {
    for (int i = 0; i < count; ++i) {
      int64_t length = 1 + i % 5;
      auto x = std::make_unique<rt::HostTensor>(rt::DType::F32, std::vector<int64_t>{length, 1});
      auto y = std::make_unique<rt::HostTensor>(rt::DType::F32, std::vector<int64_t>{});
      float sum = 0;
      for (int64_t j = 0; j < length; ++j) {
        float value = static_cast<float>((i * 7 + j * 3) % 11) / 11.0F - 0.5F;
        *reinterpret_cast<float *>(x->bytes.get() + j * rt::kGranuleBytes) = value;
        sum += value;
      }
      *reinterpret_cast<float *>(y->bytes.get()) = sum / 4;
      args.push_back({x->inputSlot(), length, y->inputSlot()});
      tensors.push_back(std::move(x));
      tensors.push_back(std::move(y));
    }
    for (int i = 0; i < count; ++i)
      instances.push_back({args[static_cast<size_t>(i)].data(), i});
  }
};

rt::SessionOptions forTraining() {
  rt::SessionOptions options;
  options.keepBytes = 0;
  return options;
}

std::vector<std::vector<uint8_t>> weightsOf(const rt::Session &session) {
  std::vector<std::vector<uint8_t>> all;
  for (size_t i = 0; i < session.model().params.size(); ++i) {
    rt::TensorView view = session.param(i);
    all.emplace_back(static_cast<size_t>(view.elements() * rt::dtypeBytes(view.dtype)));
    view.copyTo(all.back().data());
  }
  return all;
}

class Fitting : public testing::Test {
protected:
  static void SetUpTestSuite() {
    loss = compileEntry("loss", /*training=*/true);
    near = compileEntry("near", /*training=*/false);
  }
  static void TearDownTestSuite() {
    loss.reset();
    near.reset();
  }
  void SetUp() override {
    options.trainer.batch = 7;
    options.trainer.accumulate = 2;
    options.trainer.seed = 3;
    options.trainer.rate.peak = 0.02;
    options.trainer.optimizer.kind = rt::OptimizerOptions::Adam;
    options.epochs = 4;
    directory =
        fs::temp_directory_path() /
        (std::string("sheaf-fit-") + testing::UnitTest::GetInstance()->current_test_info()->name() +
         std::to_string(getpid()));
  }
  void TearDown() override { fs::remove_all(directory); }

  /// A training to its end, with the weights that it comes to.
  std::vector<std::vector<uint8_t>> undisturbed() {
    rt::Session session(loss->model(), forTraining());
    session.initParams(1);
    fit::Training training(session, {data.instances}, vocabularies, options);
    while (training.next().kind != fit::Training::Event::Ended) {
    }
    EXPECT_EQ(training.course().steps, training.totalSteps());
    return weightsOf(session);
  }

  static std::unique_ptr<driver::CompiledModel> loss, near;
  Sequences data{50};
  io::Vocabularies vocabularies;
  fit::TrainingOptions options;
  fs::path directory;
};
std::unique_ptr<driver::CompiledModel> Fitting::loss, Fitting::near;

TEST_F(Fitting, StopsWithoutAChangeAndGoesOn) {
  using Kind = fit::Training::Event::Kind;
  std::vector<std::vector<uint8_t>> expected = undisturbed();
  rt::Session session(loss->model(), forTraining()), dev(near->model());
  session.initParams(1);
  fit::Training training(session, {data.instances}, vocabularies, options);
  training.addMeasure({{"near"}, dev, {data.instances}, /*lessIsBetter=*/false});

  std::stop_source asked;
  asked.request_stop();
  std::vector<std::vector<uint8_t>> first = weightsOf(session);
  EXPECT_EQ(training.next(asked.get_token()).kind, Kind::Stopped);
  EXPECT_EQ(weightsOf(session), first);
  EXPECT_EQ(training.course().steps, 0);

  // At every moment, one after the other: what was stopped is as if nobody had begun it.
  int64_t delay = 0;
  for (bool ended = false; !ended;) {
    std::stop_source now;
    std::atomic<bool> ready = false, begun = false;
    std::thread stopper([&] {
      ready = true;
      while (!begun)
        std::this_thread::yield();
      for (volatile int64_t i = 0; i < delay; i = i + 1) {
      }
      now.request_stop();
    });
    std::vector<std::vector<uint8_t>> before = weightsOf(session);
    int64_t steps = training.course().steps;
    while (!ready)
      std::this_thread::yield();
    begun = true;
    fit::Training::Event event = training.next(now.get_token());
    stopper.join();
    delay += 500;
    if (event.kind == Kind::Stopped) {
      EXPECT_EQ(weightsOf(session), before);
      EXPECT_EQ(training.course().steps, steps);
    }
    ended = event.kind == Kind::Ended;
  }
  EXPECT_EQ(weightsOf(session), expected);
}

TEST_F(Fitting, GoesOnInItsDirectory) {
  using Kind = fit::Training::Event::Kind;
  std::vector<std::vector<uint8_t>> expected = undisturbed();
  options.checkpointEvery = 1;
  for (int64_t begun = 0;; ++begun) {
    rt::Session session(loss->model(), forTraining());
    session.initParams(begun == 0 ? 1 : 99); // later weights come from the checkpoint
    fit::Training training(session, {data.instances}, vocabularies, options);
    training.keepIn(directory);
    if (begun == 0)
      training.begin();
    EXPECT_EQ(training.restore(), begun > 0);
    training.restoreFiles();
    Kind last = Kind::Step;
    for (int i = 0; i < 3 && last != Kind::Ended; ++i)
      last = training.next().kind;
    if (last != Kind::Ended)
      continue;
    EXPECT_GT(begun, 3);
    EXPECT_EQ(weightsOf(session), expected);
    EXPECT_TRUE(fs::exists(directory / "best.safetensors"));
    fit::Training other(session, {data.instances}, vocabularies, options);
    EXPECT_THROW(other.keepIn(directory), UserError); // while this one has it
    break;
  }
  rt::Session session(loss->model(), forTraining());
  fit::Training training(session, {data.instances}, vocabularies, options);
  training.keepIn(directory);
  EXPECT_THROW(training.begin(), UserError);
}

TEST_F(Fitting, TellsOfDamagedCheckpoints) {
  rt::Session session(loss->model(), forTraining());
  session.initParams(1);
  options.keep = 3;
  {
    fit::Training training(session, {data.instances}, vocabularies, options);
    training.keepIn(directory);
    training.begin();
    while (training.next().kind != fit::Training::Event::Ended) {
    }
  }
  std::string newest = fit::checkpointPath(directory, 16);
  fs::resize_file(newest, fs::file_size(newest) / 2);
  std::vector<std::string> told;
  fit::Training training(session, {data.instances}, vocabularies, options);
  training.keepIn(directory);
  EXPECT_TRUE(training.restore([&](const std::string &why) { told.push_back(why); }));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].find(newest), 0u) << told[0];
  EXPECT_EQ(training.course().steps, 12);
  EXPECT_TRUE(fs::exists(newest + ".damaged"));
}

TEST_F(Fitting, ACheckpointThatDoesNotFitChangesNothing) {
  rt::Session session(loss->model(), forTraining());
  session.initParams(1);
  {
    fit::Training training(session, {data.instances}, vocabularies, options);
    training.keepIn(directory);
    training.begin();
    while (training.next().kind != fit::Training::Event::Ended) {
    }
  }
  session.initParams(5);
  std::vector<std::vector<uint8_t>> before = weightsOf(session);
  options.trainer.optimizer.kind = rt::OptimizerOptions::Sgd; // it has no state
  fit::Training training(session, {data.instances}, vocabularies, options);
  training.keepIn(directory);
  EXPECT_THROW(training.restore(), UserError);
  EXPECT_EQ(weightsOf(session), before);
  EXPECT_EQ(training.course().steps, 0);
}

// What would be added to gradients must be as large as they are.
TEST_F(Fitting, AnArtefactWithGradientsOfOtherSizesIsDamaged) {
  artefact::Description whole =
      artefact::describe(loss->model(), loss->code(), loss->target(), "", vocabularies, "test");
  for (uint64_t bytes : rt::packedSizes(whole.model)) {
    whole.image.packed.push_back({0, bytes});
    whole.code().packed.bytes = std::max(whole.code().packed.bytes, bytes);
  }
  EXPECT_NO_THROW(artefact::verify(whole));
  using Kind = rt::WeightGradient::Kind;
  std::set<Kind> met;
  size_t arguments = 0;
  for (size_t kernel = 0; kernel < whole.model.gradients.size(); ++kernel) {
    auto refused = [&](const std::function<void(rt::KernelGradient &)> &change) {
      artefact::Description d = whole;
      change(d.model.gradients[kernel]);
      try {
        artefact::verify(d);
        return false;
      } catch (const artefact::ArtefactError &error) {
        return std::string(error.what()).find(" elements where ") != std::string::npos;
      }
    };
    const rt::KernelGradient &gradient = whole.model.gradients[kernel];
    for (size_t i = 0; i < gradient.weights.size(); ++i)
      if (refused([&](rt::KernelGradient &g) {
            g.weights[i].kind == Kind::Product ? --g.weights[i].columnCount
                                               : (g.weights[i].param ^= 1);
          }))
        met.insert(gradient.weights[i].kind);
    for (size_t i = 0; i < gradient.arguments.size(); ++i)
      arguments += refused([&](rt::KernelGradient &g) {
        for (rt::WordSum &extent : g.arguments[i].tensor.extents)
          for (rt::WordTerm &term : extent)
            term.coefficient += term.words.empty();
      });
  }
  EXPECT_FALSE(met.empty());
  EXPECT_GT(arguments, 0u);
}

TEST_F(Fitting, RemembersTheBestEpoch) {
  rt::Session session(loss->model(), forTraining()), dev(near->model());
  session.initParams(1);
  options.keepBest = true;
  options.patience = 2;
  options.epochs = 100;
  options.trainer.rate.peak = 0.2;
  fit::Training training(session, {data.instances}, vocabularies, options);
  training.addMeasure({{"near"}, dev, {data.instances}, /*lessIsBetter=*/false});
  std::vector<std::vector<uint8_t>> best;
  double value = -1;
  EXPECT_FALSE(training.restoreBest());
  for (;;) {
    fit::Training::Event event = training.next();
    if (event.kind == fit::Training::Event::Ended)
      break;
    if (event.kind != fit::Training::Event::Epoch)
      continue;
    ASSERT_EQ(event.epoch.measures.size(), 1u);
    EXPECT_EQ(event.epoch.measures[0].instances, 50);
    EXPECT_EQ(event.epoch.isBest, *event.epoch.value > value);
    if (event.epoch.isBest) {
      best = weightsOf(session);
      value = *event.epoch.value;
    }
  }
  EXPECT_EQ(training.ended(), fit::Training::End::Patience);
  EXPECT_NE(weightsOf(session), best);
  EXPECT_TRUE(training.restoreBest());
  EXPECT_EQ(weightsOf(session), best);
  // The same measure by itself.
  fit::copyParams(session, [&](size_t index) { return session.param(index); }, dev);
  std::optional<fit::Measure> measure = fit::evaluate(dev, {data.instances}, {"near"});
  EXPECT_EQ(measure->value, value);
}

TEST_F(Fitting, TellsOfInstancesThatFail) {
  std::unique_ptr<driver::CompiledModel> picky = compileEntry("picky", /*training=*/true);
  rt::Session session(picky->model(), forTraining());
  session.initParams(1);
  fit::Data named{data.instances, [](int64_t index) { return "d:" + std::to_string(index); }};
  fit::Training training(session, named, vocabularies, options);
  fit::Training::Event event = training.next();
  EXPECT_EQ(event.step.failed, 14);
  EXPECT_EQ(event.step.instances, 0);
  EXPECT_EQ(training.firstFailure().find("d:"), 0u) << training.firstFailure();
  for (int i = 0; i < 3; ++i)
    training.next();
  try {
    training.next();
    FAIL() << "an epoch without a loss was kept";
  } catch (const UserError &error) {
    EXPECT_EQ(std::string(error.what()).find("epoch 1: every instance failed; the first: d:"), 0u)
        << error.what();
  }
  EXPECT_THROW(fit::Training(session, {}, vocabularies, options), UserError);
  options.epochs = INT64_MAX;
  EXPECT_THROW(fit::Training(session, named, vocabularies, options), UserError);
}

} // namespace
