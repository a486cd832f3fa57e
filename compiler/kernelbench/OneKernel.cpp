//===- OneKernel.cpp - The kernel of a one-line model ---------------------===//
#include "compiler/kernelbench/OneKernel.h"

#include "runtime/memory/memory.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace sheaf::kernelbench {

OneKernel::OneKernel(const std::string &text, const std::map<std::string, int64_t> &dims,
                     const Options &options)
    : source_("kernel.sheaf", text), diags_(source_) {
  driver::CompileOptions compile;
  compile.dims = dims;
  compile.targetCpu = options.targetCpu;
  compile.targetCaches = options.targetCaches;
  compile.precision = options.precision;
  // Looked up, equal rows would be computed once.
  compile.without.insert("memoise-records");
  model_ = driver::compile(source_, compile, diags_);
  if (!model_)
    throw UserError("the model of a kernel does not compile: " + diags_.render());
  if (model_->model().kernels.size() != 1)
    throw InternalError("a model of one kernel has " +
                        std::to_string(model_->model().kernels.size()));
  session_ = std::make_unique<rt::Session>(model_->model());
  session_->initParams(1);
  session_->packWeights();
}

std::vector<float> OneKernel::param(size_t index) const {
  rt::TensorView view = session_->param(index);
  std::vector<float> values(static_cast<size_t>(view.elements()));
  view.copyTo(values.data());
  return values;
}

void OneKernel::prepare(int64_t records, std::span<const int64_t> argGranules,
                        int64_t resultGranules) {
  records_ = records;
  int64_t each = std::accumulate(argGranules.begin(), argGranules.end(), resultGranules);
  if (records > INT32_MAX / each)
    throw UserError(fmt::format("{} rows of a kernel are too many", records));
  rows_ = rt::allocateAligned(static_cast<size_t>(records * each) * rt::kGranuleBytes);
  scratch_ = rt::allocateAligned(code().scratchBytes + 64);
  words_.assign(static_cast<size_t>(records) * kernel().words, 0);
  std::mt19937 random(7);
  int64_t base = 0;
  for (size_t arg = 0; arg <= argGranules.size(); ++arg) {
    bool result = arg == argGranules.size();
    int64_t granules = result ? resultGranules : argGranules[arg];
    std::vector<int32_t> order(static_cast<size_t>(records));
    std::iota(order.begin(), order.end(), 0);
    if (!result)
      std::shuffle(order.begin(), order.end(), random);
    for (int64_t i = 0; i < records; ++i)
      words_[static_cast<size_t>(i) * kernel().words + arg] =
          static_cast<int32_t>(base + order[static_cast<size_t>(i)] * granules);
    base += records * granules;
  }
  // Numbers of a normal distribution, the same ones again after a while.
  std::normal_distribution<float> normal;
  std::vector<float> numbers(size_t{1} << 16);
  for (float &number : numbers)
    number = normal(random);
  auto *data = reinterpret_cast<float *>(rows_.get());
  auto count = static_cast<size_t>(records * each) * rt::kGranuleBytes / sizeof(float);
  for (size_t i = 0; i < count; i += numbers.size())
    std::copy_n(numbers.begin(), std::min(numbers.size(), count - i), data + i);
}

float *OneKernel::row(int64_t record, size_t word) {
  return reinterpret_cast<float *>(
      rows_.get() +
      int64_t(words_[static_cast<size_t>(record) * kernel().words + word]) * rt::kGranuleBytes);
}

void OneKernel::run() {
  code().fn(words_.data(), 0, records_, 0, code().panels, rows_.get(),
            session_->kernelWeights(0).data(), scratch_.get());
}

void checkClose(float got, float expected, double scale, const std::string &where) {
  if (!(std::fabs(got - expected) <= 1e-4 * std::max(1.0, scale)))
    throw InternalError(fmt::format("{}: {} instead of {}", where, got, expected));
}

} // namespace sheaf::kernelbench
