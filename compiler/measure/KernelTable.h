//===- KernelTable.h - What each kernel did ---------------------*- C++ -*-===//
//
// One table, for people and as JSON, wherever kernels are counted or timed.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_MEASURE_KERNELTABLE_H
#define SHEAF_COMPILER_MEASURE_KERNELTABLE_H

#include "runtime/model/model.h"
#include "runtime/session/session.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

/// What one kernel did in one mini-batch, or in several.
struct KernelRow {
  uint32_t kernel = 0; ///< index in Model::kernels
  std::string name;
  std::string place; ///< file:line
  uint64_t records = 0;
  uint64_t saved = 0; ///< records that were not made: the same ones had been (known.h)
  uint64_t launches = 0;
  int64_t rowsMin = 0, rowsMedian = 0, rowsMax = 0; ///< a launch
  double ms = 0;                                    ///< inside the kernel, summed over threads
  double gflop = 0;                                 ///< of products, as executed
  /// Rows read and written, and weights once a launch, if the model tells (KernelDesc::bytes).
  std::optional<double> bytes;
  /// All its records as one launch: what batching could give at best.
  std::optional<double> atOnceMs;

  double gflops() const { return ms > 0 ? gflop / ms * 1e3 : 0; }
  double shareOfPeak(double peakGflops) const { return peakGflops > 0 ? gflops() / peakGflops : 0; }
};

/// Stands beside a peak that something was faster than.
inline constexpr const char *kPeakTooLow = " (measured too low: a share is above 100 %)";

/// Bytes that a kernel reads of its weights in one launch.
double weightBytes(const rt::Model &model, size_t kernel);

/// Collects the launches of schedules.
class KernelStatistics {
public:
  explicit KernelStatistics(const rt::Model &model)
      : model_(model), sizes_(model.kernels.size()), bytes_(sizes_.size()) {}

  void add(const rt::Schedule &schedule);
  /// A row for each kernel that ran; `counters` counted and timed the same launches.
  std::vector<KernelRow> rows(std::span<const rt::KernelCounters> counters) const;

private:
  const rt::Model &model_;
  /// By kernel, how many launches had so many rows: under a memory limit there may be millions.
  std::vector<std::map<int64_t, uint64_t>> sizes_;
  std::vector<double> bytes_;
};

/// The longest first.
void sortByTime(std::vector<KernelRow> &rows);

/// `peakGflops`: of one core, if it was measured.
std::string kernelTable(std::span<const KernelRow> rows, std::optional<double> peakGflops);
nlohmann::ordered_json kernelsJson(std::span<const KernelRow> rows,
                                   std::optional<double> peakGflops);

/// `12 MB`.
std::string bytesText(double bytes);
/// `1,536`, of a whole number that is not negative.
std::string groupedDigits(double number);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_MEASURE_KERNELTABLE_H
