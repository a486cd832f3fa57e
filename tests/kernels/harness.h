//===- harness.h - Runs kernels on random records ---------------*- C++ -*-===//
#ifndef SHEAF_TESTS_KERNELS_HARNESS_H
#define SHEAF_TESTS_KERNELS_HARNESS_H

#include "compiler/kernels/Kernel.h"

#include <gtest/gtest.h>

#include <random>

namespace sheaf::test {

/// What the records of a run are made of; other contents are random.
struct Inputs {
  /// `?` extent of an argument.
  std::function<int64_t(int64_t record, unsigned arg, unsigned axis)> extent;
  /// An i64 or i1 argument; f64 ones are random.
  std::function<int64_t(int64_t record, unsigned arg)> number;
  int64_t least = 0, most = 9; ///< of elements of integer tensors
  /// An element of a float tensor; normally distributed ones when empty.
  std::function<double(std::mt19937 &)> element = {};
};

/// The elements of each result, padding left out.
using Results = std::vector<std::vector<double>>;

/// One block of a textual module, compiled, with rows for its arguments and weights. Fresh rows,
/// padding and the space between tensors hold NaN.
class KernelRun {
public:
  KernelRun(const std::string &module, const std::string &cpu, std::set<std::string> without,
            const kernels::Tuning &tuning = {});
  ~KernelRun();

  /// Makes `records` records.
  void fill(int64_t records, const Inputs &inputs, unsigned seed);
  /// Runs all records in calls of `batch` records, panels in `parts` calls when they can be split.
  /// Fails when something was written that is not a result.
  testing::AssertionResult run(int64_t batch, int64_t parts);

  Results results(int64_t record) const;
  /// Whether results agree with the operators' references, to the tolerance of docs/numerics.md.
  testing::AssertionResult agree(const Results &results, int64_t record) const;
  /// Whether the kernel's count of FLOP is that of its products.
  testing::AssertionResult flopAgrees(int64_t record) const;

  const kernels::Kernel &kernel() const;
  const ops::RefTensor &argument(int64_t record, size_t arg) const;
  const ops::RefTensor &weight(size_t number) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One block of a textual module, to be planned.
class TilingPlan {
public:
  TilingPlan(const std::string &module, const std::string &cpu);
  ~TilingPlan();
  /// What a tuning comes to (Kernel::tiling).
  std::string tiling(const kernels::Tuning &tuning) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether code for this CPU runs here.
bool runsHere(const std::string &cpu);

/// Whether results are equal to the bit; any NaN equals any NaN.
testing::AssertionResult same(const Results &a, const Results &b);

/// Compiles a block and compares it with the references in batches and parts of several sizes.
/// Gives the results of every record.
testing::AssertionResult check(const std::string &module, const std::string &cpu,
                               const std::set<std::string> &without, int64_t records,
                               const Inputs &inputs, std::vector<Results> &results,
                               const kernels::Tuning &tuning = {});

} // namespace sheaf::test

#endif // SHEAF_TESTS_KERNELS_HARNESS_H
