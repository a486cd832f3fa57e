#include "tests/devices/remote_device.h"

#include "runtime/memory/sanitizer.h"
#include "runtime/model/param_matrix.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace sheaf::rt::test {

namespace {

/// Of the host's range some may be poisoned: rows that were handed out to no one.
SHEAF_NOT_INSTRUMENTED void copy(uint8_t *to, const uint8_t *from, uint64_t bytes) {
  if constexpr (!kPoisoning) {
    memcpy(to, from, bytes);
    return;
  }
  for (uint64_t i = 0; i < bytes; ++i)
    to[i] = from[i];
}

void copyRows(const RowMemory &to, const RowMemory &from, const RowRange &rows) {
  copy(to.host() + rows.begin * kGranuleBytes, from.host() + rows.begin * kGranuleBytes,
       rows.granules * kGranuleBytes);
}

} // namespace

RemoteDevice::RemoteDevice(const DeviceSetup &setup)
    : Device({.threads = setup.threads,
              .sharesRows = false,
              .products = cpuCode(setup.model).productUnits()}),
      model_(setup.model), inner_(setup),
      host_(setup.model.paramGranules, setup.rowBytes,
            setup.model.stored ? std::optional(setup.model.stored->params) : std::nullopt),
      thread_([this] { work(); }) {}

RemoteDevice::~RemoteDevice() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Ticket RemoteDevice::submit(std::span<const Instruction> instructions) {
  for (const Instruction &instruction : instructions)
    spoil(instruction);
  std::lock_guard lock(mutex_);
  queue_.push_back({{instructions.begin(), instructions.end()}, trace});
  changed_.notify_all();
  return {++submitted_};
}

/// What an instruction will write the host does not see before it asks.
void RemoteDevice::spoil(const Instruction &instruction) {
  if (const auto *launches = std::get_if<Launches>(&instruction))
    spoilResults(*launches);
  else if (const auto *copied = std::get_if<CopyRows>(&instruction))
    spoil({copied->to, copied->from.granules});
  else if (const auto *filled = std::get_if<FillRows>(&instruction))
    spoil(filled->rows);
  else if (const auto *update = std::get_if<Update>(&instruction))
    spoilValues(*update);
}

void RemoteDevice::spoil(const RowRange &rows) {
  memset(host_.host() + rows.begin * kGranuleBytes, 0xFF, rows.granules * kGranuleBytes);
}

void RemoteDevice::spoilResults(const Launches &launches) {
  for (const ScheduledBucket &bucket : launches.buckets) {
    const KernelDesc &kernel = model_.kernels[bucket.kernel];
    for (int64_t i = 0; i < bucket.count; ++i) {
      const int32_t *words = bucket.records + i * kernel.words;
      uint64_t granules = 0;
      for (const RecordTensor &result : kernel.results)
        granules += granulesOf(result, words);
      spoil({static_cast<uint32_t>(words[kernel.words - 1]), granules});
    }
  }
}

void RemoteDevice::spoilValues(const Update &update) {
  for (const ParamPiece &piece : update.pieces) {
    const FloatsAt &value = update.operands[piece.param].value;
    if (value.kind != FloatsAt::Rows)
      continue;
    const ParamDesc &desc = model_.params[piece.param];
    auto stride = static_cast<uint64_t>(rowGranules(matrixOf(desc).columns, desc.dtype));
    for (int64_t i = piece.begin; i < piece.end; ++i) {
      uint64_t row = piece.rows ? piece.rows[i] : static_cast<uint64_t>(i);
      spoil({value.granule + row * stride, stride});
    }
  }
}

void RemoteDevice::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= ticket.number; });
  if (error_)
    std::rethrow_exception(std::exchange(error_, nullptr));
}

void RemoteDevice::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty())
      return;
    Sequence sequence = std::move(queue_.front());
    queue_.pop_front();
    uint64_t late = done_ % 4 * 10;
    lock.unlock();
    if (std::any_of(sequence.instructions.begin(), sequence.instructions.end(),
                    [](const Instruction &each) { return std::holds_alternative<Launches>(each); }))
      std::this_thread::sleep_for(std::chrono::microseconds(late));
    std::exception_ptr error;
    try {
      run(sequence);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    ++done_;
    if (error)
      error_ = error;
    changed_.notify_all();
  }
}

void RemoteDevice::run(const Sequence &sequence) {
  inner_.trace = sequence.trace;
  for (const Instruction &instruction : sequence.instructions) {
    if (const auto *in = std::get_if<CopyIn>(&instruction))
      copyRows(inner_, host_, in->rows);
    else if (const auto *out = std::get_if<CopyOut>(&instruction))
      copyRows(host_, inner_, out->rows);
    else if (const auto *launches = std::get_if<Launches>(&instruction))
      launch(*launches);
    else
      inner_.run({&instruction, 1});
  }
}

/// Launches of one depth in any order.
void RemoteDevice::launch(Launches launches) {
  Schedule order(launches.buckets.begin(), launches.buckets.end());
  for (auto begin = order.begin(); begin != order.end();) {
    auto end = std::find_if(begin, order.end(), [&](const ScheduledBucket &bucket) {
      return bucket.depth != begin->depth;
    });
    std::shuffle(begin, end, orders_);
    begin = end;
  }
  launches.buckets = order;
  Instruction shuffled = launches;
  inner_.run({&shuffled, 1});
}

void RemoteDevice::pack() {
  wait({submitted_});
  copyRows(inner_, host_, {0, model_.paramGranules});
  inner_.pack();
}

bool RemoteDevice::packJoined() {
  wait({submitted_});
  return inner_.packJoined();
}

void RemoteDevice::packRows(size_t param, int64_t begin, int64_t end) {
  const ParamDesc &desc = model_.params[param];
  int64_t stride = rowGranules(matrixOf(desc).columns, desc.dtype);
  copyRows(inner_, host_,
           {desc.id + static_cast<uint64_t>(begin * stride),
            static_cast<uint64_t>((end - begin) * stride)});
  inner_.packRows(param, begin, end);
}

uint32_t RemoteDevice::makeBuffer(uint64_t bytes) {
  wait({submitted_});
  return inner_.makeBuffer(bytes);
}

void RemoteDevice::dropBuffer(uint32_t buffer) {
  wait({submitted_});
  shown_.erase(buffer);
  inner_.dropBuffer(buffer);
}

std::span<uint8_t> RemoteDevice::showBuffer(uint32_t buffer) {
  wait({submitted_});
  std::span<uint8_t> all = inner_.showBuffer(buffer);
  std::vector<uint8_t> &shown = shown_[buffer];
  shown.assign(all.begin(), all.end());
  return shown;
}

void RemoteDevice::bufferWritten(uint32_t buffer) {
  wait({submitted_});
  std::ranges::copy(shown_.at(buffer), inner_.showBuffer(buffer).begin());
}

} // namespace sheaf::rt::test
