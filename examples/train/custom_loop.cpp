//===- custom_loop.cpp - A training loop of one's own ---------------------===//
//
// Learns the sum of sequences of any length with a recurrent network: the losses of long
// sequences count less, gradients of two mini-batches make one step, the learning rate falls when
// the loss does not, and the recurrent matrix is kept from growing by changing it by hand. Fails
// when it has learnt nothing.
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/Compiler.h"
#include "runtime/train/train.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

using namespace sheaf;

namespace {

const char *const kModel = R"(
dim hidden = 16
param in_w  : f32[1, hidden] = glorot
param h_w   : f32[hidden, hidden] = orthogonal
param h_b   : f32[hidden] = zeros
param out_w : f32[hidden] = glorot

fn predict(x: f32[n, 1]) -> f32 =
  dot(fold(|h, row| tanh(row @ in_w + h @ h_w + h_b), zeros(hidden), rows(x)), out_w)

fn loss(x: f32[n, 1], y: f32) -> f32 = square(predict(x) - y)
)";

/// Sequences and what they sum to, as instances of `loss`: the slots of a tensor are its address
/// and its per-instance extents.
struct Data {
  std::vector<std::unique_ptr<rt::HostTensor>> tensors;
  std::vector<std::vector<rt::Slot>> args;
  std::vector<rt::Instance> instances;
  std::vector<float> weights;

  explicit Data(int count) {
    std::mt19937 random(1);
    for (int i = 0; i < count; ++i) {
      int64_t length = 2 + static_cast<int64_t>(random() % 7);
      auto x = std::make_unique<rt::HostTensor>(rt::DType::F32, std::vector<int64_t>{length, 1});
      auto y = std::make_unique<rt::HostTensor>(rt::DType::F32, std::vector<int64_t>{});
      float sum = 0;
      for (int64_t j = 0; j < length; ++j) {
        float value = static_cast<float>(random() % 2001) / 1000.0F - 1;
        // Every row begins a granule.
        *reinterpret_cast<float *>(x->bytes.get() + j * rt::kGranuleBytes) = value;
        sum += value;
      }
      *reinterpret_cast<float *>(y->bytes.get()) = sum / 4;
      args.push_back({x->inputSlot(), length, y->inputSlot()});
      weights.push_back(1 / static_cast<float>(length));
      tensors.push_back(std::move(x));
      tensors.push_back(std::move(y));
    }
    for (int i = 0; i < count; ++i)
      instances.push_back({args[static_cast<size_t>(i)].data(), i});
  }
};

/// The length of a parameter or gradient over the elements that it has.
double lengthOf(const rt::ParamDesc &param, const rt::ParamGradient &gradient) {
  double squares = 0;
  rt::forEachRow(param, gradient, [&](int64_t begin, int64_t size) {
    for (int64_t i = begin; i < begin + size; ++i)
      squares += static_cast<double>(gradient.data[i]) * static_cast<double>(gradient.data[i]);
  });
  return std::sqrt(squares);
}

} // namespace

int main() {
  SourceFile source("custom_loop", kModel);
  driver::CompileOptions compile;
  compile.entry = "loss";
  compile.training = true;
  Diagnostics diags(source);
  std::unique_ptr<driver::CompiledModel> compiled = driver::compile(source, compile, diags);
  if (diags.hasErrors()) {
    std::fputs(diags.render().c_str(), stderr);
    return 1;
  }
  const rt::Model &model = compiled->model();

  rt::SessionOptions options;
  options.keepBytes = 0;
  rt::Session session(model, options);
  session.initParams(7);
  rt::OptimizerOptions adam;
  adam.kind = rt::OptimizerOptions::Adam;
  adam.clip = 1;
  rt::Optimizer optimizer(session, adam);
  rt::GradientSum sum(model);
  auto recurrent = static_cast<size_t>(session.findParam("h_w"));

  Data data(256);
  constexpr size_t kBatch = 32;
  double first = 0, last = 0, best = INFINITY, rate = 0.01;
  for (int epoch = 0; epoch < 60; ++epoch) {
    double losses = 0, longest = 0;
    for (size_t begin = 0; begin < data.instances.size(); begin += 2 * kBatch) {
      sum.clear();
      for (size_t at : {begin, begin + kBatch}) {
        std::span<const rt::Instance> batch = std::span(data.instances).subspan(at, kBatch);
        for (const rt::Outcome &outcome : session.run(batch)) {
          if (!outcome.ok())
            throw UserError(outcome.error->what());
          float loss = 0;
          session.tensor(model.entry.resultType, outcome.slots).copyTo(&loss);
          losses += static_cast<double>(loss);
        }
        sum.add(session.backward(std::span(data.weights).subspan(at, kBatch)));
      }
      longest = std::max(longest, lengthOf(model.params[recurrent], sum.gradients()[recurrent]));
      optimizer.step(sum.gradients(), rate, 1.0 / (2 * kBatch));

      // Whatever else is to happen to a parameter: here no element may pass 1.
      rt::TensorView view = session.param(recurrent);
      auto *h_w = reinterpret_cast<float *>(session.paramRow(recurrent));
      for (int64_t i = 0; i < view.rows() * view.rowStride() / 4; ++i)
        h_w[i] = std::clamp(h_w[i], -1.0F, 1.0F);
    }
    last = losses / static_cast<double>(data.instances.size());
    if (epoch == 0)
      first = last;
    if (last > 1.2 * best)
      rate *= 0.7;
    best = std::min(best, last);
    if (epoch % 10 == 9)
      std::printf("epoch %d: loss %.5f, longest gradient of h_w %.4f, rate %.5f\n", epoch + 1, last,
                  longest, rate);
  }
  if (!(last < first / 20)) {
    std::fprintf(stderr, "the loss fell from %g to %g only\n", first, last);
    return 1;
  }
  return 0;
}
