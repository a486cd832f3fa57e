//===- RunReport.h - What a mini-batch did ----------------------*- C++ -*-===//
//
// Runs one mini-batch and tells launch by launch what happened: rows, time, what each waited for,
// and what it cost that not all rows of a kernel ran at once. PrintRunReport.cpp tells it,
// HtmlReport.h draws it.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_REPORT_RUNREPORT_H
#define SHEAF_COMPILER_REPORT_RUNREPORT_H

#include "compiler/driver/Compiler.h"
#include "compiler/measure/KernelTable.h"
#include "compiler/report/MemoryReport.h"

#include <functional>

namespace sheaf::driver {

/// Why a launch had no more rows.
enum class FewRows : uint8_t {
  No,        ///< it was the only one of its kernel, or a row of it takes what it takes at best
  Recursion, ///< the kernel's records wait for one another: no order needs fewer launches
  Depth,     ///< it waits for what other records of its kernel do not: another order needs fewer
  Read,      ///< instances waited for a read, and what there was had to run
  Total      ///< it was the only one of its kernel, and the mini-batch has no more of it
};
std::string_view fewRowsName(FewRows why);

struct LaunchInfo {
  uint32_t kernel = 0;
  uint32_t step = 0;  ///< launches of one step need not wait for each other; steps run in order
  uint32_t flush = 0; ///< index in RunReport::flushes
  uint32_t phase = 0;
  uint32_t depth = 0; ///< in its phase
  int64_t rows = 0;
  double startMs = 0; ///< from the beginning of the mini-batch
  double ms = 0;      ///< inside the kernel, summed over threads: the shortest repetition
  unsigned threads = 1;
  double gflop = 0;
  double lostMs = 0; ///< beyond what its rows take when all of the kernel's run at once
  /// The launch that ran last of those whose rows most of its records read; -1: none.
  int64_t waitsFor = -1;
  FewRows why = FewRows::No;
};

struct FlushInfo {
  bool demanded = false; ///< because instances waited
  double startMs = 0, orderMs = 0, ms = 0;
  uint32_t launches = 0;
  std::map<std::string, uint64_t> waits; ///< by place of the read: who waited
};

/// Launches of one kernel that had few rows for one reason.
struct FewRowsInfo {
  uint32_t kernel = 0;
  FewRows why = FewRows::No;
  std::string place; ///< file:line of what forced it
  std::string text;  ///< a sentence
  uint64_t launches = 0;
  int64_t rowsMin = 0, rowsMax = 0;
  double ms = 0, lostMs = 0;
};

/// Why a kernel with products has a low share of the peak.
enum class LowShare : uint8_t {
  Rows,     ///< with all its rows at once it has more
  Tiles,    ///< its launches have fewer rows than a tile takes together
  Short,    ///< its launches are so short that starting them counts
  Cold,     ///< alone, with what it reads in the caches, it is faster
  Memory,   ///< what it moves takes much of its time
  Sums,     ///< its products make an element of few multiply-adds
  Lanes,    ///< the vectors of its products are not full
  Loads,    ///< its tiles load much for each multiply-add
  Matrices, ///< right operands that are no packed weights
  Along,    ///< matrices by vectors: sums along rows
  Other,    ///< much of its work are other operators
  Code      ///< none of these: its own code
};
std::string_view lowShareName(LowShare why);

struct LowShareInfo {
  uint32_t kernel = 0;
  double share = 0; ///< of the peak
  /// What was measured, or follows from the plan, with a sentence.
  std::vector<std::pair<LowShare, std::string>> reasons;
};

struct LineInfo {
  std::string place; ///< file:line
  double ms = 0;     ///< of kernels, divided among their lines by LineShare
  double share = 0;  ///< of all kernels' time
};

/// Divided by PartShare, as the next.
struct LayerInfo {
  std::string layer; ///< empty: none
  double ms = 0, share = 0;
};
struct CallsInfo {
  std::vector<std::string> calls; ///< from the entry inwards; empty: not known
  double ms = 0, share = 0;
};

struct MemorySample {
  double ms = 0; ///< from the beginning of the mini-batch
  rt::TraceMemory held{};
};

struct RunReport {
  uint64_t instances = 0, failed = 0;
  std::string error; ///< of the first that failed
  unsigned threads = 1;
  std::string policy;
  int64_t repetitions = 0;      ///< with the schedule that is told: the most frequent
  int64_t otherRepetitions = 0; ///< with other schedules
  double peakGflops = 0;        ///< of one core
  bool peakTooLow = false;      ///< something was faster, however often it was probed
  // Of the shortest repetition.
  double ms = 0;
  double cpuMs = 0;    ///< the process' processor time
  double recordMs = 0; ///< inputs copied, instances walked, blocks recorded
  double orderMs = 0;
  double kernelMs = 0; ///< wall time of running what was ordered
  uint64_t records = 0, saved = 0;
  uint64_t waits = 0, forked = 0, inPlace = 0, inlined = 0;
  std::optional<uint64_t> leastLaunches;
  uint32_t phases = 1, steps = 0;
  std::vector<KernelRow> kernels; ///< the longest first
  std::vector<LaunchInfo> launches;
  std::vector<FlushInfo> flushes;
  std::vector<FewRowsInfo> fewRows;    ///< the costliest first
  std::vector<LowShareInfo> lowShares; ///< in the order of `kernels`
  std::vector<LineInfo> lines;         ///< by place
  std::vector<LayerInfo> layers;       ///< the longest first
  std::vector<CallsInfo> calls;        ///< the longest first
  std::vector<MemorySample> memory;    ///< of the last repetition
  rt::MemoryUse memoryUse;
  MemoryReport rows; ///< of a mini-batch that nobody looks at otherwise
};

struct RunReportOptions {
  rt::SessionOptions session;
  int64_t repetitions = 9; ///< after two that warm up
};

/// Each repetition begins as the first mini-batch of a session does: with nothing kept from before.
/// `initialise` gives the session its weights.
RunReport reportRun(const CompiledModel &model, std::span<const rt::Instance> instances,
                    const std::function<void(rt::Session &)> &initialise,
                    const RunReportOptions &options);

/// For people, as `sheaf explain --data` prints it. `source` is the text of the model's file.
std::string runReportText(const CompiledModel &model, const RunReport &report,
                          const SourceFile &source);
nlohmann::ordered_json runReportJson(const CompiledModel &model, const RunReport &report);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_REPORT_RUNREPORT_H
