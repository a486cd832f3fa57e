//===- PrintBench.cpp - Times of mini-batches for people and machines -----===//
#include "compiler/bench/Bench.h"
#include "compiler/report/ReportJson.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sheaf::driver {

namespace {

/// Counts as they are where nothing was divided.
Json countJson(double count) {
  auto whole = static_cast<int64_t>(count);
  return static_cast<double>(whole) == count ? Json(whole) : Json(count);
}

std::string countText(double count) {
  return fmt::format("{:.{}f}", count, count == std::floor(count) ? 0 : 1);
}

Json memoryJson(const BenchRow &row) {
  const rt::MemoryUse &m = row.memory;
  return {{"weights", m.weights.peak}, {"packed", m.packed.peak},   {"rows", m.rows.peak},
          {"tables", m.tables.peak},   {"code", row.codeBytes},     {"heap", m.heap.peak},
          {"records", m.records.peak}, {"scratch", m.scratch.peak}, {"stack", m.stack.peak},
          {"other", row.otherBytes()}};
}

/// What stands below a table: the peak, and the memory of the last row.
std::string lastLines(std::span<const BenchRow> rows) {
  if (rows.empty())
    return "";
  const BenchRow &last = rows.back();
  double peak = 0;
  bool tooLow = false;
  int64_t all = 0;
  for (const BenchRow &row : rows) {
    peak = std::max(peak, row.peakGflops / row.what.threads);
    tooLow |= row.peakTooLow;
    all = std::max(all, row.miniBatches * row.what.batch);
  }
  const rt::MemoryUse &m = last.memory;
  std::string out =
      fmt::format("peak of one core: {:.1f} GFLOP/s{}; a share counts the products' FLOP only, at "
                  "the shortest time; inside: of all time, that inside kernels\n",
                  peak, tooLow ? kPeakTooLow : "");
  if (std::any_of(rows.begin(), rows.end(),
                  [](const BenchRow &row) { return row.miniBatches > 1; }))
    out += fmt::format("all rows take the same {} instances, a batch at a time: what a row says is "
                       "the mean of its mini-batches\n",
                       all);
  out += fmt::format(
      "memory of the last row: weights {}, packed {}, rows {}, tables {}, code {}; beyond these "
      "{} (values {}, records {}, scratch {}, stack {}); process {:.0f} MB\n",
      bytesText(static_cast<double>(m.weights.peak)), bytesText(static_cast<double>(m.packed.peak)),
      bytesText(static_cast<double>(m.rows.peak)), bytesText(static_cast<double>(m.tables.peak)),
      bytesText(static_cast<double>(last.codeBytes)),
      bytesText(static_cast<double>(last.otherBytes())),
      bytesText(static_cast<double>(m.heap.peak)), bytesText(static_cast<double>(m.records.peak)),
      bytesText(static_cast<double>(m.scratch.peak)), bytesText(static_cast<double>(m.stack.peak)),
      last.rssMb);
  return out;
}

} // namespace

std::string benchJson(const std::string &model, const std::map<std::string, int64_t> &dims,
                      std::span<const BenchRow> rows) {
  Json array = Json::array();
  for (const BenchRow &row : rows) {
    array.push_back(
        reportJson("bench", 3,
                   {{"model", model},
                    {"engine", engineName(row.what.engine)},
                    {"batch", row.what.batch},
                    {"threads", row.what.threads},
                    {"dims", dims},
                    {"mini_batches", row.miniBatches},
                    {"repetitions", row.repetitions},
                    {"ms", row.ms},
                    {"ms_min", row.msMin},
                    {"cpu_ms", row.cpuMs},
                    {"record_ms", row.recordMs},
                    {"kernel_ms", row.kernelMs},
                    {"in_kernels", row.inKernels},
                    {"gflop", row.gflop},
                    {"gflops", row.gflops},
                    {"peak_gflops", row.peakGflops},
                    {"peak_too_low", row.peakTooLow},
                    {"share_of_peak", row.shareOfPeak},
                    {"records", countJson(row.records)},
                    {"saved_records", countJson(row.saved)},
                    {"launches", countJson(row.launches)},
                    {"record_ns", row.recordNs},
                    {"rows_bytes", row.rowsBytes},
                    {"rss_mb", row.rssMb},
                    {"memory", memoryJson(row)},
                    {"kernels", kernelsJson(row.kernels, row.peakGflops / row.what.threads)},
                    {"policy", rt::policyName(row.what.policy)},
                    {"order_ms", row.orderMs}}));
    if (row.leastLaunches)
      array.back()["least_launches"] = countJson(*row.leastLaunches);
    for (const Against &other : row.against)
      array.back()["against"].push_back({{"what", other.what},
                                         {"median", other.ratio.median},
                                         {"low", other.ratio.low},
                                         {"high", other.ratio.high},
                                         {"pairs", other.ratio.pairs}});
    if (row.what.engine == Engine::Training)
      array.back()["step"] = {{"forward_ms", row.forwardMs},
                              {"backward_ms", row.backwardMs},
                              {"update_ms", row.updateMs},
                              {"forward_ms_min", row.forwardMsMin},
                              {"backward_ms_min", row.backwardMsMin},
                              {"update_ms_min", row.updateMsMin},
                              {"forward_gflop", row.forwardGflop}};
  }
  return jsonText(array);
}

std::string benchTable(std::span<const BenchRow> rows) {
  std::string out = fmt::format(
      "{:<10} {:>6} {:>7} {:>10} {:>10} {:>10} {:>9} {:>9} {:>6} {:>8} {:>6} {:>8} "
      "{:>9} {:>9} {:>9} {:>9}\n",
      "engine", "batch", "threads", "ms", "ms min", "cpu ms", "record ms", "kernel ms", "inside",
      "GFLOP/s", "peak", "speed-up", "records", "saved", "launches", "ns/record");
  for (const BenchRow &row : rows) {
    std::string speedup;
    for (const BenchRow &other : rows)
      if (other.what.engine == Engine::Unbatched && row.what.engine == Engine::Batched &&
          other.what.batch == row.what.batch && other.what.threads == row.what.threads)
        speedup = fmt::format("{:.1f}x", other.ms / row.ms);
    out += fmt::format(
        "{:<10} {:>6} {:>7} {:>10.3f} {:>10.3f} {:>10.3f} {:>9.3f} {:>9.3f} {:>5.1f}% {:>8.1f} "
        "{:>5.1f}% {:>8} {:>9} {:>9} {:>9} {:>9.1f}\n",
        engineName(row.what.engine), row.what.batch, row.what.threads, row.ms, row.msMin, row.cpuMs,
        row.recordMs, row.kernelMs, row.inKernels * 100, row.gflops, row.shareOfPeak * 100, speedup,
        countText(row.records), countText(row.saved), countText(row.launches), row.recordNs);
  }
  return out + lastLines(rows);
}

std::string trainingTable(std::span<const BenchRow> rows) {
  std::string out =
      fmt::format("{:>6} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6} {:>8} {:>6} {:>13} "
                  "{:>8} {:>9}\n",
                  "batch", "threads", "forward ms", "backward", "update", "step", "step min",
                  "step cpu", "inside", "GFLOP/s", "peak", "back/forward", "records", "launches");
  for (const BenchRow &row : rows)
    out += fmt::format(
        "{:>6} {:>7} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>5.1f}% "
        "{:>8.1f} {:>5.1f}% {:>12.2f}x {:>8} {:>9}\n",
        row.what.batch, row.what.threads, row.forwardMs, row.backwardMs, row.updateMs, row.ms,
        row.msMin, row.cpuMs, row.inKernels * 100, row.gflops, row.shareOfPeak * 100,
        row.backwardMsMin / row.forwardMsMin, countText(row.records), countText(row.launches));
  return out + lastLines(rows);
}

std::string againstTable(std::span<const BenchRow> rows) {
  std::string out =
      fmt::format("{:<10} {:>6} {:>7} {:<24} {:>13} {:>20} {:>7}\n", "engine", "batch", "threads",
                  "in f32, or without", "times as long", "95 % of the median", "pairs");
  for (const BenchRow &row : rows)
    for (const auto &[what, ratio] : row.against)
      out += fmt::format("{:<10} {:>6} {:>7} {:<24} {:>13.3f} {:>20} {:>7}\n",
                         engineName(row.what.engine), row.what.batch, row.what.threads, what,
                         ratio.median, fmt::format("{:.3f} to {:.3f}", ratio.low, ratio.high),
                         ratio.pairs);
  return out;
}

std::string policyTable(std::span<const BenchRow> rows) {
  std::string out =
      fmt::format("{:<10} {:>6} {:>7} {:>9} {:>9} {:>9} {:>12} {:>10} {:>10}\n", "policy", "batch",
                  "threads", "launches", "least", "ratio", "ordering ms", "ms", "ms min");
  for (const BenchRow &row : rows) {
    std::string least = "?", ratio = "?";
    if (row.leastLaunches) {
      least = countText(*row.leastLaunches);
      // Of no launches at all there are no fewer.
      ratio = fmt::format("{:.2f}", *row.leastLaunches > 0 ? row.launches / *row.leastLaunches : 0);
    }
    out += fmt::format("{:<10} {:>6} {:>7} {:>9} {:>9} {:>9} {:>12.3f} {:>10.3f} {:>10.3f}\n",
                       rt::policyName(row.what.policy), row.what.batch, row.what.threads,
                       countText(row.launches), least, ratio, row.orderMs, row.ms, row.msMin);
  }
  return out + "least: for each kernel the longest chain of its records, summed; no order needs "
               "fewer launches\n";
}

} // namespace sheaf::driver
