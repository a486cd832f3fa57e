//===- FitsReport.cpp - Whether a mini-batch fits -------------------------===//

#include "compiler/report/FitsReport.h"

#include "compiler/report/Explain.h"
#include "compiler/report/ReportJson.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace sheaf::driver {

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// Bounds of sizes as numbers.
class Numbers {
public:
  Numbers(const std::vector<InstanceSize> &sizes, const std::map<std::string, double> &most)
      : sizes_(sizes) {
    auto bound = [&](const std::string &name) {
      auto it = most.find(name);
      return it == most.end() ? kNone : it->second;
    };
    for (const InstanceSize &size : sizes) {
      double number = kNone;
      for (const std::string &name : size.names)
        number = std::min(number, bound(name));
      double group = size.group.empty() ? kNone : bound(size.group);
      groups_.push_back(group);
      most_.push_back(std::min(number, group));
    }
  }

  double of(size_t size) const { return most_[size]; }

  /// The largest value of a sum, infinity when there is none. Sizes of a group share its number.
  double of(const SizeSum &sum) const {
    double total = 0;
    std::map<std::string, std::map<size_t, double>> shares; // group, size: factor
    for (const SizeTerm &term : sum) {
      size_t shared = SIZE_MAX;
      int members = 0;
      double product = term.factor;
      for (size_t size : term.sizes)
        if (groups_[size] < kNone) {
          ++members;
          shared = size;
        } else {
          product *= most_[size];
        }
      if (members == 1) {
        shares[sizes_[shared].group][shared] += product;
        continue;
      }
      for (size_t size : term.sizes)
        if (groups_[size] < kNone)
          product *= most_[size];
      total += product;
    }
    for (const auto &[group, factors] : shares) {
      std::vector<std::pair<double, size_t>> largest;
      for (const auto &[size, factor] : factors)
        largest.emplace_back(factor, size);
      std::sort(largest.rbegin(), largest.rend());
      double left = groups_[largest.front().second];
      for (const auto &[factor, size] : largest) {
        double taken = std::min(left, most_[size]);
        total += factor * taken;
        left -= taken;
      }
    }
    return std::isnan(total) ? 0 : total; // nothing as often as one likes
  }

  void addUnbounded(const SizeSum &sum, std::vector<size_t> &all) const {
    for (const SizeTerm &term : sum)
      for (size_t size : term.sizes)
        if (most_[size] == kNone && std::find(all.begin(), all.end(), size) == all.end())
          all.push_back(size);
  }

private:
  const std::vector<InstanceSize> &sizes_;
  std::vector<double> most_, groups_;
};

std::optional<double> known(double number) {
  return number < kNone ? std::optional(std::ceil(number)) : std::nullopt;
}

void add(SizeSum &into, const SizeSum &other, double times = 1) {
  for (const SizeTerm &term : other) {
    auto same = std::find_if(into.begin(), into.end(),
                             [&](const SizeTerm &own) { return own.sizes == term.sizes; });
    if (same == into.end())
      into.push_back({term.factor * times, term.sizes});
    else
      same->factor += term.factor * times;
  }
}

/// `1,536 bytes x words`; a mini-batch before it.
std::string termText(const FitsReport &report, const FitsTerm &term) {
  std::string text = report.question.batch == 1
                         ? ""
                         : groupedDigits(static_cast<double>(report.question.batch)) + " x ";
  for (size_t size : term.bytes.sizes) {
    const InstanceSize &own = report.sizes[size];
    text += (own.names.empty() ? "?" : own.names.front()) + " x ";
  }
  return text + groupedDigits(std::ceil(term.bytes.factor)) + " bytes";
}

std::string bytes(double count) { return bytesText(count); }

Json number(const std::optional<double> &value) {
  return value ? Json(static_cast<uint64_t>(*value)) : Json(nullptr);
}

} // namespace

std::vector<std::string> sizeNames(const MemoryFormula &formula) {
  std::vector<std::string> names;
  auto add = [&](const std::string &name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const InstanceSize &size : formula.sizes) {
    add(size.group);
    for (const std::string &name : size.names)
      add(name);
  }
  return names;
}

FitsReport reportFits(const CompiledModel &model, const MemoryFormula &formula,
                      const FitsQuestion &question) {
  FitsReport report;
  report.question = question;
  report.sizes = formula.sizes;
  Numbers numbers(formula.sizes, question.most);
  auto batch = static_cast<double>(question.batch), threads = static_cast<double>(question.threads);

  // By kind, place and sizes.
  std::map<std::tuple<std::string, std::string, std::vector<size_t>>, FitsTerm> terms;
  auto addTerms = [&](const std::string &kind, const SizeSum &sum, const BlockInfo *block) {
    std::string place = block ? block->place : "";
    for (const SizeTerm &term : sum) {
      FitsTerm &own = terms[{kind, place, term.sizes}];
      if (own.kind.empty())
        own = {kind, {0, term.sizes}, place, block ? block->name : "", 0, {}};
      own.bytes.factor += term.factor;
      own.kernels += block != nullptr;
    }
    numbers.addUnbounded(sum, report.unbounded);
  };

  SizeSum rows, records, recordBytes, windowBytes, promised;
  double scratch = 0, kernels = 0, tables = 0, largest = 0;
  uint64_t granules = 0; ///< a divisor of those of all records
  constexpr double kMostBytes = 1e15;
  for (const KernelMemory &kernel : formula.kernels) {
    const BlockInfo &block = model.blocks()[kernel.kernel];
    uint32_t words = model.model().kernels[kernel.kernel].words;
    addTerms("rows", kernel.rows, &block);
    addTerms("tables", kernel.tables, &block);
    numbers.addUnbounded(kernel.records, report.unbounded);
    numbers.addUnbounded(kernel.scratch, report.unbounded);
    add(rows, kernel.rows);
    add(rows, kernel.tables);
    add(records, kernel.records);
    // A bucket begins with room for 8 and doubles; what else is noted of a record and of the bucket
    // that it may be alone in; and what a row plan notes of it, its allocation and its group.
    add(recordBytes, kernel.records, 32.0 * words + 240 + 80);
    // Divided by when it was recorded it is noted once more, and may be moved.
    add(windowBytes, kernel.records, 8.0 * words + 48);
    add(promised, kernel.rows);
    double bytes = numbers.of(kernel.largest);
    largest = std::max(largest, bytes);
    granules = std::gcd(granules, kernel.exact && bytes < kMostBytes
                                      ? static_cast<uint64_t>(bytes) / rt::kGranuleBytes
                                      : 1);
    scratch = std::max(scratch, numbers.of(kernel.scratch));
    ++kernels;
    tables += 64 * 4.0 * (words + 2);
    report.kernels.push_back(
        {kernel.kernel, block.name, block.place, known(numbers.of(kernel.records) * batch),
         known(numbers.of(kernel.rows) * batch), known(numbers.of(kernel.tables) * batch)});
  }
  addTerms("inputs", formula.inputs, nullptr);
  addTerms("grown", formula.grown, nullptr);
  // Blocks of memory are left when what comes next is larger than what is free in them.
  SizeSum heap;
  add(heap, formula.heap, 2);
  addTerms("heap", heap, nullptr);
  numbers.addUnbounded(formula.frames, report.unbounded);
  add(rows, formula.inputs);
  add(rows, formula.grown);

  std::sort(report.unbounded.begin(), report.unbounded.end());
  // What there is at first, and doubles: a row plan's bits by granule, the list of buckets, and the
  // table in which lists that are equal are found, as there is one of each kernel's records.
  constexpr double kFirst = 65536, kPage = 2100, kPromised = 8192 + 64, kBuckets = 64 * 96,
                   kLists = 64 * 4 * 6;
  double instanceRows = numbers.of(rows), instanceHeap = numbers.of(heap);
  double depths = numbers.of(records) / 64 + 2;
  double instanceRecords = numbers.of(recordBytes) + instanceRows / 64;
  double fixedRecords = kFirst + kPromised + kBuckets + kLists + tables + kernels * depths * kPage;
  double frames = numbers.of(formula.frames) * static_cast<double>(formula.frameBytes) * 1.125;
  double stack = std::max(0.0, frames - kFirst);
  struct Parts {
    double rows, records, heap, stacks;
    double sum() const { return rows + records + heap + stacks; }
  };
  auto atOnce = [&](double instances) {
    return Parts{instances * instanceRows, instances * instanceRecords + fixedRecords,
                 instances * instanceHeap + kFirst, stack * (formula.reads ? instances : 1)};
  };
  // One instance after the other, each record when it is made; what stays are results, and rows
  // that were never promised. Between tensors of different sizes some places are too small.
  double least = static_cast<double>(std::max<uint64_t>(granules, 1) * rt::kGranuleBytes);
  double live = numbers.of(formula.live), all = numbers.of(promised);
  double passing = std::min(all, live * largest + live * std::max(largest - least, 0.0));
  double staying = instanceRows - all + std::min(all, numbers.of(formula.results) * largest);
  auto frugally = [&](double instances) {
    double rows = instances * staying + passing;
    // What an instance leaves has blocks of lists and data of its own.
    constexpr double kBlock = 4096;
    // Bits to look what is needed, and the lists and data that are found then; where records write
    // into rows that have memory, two numbers for each granule of such.
    double looks = rows / 512 + instances * instanceHeap / 2;
    double written = formula.grown.empty() ? 0 : instances * staying / 8;
    return Parts{
        rows, instanceRecords + numbers.of(windowBytes) + fixedRecords + kFirst + looks + written,
        instances * (instanceHeap + kBlock) + kFirst, stack};
  };
  double beside = static_cast<double>(formula.weights + formula.packed + formula.folded) +
                  threads * (static_cast<double>(formula.scratch) + 128 + scratch);
  auto needed = [&](double instances) {
    Parts plain = atOnce(instances), frugal = frugally(instances);
    return formula.usesAgain && frugal.sum() < plain.sum() ? frugal : plain;
  };
  auto total = [&](double instances) { return beside + needed(instances).sum(); };
  Parts parts = needed(batch);
  report.weights = static_cast<double>(formula.weights);
  report.packed = static_cast<double>(formula.packed);
  report.scratch = known(threads * (static_cast<double>(formula.scratch) + 128 + scratch));
  report.rows = known(parts.rows + static_cast<double>(formula.folded));
  report.records = known(parts.records);
  report.heap = known(parts.heap);
  report.stacks = known(parts.stacks);
  if (report.unbounded.empty()) {
    report.total = known(total(batch));
    report.oneInstance = known(total(1));
    report.unlimited = known(beside + atOnce(batch).sum());
    report.usesAgain = *report.total < *report.unlimited;
    auto fits = [&](double instances) {
      return std::ceil(total(instances)) <= static_cast<double>(question.limit);
    };
    double most = 0;
    for (double step = std::exp2(std::ceil(std::log2(batch + 1))); step >= 1; step /= 2)
      if (most + step <= batch && fits(most + step))
        most += step;
    report.mostInstances = most;
  }

  for (auto &[key, term] : terms) {
    term.most = known(numbers.of({term.bytes}) * batch);
    report.terms.push_back(std::move(term));
  }
  std::sort(report.terms.begin(), report.terms.end(), [](const FitsTerm &a, const FitsTerm &b) {
    return std::tuple(-a.most.value_or(kNone), a.kind, a.place, a.bytes.sizes) <
           std::tuple(-b.most.value_or(kNone), b.kind, b.place, b.bytes.sizes);
  });
  return report;
}

std::string fitsText(const FitsReport &report, const std::string &source) {
  const FitsQuestion &question = report.question;
  auto limit = static_cast<double>(question.limit);
  std::string text;
  if (report.fits()) {
    text = fmt::format("fits: at most {} of {}{}\n", bytes(*report.total), bytes(limit),
                       report.usesAgain ? ", with rows used again" : "");
  } else if (report.total) {
    double most = report.mostInstances;
    text = fmt::format("does not fit: {} may be needed of {}, {}\n", bytes(*report.total),
                       bytes(limit),
                       most >= 1 ? fmt::format("and batch={:.0f} fits", most)
                                 : "and one instance alone does not fit");
  } else {
    text = "unbounded:";
    for (size_t i = 0; i < report.unbounded.size(); ++i)
      text += (i ? ", " : " ") + report.sizes[report.unbounded[i]].what;
    text += "\n";
    for (size_t number : report.unbounded) {
      const InstanceSize &size = report.sizes[number];
      std::string place = size.place.empty() ? source : size.place;
      if (size.kind == InstanceSize::Unknown)
        text += fmt::format("  {}: {} depends on what is computed\n", place, size.what);
      else if (!size.group.empty())
        text += fmt::format("  {}: {} may be anything; say {}<=N or {}<=N\n", place, size.what,
                            size.names.front(), size.group);
      else
        text += fmt::format("  {}: {} {}; say {}<=N\n", place, size.what,
                            size.kind == InstanceSize::Calls ? "depends on what is computed"
                                                             : "may be anything",
                            size.names.front());
    }
  }
  std::string sizes;
  for (const auto &[name, most] : question.most)
    sizes += fmt::format(", {}<={:.0f}", name, most);
  text +=
      fmt::format("batch={}{}{}\n", question.batch,
                  question.threads > 1 ? fmt::format(", threads={}", question.threads) : "", sizes);
  if (report.oneInstance)
    text += fmt::format(
        "one instance alone: at most {}; all at once: {}{}\n", bytes(*report.oneInstance),
        bytes(*report.unlimited),
        report.usesAgain ? fmt::format("; in turns, under a limit: {}", bytes(*report.total)) : "");
  auto line = [&](const char *what, const std::optional<double> &most) {
    text += fmt::format("  {:<16}{:>10}\n", what, most ? bytes(*most) : "unbounded");
  };
  text += "\n";
  line("weights", report.weights);
  line("packed weights", report.packed);
  line("scratch", report.scratch);
  line("records", report.records);
  line("lists and data", report.heap);
  line("stacks", report.stacks);
  line("rows", report.rows);
  constexpr size_t kMost = 12;
  size_t shown = 0;
  double rest = 0, more = 0;
  for (const FitsTerm &term : report.terms) {
    if (term.kind == "heap")
      continue;
    if (shown++ >= kMost) {
      ++more;
      rest += term.most.value_or(0);
      continue;
    }
    std::string what = term.kind == "rows"     ? ""
                       : term.kind == "tables" ? ", tables of lists"
                       : term.kind == "inputs" ? "arguments"
                                               : "tensors that grow";
    std::string where =
        term.place.empty()
            ? ""
            : term.place + " (" + term.name +
                  (term.kernels > 1 ? fmt::format(" and {} more", term.kernels - 1) : "") + ")";
    text += fmt::format("    {:>10}  {}  {}{}\n", term.most ? bytes(*term.most) : "unbounded",
                        termText(report, term), where, what);
  }
  if (more > 0)
    text += fmt::format("    {:>10}  {:.0f} more terms\n", bytes(rest), more);
  return text;
}

std::string fitsJson(const FitsReport &report, const std::string &source) {
  Json sizes = Json::array(), terms = Json::array(), kernels = Json::array(),
       unbounded = Json::array(), asked = Json::object();
  for (const InstanceSize &size : report.sizes)
    sizes.push_back({{"names", size.names},
                     {"group", size.group},
                     {"what", size.what},
                     {"place", size.place.empty() ? source : size.place}});
  for (size_t size : report.unbounded)
    unbounded.push_back(size);
  for (const auto &[name, most] : report.question.most)
    asked[name] = static_cast<uint64_t>(most);
  for (const FitsTerm &term : report.terms)
    terms.push_back({{"kind", term.kind},
                     {"factor", term.bytes.factor},
                     {"sizes", term.bytes.sizes},
                     {"place", term.place},
                     {"name", term.name},
                     {"kernels", term.kernels},
                     {"bytes", number(term.most)}});
  for (const FitsReport::Kernel &kernel : report.kernels)
    kernels.push_back({{"kernel", kernel.kernel},
                       {"name", kernel.name},
                       {"place", kernel.place},
                       {"records", number(kernel.records)},
                       {"row_bytes", number(kernel.rowBytes)},
                       {"table_bytes", number(kernel.tableBytes)}});
  return jsonText(reportJson("fits", 1,
                             {{"source", source},
                              {"fits", report.fits()},
                              {"batch", report.question.batch},
                              {"threads", report.question.threads},
                              {"most", asked},
                              {"limit_bytes", report.question.limit},
                              {"bytes", number(report.total)},
                              {"instance_bytes", number(report.oneInstance)},
                              {"unlimited_bytes", number(report.unlimited)},
                              {"unbounded", unbounded},
                              {"sizes", sizes},
                              {"memory",
                               {{"weights", number(report.weights)},
                                {"packed", number(report.packed)},
                                {"scratch", number(report.scratch)},
                                {"records", number(report.records)},
                                {"heap", number(report.heap)},
                                {"stack", number(report.stacks)},
                                {"rows", number(report.rows)}}},
                              {"terms", terms},
                              {"kernels", kernels}}));
}

} // namespace sheaf::driver
