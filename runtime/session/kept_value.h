//===- kept_value.h - Handles of values that an engine keeps ----*- C++ -*-===//
//
// What an instance of an engine gave may stay in the engine after its end, for others to begin
// from: docs/design/kept-values.md.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SESSION_KEPT_VALUE_H
#define SHEAF_RUNTIME_SESSION_KEPT_VALUE_H

#include "runtime/model/layout.h"

#include <memory>
#include <utility>

namespace sheaf::rt {

class Kept;

/// A handle of a value that an engine keeps, or of a part of one. Copies share the value; when the
/// last is gone, and no instance that begins from it is left, the engine gives its rows back. For
/// any threads. It may outlive the engine and then means nothing; its model must outlive it.
class KeptValue {
public:
  KeptValue() = default;
  /// Of Outcome::kept; null: of nothing.
  explicit KeptValue(std::shared_ptr<const Kept> kept);

  explicit operator bool() const { return kept_ != nullptr; }
  /// An index into Model::types.
  uint32_t type() const { return type_; }
  /// All that is held for the whole value, what others share with it included; its rows as long as
  /// it is there.
  uint64_t bytes() const;
  /// Whether instances may begin from it: the engine is there, and its weights are those of then.
  bool isThere() const;
  /// Whether it may be an argument of this type, which has its slots; names of extents may differ.
  bool fits(uint32_t type) const;
  /// Of a tuple. Throws InvalidArgument.
  KeptValue part(size_t number) const;
  /// The value: numbers, lists and extents, but of tensors only TensorHandles. Valid while any
  /// handle of it is there.
  const Slot *slots() const;

private:
  friend class KeptValues;
  std::shared_ptr<const Kept> kept_;
  uint32_t type_ = 0;
  int64_t slot_ = 0; ///< of the whole, where it begins
};

/// An argument of an instance that is such a value.
struct KeptArgument {
  size_t argument;
  KeptValue value;
};

/// What an engine keeps.
struct KeptUse {
  size_t values = 0;
  /// With the room after tensors that grow. What several share counts once.
  uint64_t bytes = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_KEPT_VALUE_H
