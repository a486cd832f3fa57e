//===- PrintRunReport.cpp - A mini-batch for people and machines ----------===//
#include "compiler/report/RunReport.h"
#include "compiler/report/ShareTree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace sheaf::driver {

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

namespace {

double percent(double part, double whole) { return whole > 0 ? part / whole * 100 : 0; }

/// At most `count` samples, the first and the last among them.
std::vector<const MemorySample *> thinned(const std::vector<MemorySample> &samples, size_t count) {
  std::vector<const MemorySample *> result;
  size_t n = samples.size();
  for (size_t i = 0; i < std::min(n, count); ++i)
    result.push_back(&samples[n <= count ? i : i * (n - 1) / (count - 1)]);
  return result;
}

std::string lineTable(const RunReport &report, const SourceFile &source) {
  std::string out;
  for (const LineInfo &line : report.lines) {
    if (line.share < 0.0005)
      continue;
    size_t colon = line.place.rfind(':');
    std::string text;
    std::string where = line.place.substr(colon + 1);
    if (const SourceText *file = source.find(line.place.substr(0, colon))) {
      text = file->lineText(static_cast<uint32_t>(std::stoul(where)));
      text.erase(0, text.find_first_not_of(" \t"));
      if (file != &source.files().front())
        text = fmt::format("{}  [{}]", text, file->name());
    }
    out +=
        fmt::format("  {:>5.1f}% {:>9.3f} ms  {:>6}  {}\n", line.share * 100, line.ms, where, text);
  }
  return out;
}

std::string lowShareText(const CompiledModel &compiled, const RunReport &report) {
  std::string out;
  for (const LowShareInfo &low : report.lowShares) {
    const BlockInfo &block = compiled.blocks()[low.kernel];
    out += fmt::format("  {} ({}): {:.1f}%\n", block.name, block.place, low.share * 100);
    for (const auto &[why, text] : low.reasons)
      out += fmt::format("    {}\n", text);
  }
  return out.empty() ? out : "\nkernels with products below half of the peak, and why\n" + out;
}

const char *layerName(const std::string &layer) {
  return layer.empty() ? "without a layer" : layer.c_str();
}

std::string layerTable(const RunReport &report) {
  std::vector<Spent> spent;
  for (const LayerInfo &layer : report.layers) {
    std::vector<std::string> way;
    std::istringstream parts(layerName(layer.layer));
    for (std::string part; std::getline(parts, part, '.');)
      way.push_back(part);
    spent.emplace_back(std::move(way), layer.ms);
  }
  return shareTree(spent, ".", /*fromRoot=*/true);
}

std::string callsTable(const RunReport &report) {
  std::vector<Spent> spent;
  for (const CallsInfo &calls : report.calls)
    spent.emplace_back(calls.calls.empty() ? std::vector<std::string>{"the runtime"} : calls.calls,
                       calls.ms);
  return shareTree(spent, " > ", /*fromRoot=*/false);
}

double insideKernels(const RunReport &report) {
  double ms = 0;
  for (const KernelRow &row : report.kernels)
    ms += row.ms;
  return ms;
}

double lostToFewRows(const RunReport &report) {
  double ms = 0;
  for (const FewRowsInfo &few : report.fewRows)
    ms += few.lostMs;
  return ms;
}

/// What the rest says at length.
std::string summary(const CompiledModel &compiled, const RunReport &r) {
  double inside = insideKernels(r), lost = lostToFewRows(r), gflop = 0;
  for (const KernelRow &row : r.kernels)
    gflop += row.gflop;
  std::string out = fmt::format(
      "summary: {} instances in {:.3f} ms, {:.0f} a second; kernels {:.0f}% of it, at {:.0f}% of "
      "the peak\n",
      r.instances, r.ms, r.ms > 0 ? static_cast<double>(r.instances) / r.ms * 1e3 : 0,
      percent(r.kernelMs, r.ms), percent(gflop, r.peakGflops * inside * 1e-3));
  std::vector<std::string> most;
  for (size_t i = 0; i < std::min<size_t>(3, r.layers.size()); ++i)
    most.push_back(
        fmt::format("{} {:.0f}%", layerName(r.layers[i].layer), r.layers[i].share * 100));
  if (!most.empty())
    out += fmt::format("  most of the kernels' time: {}\n", fmt::join(most, ", "));
  constexpr double told = 1; // percent
  if (percent(lost, inside) >= told)
    out +=
        fmt::format("  {:.0f}% of it is lost to few rows, most in {}: {}\n", percent(lost, inside),
                    compiled.blocks()[r.fewRows[0].kernel].name, fewRowsName(r.fewRows[0].why));
  double low = 0;
  for (const KernelRow &row : r.kernels)
    for (const LowShareInfo &info : r.lowShares)
      low += info.kernel == row.kernel ? row.ms : 0;
  if (percent(low, inside) >= told) {
    const LowShareInfo &first = r.lowShares[0];
    std::vector<std::string_view> why;
    for (const auto &[reason, text] : first.reasons)
      why.push_back(std::string_view(text).substr(0, text.find(':')));
    out += fmt::format("  {:.0f}% of it is in kernels below half of the peak; {} has {:.0f}%: {}\n",
                       percent(low, inside), compiled.blocks()[first.kernel].name,
                       first.share * 100, fmt::join(why, ", "));
  }
  if (r.failed)
    out += fmt::format("  {} instances failed\n", r.failed);
  return out;
}

} // namespace

std::string runReportText(const CompiledModel &compiled, const RunReport &r,
                          const SourceFile &source) {
  double launches = static_cast<double>(r.launches.size());
  double other = r.ms - r.recordMs - r.orderMs - r.kernelMs;
  std::string out =
      summary(compiled, r) +
      fmt::format(
          "\nthe mini-batch: {} instances, {} thread{}, policy {}; the shortest of {} "
          "repetitions{}, each with nothing kept from before\n"
          "  {:.3f} ms, {:.3f} of processor time: recording {:.3f} ({:.0f}%), ordering "
          "{:.3f} ({:.0f}%), kernels {:.3f} ({:.0f}%), other {:.3f} ({:.0f}%)\n",
          r.instances, r.threads, r.threads == 1 ? "" : "s", r.policy, r.repetitions,
          r.otherRepetitions ? fmt::format(" with this schedule, {} had others", r.otherRepetitions)
                             : "",
          r.ms, r.cpuMs, r.recordMs, percent(r.recordMs, r.ms), r.orderMs, percent(r.orderMs, r.ms),
          r.kernelMs, percent(r.kernelMs, r.ms), other, percent(other, r.ms));
  if (r.failed)
    out += fmt::format("  {} instances failed, the first: {}\n", r.failed, r.error);
  out += fmt::format(
      "  {} records, {} more saved, being identical to others; {} launches of {:.1f} rows on "
      "average{}\n",
      r.records, r.saved, r.launches.size(),
      static_cast<double>(r.records) / std::max(1.0, launches),
      r.leastLaunches ? fmt::format("; no order needs fewer than {}", *r.leastLaunches) : "");
  uint64_t demanded = 0;
  std::map<std::string, uint64_t> waits;
  for (const FlushInfo &flush : r.flushes) {
    demanded += flush.demanded;
    for (const auto &[place, count] : flush.waits)
      waits[place] += count;
  }
  out += fmt::format("  {} steps in {} phase{} and {} flush{}", r.steps, r.phases,
                     r.phases == 1 ? "" : "s", r.flushes.size(), r.flushes.size() == 1 ? "" : "es");
  if (demanded)
    out += fmt::format(", {} of them because instances waited", demanded);
  out += '\n';
  for (const auto &[place, count] : waits)
    out += fmt::format("    {}: {} waits\n", place, count);
  if (r.forked || r.inPlace || r.inlined)
    out += fmt::format("  {} calls ran beside the one that made them, {} in place since enough "
                       "waited, {} found no stack\n",
                       r.forked, r.inPlace, r.inlined);

  out += "\nkernel time by layer, each kernel's divided by an estimate of its operators' work\n" +
         layerTable(r);
  out += "\nkernel time by calls\n" + callsTable(r);

  out += fmt::format("\nkernels of the mini-batch, rows a launch; the peak of a core is {:.0f} "
                     "GFLOP/s{}\n",
                     r.peakGflops, r.peakTooLow ? kPeakTooLow : "");
  out += kernelTable(r.kernels, r.peakGflops);
  out += lowShareText(compiled, r);

  double lost = lostToFewRows(r), inside = insideKernels(r);
  out += fmt::format("\nwhere rows were few: {:.3f} ms ({:.0f}% of kernel time) beyond what the "
                     "same rows take at once\n",
                     lost, percent(lost, inside));
  if (r.fewRows.empty())
    out += "  nowhere\n";
  else if (r.inlined)
    out += fmt::format("  {} calls found no stack to wait on beside others: with more (--fibers) "
                       "more rows may come together\n",
                       r.inlined);
  constexpr size_t most = 12;
  for (size_t i = 0; i < std::min(most, r.fewRows.size()); ++i) {
    const FewRowsInfo &few = r.fewRows[i];
    const BlockInfo &block = compiled.blocks()[few.kernel];
    std::string rows = few.rowsMax == 1 ? "1 row"
                       : few.rowsMin == few.rowsMax
                           ? fmt::format("{} rows", few.rowsMax)
                           : fmt::format("{} to {} rows", few.rowsMin, few.rowsMax);
    out += fmt::format("  {} ({}): {} launch{} of {}, {:.3f} ms, {:.3f} lost\n", block.name,
                       block.place, few.launches, few.launches == 1 ? "" : "es", rows, few.ms,
                       few.lostMs);
    out += fmt::format("    {}\n", few.text);
  }
  if (r.fewRows.size() > most)
    out += fmt::format("  and {} more\n", r.fewRows.size() - most);

  out += "\nkernel time by line, each kernel's divided by an estimate of its lines' work\n" +
         lineTable(r, source);

  out += "\nmemory over time\n";
  out += fmt::format("  {:>9}", "ms");
  for (const rt::NamedMemoryKind &kind : rt::kMemoryKinds)
    out += fmt::format(" {:>9}", kind.name);
  out += '\n';
  for (const MemorySample *sample : thinned(r.memory, 12)) {
    out += fmt::format("  {:>9.3f}", sample->ms);
    for (uint64_t bytes : sample->held.bytes)
      out += fmt::format(" {:>9}", bytesText(static_cast<double>(bytes)));
    out += '\n';
  }
  return out + "\n" + memoryReportText(compiled, r.rows);
}

//===----------------------------------------------------------------------===//
// For machines
//===----------------------------------------------------------------------===//

nlohmann::ordered_json runReportJson(const CompiledModel &compiled, const RunReport &r) {
  using Json = nlohmann::ordered_json;
  Json launches = Json::array(), flushes = Json::array(), few = Json::array(), low = Json::array(),
       lines = Json::array(), layers = Json::array(), calls = Json::array(), memory = Json::array();
  for (const LaunchInfo &launch : r.launches) {
    launches.push_back({{"kernel", launch.kernel},
                        {"step", launch.step},
                        {"flush", launch.flush},
                        {"phase", launch.phase},
                        {"depth", launch.depth},
                        {"rows", launch.rows},
                        {"start_ms", launch.startMs},
                        {"ms", launch.ms},
                        {"threads", launch.threads},
                        {"gflop", launch.gflop},
                        {"lost_ms", launch.lostMs},
                        {"why_few", fewRowsName(launch.why)}});
    if (launch.waitsFor >= 0)
      launches.back()["waits_for"] = launch.waitsFor;
  }
  for (const FlushInfo &flush : r.flushes)
    flushes.push_back({{"demanded", flush.demanded},
                       {"start_ms", flush.startMs},
                       {"order_ms", flush.orderMs},
                       {"ms", flush.ms},
                       {"launches", flush.launches},
                       {"waits", flush.waits}});
  for (const FewRowsInfo &info : r.fewRows)
    few.push_back({{"kernel", info.kernel},
                   {"why", fewRowsName(info.why)},
                   {"place", info.place},
                   {"text", info.text},
                   {"launches", info.launches},
                   {"rows_min", info.rowsMin},
                   {"rows_max", info.rowsMax},
                   {"ms", info.ms},
                   {"lost_ms", info.lostMs}});
  for (const LowShareInfo &info : r.lowShares) {
    Json reasons = Json::array();
    for (const auto &[why, text] : info.reasons)
      reasons.push_back({{"why", lowShareName(why)}, {"text", text}});
    low.push_back({{"kernel", info.kernel}, {"share_of_peak", info.share}, {"reasons", reasons}});
  }
  for (const LineInfo &line : r.lines)
    lines.push_back({{"place", line.place}, {"ms", line.ms}, {"share", line.share}});
  for (const LayerInfo &layer : r.layers)
    layers.push_back({{"layer", layer.layer}, {"ms", layer.ms}, {"share", layer.share}});
  for (const CallsInfo &info : r.calls)
    calls.push_back({{"calls", info.calls}, {"ms", info.ms}, {"share", info.share}});
  for (const MemorySample &sample : r.memory) {
    Json at = {{"ms", sample.ms}};
    for (size_t i = 0; i < std::size(rt::kMemoryKinds); ++i)
      at[rt::kMemoryKinds[i].name] = sample.held.bytes[i];
    memory.push_back(std::move(at));
  }
  Json json = {{"instances", r.instances},
               {"failed", r.failed},
               {"threads", r.threads},
               {"policy", r.policy},
               {"repetitions", r.repetitions},
               {"other_repetitions", r.otherRepetitions},
               {"peak_gflops", r.peakGflops},
               {"peak_too_low", r.peakTooLow},
               {"ms", r.ms},
               {"cpu_ms", r.cpuMs},
               {"record_ms", r.recordMs},
               {"order_ms", r.orderMs},
               {"kernel_ms", r.kernelMs},
               {"records", r.records},
               {"saved_records", r.saved},
               {"waits", r.waits},
               {"forked", r.forked},
               {"in_place", r.inPlace},
               {"inlined", r.inlined},
               {"phases", r.phases},
               {"steps", r.steps},
               {"kernels", kernelsJson(r.kernels, r.peakGflops)},
               {"launches", launches},
               {"flushes", flushes},
               {"few_rows", few},
               {"low_shares", low},
               {"lines", lines},
               {"layers", layers},
               {"calls", calls},
               {"memory", memory},
               {"rows", memoryReportJson(compiled, r.rows)}};
  if (r.leastLaunches)
    json["least_launches"] = *r.leastLaunches;
  if (r.failed)
    json["error"] = r.error;
  return json;
}

} // namespace sheaf::driver
