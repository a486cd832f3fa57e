//===- value_image.h - Values that outlive their mini-batch -----*- C++ -*-===//
//
// The slots of a value, copied out of the heap in which it was made, which is given back sooner.
// Its tensors stay where they are; whoever keeps the image keeps their rows. A part that stands in
// several places is copied once, however deep the value is.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_VALUE_IMAGE_H
#define SHEAF_RUNTIME_WALK_VALUE_IMAGE_H

#include "runtime/walk/inputs.h"

#include <vector>

namespace sheaf::rt {

/// Parts with tensors in them are one piece of memory, which is copied wherever the value is used:
/// there its tensors stand at another depth. The others are read where they are.
class ValueImage {
public:
  /// Of a value whose lists are each in one piece. Throws std::bad_alloc.
  ValueImage(const TypeTable &types, const TypeFacts &facts, uint32_t type, const Slot *slots);
  ValueImage(ValueImage &&) = default;
  ValueImage(const ValueImage &) = delete;

  /// The value. Its tensors are handles, of no depth.
  const Slot *slots() const { return moved_.data(); }
  uint64_t bytes() const;

  /// For a copy of it.
  int64_t size() const { return static_cast<int64_t>(moved_.size()); }
  /// The value is where the copy begins. All that it refers to is in the copy, or stays here.
  void copyTo(Slot *to, uint32_t depth) const;

  struct Tensor {
    size_t slot; ///< of the piece of memory that is copied
    uint64_t granules;
  };
  /// Each once for every place where it stands.
  std::span<const Tensor> tensors() const { return tensors_; }
  uint32_t id(const Tensor &tensor) const { return TensorHandle::unpack(moved_[tensor.slot]).id; }
  void setId(const Tensor &tensor, uint32_t id) {
    moved_[tensor.slot] = TensorHandle{id, 0}.pack();
  }

private:
  friend class ImageMaker;
  std::vector<Slot> moved_, fixed_;
  std::vector<Tensor> tensors_;
  std::vector<size_t> pointers_; ///< slots of `moved_` that refer to others of it
};

/// Whether values of type `a` are some of type `b`: made of the same slots, they mean the same.
/// Names of extents need not agree, and a list of so many elements may be one of any length.
bool hasFormOf(const TypeTable &types, uint32_t a, uint32_t b);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_VALUE_IMAGE_H
