//===- values.h - Values made many at a time --------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_VALUES_H
#define SHEAF_RUNTIME_API_VALUES_H

#include "runtime/api/handles.h"

#include <span>

namespace sheaf::api {

/// Makes columns of a store. Every function throws Invalid, having changed nothing that can be
/// seen, for what is of another type. Those that make values return the first; the others follow.
class ValueBuilder {
public:
  explicit ValueBuilder(ValueStore &store) : store_(store), model_(*store.model) {}

  sheaf_value numbers(sheaf_type type, const DLTensor &numbers);
  sheaf_value tensors(sheaf_type type, const DLTensor *const *tensors, size_t count);
  /// The parts of a tensor along its first axis.
  sheaf_value unstack(sheaf_type type, const DLTensor &stack);
  /// List i of the values from `elements` + offsets[i] to before `elements` + offsets[i + 1].
  sheaf_value lists(sheaf_type type, sheaf_value elements, const uint64_t *offsets, size_t count);
  sheaf_value tuples(sheaf_type type, std::span<const sheaf_value> parts, size_t count);
  sheaf_value data(sheaf_type type, size_t constructor, std::span<const sheaf_value> fields,
                   size_t count);
  sheaf_value select(sheaf_value from, std::span<const uint64_t> which);
  /// Values that are written one after the other (preorder.cpp).
  sheaf_value preorder(sheaf_type type, const sheaf_preorder &written, size_t count);
  sheaf_value take(const std::shared_ptr<const ValueStore> &other, sheaf_value from, size_t count);
  /// Instances whose arguments are the values from these on.
  void instances(std::span<const sheaf_value> arguments, size_t count, const int64_t *ids);

private:
  /// The slots of `count` values of a type from `first` on; `what` and `number` say which they are.
  const rt::Slot *column(sheaf_value first, uint64_t count, sheaf_type type, const char *what,
                         size_t number) const;
  /// The same of these types, one for each.
  std::vector<const rt::Slot *> columns(std::span<const sheaf_value> firsts, uint64_t count,
                                        std::span<const uint32_t> types, const char *what) const;
  /// Copies value i of each of these columns after the others.
  void join(std::span<const uint32_t> types, std::span<const rt::Slot *const> columns, size_t i,
            rt::Slot *to) const;
  sheaf_value add(sheaf_type type, const rt::Slot *slots, uint64_t count);
  rt::Slot *allocate(uint64_t count, int64_t slots);

  ValueStore &store_;
  const LoadedModel &model_;
};

/// The column in which a value stands; null when there is none.
const ValueStore::Column *columnOf(const ValueStore &store, sheaf_value value);

/// Checks that one name of an extent means one number in an instance. Throws Invalid.
void bindExtents(const LoadedModel &model, std::span<const uint32_t> argTypes,
                 const rt::Slot *args);

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_VALUES_H
