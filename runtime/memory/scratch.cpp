#include "runtime/memory/scratch.h"

#include "runtime/memory/rows.h"
#include "runtime/model/error.h"

#include <string>

namespace sheaf::rt {

uint64_t fixedScratchBytes(const Model &model) {
  uint64_t most = model.code ? model.code->scratchBytes() : 0;
  // A granule or more for the guard of the hostile setting.
  return (most + 127) / 64 * 64;
}

Scratch::Scratch(const Model &model, unsigned threads, MemoryMeter &meter, MemoryKind &count)
    : meter_(meter), count_(count), threads_(threads), fixedBytes_(fixedScratchBytes(model)) {
  if (!meter.charge(count, fixedBytes_ * threads))
    // In bytes: a limit is most often a little too small for it.
    throw UserError("the memory limit of " + std::to_string(meter.limit()) +
                    " bytes does not hold the kernels' scratch memory: " +
                    std::to_string(fixedBytes_ * threads) + " bytes" +
                    (threads > 1 ? " for " + std::to_string(threads) + " threads" : "") +
                    " are needed beside " + meter.held().text());
}

Scratch::~Scratch() { meter_.uncharge(count_, blockBytes() * threads_); }

void Scratch::beginRun() {
  shrink(std::max(wanted_, before_));
  before_ = wanted_;
  wanted_ = 0;
}

bool Scratch::shrink(uint64_t granules) {
  if (granules_ <= granules)
    return false;
  meter_.uncharge(count_, (granules_ - granules) * kGranuleBytes * threads_);
  granules_ = granules;
  return true;
}

bool Scratch::wantMore(uint64_t wanted) {
  if (wanted > RowSpace::kMaxGranules ||
      !meter_.charge(count_, bytesMore(static_cast<int64_t>(wanted))))
    return false;
  granules_ = wanted;
  return true;
}

} // namespace sheaf::rt
