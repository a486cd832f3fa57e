//===- scratch.h - What kernels may use while they run ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MEMORY_SCRATCH_H
#define SHEAF_RUNTIME_MEMORY_SCRATCH_H

#include "runtime/memory/memory.h"
#include "runtime/model/model.h"

namespace sheaf::rt {

/// Bytes of KernelCode::scratchBytes, and a guard after it.
uint64_t fixedScratchBytes(const Model &model);

/// The budget of the blocks that a device has, one for each thread that runs kernels: of
/// fixedScratchBytes() and, after these, the temporaries of the largest record yet.
class Scratch {
public:
  /// Throws UserError when the budget does not hold what every run needs.
  Scratch(const Model &model, unsigned threads, MemoryMeter &meter, MemoryKind &count);
  ~Scratch();
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  /// A record's temporaries take so many granules. False when the budget does not have them.
  bool want(int64_t granules) {
    uint64_t wanted = static_cast<uint64_t>(granules);
    if (wanted <= wanted_)
      return true;
    if (wanted > granules_ && !wantMore(wanted))
      return false;
    wanted_ = wanted;
    return true;
  }
  /// What want() of so much more asks the budget for.
  uint64_t bytesMore(int64_t granules) const {
    return (static_cast<uint64_t>(granules) - granules_) * kGranuleBytes * threads_;
  }
  /// A mini-batch begins: room that neither of the last two needed is given back.
  void beginRun();
  /// Gives back what this mini-batch has not wanted itself; whether there was any.
  bool giveBack() { return shrink(wanted_); }
  /// Of each block, for all that was wanted.
  uint64_t temporaryBytes() const { return granules_ * kGranuleBytes; }

private:
  bool wantMore(uint64_t wanted);
  bool shrink(uint64_t granules);
  uint64_t blockBytes() const { return fixedBytes_ + granules_ * kGranuleBytes; }

  MemoryMeter &meter_;
  MemoryKind &count_;
  unsigned threads_;
  uint64_t fixedBytes_ = 0;
  uint64_t wanted_ = 0;   ///< granules, by this mini-batch
  uint64_t before_ = 0;   ///< by the one before
  uint64_t granules_ = 0; ///< charged for
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MEMORY_SCRATCH_H
