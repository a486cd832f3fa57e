#include "runtime/memory/scratch.h"

#include "runtime/memory/rows.h"
#include "runtime/model/error.h"

#include <string>

namespace sheaf::rt {

Scratch::Scratch(const Model &model, unsigned threads, MemoryMeter &meter, MemoryKind &count)
    : meter_(meter), count_(count), blocks_(threads) {
  uint64_t most = 0;
  for (const KernelDesc &kernel : model.kernels)
    most = std::max(most, kernel.scratchBytes);
  // A granule or more for the guard of the hostile setting.
  fixedBytes_ = (most + 127) / 64 * 64;
  if (!meter.charge(count, fixedBytes_ * threads))
    throw UserError("the memory limit of " + bytesText(meter.limit()) +
                    " does not hold the kernels' scratch memory");
  provide();
}

Scratch::~Scratch() { meter_.uncharge(count_, blockBytes() * blocks_.size()); }

void Scratch::beginRun() {
  shrink(std::max(wanted_, before_));
  before_ = wanted_;
  wanted_ = 0;
}

bool Scratch::shrink(uint64_t granules) {
  if (granules_ <= granules)
    return false;
  meter_.uncharge(count_, (granules_ - granules) * kGranuleBytes * blocks_.size());
  granules_ = granules;
  for (AlignedBytes &block : blocks_)
    block.reset();
  provided_ = 0;
  return true;
}

bool Scratch::wantMore(uint64_t wanted) {
  if (wanted > RowSpace::kMaxGranules ||
      !meter_.charge(count_, (wanted - granules_) * kGranuleBytes * blocks_.size()))
    return false;
  granules_ = wanted;
  return true;
}

void Scratch::provide() {
  if (provided_ == blockBytes())
    return;
  provided_ = blockBytes();
  for (AlignedBytes &block : blocks_) {
    block.reset();
    block = allocateAligned(provided_);
  }
}

} // namespace sheaf::rt
