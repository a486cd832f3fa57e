// Mini-batches that are put aside where the machine has no more memory, from any allocation on.
#include "compiler/driver/Compiler.h"
#include "runtime/session/run.h"
#include "runtime/session/session.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

namespace {

/// So many allocations this thread may still make; negative: any number.
thread_local int64_t allowed = -1;

} // namespace

void *operator new(size_t bytes) {
  void *memory = allowed == 0 ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!memory)
    throw std::bad_alloc();
  allowed -= allowed > 0;
  return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace sheaf {
namespace {

const char *const kModel = R"(
param w : f32[8] = ones
fn main(n: int) -> f32 = sum(fold(|h, i| tanh(h * w), ones(8), range(n)))
)";

/// The gradient of `w`.
std::vector<float> copyOf(const rt::Session &session,
                          std::span<const rt::ParamGradient> gradients) {
  const float *data = gradients[static_cast<size_t>(session.findParam("w"))].data;
  return {data, data + 8};
}

TEST(Aside, AMiniBatchThatCannotBePutAsideStays) {
  SourceFile source("aside", kModel);
  driver::CompileOptions compile;
  compile.training = true;
  Diagnostics diags(source);
  std::unique_ptr<driver::CompiledModel> compiled = driver::compile(source, compile, diags);
  ASSERT_FALSE(diags.hasErrors()) << diags.render();
  rt::SessionOptions options;
  options.keepBytes = 0;
  rt::Session session(compiled->model(), options);
  session.initParams(1);
  const rt::Slot lengths[] = {1, 3, 2};
  std::vector<rt::Instance> instances;
  for (const rt::Slot &length : lengths)
    instances.push_back({&length, static_cast<int64_t>(instances.size())});
  const float weights[] = {1, 2, 3};
  session.run(instances);
  std::vector<float> expected = copyOf(session, session.backward(weights));

  std::unique_ptr<rt::Run> run;
  int64_t failures = 0;
  for (; !run; ++failures) {
    ASSERT_LT(failures, 1000);
    session.run(instances);
    allowed = failures;
    try {
      run = session.putAside();
    } catch (const std::bad_alloc &) {
    }
    allowed = -1;
    if (!run) {
      EXPECT_EQ(copyOf(session, session.backward(weights)), expected) << failures;
    }
  }
  EXPECT_GT(failures, 4);
  // Others run meanwhile, and what was put aside is as it was.
  session.run({instances.data(), 1});
  EXPECT_EQ(copyOf(session, session.backward(*run, weights)), expected);
}

} // namespace
} // namespace sheaf
