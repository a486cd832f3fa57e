//===- dataset.h - Instances in memory --------------------------*- C++ -*-===//
//
// Data as Session::run takes them (rt::Instance in runtime/model/value.h): the slots of an
// instance's arguments, with data objects, lists and tensors in a heap that the dataset owns. A
// tensor is HostTensor::inputSlot() and then its per-instance extents; a list has no buffer.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_DATASET_H
#define SHEAF_RUNTIME_IO_DATASET_H

#include "runtime/model/layout.h"
#include "runtime/model/value.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sheaf::io {

/// A heap that only grows. Addresses stay as long as it lives, also when it is moved.
class SlotHeap {
public:
  rt::Slot *allocate(int64_t slots);
  /// A data value: the constructor's index, then `count` slots of fields.
  rt::Slot data(uint32_t ctor, const rt::Slot *fields, int64_t count);
  rt::Slot list(const rt::Slot *elements, int64_t size, int64_t elementSlots);
  /// `rowMajor`: the elements in row-major order without padding, dtypeBytes each. Returns
  /// HostTensor::inputSlot().
  rt::Slot tensor(rt::DType dtype, std::vector<int64_t> shape, const void *rowMajor);

  /// Memory in use, tensors included.
  int64_t bytes() const { return bytes_; }

private:
  std::vector<std::unique_ptr<rt::Slot[]>> chunks_;
  rt::Slot *free_ = nullptr;
  int64_t left_ = 0;
  int64_t bytes_ = 0;
  std::deque<rt::HostTensor> tensors_;
};

/// What of a file was read over.
struct ReadReport {
  /// In how many instances there was what the entry does not take, by name.
  std::map<std::string, int64_t> ignored;
  int64_t skipped = 0;            ///< records that could not be read
  std::string firstSkipped = {};  ///< the first of them: place and message
  const char *record = "line";    ///< what messages call one
  const char *fields = "members"; ///< what messages call `ignored`
};

/// The instances of one or more files, in order.
class Dataset {
public:
  /// `argSlots`: slots of an instance's arguments together.
  explicit Dataset(int64_t argSlots = 0) : argSlots_(argSlots) {}
  Dataset(Dataset &&) = default;
  Dataset &operator=(Dataset &&) = default;

  int64_t size() const { return static_cast<int64_t>(instances_.size()); }
  int64_t argSlots() const { return argSlots_; }
  /// The arguments' slots, one argument after the other.
  const rt::Slot *args(int64_t i) const { return instances_[static_cast<size_t>(i)].args; }
  rt::Instance instance(int64_t i) const { return {args(i), i}; }
  /// `file:line`, for messages.
  std::string name(int64_t instance) const;

  SlotHeap &heap() { return heap_; }
  const SlotHeap &heap() const { return heap_; }
  /// Of the file that was read last.
  ReadReport &report() { return report_; }
  const ReadReport &report() const { return report_; }
  /// Starts a file; the instances added next come from it.
  void addSource(std::string name) { sources_.push_back(std::move(name)); }
  void add(const rt::Slot *args, int64_t line);

private:
  struct Instance {
    const rt::Slot *args;
    uint32_t source;
    int64_t line;
  };
  int64_t argSlots_;
  SlotHeap heap_;
  std::vector<Instance> instances_;
  std::vector<std::string> sources_;
  ReadReport report_;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_DATASET_H
