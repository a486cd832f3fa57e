#include "compiler/report/MemoryReport.h"

#include "compiler/measure/KernelTable.h"
#include "runtime/schedule/row_observer.h"
#include "runtime/schedule/row_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace sheaf::driver {

namespace {

using rt::kGranuleBytes;

//===----------------------------------------------------------------------===//
// Bytes of a record, as a formula
//===----------------------------------------------------------------------===//

/// The name of the extent in this word, as the program has it.
std::string nameOf(const rt::KernelDesc &kernel, uint32_t word) {
  const rt::RecordWord *entry = rt::entryAt(kernel, word);
  return entry ? entry->name : fmt::format("word {}", word);
}

/// An extent that has one value for all records, or none.
std::optional<int64_t> staticValue(const rt::WordSum &extent) {
  int64_t value = 0;
  for (const rt::WordTerm &term : extent) {
    if (!term.words.empty())
      return std::nullopt;
    value += term.coefficient;
  }
  return value;
}

std::string textOf(const rt::KernelDesc &kernel, const rt::WordSum &extent) {
  std::vector<std::string> terms;
  for (const rt::WordTerm &term : extent) {
    std::vector<std::string> factors;
    if (term.coefficient != 1 || term.words.empty())
      factors.push_back(std::to_string(term.coefficient));
    for (uint32_t word : term.words)
      factors.push_back(nameOf(kernel, word));
    terms.push_back(fmt::format("{}", fmt::join(factors, " x ")));
  }
  std::string sum = fmt::format("{}", fmt::join(terms, " + "));
  return terms.size() > 1 ? "(" + sum + ")" : sum;
}

/// What a result takes: its innermost rows are filled up to granules.
std::string bytesOf(const rt::KernelDesc &kernel, const rt::RecordTensor &result) {
  int64_t each = kGranuleBytes;
  std::vector<std::string> factors;
  for (size_t axis = 0; axis < result.extents.size(); ++axis) {
    const rt::WordSum &extent = result.extents[axis];
    bool isInnermost = axis + 1 == result.extents.size();
    std::optional<int64_t> value = staticValue(extent);
    if (!isInnermost && value)
      each *= *value;
    else if (!isInnermost)
      factors.push_back(textOf(kernel, extent));
    else if (value)
      each *= rt::rowGranules(*value, result.dtype);
    else
      factors.push_back(fmt::format("ceil({} x {} / {})", textOf(kernel, extent),
                                    rt::dtypeBytes(result.dtype), kGranuleBytes));
  }
  factors.push_back(groupedDigits(static_cast<double>(each)));
  return fmt::format("{}", fmt::join(factors, " x "));
}

std::string bytesOfRecord(const rt::KernelDesc &kernel) {
  std::vector<std::string> terms;
  int64_t constant = 0;
  for (const rt::RecordTensor &result : kernel.results) {
    bool isStatic = std::all_of(result.extents.begin(), result.extents.end(),
                                [](const rt::WordSum &sum) { return staticValue(sum); });
    if (isStatic)
      constant += static_cast<int64_t>(rt::granulesOf(result, nullptr)) * kGranuleBytes;
    else
      terms.push_back(bytesOf(kernel, result));
  }
  if (constant > 0 || terms.empty())
    terms.push_back(groupedDigits(static_cast<double>(constant)));
  return fmt::format("{}", fmt::join(terms, " + "));
}

/// The words of extents that the results' sizes follow from.
std::vector<uint32_t> extentWords(const rt::KernelDesc &kernel) {
  std::vector<uint32_t> words;
  for (const rt::RecordTensor &result : kernel.results)
    for (const rt::WordSum &extent : result.extents)
      for (const rt::WordTerm &term : extent)
        words.insert(words.end(), term.words.begin(), term.words.end());
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

//===----------------------------------------------------------------------===//
// A run
//===----------------------------------------------------------------------===//

/// Records by kernel, with the values of their extents.
class Holders {
public:
  explicit Holders(const rt::Model &model) : model_(&model) {}

  void add(uint32_t kernel, const int32_t *words) {
    Holder &holder = holders_[kernel];
    if (holder.records++ == 0) {
      holder.words = extentWords(model_->kernels[kernel]);
      holder.extents.resize(holder.words.size(), {std::numeric_limits<int64_t>::max(), 0, 0});
    }
    for (const rt::RecordTensor &result : model_->kernels[kernel].results)
      holder.granules += rt::granulesOf(result, words);
    for (size_t i = 0; i < holder.words.size(); ++i) {
      int64_t value = words[holder.words[i]];
      Values &extent = holder.extents[i];
      extent = {std::min(extent.least, value), std::max(extent.most, value), extent.sum + value};
    }
  }
  uint64_t granules() const {
    uint64_t sum = 0;
    for (const auto &[kernel, holder] : holders_)
      sum += holder.granules;
    return sum;
  }
  void clear() { holders_.clear(); }

  std::vector<RowTerm> terms() const {
    std::vector<RowTerm> terms;
    for (const auto &[kernel, holder] : holders_) {
      const rt::KernelDesc &desc = model_->kernels[kernel];
      RowTerm &term = terms.emplace_back();
      term = {kernel, holder.records, holder.granules * kGranuleBytes, bytesOfRecord(desc), {}};
      for (size_t i = 0; i < holder.words.size(); ++i)
        term.extents.push_back({nameOf(desc, holder.words[i]), holder.extents[i].least,
                                holder.extents[i].most, holder.extents[i].sum});
    }
    std::sort(terms.begin(), terms.end(), [](const RowTerm &a, const RowTerm &b) {
      return std::pair(b.bytes, a.kernel) < std::pair(a.bytes, b.kernel);
    });
    return terms;
  }

private:
  struct Values {
    int64_t least, most, sum;
  };
  struct Holder {
    uint64_t records = 0, granules = 0;
    std::vector<uint32_t> words;
    std::vector<Values> extents;
  };
  const rt::Model *model_;
  std::map<uint32_t, Holder> holders_;
};

class Observer final : public rt::RowObserver {
public:
  Observer(const rt::Model &model, MemoryReport &report)
      : model_(model), report_(report), recorded_(model) {}

  void begun() override {
    report_.rows.clear();
    report_.terms.clear();
    report_.launches = report_.peakBytes = report_.peakLaunch = report_.otherBytes = 0;
    recorded_.clear();
  }

  void planned(std::span<const rt::ScheduledBucket> launches, const rt::RowPlan &plan,
               uint64_t others) override {
    size_t fullest = 0;
    for (size_t i = 0; i < plan.groupCount(); ++i) {
      sample(report_.launches + plan.group(i).launch, plan.group(i).granules + others);
      if (plan.group(i).granules > plan.group(fullest).granules)
        fullest = i;
    }
    // What places leave between them counts as well.
    uint64_t held = plan.staying() + plan.passing() + others;
    if (isPeak(held, report_.launches + plan.group(fullest).launch,
               launches[plan.group(fullest).launch].kernel)) {
      Holders holders(model_);
      plan.forEachNeeded(fullest, [&](const rt::ScheduledBucket &launch, const int32_t *words) {
        holders.add(launch.kernel, words);
      });
      tell(holders, held);
    }
    report_.launches += launches.size();
  }

  void recorded(std::span<const rt::ScheduledBucket> launches, uint64_t held,
                uint64_t keptBegin) override {
    for (const rt::ScheduledBucket &launch : launches) {
      const rt::KernelDesc &kernel = model_.kernels[launch.kernel];
      for (int64_t r = 0; r < launch.count; ++r) {
        const int32_t *words = launch.records + r * kernel.words;
        if (static_cast<uint32_t>(words[kernel.words - 1]) >= keptBegin)
          continue;
        recorded_.add(launch.kernel, words);
      }
    }
    sample(report_.launches, held);
    if (!launches.empty() && isPeak(held, report_.launches, launches[0].kernel))
      tell(recorded_, held);
    report_.launches += launches.size();
  }

  void collected(uint64_t held) override {
    recorded_.clear();
    sample(report_.launches, held);
  }

private:
  void sample(uint64_t launch, uint64_t granules) {
    report_.rows.push_back({launch, granules * kGranuleBytes});
  }
  bool isPeak(uint64_t granules, uint64_t launch, uint32_t kernel) {
    if (granules * kGranuleBytes <= report_.peakBytes)
      return false;
    report_.peakBytes = granules * kGranuleBytes;
    report_.peakLaunch = launch;
    report_.peakKernel = kernel;
    return true;
  }
  void tell(const Holders &holders, uint64_t held) {
    report_.terms = holders.terms();
    report_.otherBytes = (held - std::min(held, holders.granules())) * kGranuleBytes;
  }

  const rt::Model &model_;
  MemoryReport &report_;
  Holders recorded_; ///< since rows were last given back
};

std::string bytes(uint64_t count) { return bytesText(static_cast<double>(count)); }

} // namespace

MemoryReport reportMemory(const CompiledModel &compiled, rt::Session &session,
                          std::span<const rt::Instance> instances) {
  MemoryReport report;
  Observer observer(compiled.model(), report);
  struct Observing {
    rt::Session &session;
    ~Observing() { session.setRowObserver(nullptr); }
  } observing{session};
  session.setRowObserver(&observer);
  // Where memory does not hold all together, of the run that held the most.
  MemoryReport greatest;
  uint64_t failed = 0;
  std::string error;
  rt::runEach(
      instances,
      [&](std::span<const rt::Instance> some) {
        std::span<const rt::Outcome> outcomes = session.run(some);
        if (report.peakBytes >= greatest.peakBytes)
          greatest = report;
        return outcomes;
      },
      [&](size_t, const rt::Outcome &outcome) {
        if (!outcome.ok() && failed++ == 0)
          error = outcome.error->message();
      });
  report = std::move(greatest);
  report.failed = failed;
  report.error = std::move(error);
  report.instances = instances.size();
  report.use = session.memory();
  return report;
}

//===----------------------------------------------------------------------===//
// For people and machines
//===----------------------------------------------------------------------===//

std::string memoryReportText(const CompiledModel &compiled, const MemoryReport &r) {
  uint64_t all = 0;
  std::vector<std::string> kinds;
  for (const rt::NamedMemoryKind &kind : rt::kMemoryKinds)
    if (uint64_t peak = (r.use.*kind.kind).peak; peak > 0) {
      all += peak;
      kinds.push_back(fmt::format("{} {}", kind.name, bytes(peak)));
    }
  std::string out = fmt::format("memory of a mini-batch of {} instances: at most {}\n  = {}\n",
                                r.instances, bytes(all), fmt::join(kinds, " + "));
  if (r.failed)
    out += fmt::format("  {} instances failed, the first: {}\n", r.failed, r.error);
  if (r.peakBytes == 0)
    return out;
  const BlockInfo &at = compiled.blocks()[r.peakKernel];
  out += fmt::format("\nrows are at their peak, {}, while launch {} of {} runs: {} ({})\n",
                     bytes(r.peakBytes), r.peakLaunch, r.launches, at.name, at.place);
  for (const RowTerm &term : r.terms) {
    const BlockInfo &block = compiled.blocks()[term.kernel];
    out += fmt::format("  {} {:>9}  {:>7} x ({})  {}  {}\n", &term == r.terms.data() ? '=' : '+',
                       bytes(term.bytes), term.records, term.each, block.place, block.name);
    for (const RowTerm::Extent &extent : term.extents)
      out += fmt::format("{:>24}{}: {} to {}, {} in all\n", "", extent.name, extent.least,
                         extent.most, extent.sum);
  }
  if (r.otherBytes > 0)
    out += fmt::format("  + {:>9}  inputs, tables of lists, gaps, what earlier flushes left\n",
                       bytes(r.otherBytes));
  return out;
}

Json memoryReportJson(const CompiledModel &compiled, const MemoryReport &r) {
  Json kinds, terms = Json::array(), rows = Json::array();
  for (const rt::NamedMemoryKind &kind : rt::kMemoryKinds)
    kinds[kind.name] = (r.use.*kind.kind).peak;
  for (const RowTerm &term : r.terms) {
    Json extents = Json::array();
    for (const RowTerm::Extent &extent : term.extents)
      extents.push_back({{"name", extent.name},
                         {"least", extent.least},
                         {"most", extent.most},
                         {"sum", extent.sum}});
    const BlockInfo &block = compiled.blocks()[term.kernel];
    terms.push_back({{"kernel", term.kernel},
                     {"name", block.name},
                     {"place", block.place},
                     {"records", term.records},
                     {"bytes", term.bytes},
                     {"bytes_of_record", term.each},
                     {"extents", extents}});
  }
  for (const MemoryReport::Sample &sample : r.rows)
    rows.push_back({sample.launch, sample.bytes});
  return {{"instances", r.instances},
          {"failed", r.failed},
          {"launches", r.launches},
          {"peak_rows", r.peakBytes},
          {"peak_launch", r.peakLaunch},
          {"peak_kernel", r.peakKernel},
          {"terms", terms},
          {"other_bytes", r.otherBytes},
          {"rows", rows},
          {"peaks", kinds}};
}

} // namespace sheaf::driver
