#include "runtime/null/null_device.h"

#include "runtime/device/float_environment.h"
#include "runtime/device/launch_counts.h"
#include "runtime/model/error.h"

#include <algorithm>

namespace sheaf::rt {

NullDevice::NullDevice(const DeviceSetup &setup)
    : Device({.threads = setup.threads,
              .computes = false,
              .products = setup.model.code ? setup.model.code->productUnits() : ProductUnits()}),
      model_(setup.model),
      rows_(setup.model.paramGranules, setup.rowBytes,
            setup.model.stored ? std::optional(setup.model.stored->params) : std::nullopt),
      meter_(setup.meter), packed_(setup.packed),
      packs_(model_.code ? model_.code->packedBytes(model_) : PackedBytes()),
      made_(packs_.always.size()) {}

NullDevice::~NullDevice() { meter_.uncharge(packed_, charged_); }

Ticket NullDevice::submit(std::span<const Instruction> instructions) {
  for (const Instruction &instruction : instructions) {
    if (const auto *launches = std::get_if<Launches>(&instruction)) {
      LaunchCounts counts(*launches->counters);
      for (const ScheduledBucket &bucket : launches->buckets) {
        const KernelDesc &kernel = model_.kernels[bucket.kernel];
        counts.add(bucket, sumOverRecords(kernel.flop, kernel.words, bucket));
      }
    } else if (const auto *fill = std::get_if<FillRows>(&instruction)) {
      rows_.fill(fill->rows, fill->byte); // guards are looked at
    } else if (const auto *release = std::get_if<ReleaseRows>(&instruction)) {
      rows_.release(release->rows);
    } else if (const auto *reduce = std::get_if<Reduce>(&instruction)) {
      std::fill_n(reduce->sums, reduce->pieces.size(), 0.0);
    }
  }
  return {};
}

void NullDevice::pack() {
  for (size_t copy = 0; copy < made_.size(); ++copy)
    make(copy);
}

bool NullDevice::packJoined() {
  joins_ = joins_ || charge(packs_.joined);
  return joins_;
}

bool NullDevice::keepPacked(size_t param) {
  if (packs_.onlyIn.empty() || packs_.onlyIn[param].empty())
    return false;
  for (size_t copy : packs_.onlyIn[param])
    make(copy);
  return true;
}

void NullDevice::make(size_t copy) {
  if (!made_[copy] && !charge(packs_.always[copy]))
    throw UserError("the memory limit of " + bytesText(meter_.limit()) +
                    " does not hold the packed weights: " + bytesText(packs_.always[copy]) +
                    " more are needed beside " + meter_.held().text());
  made_[copy] = true;
}

/// False when the limit forbids it.
bool NullDevice::charge(uint64_t bytes) {
  if (!meter_.charge(packed_, bytes))
    return false;
  charged_ += bytes;
  return true;
}

std::vector<std::span<const uint8_t>> NullDevice::packedCopies() const {
  throw UserError("device 'null' computes nothing: it packs no weights");
}

std::span<const void *const> NullDevice::kernelWeights(size_t) const {
  throw UserError("device 'null' computes nothing: it packs no weights");
}

std::span<uint8_t> NullDevice::showBuffer(uint32_t) {
  throw UserError("device 'null' computes nothing: there is nothing to look at");
}

void NullDevice::forEach(size_t count, bool, const std::function<void(size_t)> &work) {
  FloatEnvironment environment;
  for (size_t i = 0; i < count; ++i)
    work(i);
}

} // namespace sheaf::rt
