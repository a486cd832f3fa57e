// The C interface where the machine has no more memory, from whichever allocation on.
#include "sheaf/sheaf.hpp"

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

namespace {

TEST(OutOfMemory, AnEngineIsGivenAllOfABatchOrNone) {
  sheaf::Model model(SHEAF_GOLDEN "/v2_3.sheafc");
  sheaf_session_options session{};
  session.size = sizeof session;
  session.memory_limit = uint64_t(64) << 20;
  sheaf::Engine engine(model, &session);
  sheaf::Stop stop;
  sheaf_request_options options{};
  options.size = sizeof options;
  options.stop = stop.get();
  size_t ended = 0;
  sheaf_done_function done = [](void *count, int64_t id, sheaf_result *result) {
    ++*static_cast<size_t *>(count);
    if (id >= 3) { // without an end
      EXPECT_EQ(sheaf_result_cause(result, 0), SHEAF_CANCELLED);
    }
    sheaf_result_release(result);
  };
  constexpr size_t kInstances = 5;
  sheaf::Batch batch(model);
  for (size_t i = 0; i < kInstances; ++i)
    batch.add({batch.makeInt(model.argumentType(0), i < 3 ? int64_t(i) : -1)}, int64_t(i));
  int64_t failures = 0;
  for (sheaf_status status = SHEAF_NO_MEMORY; status != SHEAF_OK; ++failures) {
    ASSERT_EQ(status, SHEAF_NO_MEMORY);
    allowed = failures;
    status = sheaf_engine_submit(engine.get(), batch.get(), &options, done, &ended);
    allowed = -1;
    EXPECT_EQ(batch.size(), status == SHEAF_OK ? 0u : kInstances) << failures;
    EXPECT_EQ(engine.waiting(), status == SHEAF_OK ? kInstances : 0u) << failures;
  }
  EXPECT_GT(failures, int64_t(2 * kInstances)); // a request and its `done` at least
  // Where it is stopped no memory is needed.
  engine.step();
  allowed = 0;
  stop.request();
  allowed = -1;
  while (engine.step()) {
  }
  EXPECT_EQ(ended, kInstances);
}

} // namespace
