//===- RunReport.cpp - What a mini-batch did ------------------------------===//
#include "compiler/report/RunReport.h"

#include "compiler/driver/Sites.h"
#include "compiler/measure/Peak.h"
#include "compiler/measure/Timing.h"
#include "compiler/report/LowShares.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace sheaf::driver {

namespace {

/// A launch is said to have few rows when each takes so many times what it takes at once.
constexpr double kFewRowsFactor = 1.5;
/// Of a kernel with a single launch, when it has fewer rows than this.
constexpr int64_t kFewRowsInAll = 8;
/// More rows than these win nothing. "At once" is in launches of as many, or of as many as the
/// largest launch has: of repetitions of one thing the shortest is the less disturbed the shorter
/// it is, so what is compared must be alike.
constexpr int64_t kManyRows = 512;

double toMs(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

double leastOf(const std::vector<double> &values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

/// Places file by file, by the numbers of their lines; those that are not known come first.
struct InSourceOrder {
  static std::pair<std::string_view, uint64_t> fileAndLine(std::string_view place) {
    size_t colon = place.rfind(':');
    uint64_t line = 0;
    if (colon == std::string_view::npos)
      return {"", line};
    std::from_chars(place.data() + colon + 1, place.data() + place.size(), line);
    return {place.substr(0, colon), line};
  }
  bool operator()(const std::string &a, const std::string &b) const {
    return fileAndLine(a) < fileAndLine(b);
  }
};

/// Kernel and rows of each launch.
using Shape = std::vector<std::pair<uint32_t, int64_t>>;

/// What the repetitions of a mini-batch gave that had the same schedule.
struct Repetitions {
  explicit Repetitions(unsigned threads) : shortest(threads) {}

  std::vector<std::vector<double>> launchMs; ///< by launch
  int64_t count = 0;
  // Of the shortest.
  rt::Trace shortest;
  double ms = INFINITY, cpuMs = 0, recordMs = 0, orderMs = 0, kernelMs = 0;
};

class Reporter {
public:
  Reporter(const CompiledModel &compiled, std::span<const rt::Instance> instances,
           const std::function<void(rt::Session &)> &initialise, const RunReportOptions &options)
      : compiled_(compiled), model_(compiled.model()), instances_(instances), options_(options),
        session_(model_, options.session), trace_(session_.options().threads) {
    report_.threads = session_.options().threads;
    initialise(session_);
  }

  RunReport run() {
    report_.rows = reportMemory(compiled_, session_, instances_);
    PeakProbe probe(compiled_.target(), compiled_.precision());
    for (int64_t i = -2; i < options_.repetitions; ++i) {
      once();
      report_.peakGflops = std::max(report_.peakGflops, probe.measure());
      if (i >= 0)
        take();
    }
    choose();
    describeRun();
    describeLaunches();
    describeFlushes();
    describeKernels();
    probeFurther(probe);
    explainFewRows();
    report_.lowShares = explainLowShares(compiled_, session_, report_, options_.repetitions);
    divide();
    return std::move(report_);
  }

private:
  void once() {
    session_.packWeights(); // forgets what was kept
    session_.resetCounters();
    trace_.clear();
    session_.setTrace(&trace_);
    double cpu = processorSeconds();
    outcomes_ = session_.run(instances_);
    cpuMs_ = (processorSeconds() - cpu) * 1e3;
    session_.setTrace(nullptr);
  }

  /// The part of a trace that is the mini-batch itself.
  static const rt::TracePart &miniBatch(const rt::Trace &trace) {
    return *std::find_if(trace.parts.begin(), trace.parts.end(), [](const rt::TracePart &part) {
      return part.kind == rt::TracePart::MiniBatch;
    });
  }

  Shape shapeNow() const {
    Shape shape;
    for (const rt::ScheduledBucket &launch : session_.schedule())
      shape.emplace_back(launch.kernel, launch.count);
    return shape;
  }

  void take() {
    const rt::Schedule &schedule = session_.schedule();
    // Others come of a policy on trial, or of look-ups that paused.
    Repetitions &all = repetitions_.try_emplace(shapeNow(), report_.threads).first->second;
    std::vector<double> ms(schedule.size());
    for (const std::vector<rt::TraceLaunch> &thread : trace_.launches)
      for (const rt::TraceLaunch &launch : thread)
        ms[launch.launch] += toMs(launch.span.nanoseconds());
    all.launchMs.resize(ms.size());
    for (size_t i = 0; i < ms.size(); ++i)
      all.launchMs[i].push_back(ms[i]);
    const rt::Counters &counters = session_.counters();
    ++all.count;
    if (double took = toMs(miniBatch(trace_).span.nanoseconds()); took < all.ms) {
      all.ms = took;
      all.cpuMs = cpuMs_;
      std::swap(all.shortest, trace_); // the next repetition clears its own
      all.recordMs = toMs(counters.recordNanoseconds);
      all.orderMs = toMs(counters.orderNanoseconds);
      all.kernelMs = toMs(counters.flushNanoseconds - counters.orderNanoseconds);
    }
  }

  /// Tells of the schedule that occurred most often: the session has to have run it last.
  void choose() {
    constexpr int most = 64;
    auto isWorse = [](const auto &a, const auto &b) {
      return std::pair(a.second.count, -a.second.ms) < std::pair(b.second.count, -b.second.ms);
    };
    const Shape &wanted =
        std::max_element(repetitions_.begin(), repetitions_.end(), isWorse)->first;
    for (int i = 0; i < most && shapeNow() != wanted; ++i) {
      once();
      take();
    }
    chosen_ = &repetitions_.at(shapeNow());
    report_.repetitions = chosen_->count;
    for (const auto &[shape, some] : repetitions_)
      report_.otherRepetitions += some.count;
    report_.otherRepetitions -= chosen_->count;
  }

  double sinceBegin(uint64_t time) const {
    return toMs(time - miniBatch(chosen_->shortest).span.begin);
  }

  void describeRun() {
    report_.instances = instances_.size();
    for (const rt::Outcome &outcome : outcomes_)
      if (!outcome.ok() && report_.failed++ == 0)
        report_.error = outcome.error->message();
    report_.policy = rt::policyName(session_.policy());
    const rt::Counters &counters = session_.counters();
    report_.records = counters.records;
    report_.saved = counters.saved;
    report_.waits = counters.waits;
    report_.forked = counters.forked;
    report_.inPlace = counters.inPlace;
    report_.inlined = counters.inlined;
    for (const rt::TraceMemory &sample : chosen_->shortest.memory)
      if (sample.time >= miniBatch(chosen_->shortest).span.begin)
        report_.memory.push_back({sinceBegin(sample.time), sample});
    report_.memoryUse = session_.memory();
  }

  void describeLaunches() {
    const Repetitions &all = *chosen_;
    report_.cpuMs = all.cpuMs;
    report_.ms = all.ms;
    report_.recordMs = all.recordMs;
    report_.orderMs = all.orderMs;
    report_.kernelMs = all.kernelMs;
    const rt::Schedule &schedule = session_.schedule();
    leaveOutDisturbance(all);
    std::vector<uint32_t> flushOf(schedule.size());
    for (size_t f = 0; f < chosen_->shortest.flushes.size(); ++f)
      for (uint32_t i = chosen_->shortest.flushes[f].firstLaunch;
           i < chosen_->shortest.flushes[f].lastLaunch; ++i)
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
      launch.depth = rt::reorders(session_.policy())
                         ? bucket.depth
                         : bucket.depth - (kernel.phase << model_.depthBits);
      launch.rows = bucket.count;
      launch.ms = leastOf(all.launchMs[i]);
      launch.gflop = rt::sumOverRecords(kernel.flop, kernel.words, bucket) * 1e-9;
      launch.threads = 0;
      launch.startMs = INFINITY;
      report_.phases = std::max(report_.phases, kernel.phase + 1);
    }
    report_.steps = schedule.empty() ? 0 : step + 1;
    for (const std::vector<rt::TraceLaunch> &thread : chosen_->shortest.launches)
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

  /// The shortest times of single launches are of many repetitions; that of the mini-batch has all
  /// that happened in one. What other programs took from its kernels is not theirs.
  void leaveOutDisturbance(const Repetitions &all) {
    double parts = 0, whole = 0;
    for (const std::vector<double> &ms : all.launchMs)
      parts += leastOf(ms);
    for (const std::vector<rt::TraceLaunch> &thread : chosen_->shortest.launches)
      for (const rt::TraceLaunch &launch : thread)
        whole += toMs(launch.span.nanoseconds());
    report_.kernelMs = std::max(0.0, report_.kernelMs - (whole - parts) / report_.threads);
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
    for (const rt::TraceFlush &flush : chosen_->shortest.flushes) {
      FlushInfo &info = report_.flushes.emplace_back();
      info.demanded = flush.demanded;
      info.startMs = sinceBegin(flush.span.begin);
      info.orderMs = toMs(flush.ordered - flush.span.begin);
      info.ms = toMs(flush.span.nanoseconds());
      info.launches = flush.lastLaunch - flush.firstLaunch;
      for (; walk < chosen_->shortest.walks.size() &&
             chosen_->shortest.walks[walk].span.end <= flush.span.begin;
           ++walk)
        if (flush.demanded && chosen_->shortest.walks[walk].left == rt::TraceWalk::Waits)
          ++info.waits[model_.readPlaces[chosen_->shortest.walks[walk].place]];
    }
  }

  void describeKernels() {
    KernelStatistics statistics(compiled_.model());
    statistics.add(session_.schedule());
    report_.kernels = statistics.rows(session_.counters().kernels);
    for (KernelRow &row : report_.kernels) {
      row.ms = 0; // the shortest of each launch, not those of the last repetition
      for (const LaunchInfo &launch : report_.launches)
        if (launch.kernel == row.kernel)
          row.ms += launch.ms;
      row.atOnceMs = row.launches == 1 ? row.ms : atOnceMs(row.kernel);
      for (LaunchInfo &launch : report_.launches)
        if (launch.kernel == row.kernel)
          launch.lostMs =
              std::max(0.0, launch.ms - *row.atOnceMs * static_cast<double>(launch.rows) /
                                            static_cast<double>(row.records));
    }
    sortByTime(report_.kernels);
  }

  /// Nothing is faster than the peak: what was, was timed while the core was faster than in any
  /// probe.
  void probeFurther(PeakProbe &probe) {
    double reached = 0;
    for (const KernelRow &row : report_.kernels)
      reached = std::max(reached, row.gflops());
    for (const LaunchInfo &launch : report_.launches)
      if (launch.ms > 0)
        reached = std::max(reached, launch.gflop / launch.ms * 1e3);
    report_.peakGflops = probe.measureUpTo(reached, report_.peakGflops);
    report_.peakTooLow = report_.peakGflops < reached;
  }

  double atOnceMs(uint32_t kernel) {
    int64_t most = kManyRows;
    for (const LaunchInfo &launch : report_.launches)
      if (launch.kernel == kernel)
        most = std::max(most, launch.rows);
    std::vector<uint64_t> shortest;
    for (int64_t i = 0; i < options_.repetitions; ++i) {
      std::vector<uint64_t> now = session_.timeAtOnce(kernel, most);
      shortest.resize(now.size(), UINT64_MAX);
      for (size_t part = 0; part < now.size(); ++part)
        shortest[part] = std::min(shortest[part], now[part]);
    }
    return toMs(std::accumulate(shortest.begin(), shortest.end(), uint64_t(0)));
  }

  //===--- Few rows ----------------------------------------------------------===//

  uint32_t familyOf(uint32_t kernel) const {
    return model_.kernels[kernel].family.value_or(kernel);
  }

  FewRows whyFew(const LaunchInfo &launch, const KernelRow &row, uint64_t familyLaunches) const {
    if (row.launches == 1)
      return launch.rows < kFewRowsInAll && report_.instances >= kFewRowsInAll ? FewRows::Total
                                                                               : FewRows::No;
    if (launch.rows >= kManyRows)
      return FewRows::No;
    double atOnce =
        *row.atOnceMs * static_cast<double>(launch.rows) / static_cast<double>(row.records);
    if (launch.ms <= kFewRowsFactor * atOnce)
      return FewRows::No;
    if (dependences_ && dependences_->longestChains[familyOf(launch.kernel)] >= familyLaunches)
      return FewRows::Recursion;
    return launchesInFlush(launch) == 1 && report_.flushes[launch.flush].demanded ? FewRows::Read
                                                                                  : FewRows::Depth;
  }

  /// Launches of the same kernel in the same flush.
  int64_t launchesInFlush(const LaunchInfo &launch) const {
    return std::count_if(report_.launches.begin(), report_.launches.end(),
                         [&](const LaunchInfo &other) {
                           return other.kernel == launch.kernel && other.flush == launch.flush;
                         });
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
      // One entry for each reason, in the words of its most telling launch: one that waits for
      // something says more than one that has only inputs, a costlier one more than others.
      struct Reason {
        FewRowsInfo info;
        std::pair<bool, double> telling;
      };
      std::map<std::pair<FewRows, std::string>, Reason> reasons;
      for (LaunchInfo &launch : report_.launches) {
        if (launch.kernel != row.kernel)
          continue;
        uint64_t family = familyLaunches[familyOf(row.kernel)];
        launch.why = whyFew(launch, row, family);
        if (launch.why == FewRows::No)
          continue;
        std::string place = placeOfCause(launch);
        auto &[info, most] = reasons[{launch.why, place}];
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
        std::pair<bool, double> telling{launch.waitsFor >= 0, launch.lostMs};
        if (info.text.empty() || telling > most) {
          most = telling;
          info.text = textOf(launch, family);
        }
      }
      for (auto &[key, reason] : reasons)
        report_.fewRows.push_back(std::move(reason.info));
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
      what =
          fmt::format("what {} made in {}", maker.name, lineText(maker.place, compiled_.program()));
    }
    uint32_t chain = dependences_ ? dependences_->longestChains[familyOf(launch.kernel)] : 0;
    std::string read;
    if (report_.flushes[launch.flush].demanded)
      read = lineText(readOf(launch.flush), compiled_.program());
    switch (launch.why) {
    case FewRows::No:
      break;
    case FewRows::Recursion:
      return fmt::format("a recursion: a record waits for {}{}; the longest chain of such records "
                         "is {}, so no order needs fewer launches, and few instances go on so far",
                         what, read.empty() ? "" : " and for the read of " + read, chain);
    case FewRows::Depth: {
      std::string text =
          fmt::format("at another depth than others of the kernel: waits for {}; ", what);
      // Chains do not see that reads part what could run together.
      text += report_.waits
                  ? fmt::format("{} launches of it ran between two reads", launchesInFlush(launch))
                  : fmt::format("{} launches ran where chains of {} allow fewer", familyLaunches,
                                chain);
      return text + (report_.policy == "depth" ? " (--policy lookahead may find fewer)" : "");
    }
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

  /// The time of kernels among lines, layers and calls, each kernel's by its work.
  void divide() {
    std::map<std::string, double, InSourceOrder> byPlace;
    std::map<std::string, double> byLayer;
    std::map<std::vector<std::string>, double> byCalls;
    double sum = 0;
    for (const KernelRow &row : report_.kernels) {
      sum += row.ms;
      const BlockInfo &block = compiled_.blocks()[row.kernel];
      for (const LineShare &line : block.lines)
        byPlace[line.place] += row.ms * line.share;
      for (const PartShare &part : block.parts) {
        byLayer[part.layer] += row.ms * part.share;
        byCalls[part.calls] += row.ms * part.share;
      }
    }
    auto shareOf = [&](double ms) { return sum > 0 ? ms / sum : 0; };
    for (const auto &[place, ms] : byPlace)
      report_.lines.push_back({place, ms, shareOf(ms)});
    for (const auto &[layer, ms] : byLayer)
      report_.layers.push_back({layer, ms, shareOf(ms)});
    for (const auto &[calls, ms] : byCalls)
      report_.calls.push_back({calls, ms, shareOf(ms)});
    std::sort(report_.layers.begin(), report_.layers.end(), [](const auto &x, const auto &y) {
      return std::tie(y.ms, x.layer) < std::tie(x.ms, y.layer);
    });
    std::sort(report_.calls.begin(), report_.calls.end(), [](const auto &x, const auto &y) {
      return std::tie(y.ms, x.calls) < std::tie(x.ms, y.calls);
    });
  }

  const CompiledModel &compiled_;
  const rt::Model &model_;
  std::span<const rt::Instance> instances_;
  const RunReportOptions &options_;
  rt::Session session_;
  rt::Trace trace_;  ///< of the repetition that ran last
  double cpuMs_ = 0; ///< of it
  std::map<Shape, Repetitions> repetitions_;
  const Repetitions *chosen_ = nullptr; ///< those that are told
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

} // namespace sheaf::driver
