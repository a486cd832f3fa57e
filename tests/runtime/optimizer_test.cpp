// The optimiser on several threads, with the thread sanitizer as well: the same bits, and packed
// copies that follow.

#include "runtime/cpu/kernel_code.h"
#include "runtime/train/optimizer.h"

#include "runtime/session/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace sheaf::rt {
namespace {

constexpr int64_t kRows = 4001, kColumns = 64;

void nothing(const int32_t *, int64_t, int64_t, int64_t, int64_t, uint8_t *, const void *const *,
             uint8_t *) {}

/// One parameter that kernels read plain and transposed, in f32 and as factors. `begin`: the first
/// row that the plain copies take.
Model modelFrom(int64_t begin) {
  Model model;
  ParamDesc param;
  param.name = "w";
  param.dtype = DType::F32;
  param.shape = {kRows, kColumns};
  param.id = 1;
  model.paramGranules = 1 + static_cast<uint32_t>(tensorGranules(param.shape, param.dtype));
  model.params.push_back(param);
  KernelDesc kernel;
  kernel.name = "k";
  CpuKernel code;
  code.fn = nothing;
  kernel.words = 1;
  for (bool transposed : {false, true})
    for (bool factors : {false, true}) {
      PackView view;
      view.segments = {transposed ? PackSegment{0, 3, kColumns, true}
                                  : PackSegment{0, begin, kRows - 11, false}};
      WeightUse use;
      use.kind = WeightUse::Panels;
      use.views = {view};
      use.width = transposed ? kRows : kColumns;
      use.vectors = 2;
      use.form = factors ? WeightForm::Bf16 : WeightForm::F32;
      use.depthMultiple = factors ? 32 : 1;
      code.weights.push_back(use);
    }
  model.kernels.push_back(kernel);
  cpuCode(model).kernels = {code};
  return model;
}

std::vector<std::vector<uint8_t>> packedOf(const Session &session) {
  std::vector<std::vector<uint8_t>> all;
  for (std::span<const uint8_t> copy : session.packedWeights())
    all.emplace_back(copy.begin(), copy.end());
  return all;
}

/// What a few steps make of the parameter and its copies.
std::vector<std::vector<uint8_t>> trained(const Model &model, unsigned threads, bool sparse,
                                          OptimizerOptions::Kind kind) {
  SessionOptions sessionOptions;
  sessionOptions.threads = threads;
  Session session(model, sessionOptions);
  session.initParams(1);
  session.packWeights();
  OptimizerOptions options;
  options.kind = kind;
  options.clip = 1;
  Optimizer optimizer(session, options);
  std::vector<float> values(static_cast<size_t>(kRows * kColumns));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 13) - 6;
  ParamGradient gradient;
  gradient.kind = sparse ? ParamGradient::Rows : ParamGradient::Dense;
  gradient.data = values.data();
  for (uint32_t row = 0; sparse && row < kRows; ++row)
    if (row % 3 != 1)
      gradient.rows.push_back(row);
  for (int step = 0; step < 3; ++step)
    EXPECT_FALSE(optimizer.step({&gradient, 1}, 0.01).skipped);
  // A step that is skipped changes nothing.
  values[7] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(optimizer.step({&gradient, 1}, 0.01).skipped);
  std::vector<std::vector<uint8_t>> copies = packedOf(session);
  session.packWeights();
  EXPECT_EQ(copies, packedOf(session)) << "the copies do not follow the parameter";
  const uint8_t *weights = session.paramRow(0);
  copies.emplace_back(weights, weights + kRows * kColumns * 4);
  return copies;
}

TEST(Optimizer, HasTheSameBitsOnAnyNumberOfThreads) {
  for (int64_t begin : {0, 1, 2, 17}) {
    Model model = modelFrom(begin);
    for (bool sparse : {false, true})
      for (OptimizerOptions::Kind kind : {OptimizerOptions::Adam, OptimizerOptions::Lamb}) {
        auto one = trained(model, 1, sparse, kind);
        EXPECT_EQ(one, trained(model, 2, sparse, kind)) << begin << sparse;
        EXPECT_EQ(one, trained(model, 3, sparse, kind)) << begin << sparse;
      }
  }
}

} // namespace
} // namespace sheaf::rt
