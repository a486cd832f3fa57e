// Gradients of any result, by weights and inputs, and steps: through the C interface and its C++
// wrapper, and against differences and formulas.
#include "tests/artefact/message_of.h"

#include "runtime/api/handles.h"
#include "runtime/model/members.h"
#include "runtime/train/gradient_rows.h"
#include "runtime/train/trainer.h"
#include "sheaf/compiler.hpp"
#include "sheaf/gradients.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace fs = std::filesystem;
using Floats = std::vector<float>;
using Sizes = std::vector<std::size_t>;

namespace {

sheaf::CompileOptions trainingOf(const std::string &text, bool inputs = true) {
  sheaf::CompileOptions options;
  options.text = text;
  options.name = "given.sheaf";
  options.training = true;
  options.inputGradients = inputs;
  return options;
}

DLTensor dense(const Floats &elements, const std::vector<std::int64_t> &shape) {
  DLTensor tensor{};
  tensor.data = const_cast<float *>(elements.data());
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<std::int32_t>(shape.size());
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = const_cast<std::int64_t *>(shape.data());
  return tensor;
}

Floats floatsOf(const sheaf::Tensor &tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
}

class Gradients : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(sheaf_compiler_open(SHEAF_COMPILER_FILE), SHEAF_OK) << sheaf_error_message();
  }
};

//===----------------------------------------------------------------------===//
// Programs that no gradient was made for, against differences
//===----------------------------------------------------------------------===//

/// Numbers of arguments, in the order in which their tensors stand in them.
class Numbers {
public:
  explicit Numbers(std::uint64_t seed) : random_(seed) {}
  explicit Numbers(Floats given) : all(std::move(given)), isGiven_(true) {}
  float next() {
    if (!isGiven_)
      all.push_back(std::uniform_real_distribution<float>(-1, 1)(random_));
    return all[at_++];
  }
  Floats vector(std::size_t size) {
    Floats elements(size);
    for (float &x : elements)
      x = next();
    return elements;
  }

  Floats all;

private:
  std::mt19937_64 random_;
  std::size_t at_ = 0;
  bool isGiven_ = false;
};

struct Program {
  const char *name;
  const char *text;
  /// Adds instance number `i`.
  std::function<void(sheaf::Batch &, Numbers &, int i)> add;
};

sheaf::Value tensorOf(sheaf::Batch &batch, const std::string &type,
                      const std::vector<std::int64_t> &shape, Numbers &numbers) {
  std::size_t size = 1;
  for (std::int64_t extent : shape)
    size *= static_cast<std::size_t>(extent);
  Floats elements = numbers.vector(size);
  return batch.makeTensor(batch.model().findType(type), shape, elements.data());
}

sheaf::Value treeOf(sheaf::Batch &batch, Numbers &numbers, int depth, int shape) {
  sheaf::Type tree = batch.model().findType("Tree");
  if (depth == 0)
    return batch.makeData(tree, "Leaf", {tensorOf(batch, "f32[3]", {3}, numbers)});
  sheaf::Value left = treeOf(batch, numbers, depth - 1, shape / 2);
  sheaf::Value right = treeOf(batch, numbers, shape % 2 ? depth - 1 : 0, shape / 2);
  return batch.makeData(tree, "Node", {left, right, tensorOf(batch, "f32[2, 3]", {2, 3}, numbers)});
}

const std::vector<Program> kPrograms = {
    {"a tree, states of which are results",
     "param w : f32[6, 3] = glorot\n"
     "data Tree = Leaf(x: f32[3]) | Node(l: Tree, r: Tree, g: f32[2, 3])\n"
     "data Out = Nothing | Just(y: f32[3], more: list<Out>)\n"
     "fn main(t: Tree) -> (f32[3], Out) = match t {\n"
     "  Leaf(x) => (x, Just(sin(x), []))\n"
     "  Node(l, r, g) => {\n"
     "    let (a, p) = main(l)\n"
     "    let (b, q) = main(r)\n"
     "    let y = tanh(concat(a, b) @ w + g[0]) * g[1]\n"
     "    (y, Just(y + a, [p, Nothing, q])) } }\n",
     [](sheaf::Batch &batch, Numbers &numbers, int i) {
       batch.add({treeOf(batch, numbers, i % 4, i * 5)});
     }},
    {"a scan, a fold and a map over pairs",
     "param w : f32[3, 3] = glorot\n"
     "param u : f32[3] = normal(1)\n"
     "fn main(xs: list<(f32[3], int)>, s: f32[3]) -> (list<f32[3]>, f32, list<(f32[3], int)>) = {\n"
     "  let ys = scan(|s: f32[3], (x, i)| tanh(s @ w + x * u) * f32(i), s, xs)\n"
     "  (ys, fold(|a: f32, y| a * 0.5 + dot(y, s), f32(0.0), ys),\n"
     "   map(|(x, i)| (x * s, i + 1), xs)) }\n",
     [](sheaf::Batch &batch, Numbers &numbers, int i) {
       const sheaf::Model &model = batch.model();
       std::vector<sheaf::Value> pairs;
       for (int k = 0; k < i % 5; ++k) {
         sheaf::Value x = tensorOf(batch, "f32[3]", {3}, numbers);
         pairs.push_back(batch.makeTuple(model.findType("(f32[3], int)"),
                                         {x, batch.makeInt(model.findType("int"), k % 3)}));
       }
       sheaf::Value xs = batch.makeList(model.findType("list<(f32[3], int)>"), pairs);
       batch.add({xs, tensorOf(batch, "f32[3]", {3}, numbers)});
     }},
    {"rows of matrices of the instance, several weights in one product",
     "param w : f32[4, 2] = glorot\n"
     "param u : f32[4, 3] = glorot\n"
     "param table : f32[5, 4] = normal(1)\n"
     "fn main(m: f32[n, 4], i: int) -> (f32[n, 5], f32[4], list<f32[4]>) = {\n"
     "  let a = softmax(m @ transpose(m)) @ m\n"
     "  (tanh(a @ concat(w, u, axis=1)), table[i] * m[0] + table[0], rows(m)) }\n",
     [](sheaf::Batch &batch, Numbers &numbers, int i) {
       sheaf::Value m = tensorOf(batch, batch.model().text(batch.model().argumentType(0)),
                                 {1 + i % 4, 4}, numbers);
       batch.add({m, batch.makeInt(batch.model().findType("int"), i % 5)});
     }},
    {"an argument that is a result, one that is no part of any, one twice",
     "fn main(x: f32[2], y: f32[3], z: f32) -> (f32[2], (f32[2], f32[2]), f32) =\n"
     "  (x, (x, x * z), z)\n",
     [](sheaf::Batch &batch, Numbers &numbers, int) {
       sheaf::Value x = tensorOf(batch, "f32[2]", {2}, numbers);
       sheaf::Value y = tensorOf(batch, "f32[3]", {3}, numbers);
       batch.add({x, y, tensorOf(batch, "f32", {}, numbers)});
     }},
    {"a loop that reads",
     "param w : f32[3, 3] = glorot\n"
     "fn go(x: f32[3], s: f32[3], n: int) -> (f32[3], list<f32[3]>) =\n"
     "  if n == 0 || read(sum(s)) > 1.5 { (s, [s]) } else {\n"
     "    let (y, ys) = go(x, tanh(s @ w) + 0.3 * x, n - 1)\n"
     "    (y, s :: ys) }\n"
     "fn main(x: f32[3], s: f32[3]) -> (f32[3], list<f32[3]>) = go(x, s * x, 6)\n",
     [](sheaf::Batch &batch, Numbers &numbers, int) {
       sheaf::Value x = tensorOf(batch, "f32[3]", {3}, numbers);
       batch.add({x, tensorOf(batch, "f32[3]", {3}, numbers)});
     }},
};

/// What a run and its backward pass gave.
struct Ran {
  Floats results;              ///< the elements of float tensors, instance by instance, depth first
  Sizes resultsOf;             ///< by instance, how many of them
  std::vector<Floats> inputs;  ///< by instance
  std::vector<Floats> weights; ///< by parameter
};

/// Runs instances with `cotangents` for the elements of their results, one after the other; none:
/// only forward.
Ran run(const sheaf::Model &handle, std::span<const sheaf::rt::Instance> instances,
        const Floats &cotangents, sheaf::rt::SessionOptions options = {},
        const std::function<void(sheaf::rt::Session &)> &prepare = {}) {
  using namespace sheaf::rt;
  const Model &model = handle.get()->model->model();
  options.keepBytes = 0;
  Session session(model, options);
  if (prepare)
    prepare(session);
  std::vector<int64_t> slots;
  for (uint32_t type = 0; type < model.types.types.size(); ++type)
    slots.push_back(model.types.slots(type));
  Ran ran;
  std::vector<Cotangent> given;
  std::deque<Sizes> parts;
  std::deque<std::vector<int64_t>> shapes;
  std::span<const Outcome> outcomes = session.run(instances);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    ran.resultsOf.push_back(0);
    if (!outcomes[i].ok())
      continue;
    // Depth first, with the path of each part.
    std::function<void(uint32_t, const Slot *, const Sizes &)> visit =
        [&](uint32_t type, const Slot *value, const Sizes &path) {
          const TypeDesc &desc = model.types.types[type];
          if (isFloat(desc)) {
            TensorView view = session.tensor(type, value);
            size_t begin = ran.results.size(), size = static_cast<size_t>(view.elements());
            ran.results.resize(begin + size);
            ran.resultsOf.back() += size;
            view.copyTo(ran.results.data() + begin);
            if (!cotangents.empty())
              given.push_back({i, parts.emplace_back(path), shapes.emplace_back(view.shape),
                               cotangents.data() + begin});
            return;
          }
          Members members = membersOf(model.types, type, value);
          for (size_t number = 0; members.count > 0; ++number) {
            auto [child, at] = members.take(slots);
            Sizes inner = path;
            inner.push_back(number);
            visit(child, at, inner);
          }
        };
    visit(model.entry.resultType, outcomes[i].slots, {});
  }
  if (cotangents.empty())
    return ran;
  std::span<const ParamGradient> gradients = session.backward(given);
  for (size_t i = 0; i < gradients.size(); ++i) {
    Floats &all = ran.weights.emplace_back();
    forEachRow(model.params[i], gradients[i], [&](int64_t begin, int64_t size) {
      all.insert(all.end(), gradients[i].data + begin, gradients[i].data + begin + size);
    });
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    Floats &all = ran.inputs.emplace_back();
    if (!session.arguments(i))
      continue;
    Members arguments{model.entry.argTypes, false,
                      static_cast<int64_t>(model.entry.argTypes.size()), session.arguments(i)};
    forEachTensor(
        model.types, slots, arguments, [](uint32_t) { return true; },
        [&](uint32_t type, const Slot *value) {
          if (!isFloat(model.types.types[type]))
            return;
          TensorView view = session.inputGradient(type, value);
          size_t begin = all.size();
          all.resize(begin + static_cast<size_t>(view.elements()));
          view.copyTo(all.data() + begin);
        });
  }
  return ran;
}

bool sameBits(const Floats &a, const Floats &b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

class Batched {
public:
  Batched(const sheaf::Model &model, const Program &program, int count, Numbers &numbers)
      : batch_(model) {
    for (int i = 0; i < count; ++i)
      program.add(batch_, numbers, i);
  }
  std::span<const sheaf::rt::Instance> instances() const { return batch_.get()->store->instances; }

private:
  sheaf::Batch batch_;
};

double weighted(const Floats &results, const Floats &cotangents) {
  double sum = 0;
  for (size_t i = 0; i < results.size(); ++i)
    sum += static_cast<double>(results[i]) * static_cast<double>(cotangents[i]);
  return sum;
}

constexpr int kInstances = 11;

TEST_F(Gradients, AgreeWithDifferences) {
  for (const Program &program : kPrograms) {
    SCOPED_TRACE(program.name);
    sheaf::Model model = sheaf::compile(trainingOf(program.text));
    Numbers numbers(5), random(9);
    Batched batch(model, program, kInstances, numbers);
    Ran forward = run(model, batch.instances(), {});
    Floats cotangents = random.vector(forward.results.size());
    Ran ran = run(model, batch.instances(), cotangents);
    Floats inputs;
    for (const Floats &ofInstance : ran.inputs)
      inputs.insert(inputs.end(), ofInstance.begin(), ofInstance.end());
    ASSERT_EQ(inputs.size(), numbers.all.size());

    constexpr float kStep = 1e-2F;
    for (int direction = 0; direction < 3; ++direction) {
      Floats towards = random.vector(numbers.all.size());
      double along = weighted(inputs, towards), scale = 0;
      for (size_t i = 0; i < inputs.size(); ++i)
        scale += std::fabs(static_cast<double>(inputs[i]) * static_cast<double>(towards[i]));
      double ends[2];
      for (int side : {0, 1}) {
        Floats moved = numbers.all;
        for (size_t i = 0; i < moved.size(); ++i)
          moved[i] += (side ? kStep : -kStep) * towards[i];
        Numbers given(moved);
        Batched beside(model, program, kInstances, given);
        ends[side] = weighted(run(model, beside.instances(), {}).results, cotangents);
      }
      EXPECT_NEAR((ends[1] - ends[0]) / (2 * kStep), along, 2e-3 * scale + 1e-4);
    }

    // Of weights likewise.
    const sheaf::rt::Model &own = model.get()->model->model();
    for (size_t param = 0; param < own.params.size(); ++param) {
      if (own.params[param].synthetic || ran.weights[param].empty())
        continue;
      Floats start(sheaf::rt::Session(own).param(param).elements());
      sheaf::rt::Session(own).param(param).copyTo(start.data());
      if (own.params[param].name == "table") // only some of its rows have one
        continue;
      Floats towards = random.vector(start.size());
      double along = weighted(ran.weights[param], towards), scale = 0, ends[2];
      for (size_t i = 0; i < start.size(); ++i)
        scale +=
            std::fabs(static_cast<double>(ran.weights[param][i]) * static_cast<double>(towards[i]));
      for (int side : {0, 1}) {
        Floats moved = start;
        for (size_t i = 0; i < moved.size(); ++i)
          moved[i] += (side ? kStep : -kStep) * towards[i];
        auto set = [&](sheaf::rt::Session &session) {
          session.setParam(param, {reinterpret_cast<const uint8_t *>(moved.data()),
                                   moved.size() * sizeof(float)});
        };
        ends[side] = weighted(run(model, batch.instances(), {}, {}, set).results, cotangents);
      }
      EXPECT_NEAR((ends[1] - ends[0]) / (2 * kStep), along, 2e-3 * scale + 1e-3)
          << own.params[param].name;
    }
  }
}

TEST_F(Gradients, HaveTheSameBitsInAnyBatch) {
  for (const Program &program : kPrograms)
    for (bool bf16 : {false, true}) {
      SCOPED_TRACE(std::string(program.name) + (bf16 ? ", bf16" : ""));
      sheaf::CompileOptions options = trainingOf(program.text);
      options.precision = bf16 ? SHEAF_BF16 : SHEAF_F32;
      sheaf::Model model = sheaf::compile(options);
      Numbers numbers(6), random(10);
      Batched batch(model, program, kInstances, numbers);
      Ran forward = run(model, batch.instances(), {});
      Floats cotangents = random.vector(forward.results.size());
      Ran ran = run(model, batch.instances(), cotangents);

      for (sheaf::rt::Policy policy : {sheaf::rt::Policy::Depth, sheaf::rt::Policy::Agenda,
                                       sheaf::rt::Policy::LookAhead, sheaf::rt::Policy::Auto})
        for (bool hostile : {false, true}) {
          sheaf::rt::SessionOptions other;
          other.threads = policy == sheaf::rt::Policy::Agenda ? 3 : 2;
          other.policy = policy;
          other.hostile = hostile;
          Ran again = run(model, batch.instances(), cotangents, other);
          EXPECT_TRUE(sameBits(again.results, ran.results));
          for (size_t i = 0; i < ran.weights.size(); ++i)
            EXPECT_TRUE(sameBits(again.weights[i], ran.weights[i])) << i;
          // What instances that read record when, and so in which order, follows from others.
          if (!hostile || !model.get()->model->model().reads)
            for (size_t i = 0; i < ran.inputs.size(); ++i)
              EXPECT_TRUE(sameBits(again.inputs[i], ran.inputs[i])) << i;
        }
      size_t at = 0;
      for (size_t i = 0; i < kInstances; ++i) {
        Floats own(cotangents.begin() + static_cast<ptrdiff_t>(at),
                   cotangents.begin() + static_cast<ptrdiff_t>(at + ran.resultsOf[i]));
        at += ran.resultsOf[i];
        if (own.empty())
          continue;
        Ran alone = run(model, batch.instances().subspan(i, 1), own);
        EXPECT_TRUE(sameBits(alone.inputs[0], ran.inputs[i])) << i;
      }
    }
}

TEST_F(Gradients, CostNothingWhereTheyAreNotAsked) {
  for (const Program &program : kPrograms) {
    SCOPED_TRACE(program.name);
    sheaf::Model with = sheaf::compile(trainingOf(program.text)),
                 without = sheaf::compile(trainingOf(program.text, /*inputs=*/false));
    EXPECT_FALSE(without.get()->model->model().inputGradients);
    Numbers numbers(7), random(11);
    Batched some(with, program, kInstances, numbers);
    Numbers given(numbers.all);
    Batched others(without, program, kInstances, given);
    Floats cotangents = random.vector(run(with, some.instances(), {}).results.size());
    using namespace sheaf::rt;
    Ran a = run(with, some.instances(), cotangents);
    const Model &model = without.get()->model->model();
    SessionOptions options;
    options.keepBytes = 0;
    Session session(model, options);
    session.run(others.instances());
    EXPECT_THROW(session.inputGradient(model.entry.argTypes[0], session.arguments(0)),
                 sheaf::InternalError);
  }
}

//===----------------------------------------------------------------------===//
// Several runs at once
//===----------------------------------------------------------------------===//

/// What the backward pass from a run gives, all in one.
Floats wayBack(sheaf::rt::Session &session, const sheaf::rt::Run *run, const Floats &weights) {
  using namespace sheaf::rt;
  std::span<const ParamGradient> gradients =
      run ? session.backward(*run, weights) : session.backward(weights);
  Floats all;
  for (size_t i = 0; i < gradients.size(); ++i)
    forEachRow(session.model().params[i], gradients[i], [&](int64_t begin, int64_t size) {
      all.insert(all.end(), gradients[i].data + begin, gradients[i].data + begin + size);
    });
  const Model &model = session.model();
  for (size_t i = 0; i < weights.size(); ++i) {
    const Slot *arguments = run ? run->arguments(i) : session.arguments(i);
    if (!arguments)
      continue;
    TensorView view = session.inputGradient(model.entry.argTypes[0], arguments);
    size_t begin = all.size();
    all.resize(begin + static_cast<size_t>(view.elements()));
    view.copyTo(all.data() + begin);
  }
  return all;
}

const char *kLong =
    "param w : f32[6, 3] = glorot\n"
    "param e : f32[7, 3] = normal(1)\n"
    "fn go(x: f32[3], s: f32[3], n: int) -> f32[3] = if n == 0 { s } else {\n"
    "  go(x, tanh(concat(s, x * e[n % 7]) @ concat(w, w * 0.5, axis=0)[0:6]), n - 1)\n"
    "}\n"
    "fn main(x: f32[3], n: int) -> f32 = { check n < 90\n"
    "  sum(square(go(x, x, n))) }\n";

TEST_F(Gradients, ComeFromAnyRunThatIsHeld) {
  sheaf::Model model = sheaf::compile(trainingOf(kLong));
  const sheaf::rt::Model &own = model.get()->model->model();
  // Batches of very different sizes, with an instance that fails now and then.
  std::deque<sheaf::Batch> batches;
  std::mt19937 random(2);
  for (int b = 0; b < 12; ++b) {
    sheaf::Batch &batch = batches.emplace_back(model);
    for (int i = 0; i < (b % 3 ? 3 : 40); ++i) {
      Floats x = {static_cast<float>(i) / 10, static_cast<float>(b) / 5, 0.5F};
      batch.add({batch.makeTensor(model.argumentType(0), {3}, x.data()),
                 batch.makeInt(model.argumentType(1), static_cast<int>(random() % 100))});
    }
  }
  for (bool hostile : {false, true}) {
    SCOPED_TRACE(hostile);
    sheaf::rt::SessionOptions options;
    options.keepBytes = 0;
    options.hostile = hostile;
    options.threads = 2;
    std::vector<Floats> expected, weights; // in order of depth
    for (const sheaf::Batch &batch : batches) {
      sheaf::rt::Session session(own, options);
      session.run(batch.get()->store->instances);
      Floats &ones = weights.emplace_back(batch.size());
      for (size_t i = 0; i < ones.size(); ++i)
        ones[i] = 1.0F + static_cast<float>(i);
      expected.push_back(wayBack(session, nullptr, ones));
    }
    if (hostile)
      options.policy = sheaf::rt::Policy::LookAhead;
    sheaf::rt::Session session(own, options);
    session.run(batches[0].get()->store->instances);
    wayBack(session, nullptr, weights[0]);
    session.putAside().reset();
    session.run({});
    uint64_t before = session.memory().rows.now;
    std::vector<std::pair<size_t, std::unique_ptr<sheaf::rt::Run>>> held;
    for (int step = 0; step < 60; ++step) {
      size_t next = random() % batches.size();
      std::span<const sheaf::rt::Outcome> outcomes =
          session.run(batches[next].get()->store->instances);
      float last = 0;
      if (outcomes[0].ok())
        session.tensor(own.entry.resultType, outcomes[0].slots).copyTo(&last);
      if (random() % 2)
        EXPECT_TRUE(sameBits(wayBack(session, nullptr, weights[next]), expected[next]));
      if (random() % 2) {
        held.emplace_back(next, session.putAside());
        if (outcomes[0].ok()) {
          float again = 0;
          session.tensor(own.entry.resultType, held.back().second->outcomes()[0].slots)
              .copyTo(&again);
          EXPECT_EQ(again, last);
        }
      }
      for (int i = 0; i < 2 && !held.empty(); ++i) {
        auto &[which, run] = held[random() % held.size()];
        EXPECT_TRUE(sameBits(wayBack(session, run.get(), weights[which]), expected[which]));
      }
      if (held.size() > 4 || (!held.empty() && random() % 4 == 0))
        held.erase(held.begin() + static_cast<ptrdiff_t>(random() % held.size()));
    }
    held.clear();
    session.run({});
    EXPECT_EQ(session.memory().rows.now, before);
  }
}

TEST_F(Gradients, ComeFromAnyResultThatIsHeld) {
  sheaf::Model model = sheaf::compile(trainingOf(kLong));
  sheaf::Session session;
  auto run = [&](float x, int n) {
    sheaf::Batch batch(model);
    Floats vector = {x, 1, -x};
    batch.add({batch.makeTensor(model.argumentType(0), {3}, vector.data()),
               batch.makeInt(model.argumentType(1), n)});
    return session.run(batch);
  };
  auto gradient = [&](const sheaf::Result &result) {
    sheaf::Gradients gradients = backward(session, result);
    Floats all = floatsOf(gradients.weight("w"));
    Floats ofInput = floatsOf(gradients.argument(0)[0].tensor());
    all.insert(all.end(), ofInput.begin(), ofInput.end());
    return all;
  };
  std::vector<Floats> expected;
  for (int i = 0; i < 3; ++i)
    expected.push_back(gradient(run(static_cast<float>(i), 5 * i + 1)));
  // Two forwards before a backward, in any order, also when the session is gone.
  std::optional<sheaf::Result> a = run(0, 1), b = run(1, 6), c = run(2, 11);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(sameBits(gradient(*a), expected[0]));
    EXPECT_TRUE(sameBits(gradient(*c), expected[2]));
    EXPECT_TRUE(sameBits(gradient(*b), expected[1]));
  }
  sheaf::Gradients kept = backward(session, *b);
  b.reset();
  EXPECT_EQ(floatsOf(kept.argument(0)[0].tensor()),
            Floats(expected[1].end() - 3, expected[1].end()));
  session.remove(model);
  EXPECT_TRUE(sameBits(gradient(*a), expected[0]));
  a.reset();
  c.reset();

  // They count against the limit; what is released is there again.
  sheaf::Session small(1, 16 << 20);
  sheaf::Batch batch(model);
  for (int i = 0; i < 100; ++i) {
    Floats vector = {1, 1, 1};
    batch.add({batch.makeTensor(model.argumentType(0), {3}, vector.data()),
               batch.makeInt(model.argumentType(1), 80)});
  }
  std::vector<sheaf::Result> results;
  bool full = false;
  for (int i = 0; i < 40 && !full; ++i) {
    try {
      results.push_back(small.run(batch));
      full = results.back().cause(99) == SHEAF_TOO_LITTLE_MEMORY;
    } catch (const sheaf::Error &error) {
      EXPECT_EQ(error.status(), SHEAF_NO_MEMORY);
      full = true;
    }
  }
  EXPECT_TRUE(full);
  EXPECT_GT(results.size(), 2u);
  results.clear();
  sheaf::Result again = small.run(batch);
  EXPECT_EQ(again.error(99), "");
}

/// What has no tensors in it is not brought into the session.
TEST_F(Gradients, HaveArgumentsOfBatchesThatAreGone) {
  sheaf::Model model = sheaf::compile(
      trainingOf("data Words = End | Word(w: int, more: Words)\n"
                 "fn main(t: Words, xs: list<int>, x: f32[3]) -> f32 =\n"
                 "  sum(x) * f32(len(xs) + match t { End => 0\n Word(w, _) => w })\n"));
  sheaf::Type words = model.findType("Words"), number = model.findType("int");
  sheaf::Session session;
  std::optional<sheaf::Batch> batch(model);
  auto run = [&](int n) {
    sheaf::Value t = batch->makeData(words, "End", {});
    std::vector<sheaf::Value> xs;
    for (int i = 0; i < n; ++i) {
      xs.push_back(batch->makeInt(number, i));
      t = batch->makeData(words, "Word", {xs.back(), t});
    }
    Floats x = {1, 2, 3};
    batch->add({t, batch->makeList(model.argumentType(1), xs),
                batch->makeTensor(model.argumentType(2), {3}, x.data())});
    sheaf::Result result = session.run(*batch);
    batch->clear();
    return result;
  };
  sheaf::Result a = run(300), b = run(200);
  batch.reset();
  for (auto [result, n] : {std::pair(&a, 300u), {&b, 200u}}) {
    sheaf::Gradients gradients = backward(session, *result);
    sheaf::Result xs = gradients.argument(1), t = gradients.argument(0);
    ASSERT_EQ(xs[0].size(), n);
    for (unsigned i = 0; i < n; ++i)
      EXPECT_EQ(xs[0][i].toInt(), i);
    EXPECT_EQ(t[0][0].toInt(), n - 1);
    EXPECT_EQ(t[0][1][0].toInt(), n - 2);
  }
}

//===----------------------------------------------------------------------===//
// Formulas, and what is wrong
//===----------------------------------------------------------------------===//

const char *kLinear = "param w : f32[2, 3] = constant(2)\n"
                      "param e : f32[4, 3] = constant(1)\n"
                      "fn main(x: f32[2], k: int) -> (f32[3], (int, f32[3])) =\n"
                      "  { check k != 2, \"too far\"\n"
                      "    (x @ w, (k, e[k] * 5.0)) }\n";

struct Linear {
  sheaf::Model model = sheaf::compile(trainingOf(kLinear));
  sheaf::Session session;
  sheaf::Batch batch{model};

  Linear() {
    for (int i = 0; i < 3; ++i) {
      Floats x = {static_cast<float>(i), 1};
      batch.add({batch.makeTensor(model.argumentType(0), {2}, x.data()),
                 batch.makeInt(model.argumentType(1), i + 1)},
                10 * i);
    }
  }
};

TEST_F(Gradients, AreThoseOfTheFormula) {
  Linear linear;
  sheaf::Result result = linear.session.run(linear.batch);
  EXPECT_EQ(result.error(0), "");
  EXPECT_NE(result.error(1).find("too far"), std::string::npos);
  // The rows of the instance that failed are not read: NaN does no harm.
  Floats bulk = {1, 2, 3, NAN, NAN, NAN, 4, 5, 6}, one = {1, 0, 10};
  sheaf::Cotangent first{dense(bulk, {3, 3}), {0}, {}};
  std::vector<std::int64_t> bulkShape = {3, 3}, oneShape = {1, 3};
  first.tensor.shape = bulkShape.data();
  sheaf::Cotangent second{dense(one, oneShape), {1, 1}, Sizes{2}};
  sheaf::Gradients gradients = backward(linear.session, result, {first, second});
  // x0 = (0, 1), x2 = (2, 1): transpose(x) @ dy.
  EXPECT_EQ(floatsOf(gradients.weight("w")), (Floats{8, 10, 12, 5, 7, 9}));
  EXPECT_EQ(floatsOf(gradients.weight("e")), (Floats{0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 50}));
  sheaf::WeightGradient rows = gradients.rows("e");
  ASSERT_TRUE(rows.indices.has_value());
  EXPECT_EQ(rows.indices->shape(), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(rows.indices->data<std::int64_t>()[0], 3);
  EXPECT_EQ(rows.tensor.shape(), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(floatsOf(rows.tensor), (Floats{5, 0, 50}));
  EXPECT_FALSE(gradients.rows("w").indices.has_value());

  sheaf::Result x = gradients.argument(0), k = gradients.argument(1);
  EXPECT_EQ(floatsOf(x[0].tensor()), (Floats{12, 12}));
  EXPECT_EQ(floatsOf(x[2].tensor()), (Floats{30, 30}));
  EXPECT_EQ(x.error(1), result.error(1));
  EXPECT_EQ(x.cause(1), SHEAF_PROGRAM);
  EXPECT_EQ(floatsOf(x.stack({}, {2, 0})), (Floats{30, 30, 12, 12}));
  EXPECT_EQ(k[2].toInt(), 3);

  // Once more from the same run, with strides; nothing reaches `w` now.
  Floats wide = {7, -1, 8, -1, 9, -1};
  std::vector<std::int64_t> strides = {6, 2};
  sheaf::Cotangent strided{dense(wide, oneShape), {1, 1}, Sizes{0}};
  strided.tensor.strides = strides.data();
  sheaf::Gradients again = backward(linear.session, result, {strided});
  EXPECT_EQ(floatsOf(again.weight("w")), Floats(6, 0));
  EXPECT_EQ(floatsOf(again.rows("e").tensor), (Floats{35, 40, 45}));
  EXPECT_EQ(floatsOf(again.argument(0)[2].tensor()), Floats(2, 0));
  EXPECT_NE(messageOf([&] { gradients.weight("w"); }, SHEAF_INVALID).find("no more"),
            std::string::npos);
  // Nothing arrives: all are zero.
  EXPECT_EQ(floatsOf(backward(linear.session, result, {}).weight("w")), Floats(6, 0));
}

TEST_F(Gradients, SayWhatIsWrong) {
  Linear linear;
  sheaf::Result result = linear.session.run(linear.batch);
  Floats three = {1, 2, 3}, four = {1, 2, 3, 4};
  std::vector<std::int64_t> oneByThree = {1, 3}, oneByFour = {1, 4}, two = {2, 1};
  auto wrong = [&](const DLTensor &tensor, Sizes path, std::size_t instance) {
    return messageOf(
        [&] {
          backward(linear.session, result,
                   {{dense(three, oneByThree), {0}, Sizes{0}}, {tensor, path, Sizes{instance}}});
        },
        SHEAF_INVALID);
  };
  EXPECT_EQ(wrong(dense(four, oneByFour), {1, 1}, 2),
            "cotangent 1, of instance 2, part 1.1: its shape is [3], that of the cotangent [4]");
  EXPECT_EQ(wrong(dense(three, oneByThree), {1, 0}, 0),
            "cotangent 1, of instance 0, part 1.0: it is no tensor of floats");
  EXPECT_EQ(wrong(dense(three, oneByThree), {1, 2}, 0),
            "cotangent 1, of instance 0, part 1: there is no part 2 of 2");
  EXPECT_EQ(wrong(dense(three, oneByThree), {}, 0),
            "cotangent 1, of instance 0: it is no tensor of floats");
  EXPECT_EQ(wrong(dense(three, oneByThree), {0}, 3),
            "cotangent 1, of instance 3: the run had 3 instances");
  EXPECT_EQ(wrong(dense(four, two), {0}, 0),
            "cotangents[1]: its first axis has 2 elements, for 1 instances");
  DLTensor doubles = dense(three, oneByThree);
  doubles.dtype.bits = 64;
  EXPECT_EQ(wrong(doubles, {0}, 0), "cotangents[1]: its elements are no floats of 32 bits");
  EXPECT_EQ(messageOf([&] { backward(linear.session, result); }, SHEAF_INVALID),
            "the result of 'main' is no loss, which is f32 without axes, but "
            "'(f32[3], (int, f32[3]))': cotangents are needed");

  sheaf::Gradients gradients =
      backward(linear.session, result, {{dense(three, oneByThree), {0}, Sizes{0}}});
  EXPECT_EQ(messageOf([&] { gradients.weight("q"); }, SHEAF_INVALID),
            "the model has no weight 'q'");
  EXPECT_EQ(messageOf([&] { gradients.argument(2); }, SHEAF_INVALID),
            "'main' has no argument 2 but 2");
  sheaf::Gradients sum(linear.model);
  EXPECT_EQ(messageOf([&] { sum.argument(0); }, SHEAF_INVALID),
            "a sum of gradients has none of arguments");
  EXPECT_EQ(messageOf([&] { gradients.add(sum); }, SHEAF_INVALID),
            "gradients of a run are no sum: sheaf_gradients_create() makes one");

  // Weights that change, runs that come after, sessions and models that are others.
  Floats w(6, 1);
  std::vector<std::int64_t> shape = {2, 3}, turned = {3, 2};
  setWeight(linear.session, linear.model, "w", dense(w, shape));
  auto goBack = [&](const sheaf::Session &session) {
    return messageOf(
        [&] { backward(session, result, {{dense(three, oneByThree), {0}, Sizes{0}}}); },
        SHEAF_INVALID);
  };
  EXPECT_EQ(goBack(linear.session),
            "weights have changed since the run that gradients are asked of");
  EXPECT_EQ(messageOf([&] { setWeight(linear.session, linear.model, "w", dense(w, turned)); },
                      SHEAF_INVALID),
            "weight 'w': axis 0 has 2 elements, that of the tensor 3");
  EXPECT_EQ(floatsOf(weight(linear.session, linear.model, "w")), w);
  sheaf::Result later = linear.session.run(linear.batch);
  EXPECT_EQ(floatsOf(later[0][0].tensor()), (Floats{1, 1, 1}));
  EXPECT_EQ(goBack(linear.session),
            "weights have changed since the run that gradients are asked of");
  sheaf::Session other;
  other.run(linear.batch);
  EXPECT_EQ(goBack(other), "the result is of no run of this session");

  sheaf::CompileOptions options = trainingOf(kLinear, /*inputs=*/false);
  sheaf::Model plain = sheaf::compile(options);
  sheaf::Batch batch(plain);
  batch.add({batch.makeTensor(plain.argumentType(0), {2}, three.data()),
             batch.makeInt(plain.argumentType(1), 1)});
  sheaf::Result ofPlain = linear.session.run(batch);
  sheaf::Gradients back = backward(linear.session, ofPlain, {{dense(three, oneByThree), {0}, {}}});
  EXPECT_EQ(floatsOf(back.weight("w")), (Floats{1, 2, 3, 2, 4, 6}));
  EXPECT_EQ(messageOf([&] { back.argument(0); }, SHEAF_INVALID),
            "the model was compiled without input_gradients");
  EXPECT_EQ(messageOf([&] { sum.add(back); }, SHEAF_INVALID), "the gradients are of another model");
  options.training = false;
  sheaf::Model inference = sheaf::compile(options);
  EXPECT_EQ(messageOf([&] { sheaf::Optimizer o(linear.session, inference); }, SHEAF_INVALID),
            "the model was not compiled for training");
  options.inputGradients = true;
  EXPECT_EQ(messageOf([&] { sheaf::compile(options); }, SHEAF_INVALID),
            "options.input_gradients is for models that are compiled for training");
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

const char *kWords = "dim h = 8, classes = 3\n"
                     "param table : f32[20, h] = normal(0.5)\n"
                     "param w : f32[2*h, h] = glorot\n"
                     "param b : f32[h] = zeros\n"
                     "param out_w : f32[h, classes] = glorot\n"
                     "fn state(xs: list<int>) -> f32[h] =\n"
                     "  fold(|s: f32[h], x| tanh(concat(s, table[x]) @ w + b), zeros(h), xs)\n"
                     "fn main(xs: list<int>) -> f32[classes] = state(xs) @ out_w\n"
                     "fn loss(xs: list<int>, label: int) -> f32 =\n"
                     "  cross_entropy(main(xs), label)\n";

/// The same sentences as instances, and as a file for the command.
struct Sentences {
  std::vector<std::pair<std::vector<int>, int>> all;
  explicit Sentences(int count) {
    std::mt19937 random(3);
    for (int i = 0; i < count; ++i) {
      auto &[words, label] = all.emplace_back();
      for (unsigned n = 1 + random() % 6; n > 0; --n)
        words.push_back(static_cast<int>(random() % 20));
      label = words.back() % 3;
    }
  }
  void add(sheaf::Batch &batch, std::size_t i) const {
    const sheaf::Model &model = batch.model();
    std::vector<sheaf::Value> words;
    for (int word : all[i].first)
      words.push_back(batch.makeInt(model.findType("int"), word));
    batch.add({batch.makeList(model.argumentType(0), words),
               batch.makeInt(model.findType("int"), all[i].second)},
              static_cast<std::int64_t>(i));
  }
  void write(const std::string &path) const {
    std::ofstream file(path);
    for (const auto &[words, label] : all) {
      file << "{\"xs\": [";
      for (std::size_t i = 0; i < words.size(); ++i)
        file << (i ? ", " : "") << words[i];
      file << "], \"label\": " << label << "}\n";
    }
  }
};

/// Trains as the command does, with its order, and gives the weights.
std::vector<Floats> train(const sheaf::Model &model, const Sentences &data, int epochs,
                          std::size_t batchSize, std::size_t accumulate,
                          sheaf_optimizer_options options, double rate, unsigned threads) {
  sheaf::Session session(threads);
  sheaf::Optimizer optimizer(session, model, options);
  sheaf::Gradients sum(model);
  std::uint64_t step = 0;
  std::size_t count = data.all.size();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::vector<uint32_t> order = sheaf::rt::instanceOrder(4, epoch, count);
    for (std::size_t begin = 0; begin < count; begin += batchSize * accumulate) {
      ++step;
      sum.clear();
      std::size_t end = std::min(begin + batchSize * accumulate, count);
      double scale = 1.0 / static_cast<double>(end - begin);
      sheaf_step_report report{};
      for (std::size_t at = begin; at < end; at += batchSize) {
        sheaf::Batch batch(model);
        for (std::size_t i = at; i < std::min(at + batchSize, end); ++i)
          data.add(batch, order[i]);
        sheaf_run_options run{};
        run.size = sizeof run;
        run.step = step;
        sheaf_result *raw = nullptr;
        sheaf::check(sheaf_session_run_with(session.get(), batch.get(), &run, &raw));
        sheaf::Result losses(raw);
        sheaf::Gradients gradients = backward(session, losses);
        if (accumulate == 1)
          report = optimizer.step(gradients, rate, scale);
        else
          sum.add(gradients);
      }
      if (accumulate > 1)
        report = optimizer.step(sum, rate, scale);
      EXPECT_TRUE(report.changed && !report.skipped && report.norm > 0);
    }
  }
  std::vector<Floats> weights;
  for (const std::string &name : sheaf::weightNames(model))
    weights.push_back(floatsOf(weight(session, model, name)));
  return weights;
}

TEST_F(Gradients, StepsAreThoseOfTheCommand) {
  fs::path directory = fs::temp_directory_path() / ("sheaf-steps-" + std::to_string(getpid()));
  fs::create_directories(directory);
  Sentences data(50);
  data.write(directory / "d.jsonl");
  std::ofstream(directory / "m.sheaf") << kWords;
  struct Case {
    const char *name, *command;
    sheaf_optimizer_options options;
    std::size_t accumulate;
  };
  sheaf_weight_update fixed{"out_*", 0.5, -1};
  std::vector<Case> cases = {{"sgd", "--optimizer sgd", {}, 1},
                             {"adam", "--clip 0.5", {}, 1},
                             {"adamw",
                              "--optimizer adamw --weight-decay 0.1 --decay-for out_*=0 "
                              "--lr-for out_*=0.005",
                              {},
                              2}};
  cases[0].options.name = "sgd";
  cases[1].options.clip = 0.5;
  cases[2].options.name = "adamw";
  cases[2].options.weight_decay = 0.1;
  cases[2].options.updates = &fixed;
  cases[2].options.update_count = 1;
  sheaf::CompileOptions options = trainingOf(kWords, /*inputs=*/false);
  options.entry = "loss";
  options.seed = 4;
  sheaf::Model model = sheaf::compile(options);
  for (const Case &each : cases) {
    SCOPED_TRACE(each.name);
    std::string output = directory / each.name;
    std::string command = std::string(SHEAF_COMMAND " train ") + (directory / "m.sheaf").string() +
                          " --store none --data " + (directory / "d.jsonl").string() +
                          " --epochs 3 --batch 8 --lr 0.01 --seed 4 --accumulate " +
                          std::to_string(each.accumulate) + " " + each.command + " -o " + output +
                          " > " + output + ".log 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    sheaf::CompileOptions trained = options;
    trained.weights = output + "/last.safetensors";
    sheaf::Model expected = sheaf::compile(trained);
    sheaf::Session session;
    std::vector<std::string> names = sheaf::weightNames(model);
    ASSERT_EQ(names.size(), 4u);
    for (unsigned threads : {1u, 2u}) {
      std::vector<Floats> weights =
          train(model, data, 3, 8, each.accumulate, each.options, 0.01, threads);
      for (std::size_t i = 0; i < names.size(); ++i)
        EXPECT_TRUE(sameBits(weights[i], floatsOf(weight(session, expected, names[i]))))
            << names[i];
    }
  }
  fs::remove_all(directory);
}

TEST_F(Gradients, WeightsThatAreTrainedBecomeAModel) {
  sheaf::CompileOptions options = trainingOf(kWords, /*inputs=*/false);
  options.entry = "loss";
  sheaf::Model model = sheaf::compile(options);
  sheaf::Session session;
  sheaf::freeze(session, model, "table");
  Sentences data(24);
  sheaf::Batch batch(model);
  for (std::size_t i = 0; i < data.all.size(); ++i)
    data.add(batch, i);
  sheaf_optimizer_options momentum{};
  momentum.name = "momentum";
  sheaf::Optimizer optimizer(session, model, momentum);
  Floats table = floatsOf(weight(session, model, "table"));
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    sheaf::Result losses = session.run(batch);
    last = 0;
    for (float loss : floatsOf(losses.stack()))
      last += static_cast<double>(loss) / static_cast<double>(data.all.size());
    if (step == 0)
      first = last;
    optimizer.step(backward(session, losses), 0.2, 1.0 / static_cast<double>(data.all.size()));
  }
  EXPECT_LT(last, first / 4);
  EXPECT_EQ(floatsOf(weight(session, model, "table")), table);

  sheaf::CompileOptions inference;
  inference.text = kWords;
  std::vector<sheaf::Tensor> kept;
  for (const std::string &name : sheaf::weightNames(model)) {
    kept.push_back(weight(session, model, name));
    inference.tensors[name] = kept.back().get();
  }
  sheaf::Model built = sheaf::compile(inference);
  int right = 0;
  for (const auto &[words, label] : data.all) {
    sheaf::Batch one(built);
    std::vector<sheaf::Value> values;
    for (int word : words)
      values.push_back(one.makeInt(built.findType("int"), word));
    one.add({one.makeList(built.argumentType(0), values)});
    Floats scores = floatsOf(session.run(one)[0].tensor());
    right += std::max_element(scores.begin(), scores.end()) - scores.begin() == label;
  }
  EXPECT_GE(right, 22);
}

TEST_F(Gradients, OptimisersSayWhatIsWrong) {
  Linear linear;
  auto wrong = [&](const std::function<void(sheaf_optimizer_options &)> &set) {
    sheaf_optimizer_options options{};
    set(options);
    return messageOf([&] { sheaf::Optimizer o(linear.session, linear.model, options); },
                     SHEAF_INVALID);
  };
  EXPECT_EQ(
      wrong([](auto &o) { o.name = "magic"; }).find("there is no optimizer 'magic'; there are"),
      0u);
  EXPECT_EQ(wrong([](auto &o) { o.beta1 = 1; }), "options.beta1 is not less than 1");
  EXPECT_EQ(wrong([](auto &o) { o.clip = NAN; }), "options.clip is not finite");
  sheaf_weight_update update{"q*", 1, 0};
  EXPECT_EQ(wrong([&](auto &o) {
              o.updates = &update;
              o.update_count = 1;
            }),
            "no weight of the model is called 'q*'");
  EXPECT_EQ(messageOf([&] { sheaf::freeze(linear.session, linear.model, "q"); }, SHEAF_INVALID),
            "no weight of the model is called 'q'");
  sheaf::Optimizer optimizer(linear.session, linear.model);
  sheaf::Gradients sum(linear.model);
  EXPECT_EQ(messageOf([&] { optimizer.step(sum, -1); }, SHEAF_INVALID),
            "the learning rate is below 0, or it or the scale is not finite");
  EXPECT_FALSE(optimizer.step(sum, 1).changed);
  sheaf::Model other = sheaf::compile(trainingOf(kLinear));
  sheaf::Gradients ofOther(other);
  EXPECT_EQ(messageOf([&] { optimizer.step(ofOther, 1); }, SHEAF_INVALID),
            "the gradients are of another model, or of another session");
  // What came of a session lives on without it.
  auto session = std::make_unique<sheaf::Session>();
  sheaf::Result result = session->run(linear.batch);
  Floats bulk(9, 1);
  std::vector<std::int64_t> shape = {3, 3};
  sheaf::Gradients gradients = backward(*session, result, {{dense(bulk, shape), {0}, {}}});
  sheaf::Optimizer own(*session, linear.model);
  session.reset();
  EXPECT_EQ(floatsOf(gradients.weight("w")), (Floats{2, 2, 2, 2, 2, 2}));
  EXPECT_TRUE(own.step(gradients, 0.1).changed);
}

TEST_F(Gradients, SessionsTrainSideBySide) {
  Linear linear;
  std::vector<std::thread> threads;
  std::vector<Floats> weights(4);
  for (Floats &out : weights)
    threads.emplace_back([&linear, &out] {
      sheaf::Session session;
      sheaf::Optimizer optimizer(session, linear.model);
      sheaf::Batch batch(linear.model);
      Floats x = {1, 2}, ones(3, 1);
      std::vector<std::int64_t> shape = {1, 3};
      batch.add({batch.makeTensor(linear.model.argumentType(0), {2}, x.data()),
                 batch.makeInt(linear.model.argumentType(1), 0)});
      for (int step = 0; step < 20; ++step)
        optimizer.step(backward(session, session.run(batch), {{dense(ones, shape), {0}, {}}}), 0.1);
      out = floatsOf(weight(session, linear.model, "w"));
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Floats &each : weights)
    EXPECT_TRUE(sameBits(each, weights[0]));
  EXPECT_NE(weights[0][0], 2);
}

} // namespace
