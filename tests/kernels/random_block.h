//===- random_block.h - Blocks made at random -------------------*- C++ -*-===//
#ifndef SHEAF_TESTS_KERNELS_RANDOM_BLOCK_H
#define SHEAF_TESTS_KERNELS_RANDOM_BLOCK_H

#include "tests/kernels/harness.h"

namespace sheaf::test {

/// A block that passes the verifier, with inputs for which all its references are defined and its
/// results are not ill-conditioned by construction. `onlyResult` leaves out all results but one
/// (counted modulo their number), to make a failing block smaller.
struct RandomBlock {
  std::string module;
  Inputs inputs;
};
RandomBlock randomBlock(unsigned seed, std::optional<size_t> onlyResult = std::nullopt);

} // namespace sheaf::test

#endif // SHEAF_TESTS_KERNELS_RANDOM_BLOCK_H
