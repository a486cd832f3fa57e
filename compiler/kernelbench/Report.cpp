//===- Report.cpp - What single kernels reached ---------------------------===//
#include "compiler/kernelbench/KernelBench.h"
#include "compiler/measure/KernelTable.h"
#include "compiler/report/ReportJson.h"
#include "compiler/target/Target.h"
#include "compiler/vendor/Libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sheaf::kernelbench {

std::string librariesText(const Options &options) {
  if (!options.compares())
    return "libraries are left out: they compute in f32 and for this machine\n";
  std::string text;
  for (const vendor::LoadedLibrary &library : vendor::loadedLibraries())
    text += library.table
                ? fmt::format("{} {}\n", library.known.name, library.table->version)
                : fmt::format("{} is left out: {}\n", library.known.name, library.problem);
  return text;
}

std::string headerText(const PartInfo &part) {
  return fmt::format("{}: {}, one thread\n{:<16} {:>5} {:>5} {:>6} {:>8}{}  others\n", part.title,
                     part.unit, "", "K", "N", "rows", "sheaf", part.ofProducts ? "   peak" : "");
}

std::string lineText(const Line &line) {
  std::string text = fmt::format("{:<16} {:>5} {:>5} {:>6} {:>8.1f}", line.what,
                                 line.k ? std::to_string(line.k) : "", line.n, line.rows, line.own);
  if (line.peak > 0)
    text += fmt::format(" {:>5.0f}%{}", 100 * line.own / line.peak,
                        line.own > line.peak ? driver::kPeakTooLow : "");
  for (const Line::Other &other : line.others)
    text += fmt::format("  {} {:.1f}", other.name, other.speed);
  if (std::optional<driver::Ratio> ratio = line.ratio())
    text +=
        fmt::format("  ratio {:.2f} ({:.2f} to {:.2f})", ratio->median, ratio->low, ratio->high);
  if (line.stream)
    text += fmt::format("  weights read at {:.0f}% of a loop of loads", 100 * *line.stream);
  return text + "\n";
}

std::string summaryText(const std::vector<Line> &lines, Part part) {
  double logs = 0, least = 1e9;
  size_t count = 0;
  for (const Line &line : lines)
    if (auto ratio = line.ratio(); ratio && line.counts && line.part == part) {
      logs += std::log(ratio->median);
      least = std::min(least, ratio->median);
      ++count;
    }
  if (!count)
    return "";
  return fmt::format("over the best of the others: geometric mean {:.2f}, least {:.2f}, of {}\n",
                     std::exp(logs / static_cast<double>(count)), least, count);
}

std::string json(const Options &options, const std::vector<Line> &lines) {
  using driver::Json;
  Json libraries = Json::array(), all = Json::array();
  for (const vendor::LoadedLibrary &library : vendor::loadedLibraries())
    if (!options.compares())
      libraries.push_back(
          {{"name", library.known.name}, {"problem", "it computes in f32 and for this machine"}});
    else if (library.table)
      libraries.push_back({{"name", library.known.name}, {"version", library.table->version}});
    else
      libraries.push_back({{"name", library.known.name}, {"problem", library.problem}});
  for (const Line &line : lines) {
    const PartInfo &part = infoOf(line.part);
    Json json = {{"part", part.name}, {"what", line.what}, {"unit", part.unit}};
    if (line.k)
      json["k"] = line.k;
    json["n"] = line.n;
    json["rows"] = line.rows;
    json["sheaf"] = line.own;
    if (line.peak > 0)
      json["peak"] = line.peak;
    if (line.peak > 0 && line.own > line.peak)
      json["peak_too_low"] = true;
    json["others"] = Json::object();
    for (const Line::Other &other : line.others)
      json["others"][other.name] = other.speed;
    if (std::optional<driver::Ratio> ratio = line.ratio())
      json["ratio"] = {{"median", ratio->median}, {"low", ratio->low}, {"high", ratio->high}};
    if (line.stream)
      json["weights_over_loads"] = *line.stream;
    all.push_back(std::move(json));
  }
  return driver::jsonText(driver::reportJson(
      "bench-kernels", 2,
      {{"cpu", target::detect(options.targetCpu).cpu},
       {"precision", options.precision == driver::Precision::Bf16 ? "bf16" : "f32"},
       {"repetitions", options.repetitions},
       {"libraries", std::move(libraries)},
       {"lines", std::move(all)}}));
}

} // namespace sheaf::kernelbench
