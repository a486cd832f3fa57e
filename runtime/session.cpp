#include "runtime/session.h"

#include "runtime/flush.h"
#include "runtime/init.h"
#include "runtime/inputs.h"
#include "runtime/recorder.h"
#include "runtime/weights.h"

#include <chrono>

namespace sheaf::rt {

namespace {

uint64_t nanosecondsSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
}

SessionOptions withDefaults(SessionOptions options) {
  options.threads = std::max(options.threads, 1u);
  uint64_t memory = availableMemory();
  if (options.hostStackBytes == 0)
    options.hostStackBytes = std::min(uint64_t(16) << 30, memory / 4);
  if (options.memoryLimit == 0)
    options.memoryLimit = memory / 10 * 9;
  if (options.rowSpaceBytes == 0)
    options.rowSpaceBytes = uint64_t(64) << 30;
  return options;
}

void checkModel(const Model &model) {
  for (const ParamDesc &param : model.params)
    if (param.id + tensorGranules(param.shape, param.dtype) > int64_t(model.paramGranules))
      throw InternalError("parameter '" + param.name + "' lies outside of the parameters' rows");
  for (const KernelDesc &kernel : model.kernels) {
    if (!kernel.fn || kernel.words == 0)
      throw InternalError("kernel '" + kernel.name + "' has no code or no words");
    for (const FlopTerm &term : kernel.flop)
      for (uint32_t word : term.extentWords)
        if (word >= kernel.words)
          throw InternalError("kernel '" + kernel.name +
                              "' counts FLOP by a word it does not have");
  }
}

} // namespace

struct Session::Impl {
  const Model &model;
  SessionOptions options;
  MemoryMeter meter;
  MemoryUse memory;
  Recorder recorder;
  ValueMover values;
  PackedWeights weights;
  Flusher flusher;
  Schedule schedule;
  Counters counters;
  std::vector<Outcome> outcomes;
  bool weightsChanged = true;

  Impl(const Model &model, const SessionOptions &given)
      : model(model), options(withDefaults(given)), meter(options.memoryLimit),
        recorder(model, meter, memory, rowSpaceBytes(), options.hostStackBytes, options.hostile),
        values(model.types, recorder),
        weights(model, recorder.rowSpace.address(0), meter, memory.packed),
        flusher(model, options.threads, meter, memory.scratch, options.hostile) {
    checkModel(model);
    uint64_t bytes = uint64_t(model.paramGranules) * kGranuleBytes;
    if (!meter.charge(memory.weights, bytes))
      throw UserError("the memory limit of " + std::to_string(meter.limit() >> 20) +
                      " MB does not hold the weights: " + std::to_string(bytes >> 20) +
                      " MB are needed");
    counters.kernels.resize(model.kernels.size());
  }

  uint64_t rowSpaceBytes() const {
    // One granule for the guard of the parameters, and some rows in any case.
    return std::max(options.rowSpaceBytes, (uint64_t(model.paramGranules) + 64) * kGranuleBytes);
  }

  void record(const Instance &instance, Outcome &outcome);
  void checkGuards();
  std::span<const Outcome> run(std::span<const Instance> instances);
};

Session::Session(const Model &model, SessionOptions options)
    : impl_(std::make_unique<Impl>(model, options)) {}
Session::~Session() = default;

const Model &Session::model() const { return impl_->model; }
const SessionOptions &Session::options() const { return impl_->options; }

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

void Session::setParam(size_t index, std::span<const uint8_t> rowMajor) {
  const ParamDesc &desc = impl_->model.params.at(index);
  int64_t bytes = dtypeBytes(desc.dtype);
  for (int64_t extent : desc.shape)
    bytes *= extent;
  if (static_cast<int64_t>(rowMajor.size()) != bytes)
    throw InternalError("parameter '" + desc.name + "' has " + std::to_string(bytes) +
                        " bytes, given " + std::to_string(rowMajor.size()));
  toRowLayout(desc.shape, desc.dtype, rowMajor.data(), paramRow(index));
}

void Session::initParams(uint64_t seed) {
  for (size_t i = 0; i < impl_->model.params.size(); ++i)
    setParam(i, initialise(impl_->model.params[i], seed));
}

uint8_t *Session::paramRow(size_t index) {
  impl_->weightsChanged = true;
  return impl_->recorder.rowSpace.address(impl_->model.params.at(index).id);
}

TensorView Session::param(size_t index) const {
  const ParamDesc &desc = impl_->model.params.at(index);
  return {desc.dtype, desc.shape, impl_->recorder.rowSpace.address(desc.id)};
}

int64_t Session::findParam(std::string_view name) const {
  for (size_t i = 0; i < impl_->model.params.size(); ++i)
    if (impl_->model.params[i].name == name)
      return static_cast<int64_t>(i);
  return -1;
}

void Session::packWeights() {
  impl_->weights.pack();
  impl_->weightsChanged = false;
}

std::span<const void *const> Session::kernelWeights(size_t kernel) const {
  return impl_->weights.of(kernel);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

void Session::Impl::record(const Instance &instance, Outcome &outcome) {
  recorder.instance = instance.index;
  recorder.failure = {};
  struct Call {
    Recorder &recorder;
    EntryFn fn;
    const Slot *args;
    Slot *results;
  } call{recorder, model.entry.fn, nullptr, nullptr};

  int64_t slots = values.facts().slots(model.entry.resultType);
  call.results =
      static_cast<Slot *>(recorder.heap.allocate(static_cast<size_t>(slots) * sizeof(Slot)));
  if (!call.results)
    recorder.failure = {Failure::Heap, 0, 0, 0, static_cast<uint64_t>(slots) * sizeof(Slot)};
  else
    call.args = values.bringIn(model.entry.argTypes, instance.args);

  bool ok =
      recorder.failure.kind == Failure::None && recorder.stack.call(
                                                    [](void *p) {
                                                      auto *c = static_cast<Call *>(p);
                                                      c->fn(&c->recorder, c->args, c->results);
                                                    },
                                                    &call);
  if (ok && recorder.lists.anyChained())
    ok = values.flatten(model.entry.resultType, call.results);
  if (ok) {
    outcome.slots = call.results;
    return;
  }
  outcome.slots = nullptr;
  Failure::Kind kind = recorder.failure.kind;
  outcome.error.emplace(instance.index, recorder.describe(recorder.failure, model, meter),
                        kind == Failure::Rows || kind == Failure::Heap || kind == Failure::Records);
  ++counters.failed;
}

void Session::Impl::checkGuards() {
  std::vector<RowSpace::Damage> damages = recorder.rowSpace.damagedGuards();
  if (damages.empty())
    return;
  // Find whose rows end where the guard was written over.
  for (const ScheduledBucket &bucket : schedule) {
    uint32_t words = model.kernels[bucket.kernel].words;
    for (int64_t i = 0; i < bucket.count; ++i)
      if (static_cast<uint32_t>(bucket.records[(i + 1) * words - 1]) == damages[0].id)
        throw InternalError(
            "the guard after a record's rows was written over, probably by kernel '" +
            model.kernels[bucket.kernel].name + "' (" + model.kernels[bucket.kernel].source +
            ") at depth " + std::to_string(bucket.depth));
  }
  throw InternalError("a guard in the row space was written over, after granule " +
                      std::to_string(damages[0].id));
}

std::span<const Outcome> Session::Impl::run(std::span<const Instance> instances) {
  recorder.buckets.reset(schedule);
  recorder.heap.reset();
  recorder.rowSpace.reset();
  recorder.lists.forget();
  outcomes.clear();
  outcomes.resize(instances.size());
  if (weightsChanged) {
    weights.pack();
    weightsChanged = false;
  }

  auto start = std::chrono::steady_clock::now();
  {
    // Constants that host code computes must not depend on the caller's rounding either.
    FloatEnvironment environment;
    for (size_t i = 0; i < instances.size(); ++i)
      record(instances[i], outcomes[i]);
  }
  counters.recordNanoseconds += nanosecondsSince(start);

  start = std::chrono::steady_clock::now();
  recorder.buckets.drain(schedule);
  flusher.run(schedule, 0, recorder.rowSpace.address(0), weights, counters);
  counters.flushNanoseconds += nanosecondsSince(start);

  recorder.rowSpace.account();
  recorder.stack.trim();
  if (options.hostile)
    checkGuards();
  counters.runs += 1;
  counters.instances += instances.size();
  return outcomes;
}

std::span<const Outcome> Session::run(std::span<const Instance> instances) {
  return impl_->run(instances);
}

TensorView Session::tensor(uint32_t type, const Slot *slots) const {
  const TypeDesc &desc = impl_->model.types.types.at(type);
  TensorView view{desc.dtype, desc.shape, nullptr};
  const Slot *extents = slots + 1;
  for (int64_t &extent : view.shape)
    if (extent < 0)
      extent = *extents++;
  view.data = impl_->recorder.rowSpace.address(TensorHandle::unpack(slots[0]).id);
  return view;
}

const Schedule &Session::schedule() const { return impl_->schedule; }
const uint8_t *Session::rows() const { return impl_->recorder.rowSpace.address(0); }

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

const Counters &Session::counters() const { return impl_->counters; }

void Session::resetCounters() {
  Counters fresh;
  fresh.kernels.resize(impl_->model.kernels.size());
  impl_->counters = std::move(fresh);
}

MemoryUse Session::memory() const {
  MemoryUse use = impl_->memory;
  use.stack.now = impl_->recorder.stack.residentBytes();
  use.stack.peak = std::max(use.stack.peak, use.stack.now);
  return use;
}

} // namespace sheaf::rt
