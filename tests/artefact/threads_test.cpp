// Two artefacts, several threads, one session and several: the bits of one instance at a time.
#include "sheaf/sheaf.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace {

/// Enough for what runs here, and little to reserve.
constexpr uint64_t kMemory = uint64_t(64) << 20;

/// Everything that a value is made of, as bytes.
void append(std::string &bytes, const sheaf::Model &model, const sheaf::View &view) {
  auto put = [&](const void *data, size_t size) {
    bytes.append(static_cast<const char *>(data), size);
  };
  switch (sheaf_type_kind(model.get(), view.type())) {
  case SHEAF_TENSOR: {
    sheaf::Tensor tensor = view.tensor();
    put(tensor.get().data, tensor.size() * ((tensor.get().dtype.bits + 7) / 8));
    return;
  }
  case SHEAF_TUPLE:
  case SHEAF_LIST:
    for (size_t i = 0; i < view.size(); ++i)
      append(bytes, model, view[i]);
    bytes += ';';
    return;
  default: {
    int64_t number = view.toInt();
    put(&number, sizeof number);
  }
  }
}

std::vector<std::string> bitsOf(const sheaf::Model &model, const sheaf::Result &result) {
  std::vector<std::string> all(result.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (result.error(i).empty())
      append(all[i], model, result[i]);
    else
      all[i] = "fails: " + result.error(i);
  return all;
}

/// An artefact with the instances that threads run.
class Work {
public:
  /// `make` makes an argument of so many words.
  Work(const std::string &file, std::function<sheaf::Value(sheaf::Batch &, size_t words)> make)
      : model_(std::string(SHEAF_GOLDEN "/") + file), make_(std::move(make)) {
    for (size_t i = 0; i < kInstances; ++i) {
      sheaf::Batch batch = batchOf(i, i + 1);
      alone_.push_back(bitsOf(model_, sheaf::Session(1, kMemory).run(batch)).at(0));
    }
  }

  static constexpr size_t kInstances = 24;

  const sheaf::Model &model() const { return model_; }
  sheaf::Batch batchOf(size_t begin, size_t end) const {
    sheaf::Batch batch(model_);
    for (size_t i = begin; i < end; ++i)
      batch.add({make_(batch, 1 + i * 7 % 13)}, static_cast<int64_t>(i));
    return batch;
  }
  /// How many instances of [begin, end) have other bits than alone.
  size_t wrong(const sheaf::Result &result, size_t begin, size_t end) const {
    std::vector<std::string> bits = bitsOf(model_, result);
    if (bits.size() != end - begin)
      return end - begin;
    size_t count = 0;
    for (size_t i = begin; i < end; ++i)
      count += bits[i - begin] != alone_[i];
    return count;
  }
  const std::vector<std::string> &alone() const { return alone_; }

private:
  sheaf::Model model_;
  std::function<sheaf::Value(sheaf::Batch &, size_t)> make_;
  std::vector<std::string> alone_;
};

/// v2: recursion over trees, lists in the results.
Work trees() {
  return Work("v2.sheafc", [](sheaf::Batch &batch, size_t words) {
    sheaf::Type tree = batch.model().argumentType(0);
    sheaf::Type token = sheaf_type_field_type(batch.model().get(), tree, 0, 0);
    auto leaf = [&](size_t i) {
      return batch.makeData(tree, "Leaf", {batch.makeToken(token, static_cast<int64_t>(i % 5))});
    };
    sheaf::Value value = leaf(words);
    for (size_t i = 1; i < words; ++i)
      value = i % 3 ? batch.makeData(tree, "Node", {value, leaf(i)})
                    : batch.makeData(tree, "Node", {leaf(i * i), value});
    return value;
  });
}

/// v2_1: a loop that waits for tensors, a product of weights that is folded.
Work sentences() {
  return Work("v2_1.sheafc", [](sheaf::Batch &batch, size_t words) {
    sheaf::Type list = batch.model().argumentType(0);
    sheaf::Type token = sheaf_type_child(batch.model().get(), list, 0);
    std::vector<sheaf::Value> all;
    for (size_t i = 0; i < words; ++i)
      all.push_back(batch.makeToken(token, static_cast<int64_t>((words + i * i) % 5)));
    return batch.makeList(list, all);
  });
}

class Threads : public ::testing::Test {
protected:
  /// Every thread runs batches of both artefacts in the sessions that it is given, in an order of
  /// its own.
  void runAll(const std::function<sheaf::Session &(size_t thread)> &sessionOf) {
    std::vector<std::thread> threads;
    std::vector<size_t> wrong(kThreads);
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (int round = 0; round < 12; ++round) {
          const Work &work = random() % 2 ? trees_ : sentences_;
          size_t begin = random() % Work::kInstances;
          size_t end = begin + 1 + random() % (Work::kInstances - begin);
          sheaf::Result result = sessionOf(t).run(work.batchOf(begin, end));
          wrong[t] += work.wrong(result, begin, end);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(wrong, std::vector<size_t>(kThreads));
  }

  static constexpr size_t kThreads = 4;
  Work trees_ = trees(), sentences_ = sentences();
};

TEST_F(Threads, InstancesDiffer) {
  for (const Work *work : {&trees_, &sentences_}) {
    std::vector<std::string> bits = work->alone();
    std::sort(bits.begin(), bits.end());
    EXPECT_GT(std::unique(bits.begin(), bits.end()) - bits.begin(), 8);
    EXPECT_EQ(bits[0].find("fails"), std::string::npos);
  }
}

TEST_F(Threads, OneSession) {
  sheaf::Session session(1, kMemory);
  runAll([&](size_t) -> sheaf::Session & { return session; });
}

TEST_F(Threads, OneSessionOfTwoThreads) {
  sheaf::Session session(2, kMemory);
  runAll([&](size_t) -> sheaf::Session & { return session; });
}

TEST_F(Threads, ASessionForEach) {
  std::vector<sheaf::Session> sessions;
  for (size_t t = 0; t < kThreads; ++t)
    sessions.emplace_back(static_cast<uint32_t>(1 + t % 2), kMemory);
  runAll([&](size_t t) -> sheaf::Session & { return sessions[t]; });
}

TEST_F(Threads, SessionsThatAreShared) {
  std::vector<sheaf::Session> sessions;
  for (size_t i = 0; i < 2; ++i)
    sessions.emplace_back(2, kMemory);
  std::atomic<size_t> next = 0;
  runAll([&](size_t) -> sheaf::Session & { return sessions[next++ % sessions.size()]; });
}

/// Runs are stopped while they run, wait for their turn, or have ended: all of a run's instances
/// have their bits or all were stopped, and runs without that stop notice nothing.
TEST_F(Threads, RunsAreStoppedOneByOne) {
  sheaf::Session session(2, kMemory);
  std::vector<std::thread> threads;
  std::atomic<size_t> wrong = 0, stopped = 0;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const Work &work = t % 2 ? trees_ : sentences_;
      sheaf::Batch batch = work.batchOf(0, Work::kInstances);
      auto run = [&](const sheaf::Stop &stop) {
        sheaf::Result result = session.run(batch, stop);
        size_t gaveUp = 0;
        for (size_t i = 0; i < result.size(); ++i)
          gaveUp += result.error(i) == "the run was stopped";
        if (gaveUp == Work::kInstances)
          return false;
        wrong += work.wrong(result, 0, Work::kInstances);
        return true;
      };
      for (int round = 0; round < 4; ++round) {
        // Half of the threads are stopped, from beside, at some point of a run or between two.
        sheaf::Stop stop;
        if (t < kThreads / 2) {
          std::thread beside([&] {
            std::this_thread::sleep_for(std::chrono::microseconds(500 * round));
            stop.request();
          });
          while (run(stop))
            ;
          ++stopped;
          beside.join();
        } else {
          wrong += !run(stop);
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(stopped, 4 * kThreads / 2);
}

/// Models are given to a session and taken from it while others run.
TEST_F(Threads, ModelsComeAndGo) {
  sheaf::Session session(1, kMemory);
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      session.add(trees_.model());
      session.remove(trees_.model());
      session.add(sentences_.model());
      session.remove(sentences_.model());
    }
  });
  runAll([&](size_t) -> sheaf::Session & { return session; });
  done = true;
  other.join();
}

} // namespace
