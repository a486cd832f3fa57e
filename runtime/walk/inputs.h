//===- inputs.h - Values on their way in and out ----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_WALK_INPUTS_H
#define SHEAF_RUNTIME_WALK_INPUTS_H

#include "runtime/model/value.h"
#include "runtime/walk/recorder.h"

namespace sheaf::rt {

/// What is asked about types again and again, worked out once.
class TypeFacts {
public:
  explicit TypeFacts(const TypeTable &types);
  int64_t slots(uint32_t type) const { return slots_[type]; }
  std::span<const int64_t> allSlots() const { return slots_; } ///< by type
  /// Whether a value of this type may contain a tensor (a list), at any depth.
  bool hasTensor(uint32_t type) const { return hasTensor_[type]; }
  /// Whether it is, or has in a tuple, a list or data.
  bool hasMemory(uint32_t type) const { return hasMemory_[type]; }
  bool hasList(uint32_t type) const { return hasList_[type]; }

private:
  std::vector<int64_t> slots_;
  std::vector<bool> hasTensor_, hasList_, hasMemory_;
};

class ValueImage;

/// An argument that is in the session already, or a part of what is.
struct PresentArgument {
  size_t argument;
  const ValueImage *image; ///< its rows are held
  int64_t slot;            ///< of the image's value, where the argument begins
};

/// Brings arguments into a session and results into the form that readers expect. Works with an
/// explicit stack: values may be as deep as memory allows.
class ValueMover {
public:
  ValueMover(const TypeTable &types, Recorder &recorder)
      : types_(types), facts_(types), recorder_(recorder) {}

  const TypeFacts &facts() const { return facts_; }

  /// The slots of an instance's arguments with every tensor in a row. Parts without tensors are
  /// shared with the input. Null, with Recorder::failure set, when memory is used up. `present`: of
  /// these what stands in `args` is not looked at.
  const Slot *bringIn(std::span<const uint32_t> argTypes, const Slot *args,
                      std::span<const PresentArgument> present = {});
  /// Where the rows of the last bringIn() stand: the first granule of each run of them.
  std::span<const uint64_t> begins() const { return begins_; }

  /// Joins every list in pieces that can be reached from a result. False, with Recorder::failure
  /// set, when memory is used up.
  bool flatten(uint32_t type, const Slot *slots);

private:
  struct Item {
    uint32_t type;
    const Slot *from;
    Slot *to;
  };
  bool moveIn(const Item &item);
  bool takePresent(const PresentArgument &present, uint32_t type, Slot *to);
  Slot *allocate(int64_t slots);

  const TypeTable &types_;
  TypeFacts facts_;
  Recorder &recorder_;
  std::vector<Item> stack_;
  std::vector<uint64_t> begins_;
  uint64_t end_ = 0; ///< of the last of these runs
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_INPUTS_H
