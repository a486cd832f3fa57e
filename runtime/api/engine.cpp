// Instances that come and go.
#include "runtime/session/engine.h"
#include "runtime/api/copier.h"
#include "runtime/api/options.h"

#include <atomic>
#include <cstring>
#include <thread>

using namespace sheaf;
using namespace sheaf::api;

struct sheaf_budget {
  std::shared_ptr<rt::SharedBudget> budget;
};

struct sheaf_engine {
  sheaf_engine(std::shared_ptr<const LoadedModel> of, const sheaf_session_options &options,
               const rt::EngineOptions &engineOptions)
      : model(std::move(of)), session(model->model(), sessionOptions(options, model->model())),
        engine(session, engineOptions) {}

  /// Calls `work` for the only thread that steps. Throws Invalid within a `done`.
  template <typename Work> void asStepper(Work work) {
    if (stepper.load() == std::this_thread::get_id())
      throw Invalid("the engine is stepped from within a callback");
    std::lock_guard lock(mutex);
    struct Stepping {
      std::atomic<std::thread::id> &stepper;
      ~Stepping() { stepper = std::thread::id(); }
    } stepping{stepper};
    stepper = std::this_thread::get_id();
    work();
  }

  std::shared_ptr<const LoadedModel> model;
  rt::Session session;
  rt::Engine engine;
  std::mutex mutex; ///< held by whoever steps
  std::atomic<std::thread::id> stepper;
};

sheaf_status sheaf_budget_create(uint64_t bytes, sheaf_budget **budget) {
  return guarded([&] {
    given(budget, "budget");
    *budget = new sheaf_budget{std::make_shared<rt::SharedBudget>(bytes)};
  });
}

void sheaf_budget_release(sheaf_budget *budget) { delete budget; }

uint64_t sheaf_budget_used(const sheaf_budget *budget) {
  return budget ? budget->budget->used() : 0;
}

sheaf_status sheaf_engine_create(sheaf_model *model, const sheaf_session_options *session_options,
                                 const sheaf_engine_options *options, sheaf_engine **engine) {
  return guarded([&] {
    given(model, "model");
    given(engine, "engine");
    sheaf_engine_options asked = known(options, "sheaf_engine_options");
    rt::EngineOptions engineOptions;
    if (asked.most_running)
      engineOptions.mostRunning = asked.most_running;
    if (asked.linger)
      engineOptions.linger = asked.linger;
    if (asked.slice)
      engineOptions.slice = asked.slice;
    if (asked.budget)
      engineOptions.budget = asked.budget->budget;
    *engine = new sheaf_engine(model->model, checked(session_options), engineOptions);
  });
}

void sheaf_engine_release(sheaf_engine *engine) { delete engine; }

sheaf_status sheaf_engine_submit(sheaf_engine *engine, sheaf_batch *batch,
                                 const sheaf_request_options *options, sheaf_done_function done,
                                 void *user) {
  return guarded([&] {
    given(engine, "engine");
    given(batch, "batch");
    if (!done)
      throw Invalid("done is null");
    rt::Request request;
    sheaf_request_options asked = known(options, "sheaf_request_options");
    request.priority = asked.priority;
    uint64_t now = rt::clockNow();
    if (asked.timeout && asked.timeout < UINT64_MAX - now)
      request.deadline = now + asked.timeout;
    request.stop = tokenOf(asked.stop);
    request.limits.steps = countOf(asked.max_steps);
    if (asked.max_depth)
      request.limits.stackBytes = rt::stackBytesFor(
          engine->model->model(), std::min<uint64_t>(asked.max_depth, uint64_t(1) << 32));
    request.limits.rowBytes = asked.max_row_bytes;
    if (asked.emit)
      request.emitted = [engine, emit = asked.emit, user = asked.emit_user](
                            const rt::Instance &instance, const rt::Slot *slots) {
        tellEmission(engine->session, engine->model, emit, user, instance, slots);
      };
    std::lock_guard lock(batch->mutex);
    // It lives as long as one of them may be read.
    std::shared_ptr<ValueStore> values = batch->store;
    if (values->model != engine->model)
      throw Invalid("the batch is of another model");
    std::vector<rt::Request> requests;
    for (const rt::Instance &instance : values->instances) {
      request.instance = instance;
      request.done = [engine, values, done, user, id = instance.index](const rt::Outcome &outcome) {
        auto data = std::make_shared<ResultData>();
        data->model = engine->model;
        Copier copier(engine->session, *data);
        data->items.push_back(copier.copy(engine->model->model().entry.resultType, outcome));
        done(user, id, new sheaf_result{std::move(data)});
      };
      requests.push_back(request);
    }
    auto fresh = std::make_shared<ValueStore>(values->model);
    engine->engine.submit(std::move(requests));
    batch->begin(std::move(fresh));
  });
}

sheaf_status sheaf_engine_step(sheaf_engine *engine, int *more) {
  return guarded([&] {
    given(more, "more");
    given(engine, "engine").asStepper([&] { *more = engine->engine.step(); });
  });
}

sheaf_status sheaf_engine_run(sheaf_engine *engine, sheaf_stop *stop) {
  return guarded([&] {
    std::stop_token token = tokenOf(&given(stop, "stop"));
    given(engine, "engine").asStepper([&] { engine->engine.run(token); });
  });
}

size_t sheaf_engine_waiting(const sheaf_engine *engine) {
  return engine ? engine->engine.waiting() : 0;
}
