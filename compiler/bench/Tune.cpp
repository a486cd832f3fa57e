//===- Tune.cpp - Chooses how kernels are cut, by timing them -------------===//
#include "compiler/bench/Tune.h"

#include "compiler/driver/StoredCode.h"
#include "compiler/verify/FlatValue.h"
#include "runtime/measure/trace.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace sheaf::driver {

namespace {

/// So much of the whole time one pass over the data may take: a trial is several pairs of them.
constexpr double kPass = 1.0 / 600;
/// How long the store is tried for when another process has it.
constexpr double kKeepSeconds = 10;

/// By BlockInfo::tuningKey.
using Times = std::map<std::string, double>;

using MiniBatches = std::vector<std::span<const rt::Instance>>;

/// What came out of a mini-batch.
struct Outcome {
  std::vector<FlatValue> results;
  std::vector<std::vector<float>> gradients; ///< of a model for training
};

/// The model, compiled with some tunings.
class Variant {
public:
  Variant(const SourceFile &source, CompileOptions compile, const Tunings &tunings,
          const std::function<void(rt::Session &)> &initialise, rt::SessionOptions session)
      : initialise_(initialise), options_(session), trace_(session.threads) {
    options_.keepBytes = 0; // every pass does the same
    compile.tunings = tunings;
    Diagnostics diags(source);
    model_ = driver::compile(source, compile, diags);
    if (!model_)
      throw InternalError("a model that was compiled before does not compile:\n" +
                          diags.render(false));
    moveSession();
  }

  /// Rows and weights lie elsewhere from now on: the pages that they happen to have in the caches
  /// make a kernel a tenth faster or slower.
  void moveSession() {
    // The old one holds its pages until the new one has its own.
    auto session = std::make_unique<rt::Session>(model_->model(), options_);
    initialise_(*session);
    session->packWeights();
    // With a trace the clock is read after every launch, however short.
    session->setTrace(&trace_);
    session_ = std::move(session);
  }

  // Sessions hold the place of the trace.
  Variant(const Variant &) = delete;
  Variant &operator=(const Variant &) = delete;

  const CompiledModel &model() const { return *model_; }
  const rt::Counters &counters() const { return session_->counters(); }

  void run(std::span<const rt::Instance> batch, Outcome *outcome = nullptr) {
    trace_.clear();
    Flattener flattener;
    for (const rt::Outcome &result : session_->run(batch)) {
      if (!result.ok())
        throw *result.error;
      if (outcome)
        flattener.flatten(*session_, model_->model().entry.resultType, result.slots,
                          outcome->results.emplace_back());
    }
    if (!model_->model().training)
      return;
    weights_.assign(batch.size(), 1.0F / static_cast<float>(batch.size()));
    std::span<const rt::ParamGradient> gradients = session_->backward(weights_);
    for (size_t i = 0; outcome && i < gradients.size(); ++i)
      outcome->gradients.push_back(gradientOf(model_->model().params[i], gradients[i]));
  }

  /// Nanoseconds inside the kernels.
  Times time(const MiniBatches &batches) {
    session_->resetCounters();
    for (std::span<const rt::Instance> batch : batches)
      run(batch);
    Times times;
    for (size_t k = 0; k < model_->blocks().size(); ++k)
      if (uint64_t spent = counters().kernels[k].nanoseconds)
        times[model_->blocks()[k].tuningKey] += static_cast<double>(spent);
    return times;
  }

private:
  const std::function<void(rt::Session &)> &initialise_;
  rt::SessionOptions options_;
  rt::Trace trace_;
  std::unique_ptr<CompiledModel> model_;
  std::unique_ptr<rt::Session> session_;
  std::vector<float> weights_; ///< of the losses
};

bool sameNumbers(const std::vector<float> &a, const std::vector<float> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return (x == y && std::signbit(x) == std::signbit(y)) || (std::isnan(x) && std::isnan(y));
  });
}

/// 0 to count - 1 in an order whose beginnings lie all over them: 0, 4, 2, 6, 1, 5, 3, 7.
std::vector<size_t> fromAllOver(size_t count) {
  std::vector<size_t> order;
  unsigned bits = static_cast<unsigned>(std::bit_width(count - 1));
  for (size_t i = 0; i < size_t{1} << bits; ++i) {
    size_t reversed = 0;
    for (unsigned bit = 0; bit < bits; ++bit)
      reversed |= (i >> bit & 1) << (bits - 1 - bit);
    if (reversed < count)
      order.push_back(reversed);
  }
  return order;
}

double sum(const Times &times) {
  double all = 0;
  for (const auto &[key, time] : times)
    all += time;
  return all;
}

class Tuner {
public:
  Tuner(const SourceFile &source, const CompileOptions &compile,
        std::span<const rt::Instance> instances,
        const std::function<void(rt::Session &)> &initialise, const TuneOptions &options)
      : source_(source), compile_(compile), initialise_(initialise), options_(options),
        begin_(seconds()), own_(variant({})) {
    chooseBatches(instances);
    for (std::span<const rt::Instance> batch : batches_)
      own_.run(batch, &expected_.emplace_back());
  }

  TuneReport run() {
    std::vector<SearchedKernel> kernels = makeRows();
    SearchOptions search;
    search.seconds = options_.seconds;
    search.measure = [&](const TrialOptions &trial) { return measure(trial); };
    search.elapsed = [&] { return elapsed(); };
    search.progress = options_.progress;
    SearchResult found = searchTilings(kernels, search);
    report_.trials = found.trials;
    report_.all = found.all;
    for (auto &[key, row] : rows_)
      if (auto choice = found.choices.find(key); choice != found.choices.end()) {
        row.choice = choice->second;
        row.chosen = own_.model().tilingWith(kernelOf_.at(key), row.choice.tuning);
      }
    keep();
    for (auto &[key, row] : rows_)
      report_.rows.push_back(std::move(row));
    std::sort(report_.rows.begin(), report_.rows.end(),
              [](const TunedRow &a, const TunedRow &b) { return a.ms > b.ms; });
    report_.model = own_.model().model().name;
    report_.dims = own_.model().model().dims;
    report_.target = own_.model().target();
    report_.seconds = elapsed();
    return std::move(report_);
  }

private:
  Variant variant(const Tunings &tunings) {
    return Variant(source_, compile_, tunings, initialise_, options_.session);
  }
  double elapsed() const { return seconds() - begin_; }

  /// As many as a pass may take, from all over the data; one at least.
  void chooseBatches(std::span<const rt::Instance> instances) {
    MiniBatches all;
    report_.batch = std::min(options_.batch, instances.size());
    for (; !instances.empty(); instances = instances.subspan(all.back().size()))
      all.push_back(instances.first(std::min(instances.size(), options_.batch)));
    own_.run(all.front());
    std::set<size_t> chosen;
    double end = seconds() + options_.seconds * kPass;
    for (size_t number : fromAllOver(all.size())) {
      own_.run(all[number]);
      if (!chosen.empty() && seconds() > end)
        break;
      chosen.insert(number);
    }
    for (size_t number : chosen)
      batches_.push_back(all[number]);
    report_.batches = chosen.size();
    report_.batchesOfAll = all.size();
  }

  /// The kernels that run, and of these the ones to be searched.
  std::vector<SearchedKernel> makeRows() {
    constexpr int passes = 5;
    std::map<std::string, std::vector<double>> times;
    own_.time(batches_);
    for (int pass = 0; pass < passes; ++pass)
      for (const auto &[key, time] : own_.time(batches_))
        times[key].push_back(time);
    double all = 0;
    for (const auto &[key, passTimes] : times)
      all += median(passTimes);
    std::vector<SearchedKernel> searched;
    const std::vector<BlockInfo> &blocks = own_.model().blocks();
    for (size_t k = 0; k < blocks.size(); ++k) {
      const std::string &key = blocks[k].tuningKey;
      const rt::KernelCounters &counters = own_.counters().kernels[k];
      // The runtime's own kernels are as they are.
      if (key.empty() || !times.contains(key) || counters.launches == 0)
        continue;
      auto [entry, isNew] = rows_.try_emplace(key);
      TunedRow &row = entry->second;
      row.names.push_back(blocks[k].name);
      row.launches += counters.launches;
      row.records += counters.records;
      if (!isNew)
        continue;
      kernelOf_[key] = k;
      row.place = blocks[k].place;
      row.ms = median(times.at(key)) * 1e-6;
      row.share = median(times.at(key)) / all;
      row.byDefault = row.chosen = blocks[k].tiling;
      row.searched = row.share >= kLeastShare && hasOthers(k);
      if (row.searched)
        searched.push_back({key, [this, k](const kernels::Tuning &tuning) {
                              return own_.model().tilingWith(k, tuning);
                            }});
    }
    auto order = [&](const SearchedKernel &kernel) {
      return std::pair(-rows_.at(kernel.key).share, kernel.key);
    };
    std::sort(searched.begin(), searched.end(),
              [&](const auto &a, const auto &b) { return order(a) < order(b); });
    return searched;
  }

  bool hasOthers(size_t kernel) const {
    const std::string &own = own_.model().blocks()[kernel].tiling;
    auto differs = [&](const kernels::Tuning &tuning) {
      return own_.model().tilingWith(kernel, tuning) != own;
    };
    std::vector<kernels::Tuning> tunings = kernels::tilesToTry();
    for (int64_t near : kernels::nearToTry())
      tunings.push_back({.near = near});
    return std::any_of(tunings.begin(), tunings.end(), differs);
  }

  /// Libraries have bits of their own: only generated code is held to them.
  void compare(Variant &other) {
    if (!own_.model().libraries().empty() || !other.model().libraries().empty())
      return;
    for (size_t b = 0; b < batches_.size(); ++b) {
      Outcome outcome;
      other.run(batches_[b], &outcome);
      for (size_t i = 0; i < outcome.results.size(); ++i)
        if (std::string difference = firstDifference(expected_[b].results[i], outcome.results[i]);
            !difference.empty())
          throw InternalError(fmt::format("a tiling changed the result of instance {}: {}",
                                          batches_[b][i].index, difference));
      for (size_t i = 0; i < outcome.gradients.size(); ++i)
        if (!sameNumbers(expected_[b].gradients[i], outcome.gradients[i]))
          throw InternalError("a tiling changed the gradient of " +
                              own_.model().model().params[i].name);
    }
  }

  Trial measure(const TrialOptions &options) {
    double begin = seconds();
    Variant other = variant(options.tunings);
    compare(other);
    Trial trial;
    size_t pairsMade = 0;
    double inPairs = 0;
    for (size_t place = 0; place < options.places; ++place) {
      if (place > 0) {
        own_.moveSession();
        other.moveSession();
      }
      double end = begin + options.seconds * static_cast<double>(place + 1) /
                               static_cast<double>(options.places);
      Pairs &pairs = trial.places.emplace_back();
      own_.time(batches_);
      other.time(batches_);
      double first = seconds();
      if (place == 0)
        trial.startSeconds = first - begin;
      for (size_t pair = 0;
           pair < options.leastPairs || (pair < options.mostPairs && seconds() < end); ++pair)
        addPair(other, pair % 2 == 0, pairs);
      pairsMade += pairs.all.size();
      inPairs += seconds() - first;
    }
    trial.pairSeconds = inPairs / static_cast<double>(pairsMade);
    return trial;
  }

  /// Whichever comes first, in turn: what grows with time falls on both.
  void addPair(Variant &other, bool ownFirst, Pairs &pairs) {
    Times own, tuned;
    if (ownFirst)
      own = own_.time(batches_);
    tuned = other.time(batches_);
    if (!ownFirst)
      own = own_.time(batches_);
    for (const auto &[key, time] : own)
      if (auto found = tuned.find(key); found != tuned.end())
        pairs.ratios[key].push_back(time / found->second);
    pairs.all.push_back(sum(own) / sum(tuned));
  }

  void keep() {
    store::Values values;
    std::vector<std::string> keys;
    for (const auto &[key, row] : rows_) {
      const Choice &choice = row.choice;
      if (!row.searched || choice.tried == 0 || choice.unconfirmed)
        continue;
      TunedKernel tuned{choice.tuning};
      if (tuned.tuning != kernels::Tuning()) {
        tuned.ratio = choice.ratio.median;
        tuned.low = choice.ratio.low;
        tuned.high = choice.ratio.high;
      }
      values[key] = tuned.bytes();
      keys.push_back(key);
    }
    // Another process may have it: that is no reason to lose what took so long.
    double begin = seconds();
    for (;;) {
      store::Store store(compile_.store);
      store.keep(values);
      bool isSafe = store.writeBack(); // what the log loses nobody is sure to be told
      store::Values kept = store.peek(keys);
      report_.kept = store.use();
      report_.kept.kept = kept.size();
      if ((report_.kept.problem.empty() && isSafe) || seconds() - begin > kKeepSeconds)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (report_.kept.problem.empty() && report_.kept.kept < values.size())
      report_.kept.problem =
          fmt::format("the limit of the store {} leaves no room for {} of {} choices",
                      compile_.store.directory, values.size() - report_.kept.kept, values.size());
  }

  const SourceFile &source_;
  const CompileOptions &compile_;
  const std::function<void(rt::Session &)> &initialise_;
  const TuneOptions &options_;
  double begin_;
  Variant own_;
  MiniBatches batches_;
  std::vector<Outcome> expected_; ///< by mini-batch
  std::map<std::string, TunedRow> rows_;
  std::map<std::string, size_t> kernelOf_; ///< number of a kernel by key
  TuneReport report_;
};

} // namespace

std::vector<std::string> requireStore(const store::Options &options) {
  if (!StoredCode::canKeep())
    throw UserError("this build of Sheaf, or a library of it, has no build id, so that no store "
                    "can tell what is for it");
  if (options.directory.empty())
    throw UserError("what is chosen is kept in a store, and there is none: give --store DIR");
  store::Store store(options);
  store.keep({});
  if (!store.use().problem.empty())
    throw UserError("what is chosen cannot be kept: " + store.use().problem);
  return store.use().warnings;
}

TuneReport tune(const SourceFile &source, const CompileOptions &compile,
                std::span<const rt::Instance> instances,
                const std::function<void(rt::Session &)> &initialise, const TuneOptions &options) {
  // Workers have cores of their own: only a lone thread can be kept on one.
  std::optional<Pin> pin;
  if (options.session.threads == 1)
    pin.emplace();
  return Tuner(source, compile, instances, initialise, options).run();
}

} // namespace sheaf::driver
