#include "runtime/session/session.h"

#include "runtime/device/float_environment.h"
#include "runtime/device/workers.h"
#include "runtime/devices/devices.h"
#include "runtime/model/param_matrix.h"
#include "runtime/session/init.h"
#include "runtime/session/session_impl.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace sheaf::rt {

namespace {

SessionOptions withDefaults(const Model &model, SessionOptions options) {
  options.threads = options.workers ? options.workers->threads() : std::max(options.threads, 1u);
  uint64_t memory = availableMemory();
  if (options.hostStackBytes == 0)
    options.hostStackBytes = std::min(uint64_t(model.reads ? 1 : 16) << 30, memory / 4);
  options.fibers = model.reads ? std::clamp(options.fibers, 1u, SessionOptions::kMostFibers) : 1;
  if (options.memoryLimit == 0)
    options.memoryLimit = memory / 10 * 9;
  // Older artefacts do not ask for their frames' memory.
  options.hostStackBytes = std::min(options.hostStackBytes, options.memoryLimit);
  if (options.rowSpaceBytes == 0)
    options.rowSpaceBytes = uint64_t(64) << 30;
  // One granule for the guard of the parameters, and some rows in any case.
  options.rowSpaceBytes =
      std::max(options.rowSpaceBytes, (uint64_t(model.paramGranules) + 64) * kGranuleBytes);
  if (!options.keepBytes)
    options.keepBytes = options.memoryLimit / 4;
  return options;
}

std::unique_ptr<Device> makeDevice(const Model &model, const SessionOptions &options,
                                   MemoryMeter &meter, MemoryKind &packed) {
  DeviceFactory make = options.device ? options.device : devices().front().make;
  return make({model, options.threads, options.workers, options.rowSpaceBytes, options.hostile,
               options.onlyPacks, meter, packed});
}

void checkModel(const Model &model) {
  for (const ParamDesc &param : model.params)
    if (param.id + tensorGranules(param.shape, param.dtype) > int64_t(model.paramGranules))
      throw InternalError("parameter '" + param.name + "' lies outside of the parameters' rows");
  for (const KernelDesc &kernel : model.kernels) {
    if (kernel.words == 0)
      throw InternalError("kernel '" + kernel.name + "' has no words");
    for (const FlopTerm &term : kernel.flop)
      for (uint32_t word : term.extentWords)
        if (word >= kernel.words)
          throw InternalError("kernel '" + kernel.name +
                              "' counts FLOP by a word it does not have");
  }
}

} // namespace

Session::Impl::Impl(const Model &model, const SessionOptions &given)
    : model(model), options(withDefaults(model, given)), meter(options.memoryLimit, &memory),
      device(makeDevice(model, options, meter, memory.packed)),
      recorder(model, *device, meter, memory,
               {meter.limit(), options.hostStackBytes, options.fibers, options.maxSteps,
                *options.keepBytes, options.threads},
               options.hostile),
      values(model.types, recorder), emissions(model, recorder, values),
      canJoin(std::any_of(model.kernels.begin(), model.kernels.end(),
                          [](const KernelDesc &kernel) { return kernel.joined; })),
      rowWords(model), scheduler(model, rowWords, meter, memory.records),
      rowPlan(model, rowWords, meter, memory.records), forkWorth(model),
      collector(model, values.facts(), recorder, meter, memory.records, options.hostile),
      dropped(model, rowWords, meter, memory.records),
      placedRecords(meter, memory.records, alignof(uint64_t), size_t(64) << 10,
                    /*redzones=*/false) {
  checkModel(model);
  recorder.written.wanted = recorder.reads.wanted = !device->facts().sharesRows;
  recorder.reads.fetch = [this](const RowRange &rows) { fetch(rows); };
  recorder.setComputed(0);
  recorder.tasks.forking =
      options.hostile && options.forking == Forking::Worth ? Forking::Alternately : options.forking;
  auto granules = static_cast<uint64_t>(model.paramGranules);
  for (size_t index = 0; index < model.params.size(); ++index)
    if (!model.stored && mayKeepPacked(index)) { // an artefact brings all rows
      paramsGone.insert(index);
      granules -= granulesOfParam(index);
    }
  chargeWeights(granules);
  counters.kernels.resize(model.kernels.size());
  if (model.stored) {
    device->adopt(model.stored->packed);
    weightsChanged = false;
  }
  if (model.training)
    backward = std::make_unique<Backward>(model, *device, recorder.rowSpace, recorder.scratch,
                                          meter, memory.records, options.hostile);
}

Session::Impl::~Impl() {
  try {
    settle();
  } catch (const InternalError &) {
    // No one asks any more.
  }
}

std::shared_ptr<Workers> makeWorkers(unsigned threads) {
  return std::make_shared<Workers>(threads);
}

Session::Session(const Model &model, SessionOptions options)
    : impl_(std::make_unique<Impl>(model, options)) {}
Session::~Session() = default;

const Model &Session::model() const { return impl_->model; }
const SessionOptions &Session::options() const { return impl_->options; }
bool Session::computes() const { return impl_->device->facts().computes; }

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
  impl_->weightsChanged = true;
  ++impl_->weightsVersion;
  if (impl_->paramsGone.erase(index))
    impl_->chargeWeights(impl_->granulesOfParam(index));
  toRowLayout(desc.shape, desc.dtype, rowMajor.data(), impl_->recorder.rowSpace.address(desc.id));
  impl_->keepPacked(index);
}

uint64_t Session::Impl::granulesOfParam(size_t param) const {
  const ParamDesc &desc = model.params[param];
  return static_cast<uint64_t>(tensorGranules(desc.shape, desc.dtype));
}

void Session::Impl::chargeWeights(uint64_t granules) {
  uint64_t bytes = granules * kGranuleBytes;
  if (meter.charge(memory.weights, bytes))
    return;
  bool isFirst = memory.weights.now + memory.packed.now == 0;
  throw UserError("the memory limit of " + bytesText(meter.limit()) +
                  " does not hold the weights: " + bytesText(bytes) + " are needed" +
                  (isFirst ? "" : " beside " + meter.held().text()));
}

/// Whether a parameter may be there packed alone: its rows are there from when it is set to when it
/// is packed.
bool Session::Impl::mayKeepPacked(size_t param) const {
  return options.weightsStay && !model.training && !model.params[param].isValue;
}

/// Gives the rows of a parameter back that is read packed only, where the options allow it.
void Session::Impl::keepPacked(size_t index) {
  if (!mayKeepPacked(index) || !device->keepPacked(index))
    return;
  device->release({model.params[index].id, granulesOfParam(index)});
  if (paramsGone.insert(index).second)
    meter.uncharge(memory.weights, granulesOfParam(index) * kGranuleBytes);
}

/// Throws InternalError where keepPacked() has given its rows back.
void Session::Impl::requireRows(size_t index) const {
  if (paramsGone.contains(index))
    throw InternalError("the rows of parameter '" + model.params[index].name + "' were given back");
}

void Session::initParams(uint64_t seed) {
  for (size_t i = 0; i < impl_->model.params.size(); ++i)
    setParam(i, initialise(impl_->model.params[i], seed));
}

uint8_t *Session::paramRow(size_t index) {
  impl_->requireRows(index);
  impl_->weightsChanged = true;
  ++impl_->weightsVersion;
  return impl_->recorder.rowSpace.address(impl_->model.params.at(index).id);
}

TensorView Session::param(size_t index) const {
  const ParamDesc &desc = impl_->model.params.at(index);
  impl_->requireRows(index);
  return {desc.dtype, desc.shape, impl_->recorder.rowSpace.address(desc.id)};
}

int64_t Session::findParam(std::string_view name) const {
  for (size_t i = 0; i < impl_->model.params.size(); ++i)
    if (impl_->model.params[i].name == name)
      return static_cast<int64_t>(i);
  return -1;
}

Device &Session::device() { return *impl_->device; }

uint32_t Session::makeBuffer(uint64_t bytes, const char *what) {
  Impl &session = *impl_;
  if (!session.meter.charge(session.memory.training, bytes))
    throw OutOfMemory("the memory limit of " + bytesText(session.meter.limit()) +
                      " does not hold " + what + ": " + bytesText(bytes) + " are needed beside " +
                      session.meter.held().text());
  uint32_t buffer = 0;
  try {
    buffer = session.device->makeBuffer(bytes);
    session.buffers[buffer] = bytes;
  } catch (const std::bad_alloc &) {
    session.meter.uncharge(session.memory.training, bytes);
    if (buffer)
      session.device->dropBuffer(buffer);
    throw;
  }
  return buffer;
}

void Session::dropBuffer(uint32_t buffer) {
  impl_->device->dropBuffer(buffer);
  auto made = impl_->buffers.extract(buffer);
  impl_->meter.uncharge(impl_->memory.training, made.mapped());
}

void Session::paramsUpdated(std::span<const uint32_t> params, bool packed) {
  impl_->showParams(params);
  if (packed)
    return impl_->weightsPacked();
  impl_->weightsChanged = true;
  ++impl_->weightsVersion;
}

void Session::packWeights() { impl_->packWeights(); }

void Session::packWeightsLike(const Session &other) {
  for (uint32_t number : impl_->model.folded) {
    const ParamDesc &desc = impl_->model.params[number];
    int64_t found = other.findParam(desc.name);
    if (found < 0 || other.param(static_cast<size_t>(found)).shape != desc.shape)
      throw InternalError("the other session has no parameter '" + desc.name + "'");
    std::memcpy(paramRow(number), other.param(static_cast<size_t>(found)).data,
                static_cast<size_t>(tensorGranules(desc.shape, desc.dtype)) * kGranuleBytes);
  }
  impl_->device->pack();
  impl_->weightsPacked();
}

bool Session::packsRows() const {
  const Model &model = impl_->model;
  return !impl_->weightsChanged && (model.training || !model.foldWeights) &&
         impl_->device->packsRows();
}

bool Session::packsRowsApart(size_t param) const {
  return impl_->device->packsApart(param, kRowsPackedApart);
}

void Session::Impl::weightsPacked() {
  weightsChanged = false;
  keptIsStale = true;
  foldedIsStale = true;
  ++weightsVersion;
}

/// What follows from weights alone is recorded and run like an instance, and becomes a weight
/// itself.
void Session::Impl::computeFolded() {
  FloatEnvironment environment;
  struct Restore {
    ReadWatch *&watch, *before;
    Policy &policy, chosen;
    ~Restore() {
      watch = before;
      policy = chosen;
    }
  } restore{recorder.readWatch, std::exchange(recorder.readWatch, nullptr), policy,
            std::exchange(policy, Policy::Depth)};
  std::vector<Slot> handles(model.folded.size());
  auto record = [&] {
    recorder.failure = {};
    Walk walk;
    Task task;
    task.fn = model.foldWeights;
    task.results = handles.data();
    task.walk = &walk;
    recorder.tasks.start(task, recorder.stacks.take());
    recorder.tasks.run([](const Walk &) {});
    if (walk.failed)
      recorder.takeFailure(walk);
    return !walk.failed;
  };
  if (!record()) {
    // It may lack memory that is only kept to save time.
    forgetMiniBatch();
    if (!recorder.giveBack(/*keptStacks=*/true) || !record())
      throw UserError("computing what follows from the weights alone failed: " +
                      recorder.describe(model));
  }
  flush(BucketTable::What::All);
  folded.launches = recorded().size();
  folded.rows.clear();
  for (Slot handle : handles)
    folded.rows.push_back(TensorHandle::unpack(handle).id);
  if (!foldedIsStale)
    return;
  settle();
  instructions.clear();
  for (size_t i = 0; i < handles.size(); ++i) {
    const ParamDesc &desc = model.params[model.folded[i]];
    RowRange to{desc.id, static_cast<uint64_t>(tensorGranules(desc.shape, desc.dtype))};
    // A parameter itself, or one that was folded before, may stand for a result.
    instructions.push_back(CopyRows{to.begin, {folded.rows[i], to.granules}});
    instructions.push_back(CopyOut{to});
  }
  ticket = device->submit(instructions);
  settle();
}

/// With nothing else beside it; none of it is counted.
void Session::Impl::foldWeights() {
  struct Restore {
    Counters &counters, before;
    ~Restore() { std::swap(counters, before); }
  } restore{counters, counters};
  forgetMiniBatch();
  recorder.known.forgetKept(); // it follows from older weights
  recorder.scratch.beginRun();
  recorder.setComputed(0);
  computeFolded();
  forgetMiniBatch();
}

/// In training it is part of every mini-batch, whose backward pass goes through it. Where nothing
/// has changed since, kernels have what they read.
void Session::Impl::packFolded() {
  if (!foldedIsStale)
    return;
  struct Piece {
    uint32_t param;
    int64_t begin, end;
  };
  constexpr int64_t rowsAPiece = 4 * kRowsPackedApart;
  if (device->packsRows()) {
    std::vector<Piece> pieces;
    for (uint32_t param : model.folded) {
      int64_t rows = matrixOf(model.params[param]).rows;
      int64_t step = device->packsApart(param, kRowsPackedApart) ? rowsAPiece : rows;
      for (int64_t begin = 0; begin < rows; begin += step)
        pieces.push_back({param, begin, std::min(begin + step, rows)});
    }
    device->forEach(pieces.size(), pieces.size() < 2, [&](size_t i) {
      device->packRows(pieces[i].param, pieces[i].begin, pieces[i].end);
    });
  } else {
    device->pack();
  }
  foldedIsStale = false;
}

void Session::Impl::packWeights() {
  uint64_t start = trace ? clockNow() : 0;
  device->pack();
  foldedIsStale = true;
  if (model.foldWeights && !model.training) {
    foldWeights();
    device->pack();
    for (uint32_t param : model.folded)
      keepPacked(param);
  }
  weightsChanged = false;
  keptIsStale = true;
  note(TracePart::Weights, start, 0);
}

std::vector<std::span<const uint8_t>> Session::packedWeights() const {
  return impl_->device->packedCopies();
}

std::span<const void *const> Session::kernelWeights(size_t kernel) const {
  return impl_->device->kernelWeights(kernel);
}
std::span<const Outcome> Session::run(std::span<const Instance> instances, std::stop_token stop) {
  return impl_->run(instances, stop);
}

void Session::onEmit(OnEmit deliver) { impl_->emissions.onEmit(std::move(deliver)); }

void Session::setStep(uint64_t step) { impl_->step = step; }

TensorView Session::tensor(uint32_t type, const Slot *slots) const {
  return impl_->tensor(type, slots);
}

const Schedule &Session::schedule() const { return impl_->schedule; }
const uint8_t *Session::rows() const {
  impl_->showAll();
  return impl_->recorder.rowSpace.address(0);
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

std::optional<Dependences> Session::dependences() {
  if (!impl_->isWhole)
    return std::nullopt;
  return impl_->scheduler.dependences(impl_->schedule, impl_->recorder.rowSpace);
}

/// Runs launches of one kernel whose arguments are all there: the results are written once more
/// with the same bits.
static std::vector<uint64_t> timeLaunches(Device &device, uint64_t temporaryBytes, size_t kernels,
                                          const Schedule &launches) {
  std::vector<uint64_t> nanoseconds;
  Trace *trace = std::exchange(device.trace, nullptr);
  for (const ScheduledBucket &launch : launches) {
    Counters counters;
    counters.kernels.resize(kernels);
    Instruction once = Launches{{&launch, 1}, 0, temporaryBytes, &counters};
    device.run({&once, 1});
    nanoseconds.push_back(counters.kernels[launch.kernel].nanoseconds);
  }
  device.trace = trace;
  return nanoseconds;
}

std::vector<uint64_t> Session::timeAtOnce(size_t kernel, int64_t most) {
  int64_t words = impl_->model.kernels.at(kernel).words;
  std::vector<int32_t> records;
  for (const ScheduledBucket &launch : impl_->schedule)
    if (launch.kernel == kernel)
      records.insert(records.end(), launch.records, launch.records + launch.count * words);
  int64_t count = static_cast<int64_t>(records.size()) / words;
  Schedule launches;
  for (int64_t begin = 0; begin < count; begin += most)
    launches.push_back({0, static_cast<uint32_t>(kernel), records.data() + begin * words,
                        std::min(most, count - begin)});
  return timeLaunches(*impl_->device, impl_->recorder.scratch.temporaryBytes(),
                      impl_->model.kernels.size(), launches);
}

std::vector<uint64_t> Session::timeAgain(size_t kernel) {
  Schedule launches;
  for (const ScheduledBucket &launch : impl_->schedule)
    if (launch.kernel == kernel)
      launches.push_back({0, launch.kernel, launch.records, launch.count});
  return timeLaunches(*impl_->device, impl_->recorder.scratch.temporaryBytes(),
                      impl_->model.kernels.size(), launches);
}

void Session::keepAll(bool keep) { impl_->keepsAll = keep; }

void Session::onForget(std::function<void(const Schedule &)> visit) {
  impl_->onForget = std::move(visit);
}

void Session::setTrace(Trace *trace) {
  if (trace && trace->launches.size() != impl_->options.threads)
    throw InternalError("a trace for another number of threads than the session's");
  impl_->trace = impl_->device->trace = impl_->recorder.tasks.trace = trace;
}

void Session::setRowObserver(RowObserver *observer) { impl_->rowObserver = observer; }

void Session::setReadLog(ReadLog *log) {
  impl_->replay.reset();
  impl_->recorder.readWatch = log;
}

void Session::replayReads(const ReadLog *log) {
  setReadLog(nullptr);
  if (log)
    impl_->recorder.readWatch = &impl_->replay.emplace(*log);
}

Policy Session::policy() const {
  return impl_->options.policy == Policy::Auto ? impl_->trial.chosen().value_or(Policy::Auto)
                                               : impl_->options.policy;
}

const Counters &Session::counters() const { return impl_->counters; }

void Session::resetCounters() {
  Counters fresh;
  fresh.kernels.resize(impl_->model.kernels.size());
  impl_->counters = std::move(fresh);
}

MemoryUse Session::memory() const { return impl_->memory; }

} // namespace sheaf::rt
