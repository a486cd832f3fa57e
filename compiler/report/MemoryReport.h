//===- MemoryReport.h - What a mini-batch holds in memory -------*- C++ -*-===//
//
// The rows that are held while each launch runs, and at the peak by whom, as a formula over what
// the data decide: how many records there are of a kernel, and their extents. Of the run as it is
// without any report: rows are given back and used again.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_REPORT_MEMORYREPORT_H
#define SHEAF_COMPILER_REPORT_MEMORYREPORT_H

#include "compiler/driver/Compiler.h"
#include "compiler/report/ReportJson.h"
#include "runtime/session/session.h"

#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

/// What the records of a kernel hold at the peak.
struct RowTerm {
  uint32_t kernel = 0;
  uint64_t records = 0, bytes = 0;
  std::string each; ///< bytes of a record, over its extents
  /// An extent in that.
  struct Extent {
    std::string name;
    int64_t least = 0, most = 0;
    int64_t sum = 0; ///< over these records
  };
  std::vector<Extent> extents;
};

struct MemoryReport {
  uint64_t instances = 0, failed = 0;
  std::string error; ///< of the first that failed
  struct Sample {
    uint64_t launch; ///< from here on
    uint64_t bytes;
  };
  std::vector<Sample> rows; ///< held while launches run
  uint64_t launches = 0;
  uint64_t peakBytes = 0, peakLaunch = 0; ///< of rows
  uint32_t peakKernel = 0;
  std::vector<RowTerm> terms; ///< that are held then, the largest first
  uint64_t otherBytes = 0;    ///< inputs, tables of lists, what earlier flushes left
  rt::MemoryUse use;          ///< by kind
};

/// Runs one mini-batch in a session of the model that has its weights and has run none.
MemoryReport reportMemory(const CompiledModel &model, rt::Session &session,
                          std::span<const rt::Instance> instances);

/// For people, as `sheaf explain --memory` prints it.
std::string memoryReportText(const CompiledModel &model, const MemoryReport &report);
Json memoryReportJson(const CompiledModel &model, const MemoryReport &report);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_MEMORYREPORT_H
