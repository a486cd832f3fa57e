// Running, and values on their way out.
#include "runtime/api/handles.h"

#include "runtime/model/error.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <unordered_map>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;
using rt::TypeKind;

namespace {

rt::SessionOptions sessionOptions(const sheaf_session_options &given, const rt::Model &model) {
  rt::SessionOptions options;
  options.threads = given.threads;
  options.memoryLimit = given.memory_limit;
  if (given.fold_memory)
    options.keepBytes = given.fold_memory;
  options.sampleSeed = given.sample_seed;
  options.checkResults = given.check_results != 0;
  if (given.max_steps)
    options.maxSteps = static_cast<int64_t>(std::min<uint64_t>(given.max_steps, INT64_MAX));
  if (given.max_depth)
    options.hostStackBytes =
        rt::stackBytesFor(model, std::min<uint64_t>(given.max_depth, uint64_t(1) << 32));
  return options;
}

sheaf_session::Entry &entryFor(sheaf_session &session,
                               const std::shared_ptr<const LoadedModel> &model) {
  for (sheaf_session::Entry &entry : session.entries)
    if (entry.model == model)
      return entry;
  auto fresh = std::make_unique<rt::Session>(model->model(),
                                             sessionOptions(session.options, model->model()));
  session.entries.push_back({model, std::move(fresh)});
  return session.entries.back();
}

/// Copies values out of a session. What stands in many places is copied once.
class Copier {
public:
  Copier(const rt::Session &session, ResultData &result)
      : session_(session), result_(result), model_(*result.model) {}

  /// Before each run: addresses mean other values then.
  void forget() { copies_.clear(); }

  const Slot *copy(uint32_t type, const Slot *from) {
    Slot *to = result_.heap.allocate(model_.slots(type));
    pending_.push_back({type, from, to});
    while (!pending_.empty()) {
      Item item = pending_.back();
      pending_.pop_back();
      step(item);
    }
    return to;
  }

private:
  struct Item {
    uint32_t type;
    const Slot *from;
    Slot *to;
  };

  void pushAll(std::span<const uint32_t> types, const Slot *from, Slot *to) {
    for (uint32_t type : types) {
      pending_.push_back({type, from, to});
      from += model_.slots(type);
      to += model_.slots(type);
    }
  }

  void step(const Item &item) {
    const rt::TypeDesc &type = model_.types().types[item.type];
    switch (type.kind) {
    case TypeKind::Tensor:
      item.to[0] = std::bit_cast<Slot>(tensor(session_.tensor(item.type, item.from)));
      std::copy_n(item.from + 1, model_.slots(item.type) - 1, item.to + 1);
      return;
    case TypeKind::Tuple:
      pushAll(type.children, item.from, item.to);
      return;
    case TypeKind::List:
    case TypeKind::Data:
      break;
    default:
      item.to[0] = item.from[0];
      return;
    }
    auto [known, fresh] = copies_.try_emplace(item.from[0], 0);
    if (fresh)
      known->second =
          type.kind == TypeKind::List ? list(type, item.from[0]) : data(type, item.from[0]);
    item.to[0] = known->second;
  }

  Slot list(const rt::TypeDesc &type, Slot from) {
    const auto *list = std::bit_cast<const rt::ListObject *>(from);
    Slot copy = result_.heap.list(list->elements, list->size, list->elementSlots);
    Slot *to = std::bit_cast<rt::ListObject *>(copy)->elements;
    for (int64_t i = 0; i < list->size; ++i)
      pending_.push_back(
          {type.children[0], list->elements + i * list->elementSlots, to + i * list->elementSlots});
    return copy;
  }

  Slot data(const rt::TypeDesc &type, Slot from) {
    const auto *object = std::bit_cast<const Slot *>(from);
    const rt::CtorDesc &ctor = model_.types().data[type.data].ctors[static_cast<size_t>(object[0])];
    int64_t slots = 0;
    for (uint32_t field : ctor.fieldTypes)
      slots += model_.slots(field);
    Slot copy = result_.heap.data(static_cast<uint32_t>(object[0]), object + 1, slots);
    pushAll(ctor.fieldTypes, object + 1, std::bit_cast<Slot *>(copy) + 1);
    return copy;
  }

  const ResultTensor *tensor(const rt::TensorView &view) {
    ResultTensor &tensor = result_.tensors.emplace_back();
    tensor.dtype = dlpackType(view.dtype);
    tensor.shape = view.shape;
    auto elements = static_cast<size_t>(view.elements());
    tensor.bytes = rt::allocateAligned(elements * static_cast<size_t>(rt::dtypeBytes(view.dtype)));
    view.copyTo(tensor.bytes.get());
    if (view.dtype == rt::DType::Bool)
      for (size_t i = 0; i < elements; ++i) {
        int32_t truth;
        std::memcpy(&truth, tensor.bytes.get() + i * sizeof truth, sizeof truth);
        tensor.bytes[i] = static_cast<uint8_t>(truth);
      }
    return &tensor;
  }

  const rt::Session &session_;
  ResultData &result_;
  const LoadedModel &model_;
  std::unordered_map<Slot, Slot> copies_;
  std::vector<Item> pending_;
};

/// Tells a caller what instances emit; no longer than this lives.
class Telling {
public:
  Telling(rt::Session &session, const std::shared_ptr<const LoadedModel> &model,
          const sheaf_run_options &options)
      : session_(session) {
    if (!options.emit)
      return;
    session.onEmit([&session, model, options](const rt::Instance &instance, const Slot *slots) {
      auto data = std::make_shared<ResultData>();
      data->model = model;
      uint32_t type = *model->model().entry.emits;
      sheaf_view value{type, Copier(session, *data).copy(type, slots)};
      sheaf_result result{std::move(data)};
      options.emit(options.emit_user, instance.index, &result, value);
    });
  }
  ~Telling() { session_.onEmit(nullptr); }
  Telling(const Telling &) = delete;

private:
  rt::Session &session_;
};

void run(rt::Session &session, std::span<const rt::Instance> instances, const std::stop_token &stop,
         ResultData &result) {
  uint32_t type = session.model().entry.resultType;
  Copier copier(session, result);
  result.items.resize(instances.size());
  auto runSome = [&](std::span<const rt::Instance> some) {
    copier.forget();
    return session.run(some, stop);
  };
  rt::runEach(instances, runSome, [&](size_t number, const rt::Outcome &outcome) {
    if (outcome.ok())
      result.items[number].slots = copier.copy(type, outcome.slots);
    else
      result.items[number].error = outcome.error->message();
  });
}

} // namespace

sheaf_status sheaf_session_create(const sheaf_session_options *options, sheaf_session **session) {
  return guarded([&] {
    given(session, "session");
    auto fresh = std::make_unique<sheaf_session>();
    if (options) {
      if (options->size != sizeof *options)
        throw Invalid("options.size is not sizeof(sheaf_session_options)");
      if (options->threads > 4096)
        throw Invalid("options.threads is " + std::to_string(options->threads));
      fresh->options = *options;
    }
    *session = fresh.release();
  });
}

void sheaf_session_release(sheaf_session *session) { delete session; }

sheaf_status sheaf_session_add(sheaf_session *session, sheaf_model *model) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(session, "session").mutex);
    entryFor(*session, given(model, "model").model);
  });
}

sheaf_status sheaf_session_remove(sheaf_session *session, const sheaf_model *model) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(session, "session").mutex);
    given(model, "model");
    std::erase_if(session->entries,
                  [&](const sheaf_session::Entry &entry) { return entry.model == model->model; });
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
    sheaf_run_options known{};
    if (options) {
      // Of a client from before `emit` it is shorter.
      if (options->size < offsetof(sheaf_run_options, emit) || options->size > sizeof known)
        throw Invalid("options.size is not sizeof(sheaf_run_options)");
      std::memcpy(&known, options, options->size);
    }
    // The token's own share: the stop may be released while this waits and runs.
    std::stop_token stop;
    if (known.stop)
      stop = known.stop->source.get_token();
    std::scoped_lock lock(session->mutex, batch->mutex);
    auto data = std::make_shared<ResultData>();
    data->model = batch->model;
    rt::Session &runs = *entryFor(*session, batch->model).session;
    Telling telling(runs, batch->model, known);
    run(runs, batch->instances, stop, *data);
    *result = new sheaf_result{std::move(data)};
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
