//===- RunReport.cpp - What a mini-batch did ------------------------------===//
#include "compiler/driver/RunReport.h"

#include "compiler/driver/Peak.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace sheaf::driver {

namespace {

/// A launch is said to have few rows when each takes so many times what it takes at once.
constexpr double kFewRowsFactor = 1.5;
/// Of a kernel with a single launch, when it has fewer rows than this.
constexpr int64_t kFewRowsInAll = 8;

double toMs(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

double least(const std::vector<double> &values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

std::string lineOf(const std::string &place) {
  return "line " + place.substr(place.rfind(':') + 1);
}

/// What the repetitions of a mini-batch gave, as far as they had the same schedule.
struct Repetitions {
  std::vector<std::pair<uint32_t, int64_t>> shape; ///< kernel and rows of each launch
  std::vector<std::vector<double>> launchMs;       ///< by launch
  /// Of the shortest.
  double ms = INFINITY, recordMs = 0, orderMs = 0, kernelMs = 0;
  int64_t count = 0;
};

class Reporter {
public:
  Reporter(const CompiledModel &compiled, std::span<const rt::Instance> instances,
           const std::function<void(rt::Session &)> &initialise, const RunReportOptions &options)
      : compiled_(compiled), model_(compiled.model()), instances_(instances), options_(options),
        session_(model_, options.session), trace_(session_.options().threads) {
    initialise(session_);
  }

  RunReport run() {
    PeakProbe probe(compiled_.target(), compiled_.precision());
    Repetitions all;
    for (int64_t i = -2; i < options_.repetitions; ++i) {
      once();
      report_.peakGflops = std::max(report_.peakGflops, probe.measure());
      if (i >= 0)
        take(all);
    }
    describeRun();
    describeLaunches(all);
    describeFlushes();
    describeKernels();
    explainFewRows();
    divideAmongLines();
    return std::move(report_);
  }

private:
  void once() {
    session_.packWeights(); // forgets what was kept
    session_.resetCounters();
    trace_.clear();
    session_.setTrace(&trace_);
    outcomes_ = session_.run(instances_);
    session_.setTrace(nullptr);
  }

  /// The parts of a trace that belong to the mini-batch itself.
  const rt::TracePart &miniBatch() const {
    return *std::find_if(trace_.parts.begin(), trace_.parts.end(), [](const rt::TracePart &part) {
      return part.kind == rt::TracePart::MiniBatch;
    });
  }

  void take(Repetitions &all) {
    const rt::Schedule &schedule = session_.schedule();
    std::vector<std::pair<uint32_t, int64_t>> shape;
    for (const rt::ScheduledBucket &launch : schedule)
      shape.emplace_back(launch.kernel, launch.count);
    if (shape != all.shape) { // a policy on trial, or look-ups that paused
      all = {};
      all.shape = std::move(shape);
      all.launchMs.resize(schedule.size());
    }
    std::vector<double> ms(schedule.size());
    for (const std::vector<rt::TraceLaunch> &thread : trace_.launches)
      for (const rt::TraceLaunch &launch : thread)
        ms[launch.launch] += toMs(launch.span.nanoseconds());
    for (size_t i = 0; i < ms.size(); ++i)
      all.launchMs[i].push_back(ms[i]);
    const rt::Counters &counters = session_.counters();
    ++all.count;
    if (double took = toMs(miniBatch().span.nanoseconds()); took < all.ms) {
      all.ms = took;
      all.recordMs = toMs(counters.recordNanoseconds);
      all.orderMs = toMs(counters.orderNanoseconds);
      all.kernelMs = toMs(counters.flushNanoseconds - counters.orderNanoseconds);
    }
  }

  double sinceBegin(uint64_t time) const { return toMs(time - miniBatch().span.begin); }

  void describeRun() {
    report_.instances = instances_.size();
    for (const rt::Outcome &outcome : outcomes_)
      if (!outcome.ok() && report_.failed++ == 0)
        report_.error = outcome.error->message();
    report_.threads = session_.options().threads;
    report_.policy = rt::policyName(session_.policy());
    const rt::Counters &counters = session_.counters();
    report_.records = counters.records;
    report_.saved = counters.saved;
    report_.waits = counters.waits;
    report_.forked = counters.forked;
    report_.inlined = counters.inlined;
    for (const rt::TraceMemory &sample : trace_.memory)
      if (sample.time >= miniBatch().span.begin)
        report_.memory.push_back({sinceBegin(sample.time), sample});
    report_.memoryUse = session_.memory();
  }

  void describeLaunches(const Repetitions &all) {
    report_.repetitions = all.count;
    report_.ms = all.ms;
    report_.recordMs = all.recordMs;
    report_.orderMs = all.orderMs;
    report_.kernelMs = all.kernelMs;
    const rt::Schedule &schedule = session_.schedule();
    std::vector<uint32_t> flushOf(schedule.size());
    for (size_t f = 0; f < trace_.flushes.size(); ++f)
      for (uint32_t i = trace_.flushes[f].firstLaunch; i < trace_.flushes[f].lastLaunch; ++i)
        flushOf[i] = static_cast<uint32_t>(f);
    uint32_t step = 0;
    for (size_t i = 0; i < schedule.size(); ++i) {
      const rt::ScheduledBucket &bucket = schedule[i];
      if (i > 0 && (flushOf[i] != flushOf[i - 1] || bucket.depth != schedule[i - 1].depth))
        ++step;
      const rt::KernelDesc &kernel = model_.kernels[bucket.kernel];
      LaunchInfo &launch = report_.launches.emplace_back();
      launch.kernel = bucket.kernel;
      launch.step = step;
      launch.flush = flushOf[i];
      // Under another policy depths are numbers of steps, and phases have no part in them.
      launch.phase = kernel.phase;
      launch.depth = session_.policy() == rt::Policy::Depth
                         ? bucket.depth - (kernel.phase << model_.depthBits)
                         : bucket.depth;
      launch.rows = bucket.count;
      launch.ms = least(all.launchMs[i]);
      launch.gflop = rt::sumOverRecords(kernel.flop, kernel.words, bucket) * 1e-9;
      launch.threads = 0;
      launch.startMs = INFINITY;
      report_.phases = std::max(report_.phases, kernel.phase + 1);
    }
    report_.steps = schedule.empty() ? 0 : step + 1;
    for (const std::vector<rt::TraceLaunch> &thread : trace_.launches)
      for (const rt::TraceLaunch &part : thread) {
        LaunchInfo &launch = report_.launches[part.launch];
        launch.startMs = std::min(launch.startMs, sinceBegin(part.span.begin));
        ++launch.threads;
      }
    dependences_ = session_.dependences();
    if (dependences_) {
      report_.leastLaunches = dependences_->leastLaunches;
      findWaits();
    }
  }

  /// Which launch most records of each launch waited for.
  void findWaits() {
    const rt::Schedule &schedule = session_.schedule();
    std::vector<uint32_t> begins{0}; ///< the first record of each launch
    for (const rt::ScheduledBucket &launch : schedule)
      begins.push_back(begins.back() + static_cast<uint32_t>(launch.count));
    auto launchOf = [&](uint32_t record) {
      return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), record) -
                                 begins.begin() - 1);
    };
    for (size_t i = 0; i < schedule.size(); ++i) {
      std::map<size_t, uint64_t> counts;
      for (uint32_t record = begins[i]; record < begins[i + 1]; ++record) {
        uint32_t maker = dependences_->latest[record];
        if (maker != rt::Dependences::kNone)
          ++counts[launchOf(maker)];
      }
      auto most = std::max_element(counts.begin(), counts.end(),
                                   [](auto &a, auto &b) { return a.second < b.second; });
      if (most != counts.end())
        report_.launches[i].waitsFor = static_cast<int64_t>(most->first);
    }
  }

  void describeFlushes() {
    size_t walk = 0;
    for (const rt::TraceFlush &flush : trace_.flushes) {
      FlushInfo &info = report_.flushes.emplace_back();
      info.demanded = flush.demanded;
      info.startMs = sinceBegin(flush.span.begin);
      info.orderMs = toMs(flush.ordered - flush.span.begin);
      info.ms = toMs(flush.span.nanoseconds());
      info.launches = flush.lastLaunch - flush.firstLaunch;
      for (; walk < trace_.walks.size() && trace_.walks[walk].span.end <= flush.span.begin; ++walk)
        if (flush.demanded && trace_.walks[walk].left == rt::TraceWalk::Waits)
          ++info.waits[model_.readPlaces[trace_.walks[walk].place]];
    }
  }

  void describeKernels() {
    KernelStatistics statistics(compiled_);
    statistics.add(session_.schedule());
    report_.kernels = statistics.rows();
    const std::vector<rt::KernelCounters> counted = session_.counters().kernels;
    for (KernelRow &row : report_.kernels) {
      row.saved = counted[row.kernel].saved;
      row.gflop = counted[row.kernel].flop * 1e-9;
      for (const LaunchInfo &launch : report_.launches)
        if (launch.kernel == row.kernel)
          row.ms += launch.ms;
      std::vector<double> atOnce;
      for (int i = 0; i < 5; ++i)
        atOnce.push_back(toMs(session_.timeAtOnce(row.kernel)));
      row.atOnceMs = row.launches == 1 ? row.ms : least(atOnce);
      for (LaunchInfo &launch : report_.launches)
        if (launch.kernel == row.kernel)
          launch.lostMs =
              std::max(0.0, launch.ms - *row.atOnceMs * static_cast<double>(launch.rows) /
                                            static_cast<double>(row.records));
    }
    std::sort(report_.kernels.begin(), report_.kernels.end(),
              [](const KernelRow &a, const KernelRow &b) { return a.ms > b.ms; });
  }

  //===--- Few rows ----------------------------------------------------------===//

  uint32_t familyOf(uint32_t kernel) const {
    return model_.kernels[kernel].family.value_or(kernel);
  }

  FewRows whyFew(const LaunchInfo &launch, const KernelRow &row, uint64_t familyLaunches) const {
    if (row.launches == 1)
      return launch.rows < kFewRowsInAll && report_.instances >= kFewRowsInAll ? FewRows::Total
                                                                               : FewRows::No;
    double atOnce =
        *row.atOnceMs * static_cast<double>(launch.rows) / static_cast<double>(row.records);
    if (launch.ms <= kFewRowsFactor * atOnce)
      return FewRows::No;
    if (dependences_ && dependences_->longestChains[familyOf(launch.kernel)] >= familyLaunches)
      return FewRows::Recursion;
    uint64_t inFlush = 0;
    for (const LaunchInfo &other : report_.launches)
      inFlush += other.kernel == launch.kernel && other.flush == launch.flush;
    return inFlush == 1 && report_.flushes[launch.flush].demanded ? FewRows::Read : FewRows::Depth;
  }

  /// The read that most waited for when a flush began.
  std::string readOf(uint32_t flush) const {
    const std::map<std::string, uint64_t> &waits = report_.flushes[flush].waits;
    auto most = std::max_element(waits.begin(), waits.end(),
                                 [](auto &a, auto &b) { return a.second < b.second; });
    return most == waits.end() ? "" : most->first;
  }

  void explainFewRows() {
    std::map<uint32_t, uint64_t> familyLaunches;
    for (const LaunchInfo &launch : report_.launches)
      ++familyLaunches[familyOf(launch.kernel)];
    for (const KernelRow &row : report_.kernels) {
      // One entry for each reason, in the words of its costliest launch.
      std::map<std::tuple<FewRows, std::string>, FewRowsInfo> reasons;
      std::map<std::tuple<FewRows, std::string>, std::pair<bool, double>> worst;
      for (LaunchInfo &launch : report_.launches) {
        if (launch.kernel != row.kernel)
          continue;
        uint64_t family = familyLaunches[familyOf(row.kernel)];
        launch.why = whyFew(launch, row, family);
        if (launch.why == FewRows::No)
          continue;
        std::string place = placeOfCause(launch);
        FewRowsInfo &info = reasons[{launch.why, place}];
        if (info.launches++ == 0) {
          info.kernel = row.kernel;
          info.why = launch.why;
          info.place = place;
          info.rowsMin = info.rowsMax = launch.rows;
        }
        info.rowsMin = std::min(info.rowsMin, launch.rows);
        info.rowsMax = std::max(info.rowsMax, launch.rows);
        info.ms += launch.ms;
        info.lostMs += launch.lostMs;
        // A launch that waits for something says more than one that has only inputs.
        std::pair<bool, double> telling{launch.waitsFor >= 0, launch.lostMs};
        std::pair<bool, double> &most = worst[{launch.why, place}];
        if (info.text.empty() || telling > most) {
          most = telling;
          info.text = textOf(launch, family);
        }
      }
      for (auto &[key, info] : reasons)
        report_.fewRows.push_back(std::move(info));
    }
    std::sort(report_.fewRows.begin(), report_.fewRows.end(),
              [](const FewRowsInfo &a, const FewRowsInfo &b) { return a.lostMs > b.lostMs; });
  }

  std::string placeOfCause(const LaunchInfo &launch) const {
    if (launch.why == FewRows::Read)
      return readOf(launch.flush);
    if (launch.why == FewRows::Total || launch.waitsFor < 0)
      return compiled_.blocks()[launch.kernel].place;
    return compiled_.blocks()[report_.launches[static_cast<size_t>(launch.waitsFor)].kernel].place;
  }

  std::string textOf(const LaunchInfo &launch, uint64_t familyLaunches) const {
    std::string what = "what was made before";
    if (launch.waitsFor >= 0) {
      const BlockInfo &maker =
          compiled_.blocks()[report_.launches[static_cast<size_t>(launch.waitsFor)].kernel];
      what = fmt::format("what {} made in {}", maker.name, lineOf(maker.place));
    }
    uint32_t chain = dependences_ ? dependences_->longestChains[familyOf(launch.kernel)] : 0;
    std::string read;
    if (report_.flushes[launch.flush].demanded)
      read = lineOf(readOf(launch.flush));
    switch (launch.why) {
    case FewRows::No:
      break;
    case FewRows::Recursion:
      return fmt::format("a recursion: a record waits for {}{}; the longest chain of such records "
                         "is {}, so no order needs fewer launches, and few instances go on so far",
                         what, read.empty() ? "" : " and for the read of " + read, chain);
    case FewRows::Depth:
      return fmt::format("at another depth than others of the kernel: waits for {}; {} launches "
                         "ran where chains of {} allow fewer{}",
                         what, familyLaunches, chain,
                         report_.policy == "depth" ? " (--policy lookahead may find them)" : "");
    case FewRows::Read: {
      uint64_t waited = 0;
      for (const auto &[place, count] : report_.flushes[launch.flush].waits)
        waited += count;
      return fmt::format("the read of {}: {} waited there, and what had been recorded had to run",
                         read, waited);
    }
    case FewRows::Total:
      return "all that the mini-batch has of it, in one launch: more instances a mini-batch would "
             "give it more rows";
    }
    return "";
  }

  void divideAmongLines() {
    std::map<std::string, double> byPlace;
    double sum = 0;
    for (const KernelRow &row : report_.kernels) {
      sum += row.ms;
      for (const LineShare &line : compiled_.blocks()[row.kernel].lines)
        byPlace[line.place] += row.ms * line.share;
    }
    for (const auto &[place, ms] : byPlace)
      report_.lines.push_back({place, ms, sum > 0 ? ms / sum : 0});
  }

  const CompiledModel &compiled_;
  const rt::Model &model_;
  std::span<const rt::Instance> instances_;
  const RunReportOptions &options_;
  rt::Session session_;
  rt::Trace trace_;
  std::span<const rt::Outcome> outcomes_;
  std::optional<rt::Dependences> dependences_;
  RunReport report_;
};

} // namespace

std::string_view fewRowsName(FewRows why) {
  switch (why) {
  case FewRows::No:
    return "no";
  case FewRows::Recursion:
    return "recursion";
  case FewRows::Depth:
    return "depth";
  case FewRows::Read:
    return "read";
  case FewRows::Total:
    return "total";
  }
  return "no";
}

RunReport reportRun(const CompiledModel &model, std::span<const rt::Instance> instances,
                    const std::function<void(rt::Session &)> &initialise,
                    const RunReportOptions &options) {
  return Reporter(model, instances, initialise, options).run();
}

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

namespace {

double percent(double part, double whole) { return whole > 0 ? part / whole * 100 : 0; }

struct MemoryField {
  const char *name;
  uint64_t rt::TraceMemory::*bytes;
};
constexpr MemoryField kMemoryFields[] = {
    {"weights", &rt::TraceMemory::weights}, {"packed", &rt::TraceMemory::packed},
    {"rows", &rt::TraceMemory::rows},       {"tables", &rt::TraceMemory::tables},
    {"heap", &rt::TraceMemory::heap},       {"records", &rt::TraceMemory::records},
    {"scratch", &rt::TraceMemory::scratch}, {"stack", &rt::TraceMemory::stack},
};

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
    if (line.place.substr(0, colon) == source.name())
      text = source.lineText(static_cast<uint32_t>(std::stoul(line.place.substr(colon + 1))));
    text.erase(0, text.find_first_not_of(" \t"));
    out += fmt::format("  {:>5.1f}% {:>9.3f} ms  {:>6}  {}\n", line.share * 100, line.ms,
                       line.place.substr(colon + 1), text);
  }
  return out;
}

} // namespace

std::string runReportText(const CompiledModel &compiled, const RunReport &r,
                          const SourceFile &source) {
  double launches = static_cast<double>(r.launches.size());
  double other = r.ms - r.recordMs - r.orderMs - r.kernelMs;
  std::string out = fmt::format(
      "\nthe mini-batch: {} instances, {} thread{}, policy {}; the shortest of {} repetitions, "
      "each "
      "with nothing kept from before\n"
      "  {:.3f} ms: recording {:.3f} ({:.0f}%), ordering {:.3f} ({:.0f}%), kernels {:.3f} "
      "({:.0f}%), other {:.3f} ({:.0f}%)\n",
      r.instances, r.threads, r.threads == 1 ? "" : "s", r.policy, r.repetitions, r.ms, r.recordMs,
      percent(r.recordMs, r.ms), r.orderMs, percent(r.orderMs, r.ms), r.kernelMs,
      percent(r.kernelMs, r.ms), other, percent(other, r.ms));
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
  if (r.forked || r.inlined)
    out += fmt::format("  {} calls ran beside the one that made them, {} found no stack\n",
                       r.forked, r.inlined);

  out += fmt::format("\nkernels of the mini-batch, rows a launch; the peak of a core is {:.0f} "
                     "GFLOP/s\n",
                     r.peakGflops);
  out += kernelTable(r.kernels, r.peakGflops);

  double lost = 0, inside = 0;
  for (const FewRowsInfo &few : r.fewRows)
    lost += few.lostMs;
  for (const KernelRow &row : r.kernels)
    inside += row.ms;
  out += fmt::format("\nwhere rows were few: {:.3f} ms ({:.0f}% of kernel time) beyond what the "
                     "same rows take at once\n",
                     lost, percent(lost, inside));
  if (r.fewRows.empty())
    out += "  nowhere\n";
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

  out += "\nkernel time by line\n" + lineTable(r, source);

  out += "\nmemory over time\n";
  out += fmt::format("  {:>9}", "ms");
  for (const MemoryField &field : kMemoryFields)
    out += fmt::format(" {:>9}", field.name);
  out += '\n';
  for (const MemorySample *sample : thinned(r.memory, 12)) {
    out += fmt::format("  {:>9.3f}", sample->ms);
    for (const MemoryField &field : kMemoryFields)
      out += fmt::format(" {:>9}", bytesText(static_cast<double>(sample->bytes.*field.bytes)));
    out += '\n';
  }
  return out;
}

//===----------------------------------------------------------------------===//
// For machines
//===----------------------------------------------------------------------===//

nlohmann::ordered_json runReportJson(const RunReport &r) {
  using Json = nlohmann::ordered_json;
  Json launches = Json::array(), flushes = Json::array(), few = Json::array(),
       lines = Json::array(), memory = Json::array();
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
  for (const LineInfo &line : r.lines)
    lines.push_back({{"place", line.place}, {"ms", line.ms}, {"share", line.share}});
  for (const MemorySample &sample : r.memory) {
    Json at = {{"ms", sample.ms}};
    for (const MemoryField &field : kMemoryFields)
      at[field.name] = sample.bytes.*field.bytes;
    memory.push_back(std::move(at));
  }
  Json json = {{"instances", r.instances},
               {"failed", r.failed},
               {"threads", r.threads},
               {"policy", r.policy},
               {"repetitions", r.repetitions},
               {"peak_gflops", r.peakGflops},
               {"ms", r.ms},
               {"record_ms", r.recordMs},
               {"order_ms", r.orderMs},
               {"kernel_ms", r.kernelMs},
               {"records", r.records},
               {"saved_records", r.saved},
               {"waits", r.waits},
               {"forked", r.forked},
               {"inlined", r.inlined},
               {"phases", r.phases},
               {"steps", r.steps},
               {"kernels", kernelsJson(r.kernels, r.peakGflops)},
               {"launches", launches},
               {"flushes", flushes},
               {"few_rows", few},
               {"lines", lines},
               {"memory", memory}};
  if (r.leastLaunches)
    json["least_launches"] = *r.leastLaunches;
  if (r.failed)
    json["error"] = r.error;
  return json;
}

} // namespace sheaf::driver
