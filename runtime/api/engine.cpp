// Instances that come and go.
#include "runtime/api/copier.h"
#include "runtime/api/options.h"
#include "runtime/session/executor.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

using namespace sheaf;
using namespace sheaf::api;

struct sheaf_budget {
  std::shared_ptr<rt::SharedBudget> budget;
};

namespace {
thread_local const sheaf_executor *stepped = nullptr; ///< by this thread
} // namespace

struct sheaf_executor {
  /// Calls `work` for a thread that steps. Throws Invalid within a callback.
  template <typename Work> void asStepper(Work work) {
    if (stepped == this)
      throw Invalid("the executor is stepped from within a callback");
    struct Stepping {
      const sheaf_executor *before;
      ~Stepping() { stepped = before; }
    } stepping{std::exchange(stepped, this)};
    work();
  }

  sheaf_executor_options options;
  std::shared_ptr<rt::Executor> executor = std::make_shared<rt::Executor>();
};

struct sheaf_engine {
  sheaf_engine(std::shared_ptr<const LoadedModel> of, const rt::SessionOptions &options,
               const rt::EngineOptions &engineOptions)
      : model(std::move(of)), session(model->model(), options), engine(session, engineOptions) {}

  void join(const sheaf_executor &of, uint64_t share) {
    executor = of.executor;
    rt::TurnOptions turns;
    if (share)
      turns.share = static_cast<double>(share);
    if (of.options.failed)
      turns.failed = [this, failed = of.options.failed,
                      user = of.options.failed_user](const std::exception_ptr &error) {
        sheaf_status status = guarded([&] { std::rethrow_exception(error); });
        failed(user, this, status);
      };
    executor->add(engine, std::move(turns));
  }

  /// Calls `work` for the only thread that steps. Throws Invalid within a `done`.
  template <typename Work> void asStepper(Work work) {
    if (executor)
      throw Invalid("the engine is stepped by its executor");
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
  std::shared_ptr<rt::Executor> executor; ///< null: whoever calls steps
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

sheaf_status sheaf_executor_create(const sheaf_executor_options *options,
                                   sheaf_executor **executor) {
  return guarded([&] {
    given(executor, "executor");
    *executor = new sheaf_executor{known(options, "sheaf_executor_options")};
  });
}

void sheaf_executor_release(sheaf_executor *executor) { delete executor; }

sheaf_status sheaf_executor_step(sheaf_executor *executor, int *more) {
  return guarded([&] {
    given(more, "more");
    given(executor, "executor").asStepper([&] { *more = executor->executor->step(); });
  });
}

sheaf_status sheaf_executor_run(sheaf_executor *executor, sheaf_stop *stop) {
  return guarded([&] {
    std::stop_token token = tokenOf(&given(stop, "stop"));
    given(executor, "executor").asStepper([&] { executor->executor->run(token); });
  });
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
    sheaf_session_options ofSession = checked(session_options);
    rt::SessionOptions sessionOptions = api::sessionOptions(ofSession, model->model->model());
    sessionOptions.workers = workersOf(ofSession);
    auto made = std::make_unique<sheaf_engine>(model->model, sessionOptions, engineOptions);
    if (asked.executor)
      made->join(*asked.executor, asked.share);
    *engine = made.release();
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
    if (asked.keep > SHEAF_KEEP_ONLY)
      throw Invalid("options.keep is " + std::to_string(asked.keep));
    request.keep = asked.keep != SHEAF_KEEP_NOTHING;
    bool copies = asked.keep != SHEAF_KEEP_ONLY;
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
    auto kept = values->kept.begin();
    for (size_t i = 0; i < values->instances.size(); ++i) {
      request.instance = values->instances[i];
      request.kept.clear();
      for (; kept != values->kept.end() && kept->first == i; ++kept)
        request.kept.push_back(kept->second);
      request.done = [engine, values, done, user, copies,
                      id = request.instance.index](const rt::Outcome &outcome) {
        auto data = std::make_shared<ResultData>();
        data->model = engine->model;
        Copier copier(engine->session, *data);
        if (copies || !outcome.ok())
          data->items.push_back(copier.copy(engine->model->model().entry.resultType, outcome));
        else
          data->items.push_back({nullptr, "its value was kept and not copied"});
        done(user, id, new sheaf_result{std::move(data), nullptr, rt::KeptValue(outcome.kept)});
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

size_t sheaf_engine_kept_values(const sheaf_engine *engine) {
  return engine ? engine->engine.kept().values : 0;
}

uint64_t sheaf_engine_kept_bytes(const sheaf_engine *engine) {
  return engine ? engine->engine.kept().bytes : 0;
}

sheaf_status sheaf_result_kept(const sheaf_result *result, size_t instance, sheaf_kept **kept) {
  return guarded([&] {
    given(kept, "kept");
    if (instance >= given(result, "result").data->items.size())
      throw Invalid("the result has no instance " + std::to_string(instance));
    if (!result->kept)
      throw Invalid("of instance " + std::to_string(instance) + " nothing is kept");
    *kept = new sheaf_kept{result->data->model, result->kept};
  });
}

void sheaf_kept_release(sheaf_kept *kept) { delete kept; }

sheaf_type sheaf_kept_type(const sheaf_kept *kept) {
  return kept ? kept->value.type() : SHEAF_NO_TYPE;
}

uint64_t sheaf_kept_bytes(const sheaf_kept *kept) { return kept ? kept->value.bytes() : 0; }

int sheaf_kept_is_there(const sheaf_kept *kept) { return kept && kept->value.isThere(); }

sheaf_status sheaf_kept_part(const sheaf_kept *kept, size_t part, sheaf_kept **handle) {
  return guarded([&] {
    const sheaf_kept &whole = given(kept, "kept");
    given(handle, "handle");
    *handle = new sheaf_kept{whole.model, whole.value.part(part)};
  });
}
