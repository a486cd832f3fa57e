#include "compiler/analysis/Slots.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace sheaf::passes {

int64_t slotCount(Type type) {
  if (auto tuple = dyn_cast<TupleType>(type)) {
    int64_t count = 0;
    for (Type field : tuple.getTypes())
      count += slotCount(field);
    return count;
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? 1 + tensor.getNumDynamicDims() : 1;
}

} // namespace sheaf::passes
