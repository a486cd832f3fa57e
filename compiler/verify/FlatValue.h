//===- FlatValue.h - Results taken out of a session -------------*- C++ -*-===//
//
// A result as flat arrays: what it is made of, and its numbers. Two results are compared without
// recursion, and a benchmark reads results as a user does.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_VERIFY_FLATVALUE_H
#define SHEAF_COMPILER_VERIFY_FLATVALUE_H

#include "runtime/session/session.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sheaf::driver {

struct FlatTensor {
  rt::DType dtype = rt::DType::F32;
  std::vector<int64_t> shape;
  size_t offset = 0; ///< of its elements in FlatValue::bytes: row-major, unpadded
  int64_t elements = 0;
};

/// One value, depth first, left to right.
struct FlatValue {
  /// Constructor indices, list sizes, ints, tokens and bools.
  std::vector<int64_t> structure;
  std::vector<double> floats; ///< host floats
  std::vector<FlatTensor> tensors;
  std::vector<uint8_t> bytes;

  void clear();
};

/// Takes values out of a session; keeps its buffers from one call to the next.
class Flattener {
public:
  /// The value of type `type` (index into the model's types) in these slots of an outcome.
  void flatten(const rt::Session &session, uint32_t type, const rt::Slot *slots, FlatValue &out);

private:
  struct Item {
    uint32_t type;
    const rt::Slot *slots;
  };
  std::vector<Item> stack_;
};

/// The gradient of a parameter without padding, row-major.
std::vector<float> gradientOf(const rt::ParamDesc &param, const rt::ParamGradient &gradient);

/// The elements of a tensor as doubles.
std::vector<double> toDoubles(const FlatValue &value, const FlatTensor &tensor);

/// Empty when both are the same bit by bit, but that any NaN equals any NaN; else what differs
/// first.
std::string firstDifference(const FlatValue &a, const FlatValue &b);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_VERIFY_FLATVALUE_H
