// Running, and values on their way out.
#include "runtime/api/copier.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"

#include "runtime/model/error.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;
using rt::TypeKind;

namespace {

/// Tells a caller what instances emit; no longer than this lives.
class Telling {
public:
  Telling(rt::Session &session, const std::shared_ptr<const LoadedModel> &model,
          const sheaf_run_options &options)
      : session_(session) {
    if (!options.emit)
      return;
    session.onEmit([&session, model, options](const rt::Instance &instance, const Slot *slots) {
      tellEmission(session, model, options.emit, options.emit_user, instance, slots);
    });
  }
  ~Telling() { session_.onEmit(nullptr); }
  Telling(const Telling &) = delete;

private:
  rt::Session &session_;
};

void run(rt::Session &session, std::span<const rt::Instance> instances, const std::stop_token &stop,
         ResultData &result) {
  // What goes back is one run: fewer instances are the caller's to run.
  bool once = session.model().training;
  uint32_t type = session.model().entry.resultType;
  Copier copier(session, result);
  result.items.resize(instances.size());
  copier.stack(result.model->resultType(), instances.size());
  auto runSome = [&](std::span<const rt::Instance> some) {
    copier.forget();
    return session.run(some, stop);
  };
  auto copy = [&](size_t number, const rt::Outcome &outcome) {
    result.items[number] = copier.copy(type, outcome, number);
  };
  if (!once)
    return rt::runEach(instances, runSome, copy);
  std::span<const rt::Outcome> outcomes = runSome(instances);
  for (size_t i = 0; i < outcomes.size(); ++i)
    copy(i, outcomes[i]);
}

} // namespace

RunningModel &api::runningFor(Running &running, const std::shared_ptr<const LoadedModel> &model) {
  for (const std::shared_ptr<RunningModel> &each : running.models)
    if (each->model == model)
      return *each;
  auto fresh = std::make_shared<RunningModel>();
  fresh->model = model;
  rt::SessionOptions options = sessionOptions(running.options, model->model());
  options.workers = running.workers;
  fresh->session = std::make_unique<rt::Session>(model->model(), std::move(options));
  running.models.push_back(std::move(fresh));
  return *running.models.back();
}

std::shared_ptr<rt::Workers> api::workersOf(const sheaf_session_options &given) {
  return given.workers ? given.workers->workers : nullptr;
}

rt::SessionOptions api::sessionOptions(const sheaf_session_options &given, const rt::Model &model) {
  rt::SessionOptions options;
  options.threads = given.threads;
  options.memoryLimit = given.memory_limit;
  if (model.training) // every result must have a record to go back through
    options.keepBytes = 0;
  else if (given.fold_memory)
    options.keepBytes = given.fold_memory;
  options.sampleSeed = given.sample_seed;
  options.checkResults = given.check_results != 0;
  options.maxSteps = countOf(given.max_steps, options.maxSteps);
  if (given.max_depth)
    options.hostStackBytes =
        rt::stackBytesFor(model, std::min<uint64_t>(given.max_depth, uint64_t(1) << 32));
  return options;
}

static void checkThreads(uint32_t threads, const char *what) {
  if (threads > 4096)
    throw Invalid(std::string(what) + " is " + std::to_string(threads));
}

sheaf_session_options api::checked(const sheaf_session_options *options) {
  sheaf_session_options copy = known(options, "sheaf_session_options");
  checkThreads(copy.threads, "options.threads");
  return copy;
}

std::stop_token api::tokenOf(const sheaf_stop *stop) {
  return stop ? stop->source.get_token() : std::stop_token();
}

sheaf_status sheaf_workers_create(uint32_t threads, sheaf_workers **workers) {
  return guarded([&] {
    given(workers, "workers");
    checkThreads(threads, "threads");
    *workers = new sheaf_workers{rt::makeWorkers(threads)};
  });
}

void sheaf_workers_release(sheaf_workers *workers) { delete workers; }

sheaf_status sheaf_session_create(const sheaf_session_options *options, sheaf_session **session) {
  return guarded([&] {
    given(session, "session");
    auto fresh = std::make_unique<sheaf_session>();
    fresh->running->options = checked(options);
    fresh->running->workers = workersOf(fresh->running->options);
    *session = fresh.release();
  });
}

void sheaf_session_release(sheaf_session *session) { delete session; }

sheaf_status sheaf_session_add(sheaf_session *session, sheaf_model *model) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(session, "session").running->mutex);
    runningFor(*session->running, given(model, "model").model);
  });
}

sheaf_status sheaf_session_remove(sheaf_session *session, const sheaf_model *model) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(session, "session").running->mutex);
    given(model, "model");
    std::erase_if(session->running->models, [&](const std::shared_ptr<RunningModel> &each) {
      return each->model == model->model;
    });
  });
}

sheaf_status sheaf_session_run(sheaf_session *session, sheaf_batch *batch, sheaf_result **result) {
  return sheaf_session_run_with(session, batch, nullptr, result);
}

sheaf_status sheaf_session_run_with(sheaf_session *session, sheaf_batch *batch,
                                    const sheaf_run_options *options, sheaf_result **result) {
  return guarded([&] {
    given(session, "session");
    given(batch, "batch");
    given(result, "result");
    sheaf_run_options asked = known(options, "sheaf_run_options");
    // The token's own share: the stop may be released while this waits and runs.
    std::stop_token stop = tokenOf(asked.stop);
    std::shared_ptr<Running> running = session->running;
    std::shared_ptr<RunOf> before, made; // let go when nothing is locked
    std::scoped_lock lock(running->mutex, batch->mutex);
    batch->store->requireNoneKept();
    auto data = std::make_shared<ResultData>();
    const std::shared_ptr<const LoadedModel> &model = batch->store->model;
    data->model = model;
    RunningModel &runs = runningFor(*running, model);
    if ((before = runs.last.lock()) && before->isThere() && !before->aside)
      before->aside = runs.session->putAside();
    ++runs.runs;
    Telling telling(*runs.session, model, asked);
    runs.session->setStep(asked.step);
    run(*runs.session, batch->store->instances, stop, *data);
    if (model->model().training) {
      // (Where there is no memory for it, none is destroyed, which would lock.)
      made = std::make_shared<RunOf>(running, runs.shared_from_this(), runs.runs);
      if (model->model().inputGradients)
        made->values = batch->store;
      runs.last = made;
    }
    *result = new sheaf_result{std::move(data), std::move(made)};
  });
}

sheaf_status sheaf_stop_create(sheaf_stop **stop) {
  return guarded([&] {
    given(stop, "stop");
    *stop = new sheaf_stop;
  });
}

void sheaf_stop_release(sheaf_stop *stop) { delete stop; }

void sheaf_stop_request(sheaf_stop *stop) {
  if (stop)
    stop->source.request_stop();
}
