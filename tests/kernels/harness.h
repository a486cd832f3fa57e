//===- harness.h - Runs kernels on random records ---------------*- C++ -*-===//
#ifndef SHEAF_TESTS_KERNELS_HARNESS_H
#define SHEAF_TESTS_KERNELS_HARNESS_H

#include "compiler/kernels/Kernels.h"

#include <random>

namespace sheaf::test {

/// One block of a textual module, compiled, with rows for its arguments and weights.
class KernelRun {
public:
  /// `extents` gives `?` number d of argument a in record r as extents(r, a, d); host scalars of a
  /// record are ints in [0, scalarLimit).
  KernelRun(const std::string &module, const std::string &cpu = "host",
            std::set<std::string> without = {});
  ~KernelRun();

  using Extents = std::function<int64_t(int64_t record, unsigned arg, unsigned axis)>;
  /// Makes `records` records with random contents.
  void fill(int64_t records, const Extents &extents, int64_t scalarLimit, unsigned seed);
  /// Runs records [0, n) in calls of `batch` records, panels in `parts` calls when they can be split.
  void run(int64_t batch, int64_t parts = 1);
  /// All result rows as bits, padding left out.
  std::vector<std::vector<double>> results(int64_t record) const;
  /// The same by the operators' references in f64.
  std::vector<std::vector<double>> expected(int64_t record) const;

  const kernels::Kernel &kernel() const;
  double flop(int64_t record) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::test

#endif // SHEAF_TESTS_KERNELS_HARNESS_H
