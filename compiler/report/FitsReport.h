//===- FitsReport.h - Whether a mini-batch fits -----------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_REPORT_FITSREPORT_H
#define SHEAF_COMPILER_REPORT_FITSREPORT_H

#include "compiler/driver/Compiler.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::driver {

/// What is asked.
struct FitsQuestion {
  uint64_t batch = 1, threads = 1;
  std::map<std::string, double> most; ///< of sizes of an instance, by a name of theirs
  uint64_t limit = 0;                 ///< bytes
};

/// A summand of a number of bytes.
struct FitsTerm {
  std::string kind;  ///< rows, tables, inputs, grown, heap
  SizeTerm bytes;    ///< of one instance
  std::string place; ///< file:line of the kernel; may be empty
  std::string name;  ///< of the first such kernel
  size_t kernels = 0;
  std::optional<double> most; ///< bytes of the mini-batch; none: it has no bound
};

struct FitsReport {
  FitsQuestion question;
  std::vector<InstanceSize> sizes;
  std::vector<size_t> unbounded; ///< of `sizes`, that have no bound and should

  // Bytes of the whole mini-batch at once, and of one instance, if bounded.
  double weights = 0, packed = 0;
  std::optional<double> scratch, rows, records, heap, stacks, total;
  std::optional<double> oneInstance; ///< with weights and scratch
  std::optional<double> unlimited;   ///< what a run takes that no limit holds back
  bool usesAgain = false;            ///< `total` is less, since rows are used again
  double mostInstances = 0;          ///< that fit in the limit
  std::vector<FitsTerm> terms;       ///< the largest first; those without bound before them

  struct Kernel {
    size_t kernel;
    std::string name, place;
    std::optional<double> records, rowBytes, tableBytes; ///< of the mini-batch
  };
  std::vector<Kernel> kernels;

  bool fits() const { return total && *total <= static_cast<double>(question.limit); }
};

/// The names that FitsQuestion::most may have: of sizes, and of groups of such.
std::vector<std::string> sizeNames(const MemoryFormula &formula);

FitsReport reportFits(const CompiledModel &model, const MemoryFormula &formula,
                      const FitsQuestion &question);

std::string fitsText(const FitsReport &report, const std::string &source);
std::string fitsJson(const FitsReport &report, const std::string &source);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_FITSREPORT_H
