//===- device.h - What a flush is submitted to ------------------*- C++ -*-===//
//
// A device has the rows, the weights in the form that its kernels read, and runs launches. What it
// shall do it is told in sequences of instructions; each gives a ticket, and what the sequence
// reads or writes is touched only after wait(). A virtual call is made once a sequence, never once
// a record.
//
// Whoever is above a device sees rows in the host's range (row_memory.h) only. What it writes there
// a device with a memory of its own is told by CopyIn, what it wants to see it asks for by CopyOut.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_DEVICE_DEVICE_H
#define SHEAF_RUNTIME_DEVICE_DEVICE_H

#include "runtime/device/factory.h"
#include "runtime/device/update.h"
#include "runtime/measure/trace.h"
#include "runtime/memory/row_memory.h"
#include "runtime/schedule/schedule.h"

#include <functional>
#include <span>
#include <variant>
#include <vector>

namespace sheaf::rt {

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Runs launches in their order; neighbours of one depth do not depend on each other. Rows that one
/// reads may be written anew by launches of a later depth (row_plan.h).
struct Launches {
  std::span<const ScheduledBucket> buckets; ///< there until the ticket is done
  uint32_t number = 0;                      ///< of the first, in the run: for traces
  uint64_t temporaryBytes = 0;              ///< Scratch::temporaryBytes
  /// Added to before the ticket is done; `kernels` has one element a kernel.
  Counters *counters = nullptr;
};
/// Rows that the host has written.
struct CopyIn {
  RowRange rows;
};
/// Rows that the host wants to see.
struct CopyOut {
  RowRange rows;
};
/// The rows of `from`, to as many from granule `to` on. They may overlap.
struct CopyRows {
  uint64_t to;
  RowRange from;
};
struct FillRows {
  RowRange rows;
  uint8_t byte;
};
/// Memory may be given back: what the rows hold is lost.
struct ReleaseRows {
  RowRange rows;
};

using Instruction =
    std::variant<Launches, CopyIn, CopyOut, CopyRows, FillRows, ReleaseRows, Reduce, Update>;

/// Of a sequence. Sequences are done in the order in which they were submitted, or as if they were.
struct Ticket {
  uint64_t number = 0;
};

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

/// What a device is made for.
struct DeviceSetup {
  const Model &model;
  unsigned threads = 1; ///< that run kernels, the caller included
  /// Of as many threads, whose others are shared with other devices; null: a device's own.
  std::shared_ptr<Workers> workers = nullptr;
  uint64_t rowBytes = 0;  ///< of address space for rows
  bool hostile = false;   ///< SessionOptions::hostile
  bool onlyPacks = false; ///< SessionOptions::onlyPacks
  MemoryMeter &meter;
  MemoryKind &packed; ///< packed weights are charged to it
};

/// What those above a device may know of it.
struct DeviceFacts {
  unsigned threads = 1;   ///< among which launches are divided
  bool sharesRows = true; ///< the host's rows are the device's: CopyIn and CopyOut do nothing
  bool computes = true;   ///< else rows and weights have no values, and cannot be asked for
  ProductUnits products;  ///< of ProductRecord
};

class Device : public RowMemory {
public:
  const DeviceFacts &facts() const { return facts_; }

  /// Called by one thread at a time.
  virtual Ticket submit(std::span<const Instruction> instructions) = 0;
  /// Returns when this sequence is done, and with it all earlier ones. Throws InternalError when a
  /// kernel wrote beyond its scratch (hostile setting).
  virtual void wait(Ticket ticket) = 0;
  void run(std::span<const Instruction> instructions) { wait(submit(instructions)); }

  void fill(const RowRange &rows, uint8_t byte) final;
  void release(const RowRange &rows) final;
  void copyOut(const RowRange &rows) final;

  // Weights. Parameters are the first rows; whoever wrote them in the host's range says so here.

  /// Brings all parameters into the form that kernels read. The first time it takes memory for
  /// them; throws UserError when the limit forbids it.
  virtual void pack() = 0;
  /// The same for what only joined kernels read (KernelDesc::joined), which pack() and packRows()
  /// then keep. False when the memory limit forbids it.
  virtual bool packJoined() = 0;
  /// Instead of the first pack(): the copies are there, in the order of the code,
  /// and so are the parameters (Model::stored). They are read where they are.
  virtual void adopt(std::span<const std::span<const uint8_t>> copies) = 0;
  /// Whether packRows() may be called; and by several threads at the same time for rows of
  /// different units of so many.
  virtual bool packsRows() const = 0;
  virtual bool packsApart(size_t param, int64_t unit) const = 0;
  /// What pack() does, for these rows of a parameter as a matrix (param_matrix.h).
  virtual void packRows(size_t param, int64_t begin, int64_t end) = 0;
  /// Brings a parameter into that form, and says whether kernels read nothing else of it. Then
  /// later packs leave that form alone, and its rows are not needed any more.
  virtual bool keepPacked(size_t) { return false; }
  /// The packed copies, in the order of the code, and what kernel `kernel` is given as its
  /// weights. Of devices whose kernels are the model's (KernelFn).
  virtual std::vector<std::span<const uint8_t>> packedCopies() const = 0;
  virtual std::span<const void *const> kernelWeights(size_t kernel) const = 0;

  // Memory beside rows, for what is remembered from step to step of a training.

  /// Zeros; never 0. Throws std::bad_alloc.
  virtual uint32_t makeBuffer(uint64_t bytes) = 0;
  virtual void dropBuffer(uint32_t buffer) = 0;
  /// What it holds now, for the host to read, until something else is submitted. Whoever writes
  /// there calls bufferWritten().
  virtual std::span<uint8_t> showBuffer(uint32_t buffer) = 0;
  virtual void bufferWritten(uint32_t buffer) = 0;

  /// Calls `work(i)` for each i in [0, count) on threads that the device has on the host, in any
  /// order, or on this one alone if there is too `little` to do; in the floating-point state of
  /// kernels. It must not throw.
  virtual void forEach(size_t count, bool little, const std::function<void(size_t)> &work) = 0;

  /// Where launches are noted, if anywhere: one with a list a thread.
  Trace *trace = nullptr;

protected:
  explicit Device(const DeviceFacts &facts) : facts_(facts) {}

private:
  DeviceFacts facts_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_DEVICE_DEVICE_H
