//===- LowShares.cpp - Why kernels are far from the peak ------------------===//
#include "compiler/report/LowShares.h"

#include "compiler/measure/Peak.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf::driver {

namespace {

/// Of the peak: a kernel with less has a low share, which is explained.
constexpr double kLowShare = 0.5;
/// Of the time, or of what is done in it: what costs less is no reason that is told.
constexpr double kToldPart = 0.25;
/// Multiply-adds: beside fewer, starting and storing an element counts.
constexpr double kShortSum = 8;
/// Loads for each multiply-add: where a core does as many of both, more leave no room for others.
constexpr double kManyLoads = 0.75;
/// A launch: beside less, calling the kernel and reading its records counts.
constexpr double kShortLaunchMs = 2e-3;

using Reasons = std::vector<std::pair<LowShare, std::string>>;

/// What was measured of a kernel's launches.
void addMeasured(Reasons &reasons, const KernelRow &row, double share, double againMs,
                 double ofWeights) {
  auto launches = static_cast<double>(row.launches);
  if (double atOnce = share * row.ms / *row.atOnceMs; *row.atOnceMs < (1 - kToldPart) * row.ms)
    reasons.emplace_back(LowShare::Rows, fmt::format("few rows: with all of them at once it has "
                                                     "{:.0f}% of the peak",
                                                     atOnce * 100));
  if (row.ms < kShortLaunchMs * launches)
    reasons.emplace_back(LowShare::Short, fmt::format("short launches: one takes {:.1f} us, of "
                                                      "which starting it is a good part",
                                                      row.ms / launches * 1e3));
  if (againMs < (1 - kToldPart) * row.ms)
    reasons.emplace_back(LowShare::Cold,
                         fmt::format("cold caches: its launches alone, with no other kernel "
                                     "between, take {:.0f}% of its time",
                                     againMs / row.ms * 100));
  if (!row.bytes)
    return;
  if (double copy = copyMs(*row.bytes / launches) * launches / row.ms; copy > kToldPart)
    reasons.emplace_back(
        LowShare::Memory,
        fmt::format("memory: a launch moves {}, {:.0f}% of it weights, for {} rows; copying as "
                    "much takes {:.0f}% of its time",
                    bytesText(*row.bytes / launches), ofWeights * 100, row.rowsMedian, copy * 100));
}

/// What follows from its plan.
void addPlanned(Reasons &reasons, const KernelRow &row, const BlockInfo &block) {
  if (const std::optional<kernels::ProductForm> &form = block.productForm) {
    if (static_cast<double>(row.rowsMedian) < (1 - kToldPart) * form->tileRows)
      reasons.emplace_back(
          LowShare::Tiles,
          fmt::format("too few rows for its tiles: half of its launches have {} or less, where a "
                      "tile takes {:.0f}, and each weight that is loaded is for so few",
                      row.rowsMedian, form->tileRows));
    if (form->sumLength < kShortSum)
      reasons.emplace_back(LowShare::Sums, fmt::format("short sums: {:.1f} multiply-adds for each "
                                                       "element that its products make",
                                                       form->sumLength));
    if (form->lanes < 1 - kToldPart)
      reasons.emplace_back(LowShare::Lanes, fmt::format("narrow products: at most {:.0f}% of the "
                                                        "lanes of their vectors hold elements",
                                                        form->lanes * 100));
    if (form->loads > kManyLoads)
      reasons.emplace_back(LowShare::Loads, fmt::format("thin tiles: {:.1f} loads of rows and "
                                                        "weights for each multiply-add of vectors",
                                                        form->loads));
    if (form->unpacked > kToldPart)
      reasons.emplace_back(LowShare::Matrices,
                           fmt::format("operands of the instance: {:.0f}% of the multiply-adds "
                                       "take them from tensors that are no packed weights",
                                       form->unpacked * 100));
    if (form->alongRows > kToldPart)
      reasons.emplace_back(LowShare::Along,
                           fmt::format("matrices by vectors: {:.0f}% of the multiply-adds sum "
                                       "along rows, and load both their factors",
                                       form->alongRows * 100));
  }
  if (block.productWork < 1 - kToldPart)
    reasons.emplace_back(LowShare::Other, fmt::format("other operators: products are an estimated "
                                                      "{:.0f}% of its work",
                                                      block.productWork * 100));
}

/// Of the kernel's launches alone, each the shortest of all repetitions.
double againMs(rt::Session &session, uint32_t kernel, int64_t repetitions) {
  std::vector<uint64_t> shortest;
  for (int64_t i = 0; i < repetitions; ++i) {
    std::vector<uint64_t> now = session.timeAgain(kernel);
    shortest.resize(now.size(), UINT64_MAX);
    for (size_t launch = 0; launch < now.size(); ++launch)
      shortest[launch] = std::min(shortest[launch], now[launch]);
  }
  double sum = 0;
  for (uint64_t nanoseconds : shortest)
    sum += static_cast<double>(nanoseconds) * 1e-6;
  return sum;
}

} // namespace

std::vector<LowShareInfo> explainLowShares(const CompiledModel &compiled, rt::Session &session,
                                           const RunReport &report, int64_t repetitions) {
  const rt::Model &model = compiled.model();
  std::vector<LowShareInfo> all;
  for (const KernelRow &row : report.kernels) {
    double share = row.shareOfPeak(report.peakGflops);
    if (row.gflop <= 0 || share >= kLowShare)
      continue;
    LowShareInfo info{row.kernel, share, {}};
    double ofWeights =
        row.bytes ? weightBytes(model, row.kernel) * static_cast<double>(row.launches) / *row.bytes
                  : 0;
    addMeasured(info.reasons, row, share, againMs(session, row.kernel, repetitions), ofWeights);
    addPlanned(info.reasons, row, compiled.blocks()[row.kernel]);
    if (info.reasons.empty())
      info.reasons.emplace_back(
          LowShare::Code, "its own code: it has no more with all its rows at once, nor with what "
                          "it reads in the caches, and its tiles are full (--emit asm shows it)");
    all.push_back(std::move(info));
  }
  return all;
}

std::string_view lowShareName(LowShare why) {
  switch (why) {
  case LowShare::Rows:
    return "rows";
  case LowShare::Tiles:
    return "tiles";
  case LowShare::Short:
    return "short";
  case LowShare::Cold:
    return "cold";
  case LowShare::Memory:
    return "memory";
  case LowShare::Sums:
    return "sums";
  case LowShare::Lanes:
    return "lanes";
  case LowShare::Loads:
    return "loads";
  case LowShare::Matrices:
    return "matrices";
  case LowShare::Along:
    return "along";
  case LowShare::Other:
    return "other";
  case LowShare::Code:
    return "code";
  }
  return "";
}

} // namespace sheaf::driver
