//===- null_device.h - A device that computes nothing -----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_NULL_NULL_DEVICE_H
#define SHEAF_RUNTIME_NULL_NULL_DEVICE_H

#include "runtime/device/device.h"

#include <algorithm>

namespace sheaf::rt {

/// Counts launches and charges memory as the processor does, and computes nothing: only rows that
/// the host writes take memory, so schedules and plans can be looked at that no machine here holds.
/// Of a model whose host code reads tensors, a log says what they hold (Session::replayReads).
/// It is also what a new device is begun from.
class NullDevice final : public Device {
public:
  explicit NullDevice(const DeviceSetup &setup);
  ~NullDevice() override;

  uint8_t *host() const override { return rows_.host(); }
  uint64_t capacity() const override { return rows_.capacity(); }

  Ticket submit(std::span<const Instruction> instructions) override;
  void wait(Ticket) override {}

  void pack() override;
  bool packJoined() override;
  void adopt(std::span<const std::span<const uint8_t>>) override { pack(); }
  bool packsRows() const override {
    return std::find(made_.begin(), made_.end(), false) == made_.end();
  }
  bool packsApart(size_t, int64_t) const override { return true; }
  void packRows(size_t, int64_t, int64_t) override {}
  bool keepPacked(size_t param) override;
  std::vector<std::span<const uint8_t>> packedCopies() const override;
  std::span<const void *const> kernelWeights(size_t kernel) const override;

  void forEach(size_t count, bool little, const std::function<void(size_t)> &work) override;

  uint32_t makeBuffer(uint64_t) override { return ++buffers_; }
  void dropBuffer(uint32_t) override {}
  std::span<uint8_t> showBuffer(uint32_t) override;
  void bufferWritten(uint32_t) override {}

private:
  bool charge(uint64_t bytes);
  void make(size_t copy);

  const Model &model_;
  HostRows rows_;
  MemoryMeter &meter_;
  MemoryKind &packed_;
  PackedBytes packs_;
  uint64_t charged_ = 0; ///< for these copies, and those of joined kernels
  std::vector<bool> made_;
  bool joins_ = false;
  uint32_t buffers_ = 0; ///< that were made
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_NULL_NULL_DEVICE_H
