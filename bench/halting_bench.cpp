//===- halting_bench.cpp - A loop that reads, against the same by hand ----===//
//
// halting_bench [instances] [hidden] [repetitions]: mini-batches of a loop that reads a halting
// probability at every step, once as Sheaf runs the model below, once by a loop written for it that
// batches the waiting instances and calls the same two kernels. Prints the times and their ratio;
// fails when the results differ in a bit.
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/Compiler.h"
#include "compiler/measure/Timing.h"
#include "runtime/cpu/kernel_code.h"
#include "runtime/session/session.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

using namespace sheaf;
using driver::median, driver::seconds;

namespace {

const char *const kModel = R"(
dim hidden

param w      : f32[2*hidden, hidden] = orthogonal(1.5)
param b      : f32[hidden] = zeros
param halt_w : f32[hidden] = normal(0.1)

fn think(x: f32[hidden], h: f32[hidden], step: int) -> (f32[hidden], int) = {
  let h2 = tanh(concat(x, h) @ w + b)
  if step == 20 || read(sigmoid(dot(h2, halt_w))) > 0.55 { (h2, step) } else {
    think(x, h2, step + 1)
  }
}

fn main(x: f32[hidden]) -> (f32[hidden], int) = think(x, zeros(hidden), 1)
)";
constexpr int64_t kMostSteps = 20;
constexpr double kHalt = 0.55;

[[noreturn]] void fail(const char *message) {
  std::fprintf(stderr, "halting_bench: %s\n", message);
  std::exit(1);
}

/// The loop by hand. Two rows an instance hold its states in turn.
class ByHand {
public:
  ByHand(const rt::Session &session, const std::vector<rt::HostTensor> &inputs)
      : session_(session), count_(static_cast<int32_t>(inputs.size())),
        granules_(static_cast<int32_t>(inputs.front().granules())), steps_(inputs.size()),
        states_(inputs.size()) {
    const std::vector<rt::KernelDesc> &kernels = session.model().kernels;
    if (kernels.size() != 2)
      fail("the model is expected to have two kernels");
    step_ = kernels[0].words == 3 ? 0 : 1;
    halt_ = 1 - step_;
    if (kernels[step_].words != 3 || kernels[halt_].words != 2)
      fail("the kernels are expected to take two rows and one");
    // The inputs, the first state, two states and a halting probability each.
    rows_ = rt::allocateAligned(static_cast<size_t>(count_ * (3 * granules_ + 1) + granules_) *
                                rt::kGranuleBytes);
    for (int32_t i = 0; i < count_; ++i)
      std::memcpy(at(i * granules_), inputs[static_cast<size_t>(i)].bytes.get(),
                  static_cast<size_t>(granules_) * rt::kGranuleBytes);
    scratch_ = rt::allocateAligned(rt::cpuCode(session_.model()).scratchBytes() + 64);
  }

  void run() {
    int32_t zero = count_ * granules_, states = zero + granules_,
            halts = states + 2 * count_ * granules_;
    std::vector<int32_t> &waiting = waiting_;
    waiting.clear();
    for (int32_t i = 0; i < count_; ++i) {
      waiting.push_back(i);
      states_[static_cast<size_t>(i)] = zero;
    }
    for (int64_t step = 1; !waiting.empty(); ++step) {
      stepRecords_.clear();
      haltRecords_.clear();
      for (int32_t i : waiting) {
        int32_t &state = states_[static_cast<size_t>(i)];
        int32_t next = states + (2 * i + static_cast<int32_t>(step % 2)) * granules_;
        stepRecords_.insert(stepRecords_.end(), {i * granules_, state, next});
        haltRecords_.insert(haltRecords_.end(), {next, halts + i});
        state = next;
      }
      call(step_, stepRecords_);
      if (step < kMostSteps)
        call(halt_, haltRecords_);
      std::erase_if(waiting, [&](int32_t i) {
        float halt;
        std::memcpy(&halt, at(halts + i), sizeof halt);
        if (step < kMostSteps && !(static_cast<double>(halt) > kHalt))
          return false;
        steps_[static_cast<size_t>(i)] = step;
        return true;
      });
    }
  }

  int64_t steps(size_t i) const { return steps_[i]; }
  const uint8_t *result(size_t i) { return at(states_[i]); }

private:
  uint8_t *at(int32_t id) { return rows_.get() + static_cast<int64_t>(id) * rt::kGranuleBytes; }

  void call(size_t kernel, const std::vector<int32_t> &records) {
    const rt::KernelDesc &desc = session_.model().kernels[kernel];
    const rt::CpuKernel &code = rt::cpuCode(session_.model()).kernels[kernel];
    code.fn(records.data(), 0, static_cast<int64_t>(records.size() / desc.words), 0, code.panels,
            rows_.get(), session_.kernelWeights(kernel).data(), scratch_.get());
  }

  const rt::Session &session_;
  int32_t count_, granules_;
  size_t step_ = 0, halt_ = 0;
  rt::AlignedBytes rows_, scratch_;
  std::vector<int64_t> steps_;
  std::vector<int32_t> states_, waiting_, stepRecords_, haltRecords_;
};

int run(int64_t instances, int64_t hidden, int repetitions) {
  SourceFile source("halting.sheaf", kModel);
  Diagnostics diags(source);
  driver::CompileOptions options;
  options.dims["hidden"] = hidden;
  // Every step of every mini-batch is to run.
  options.without.insert("memoise-records");
  std::unique_ptr<driver::CompiledModel> model = driver::compile(source, options, diags);
  if (!model)
    fail("the model does not compile");
  rt::Session session(model->model());
  session.initParams(1);
  session.packWeights();

  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<rt::HostTensor> inputs;
  for (int64_t i = 0; i < instances; ++i) {
    std::vector<float> values(static_cast<size_t>(hidden));
    std::generate(values.begin(), values.end(), [&] { return normal(random); });
    rt::HostTensor &input = inputs.emplace_back(rt::DType::F32, std::vector<int64_t>{hidden});
    rt::toRowLayout(input.shape, input.dtype, values.data(), input.bytes.get());
  }
  std::vector<rt::Slot> args;
  for (const rt::HostTensor &input : inputs)
    args.push_back(input.inputSlot());
  std::vector<rt::Instance> batch;
  for (int64_t i = 0; i < instances; ++i)
    batch.push_back({&args[static_cast<size_t>(i)], i});
  ByHand byHand(session, inputs);

  std::vector<double> sheafMs, handMs;
  int64_t steps = 0, differing = 0;
  for (int i = 0; i < repetitions + 2; ++i) {
    double start = seconds();
    std::span<const rt::Outcome> outcomes = session.run(batch);
    double middle = seconds();
    byHand.run();
    double end = seconds();
    if (i >= 2) {
      sheafMs.push_back((middle - start) * 1e3);
      handMs.push_back((end - middle) * 1e3);
    }
    steps = differing = 0;
    uint32_t type = model->model().types.types[model->model().entry.resultType].children[0];
    for (size_t n = 0; n < outcomes.size(); ++n) {
      if (!outcomes[n].ok())
        fail("an instance failed");
      rt::TensorView state = session.tensor(type, outcomes[n].slots);
      steps += outcomes[n].slots[1];
      differing += outcomes[n].slots[1] != byHand.steps(n) ||
                   std::memcmp(state.data, byHand.result(n),
                               static_cast<size_t>(hidden) * sizeof(float)) != 0;
    }
  }
  if (differing)
    fail("the results differ");
  std::printf(
      "%lld instances, hidden %lld, %lld steps, %llu launches\n", static_cast<long long>(instances),
      static_cast<long long>(hidden), static_cast<long long>(steps),
      static_cast<unsigned long long>(session.counters().launches / session.counters().runs));
  auto least = [](const std::vector<double> &v) { return *std::min_element(v.begin(), v.end()); };
  std::printf("%-8s %10s %10s\n", "", "ms", "ms min");
  std::printf("%-8s %10.3f %10.3f\n", "sheaf", median(sheafMs), least(sheafMs));
  std::printf("%-8s %10.3f %10.3f\n", "by hand", median(handMs), least(handMs));
  std::printf("%-8s %10.3f %10.3f\n", "ratio", median(sheafMs) / median(handMs),
              least(sheafMs) / least(handMs));
  std::printf("a step with its read costs %.0f ns more than by hand\n",
              (least(sheafMs) - least(handMs)) * 1e6 / static_cast<double>(steps));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  auto number = [&](int i, int otherwise) {
    return argc > i ? std::max(1, std::atoi(argv[i])) : otherwise;
  };
  return run(number(1, 64), number(2, 256), number(3, 200));
}
