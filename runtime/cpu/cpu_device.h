//===- cpu_device.h - The processor as a device -----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_CPU_DEVICE_H
#define SHEAF_RUNTIME_CPU_CPU_DEVICE_H

#include "runtime/cpu/flush.h"
#include "runtime/cpu/updates.h"
#include "runtime/cpu/weights.h"

namespace sheaf::rt {

/// The caller's thread and some more run the kernels, on the host's rows. A sequence is done when
/// submit() returns.
class CpuDevice final : public Device {
public:
  /// Throws UserError when the machine refuses memory or threads, or lacks the registers that the
  /// model's kernels use; InternalError when its weights make no sense.
  explicit CpuDevice(const DeviceSetup &setup);

  uint8_t *host() const override { return rows_.host(); }
  uint64_t capacity() const override { return rows_.capacity(); }
  RowPages *pages() override { return rows_.pages(); }

  Ticket submit(std::span<const Instruction> instructions) override;
  void wait(Ticket) override {}

  void pack() override { weights_.pack(); }
  bool packJoined() override { return weights_.packJoined(); }
  void adopt(std::span<const std::span<const uint8_t>> copies) override { weights_.use(copies); }
  bool packsRows() const override { return weights_.packsRows(); }
  bool packsApart(size_t param, int64_t unit) const override {
    return weights_.packsApart(param, unit);
  }
  void packRows(size_t param, int64_t begin, int64_t end) override {
    weights_.packRows(param, begin, end);
  }
  bool keepPacked(size_t param) override { return weights_.keep(param); }
  std::vector<std::span<const uint8_t>> packedCopies() const override { return weights_.copies(); }
  std::span<const void *const> kernelWeights(size_t kernel) const override {
    return weights_.of(kernel);
  }

  void forEach(size_t count, bool little, const std::function<void(size_t)> &work) override {
    flusher_.workers().forEach(count, little, work);
  }

  uint32_t makeBuffer(uint64_t bytes) override { return updates_.makeBuffer(bytes); }
  void dropBuffer(uint32_t buffer) override { updates_.dropBuffer(buffer); }
  std::span<uint8_t> showBuffer(uint32_t buffer) override { return updates_.buffer(buffer); }
  void bufferWritten(uint32_t) override {}

private:
  HostRows rows_;
  PackedWeights weights_;
  Flusher flusher_;
  Updates updates_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_CPU_DEVICE_H
