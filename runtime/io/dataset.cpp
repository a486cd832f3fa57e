#include "runtime/io/dataset.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>

namespace sheaf::io {

using rt::Slot;

Slot *SlotHeap::allocate(int64_t slots) {
  constexpr int64_t kFirst = 1 << 10, kLargest = 1 << 17;
  if (slots > left_) {
    // Chunks double, so that small data take little memory and large data few chunks.
    int64_t size = std::min(kLargest, kFirst << std::min<size_t>(chunks_.size(), 7));
    size = std::max(size, slots);
    chunks_.push_back(std::unique_ptr<Slot[]>(new Slot[static_cast<size_t>(size)]));
    free_ = chunks_.back().get();
    left_ = size;
    bytes_ += size * static_cast<int64_t>(sizeof(Slot));
  }
  Slot *result = free_;
  free_ += slots;
  left_ -= slots;
  return result;
}

Slot SlotHeap::data(uint32_t ctor, const Slot *fields, int64_t count) {
  Slot *object = allocate(1 + count);
  object[0] = ctor;
  std::copy_n(fields, count, object + 1);
  return reinterpret_cast<Slot>(object);
}

Slot SlotHeap::list(const Slot *elements, int64_t size, int64_t elementSlots) {
  static_assert(sizeof(rt::ListObject) % sizeof(Slot) == 0 &&
                alignof(rt::ListObject) <= alignof(Slot));
  Slot *place = allocate(sizeof(rt::ListObject) / sizeof(Slot) + size * elementSlots);
  Slot *copy = place + sizeof(rt::ListObject) / sizeof(Slot);
  std::copy_n(elements, size * elementSlots, copy);
  return reinterpret_cast<Slot>(new (place) rt::ListObject{copy, size, elementSlots, nullptr});
}

Slot SlotHeap::tensor(rt::DType dtype, std::vector<int64_t> shape, const void *rowMajor) {
  const rt::HostTensor &tensor = tensors_.emplace_back(dtype, std::move(shape));
  rt::toRowLayout(tensor.shape, dtype, rowMajor, tensor.bytes.get());
  bytes_ += tensor.granules() * rt::kGranuleBytes;
  return tensor.inputSlot();
}

void Dataset::add(const Slot *args, int64_t line) {
  Slot *copy = heap_.allocate(argSlots_);
  std::copy_n(args, argSlots_, copy);
  if (sources_.empty())
    sources_.emplace_back("<data>");
  instances_.push_back({copy, static_cast<uint32_t>(sources_.size() - 1), line});
}

std::string Dataset::name(int64_t instance) const {
  const Instance &it = instances_[static_cast<size_t>(instance)];
  return fmt::format("{}:{}", sources_[it.source], it.line);
}

} // namespace sheaf::io
