//===- remote_device.h - Rows that the host cannot address ------*- C++ -*-===//
#ifndef SHEAF_TESTS_DEVICES_REMOTE_DEVICE_H
#define SHEAF_TESTS_DEVICES_REMOTE_DEVICE_H

#include "runtime/cpu/cpu_device.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace sheaf::rt::test {

/// The processor's kernels on rows of their own, which no one outside knows the address of. The
/// host's range holds what was copied, and what spoils all that is computed of it where something
/// is to be written (rows are smaller than the pages that could be protected). Sequences are done
/// late, on another thread, launches that do not depend on each other in another order each time.
class RemoteDevice final : public Device {
public:
  explicit RemoteDevice(const DeviceSetup &setup);
  ~RemoteDevice() override;

  uint8_t *host() const override { return host_.host(); }
  uint64_t capacity() const override { return host_.capacity(); }

  Ticket submit(std::span<const Instruction> instructions) override;
  void wait(Ticket ticket) override;

  void pack() override;
  bool packJoined() override;
  void adopt(std::span<const std::span<const uint8_t>> copies) override { inner_.adopt(copies); }
  bool packsRows() const override { return inner_.packsRows(); }
  bool packsApart(size_t param, int64_t unit) const override {
    return inner_.packsApart(param, unit);
  }
  void packRows(size_t param, int64_t begin, int64_t end) override;
  std::vector<std::span<const uint8_t>> packedCopies() const override {
    return inner_.packedCopies();
  }
  std::span<const void *const> kernelWeights(size_t kernel) const override {
    return inner_.kernelWeights(kernel);
  }
  void forEach(size_t count, bool little, const std::function<void(size_t)> &work) override {
    inner_.forEach(count, little, work);
  }

  uint32_t makeBuffer(uint64_t bytes) override;
  void dropBuffer(uint32_t buffer) override;
  std::span<uint8_t> showBuffer(uint32_t buffer) override;
  void bufferWritten(uint32_t buffer) override;

private:
  struct Sequence {
    std::vector<Instruction> instructions;
    Trace *trace;
  };
  void work();
  void run(const Sequence &sequence);
  void launch(Launches launches);
  void spoil(const Instruction &instruction);
  void spoil(const RowRange &rows);
  void spoilResults(const Launches &launches);
  void spoilValues(const Update &update);

  const Model &model_;
  CpuDevice inner_;
  HostRows host_;
  std::map<uint32_t, std::vector<uint8_t>> shown_; ///< buffers as the host sees them
  std::minstd_rand orders_;                        ///< of launches

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sequence> queue_;
  uint64_t submitted_ = 0, done_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

} // namespace sheaf::rt::test

#endif // SHEAF_TESTS_DEVICES_REMOTE_DEVICE_H
