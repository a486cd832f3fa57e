//===- KernelTable.cpp - What each kernel did -----------------------------===//
#include "compiler/measure/KernelTable.h"

#include "runtime/cpu/packing.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sheaf::driver {

/// Bytes of one of them.
static double weightBytes(const rt::Model &model, const rt::WeightUse &use) {
  if (use.kind == rt::WeightUse::Raw) {
    const rt::ParamDesc &param = model.params[use.param];
    double bytes = static_cast<double>(rt::dtypeBytes(param.dtype));
    for (int64_t extent : param.shape)
      bytes *= static_cast<double>(extent);
    return bytes;
  }
  // A library keeps them twice and reads one.
  double forms = use.kind == rt::WeightUse::Foreign ? 2 : 1;
  return static_cast<double>(rt::packedBytes(use).value()) / forms;
}

double weightBytes(const rt::Model &model, size_t kernel) {
  double bytes = 0;
  for (const rt::WeightUse &use : rt::cpuCode(model).kernels[kernel].weights)
    bytes += weightBytes(model, use);
  return bytes;
}

void KernelStatistics::add(const rt::Schedule &schedule) {
  for (const rt::ScheduledBucket &launch : schedule) {
    const rt::KernelDesc &kernel = model_.kernels[launch.kernel];
    ++sizes_[launch.kernel][launch.count];
    if (kernel.bytes)
      bytes_[launch.kernel] += rt::sumOverRecords(*kernel.bytes, kernel.words, launch) +
                               weightBytes(model_, launch.kernel);
  }
}

std::vector<KernelRow> KernelStatistics::rows(std::span<const rt::KernelCounters> counters) const {
  std::vector<KernelRow> rows;
  for (size_t k = 0; k < sizes_.size(); ++k) {
    const std::map<int64_t, uint64_t> &sizes = sizes_[k];
    if (sizes.empty())
      continue;
    KernelRow row;
    row.kernel = static_cast<uint32_t>(k);
    const rt::KernelDesc &kernel = model_.kernels[k];
    row.name = kernel.name;
    row.place = kernel.source;
    for (auto [size, launches] : sizes) {
      row.launches += launches;
      row.records += static_cast<uint64_t>(size) * launches;
    }
    row.rowsMin = sizes.begin()->first;
    row.rowsMax = sizes.rbegin()->first;
    uint64_t below = 0;
    for (auto [size, launches] : sizes)
      if ((below += launches) > row.launches / 2) {
        row.rowsMedian = size;
        break;
      }
    if (kernel.bytes)
      row.bytes = bytes_[k];
    row.saved = counters[k].saved;
    row.ms = static_cast<double>(counters[k].nanoseconds) * 1e-6;
    row.gflop = counters[k].flop * 1e-9;
    rows.push_back(std::move(row));
  }
  return rows;
}

void sortByTime(std::vector<KernelRow> &rows) {
  std::sort(rows.begin(), rows.end(),
            [](const KernelRow &a, const KernelRow &b) { return a.ms > b.ms; });
}

std::string bytesText(double bytes) {
  if (bytes >= 10.0 * (1 << 20))
    return fmt::format("{:.0f} MB", bytes / (1 << 20));
  if (bytes >= 1 << 20)
    return fmt::format("{:.1f} MB", bytes / (1 << 20));
  return fmt::format("{:.0f} KB", bytes / (1 << 10));
}

std::string groupedDigits(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

std::string kernelTable(std::span<const KernelRow> rows, std::optional<double> peakGflops) {
  double all = 0;
  bool atOnce = false;
  size_t width = 6;
  for (const KernelRow &row : rows) {
    all += row.ms;
    atOnce |= row.atOnceMs.has_value();
    width = std::max(width, row.name.size());
  }
  std::string out =
      fmt::format("{:<{}} {:>9} {:>7} {:>8} {:>6} {:>6} {:>6} {:>10} {:>6}", "kernel", width,
                  "records", "saved", "launches", "min", "median", "max", "ms", "share");
  if (atOnce)
    out += fmt::format(" {:>10}", "at once ms");
  if (peakGflops)
    out += fmt::format(" {:>6}", "peak");
  out += fmt::format(" {:>8} {:>8} {:>7}  {}\n", "GFLOP/s", "moved", "GB/s", "place");
  for (const KernelRow &row : rows) {
    out += fmt::format("{:<{}} {:>9} {:>7} {:>8} {:>6} {:>6} {:>6} {:>10.3f} {:>5.1f}%", row.name,
                       width, row.records, row.saved, row.launches, row.rowsMin, row.rowsMedian,
                       row.rowsMax, row.ms, all > 0 ? row.ms / all * 100 : 0);
    if (atOnce)
      out += fmt::format(" {:>10.3f}", row.atOnceMs.value_or(0));
    if (peakGflops)
      out += fmt::format(" {:>5.1f}%", row.shareOfPeak(*peakGflops) * 100);
    out += fmt::format(" {:>8.1f}", row.ms > 0 ? row.gflop / row.ms * 1e3 : 0);
    if (row.bytes)
      out += fmt::format(" {:>8} {:>7.1f}", bytesText(*row.bytes),
                         row.ms > 0 ? *row.bytes / row.ms * 1e-6 : 0);
    else
      out += fmt::format(" {:>8} {:>7}", "?", "?");
    out += fmt::format("  {}\n", row.place);
  }
  return out;
}

nlohmann::ordered_json kernelsJson(std::span<const KernelRow> rows,
                                   std::optional<double> peakGflops) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const KernelRow &row : rows) {
    array.push_back({{"kernel", row.kernel},
                     {"name", row.name},
                     {"place", row.place},
                     {"records", row.records},
                     {"saved_records", row.saved},
                     {"launches", row.launches},
                     {"rows_min", row.rowsMin},
                     {"rows_median", row.rowsMedian},
                     {"rows_max", row.rowsMax},
                     {"ms", row.ms},
                     {"gflop", row.gflop}});
    if (row.bytes)
      array.back()["bytes"] = *row.bytes;
    if (peakGflops)
      array.back()["share_of_peak"] = row.shareOfPeak(*peakGflops);
    if (row.atOnceMs)
      array.back()["at_once_ms"] = *row.atOnceMs;
  }
  return array;
}

} // namespace sheaf::driver
