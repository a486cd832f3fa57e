//===- CheckerStack.cpp - Running with room to recurse --------------------===//

#include "compiler/frontend/CheckerStack.h"

#include <exception>
#include <pthread.h>

namespace sheaf {
namespace {

constexpr size_t stackBytes = size_t{512} << 20;

struct Job {
  const std::function<void()> &work;
  std::exception_ptr failure;
};

void *runJob(void *argument) {
  Job &job = *static_cast<Job *>(argument);
  try {
    job.work();
  } catch (...) {
    job.failure = std::current_exception();
  }
  return nullptr;
}

} // namespace

void runOnLargeStack(const std::function<void()> &work) {
  Job job{work, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  pthread_t thread;
  int failed = pthread_create(&thread, &attributes, runJob, &job);
  pthread_attr_destroy(&attributes);
  if (failed)
    // Without address space for it, the caller's own stack does for all but absurd programs.
    runJob(&job);
  else
    pthread_join(thread, nullptr);
  if (job.failure)
    std::rethrow_exception(job.failure);
}

} // namespace sheaf
