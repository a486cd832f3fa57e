//===- Verify.cpp - Compiled code against the oracle ----------------------===//
#include "compiler/verify/Verify.h"

#include "compiler/oracle/Compare.h"
#include "compiler/oracle/Convert.h"
#include "compiler/report/ReportJson.h"
#include "compiler/verify/Conditioning.h"
#include "compiler/verify/FlatValue.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

namespace sheaf::driver {

namespace {

/// What became of an instance, kept beyond the session's next run.
struct Kept {
  bool ok = false, lackedMemory = false;
  std::string error;
  FlatValue value;
};

/// Whether an instance had too little memory: that is no difference between two runs.
bool lackedMemory(const rt::Outcome &outcome) {
  return !outcome.ok() && outcome.error->cause() == RunError::Cause::Memory;
}

class Verifier {
public:
  Verifier(const CompiledModel &model, std::span<const rt::Instance> instances,
           const std::function<void(rt::Session &)> &initialise, const VerifyOptions &options)
      : model_(model), instances_(instances), initialise_(initialise), options_(options) {}

  VerifyReport run() {
    report_.model = model_.model().name;
    report_.instances = static_cast<int64_t>(instances_.size());
    report_.precision = model_.precision();
    report_.libraries = model_.libraries();
    report_.agrees = againstOracle();
    bool good = report_.agrees && report_.problem.empty() && acrossBatches();
    report_.sameBits = good && report_.libraries.empty();
    report_.repeats = good && !report_.libraries.empty() && repeats();
    report_.ok = report_.sameBits || report_.repeats;
    if (!withoutMemory_.empty() && (report_.ok || report_.problem.empty())) {
      report_.ok = report_.sameBits = report_.repeats = false;
      report_.problem = fmt::format(
          "{} of {} instances had too little memory in some of the runs, which says nothing of "
          "their results; all others agree. A larger --memory-limit compares them, or a smaller "
          "--batch",
          withoutMemory_.size(), instances_.size());
    }
    return std::move(report_);
  }

private:
  std::unique_ptr<rt::Session> makeSession(unsigned threads,
                                           std::optional<rt::Policy> policy = std::nullopt) {
    rt::SessionOptions options = options_.session;
    options.threads = threads;
    options.policy = policy.value_or(options.policy);
    auto session = std::make_unique<rt::Session>(model_.model(), options);
    initialise_(*session);
    return session;
  }

  void progress(const char *what, int64_t done) {
    if (options_.progress)
      options_.progress(what, done, static_cast<int64_t>(instances_.size()));
  }

  bool fail(std::string message) {
    report_.problem = std::move(message);
    return false;
  }

  bool againstOracle();
  bool agrees(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
              const rt::Outcome &outcome, const rt::Session &session);
  bool acrossBatches();
  bool repeats();
  bool sameBits(rt::Session &session, const std::string &how, std::span<const size_t> order,
                size_t batch);

  const CompiledModel &model_;
  std::span<const rt::Instance> instances_;
  const std::function<void(rt::Session &)> &initialise_;
  const VerifyOptions &options_;

  oracle::Weights weights_;
  std::unique_ptr<Replayed> wide_;
  std::optional<Conditioning> conditioning_;
  rt::ReadLog log_; ///< of the mini-batch that is compared with the oracle
  std::vector<Kept> kept_;
  std::set<int64_t> withoutMemory_; ///< instances that could not be compared in each run
  VerifyReport report_;
};

bool Verifier::againstOracle() {
  std::unique_ptr<rt::Session> session = makeSession(1);
  session->packWeights();
  weights_ = oracle::weightsOf(*session);
  report_.narrowFloats = hasNarrowFloats(model_);
  report_.allowed = allowedError(model_);
  wide_ = std::make_unique<Replayed>(model_, model_.program(), weights_, oracle::Precision::F64,
                                     options_.session.sampleSeed);
  conditioning_.emplace(model_, weights_, options_.session.sampleSeed,
                        mostCalls(options_.session.maxSteps));
  uint32_t type = model_.model().entry.resultType;
  Flattener flattener;
  session->setReadLog(&log_);
  kept_.resize(instances_.size());
  size_t batch = static_cast<size_t>(options_.batch);
  for (size_t begin = 0; begin < instances_.size(); begin += batch) {
    std::span<const rt::Instance> some =
        instances_.subspan(begin, std::min(batch, instances_.size() - begin));
    log_.clear();
    std::span<const rt::Outcome> outcomes = session->run(some);
    for (size_t i = 0; i < some.size(); ++i) {
      progress("oracle", static_cast<int64_t>(begin + i));
      Kept &kept = kept_[begin + i];
      kept.ok = outcomes[i].ok();
      if (kept.ok)
        flattener.flatten(*session, type, outcomes[i].slots, kept.value);
      else
        kept.error = outcomes[i].error->message();
      kept.lackedMemory = lackedMemory(outcomes[i]);
      if (!agrees(some[i], log_.of(i), outcomes[i], *session))
        return false;
    }
  }
  if (report_.failed && report_.failed == report_.instances)
    report_.problem = "all instances fail: there is no result to compare";
  return true;
}

/// The line in which a message says that something went wrong: `file:line` or `file:line:column`
/// at its beginning. Nothing when it says none.
static std::string lineOf(const std::string &message) {
  auto numberEnd = [&](size_t colon) { // of `:12`, or where it begins
    size_t end = std::min(message.find_first_not_of("0123456789", colon + 1), message.size());
    return end > colon + 1 ? end : colon;
  };
  for (size_t colon = message.find(':'); colon != message.npos;
       colon = message.find(':', colon + 1)) {
    size_t line = numberEnd(colon);
    if (line == colon || line == message.size() || message[line] != ':')
      continue;
    size_t column = numberEnd(line);
    if (message.compare(line, 2, ": ") == 0 ||
        (column > line && message.compare(column, 2, ": ") == 0))
      return message.substr(0, line);
  }
  return "";
}

/// The outcome of an instance and what it read, with the oracle's.
bool Verifier::agrees(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
                      const rt::Outcome &outcome, const rt::Session &session) {
  oracle::Value expected;
  std::optional<RunError> failure;
  try {
    // One that was given up as endless may be so for the oracle.
    expected = outcome.ok() ? wide_->run(instance, reads)
                            : wide_->run(instance, reads, mostCalls(options_.session.maxSteps));
  } catch (const RunError &error) {
    failure = error;
  }
  auto differs = [&](const std::string &what) {
    std::string read = wrongRead(model_.model(), wide_->replay, {&report_.allowed, 1});
    return fail(
        fmt::format("instance {}: {}{}", instance.index, read.empty() ? "" : read + "; ", what));
  };
  if (failure && outcome.ok())
    return differs(
        fmt::format("the oracle fails ({}), the compiled program does not", failure->message()));
  if (!failure && lackedMemory(outcome)) {
    withoutMemory_.insert(instance.index);
    return true;
  }
  if (!failure && !outcome.ok())
    return differs(fmt::format("the compiled program fails ({}), the oracle does not",
                               outcome.error->message()));
  // Both have limits, of their own. What they say of an error is in other words.
  if (failure && failure->cause() == RunError::Cause::Program &&
      outcome.error->cause() == RunError::Cause::Program &&
      lineOf(failure->message()) != lineOf(outcome.error->message()))
    return differs(fmt::format("the oracle fails with '{}', the compiled program with '{}'",
                               failure->message(), outcome.error->message()));
  if (std::string missing = missingRead(model_.model(), wide_->replay);
      outcome.ok() && !missing.empty())
    return differs(missing);

  oracle::Comparison comparison;
  std::optional<Results> results;
  if (outcome.ok()) {
    results = {std::move(expected),
               oracle::fromOutcome(session, model_.model().entry.resultType, outcome.slots)};
    wide_->replay.compareResult(results->expected, results->actual);
    comparison = oracle::compare(results->expected, results->actual, report_.allowed);
  }
  std::string read = wrongRead(model_.model(), wide_->replay, {&report_.allowed, 1});
  if (!comparison.ok || !read.empty()) {
    if (!conditioning_->excuses(instance, reads, wide_->replay, results ? &*results : nullptr))
      return fail(fmt::format("instance {}: {}", instance.index,
                              !read.empty() ? read
                                            : "oracle (f64) and compiled program disagree: " +
                                                  comparison.message));
    ++report_.byConditioning;
    report_.conditioned = conditioning_->greatestBound();
  } else {
    report_.largestError = std::max(report_.largestError, comparison.worst());
    for (const oracle::Replay::Read &each : wide_->replay.reads())
      report_.largestError = std::max(report_.largestError, std::fabs(each.distance));
  }
  if (!outcome.ok() && ++report_.failed == 1)
    report_.firstFailure = fmt::format("instance {}: {}", instance.index, outcome.error->message());
  report_.reads += llvm::count_if(wide_->replay.reads(), [](const oracle::Replay::Read &each) {
    return each.place != oracle::Replay::kResult;
  });
  report_.nearTies += wide_->replay.turned() > 0;
  return true;
}

bool Verifier::sameBits(rt::Session &session, const std::string &how, std::span<const size_t> order,
                        size_t batch) {
  uint32_t type = model_.model().entry.resultType;
  Flattener flattener;
  FlatValue value;
  if (!report_.libraries.empty())
    session.setReadLog(&log_);
  std::vector<rt::Instance> some;
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    some.clear();
    for (size_t i = begin; i < std::min(begin + batch, order.size()); ++i)
      some.push_back(instances_[order[i]]);
    log_.clear();
    std::span<const rt::Outcome> outcomes = session.run(some);
    for (size_t i = 0; i < some.size(); ++i) {
      progress(how.c_str(), static_cast<int64_t>(begin + i));
      const Kept &kept = kept_[order[begin + i]];
      // What is more than any machine has fails everywhere.
      if (kept.lackedMemory != lackedMemory(outcomes[i]) ||
          withoutMemory_.contains(some[i].index)) {
        withoutMemory_.insert(some[i].index);
        continue;
      }
      if (outcomes[i].ok() != kept.ok)
        return fail(fmt::format("instance {}: {} with {}, {} in batches of {}", some[i].index,
                                outcomes[i].ok() ? "runs" : "fails", how,
                                kept.ok ? "runs" : "fails", options_.batch));
      if (!kept.ok) {
        if (outcomes[i].error->message() != kept.error)
          return fail(fmt::format(
              "instance {}: fails with '{}' with {}, with '{}' in batches of {}", some[i].index,
              outcomes[i].error->message(), how, kept.error, options_.batch));
        continue;
      }
      if (!report_.libraries.empty()) {
        // What it is allowed has been told.
        VerifyReport told = report_;
        if (!agrees(some[i], log_.of(i), outcomes[i], session))
          return fail(fmt::format("with {}: {}", how, report_.problem));
        told.largestError = report_.largestError;
        told.conditioned = report_.conditioned;
        report_ = std::move(told);
        continue;
      }
      flattener.flatten(session, type, outcomes[i].slots, value);
      std::string difference = firstDifference(kept.value, value);
      if (!difference.empty())
        return fail(fmt::format("instance {}: results in batches of {} and with {} differ: {}",
                                some[i].index, options_.batch, how, difference));
    }
  }
  return true;
}

bool Verifier::acrossBatches() {
  std::vector<size_t> order(instances_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> shuffled = order;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(1));
  std::set<size_t> sizes = {1, 3, static_cast<size_t>(options_.batch), order.size()};
  // One that holds all instances is enough.
  sizes.erase(sizes.upper_bound(order.size()), sizes.end());
  for (unsigned threads : {1u, 2u}) {
    std::unique_ptr<rt::Session> session = makeSession(threads);
    std::string suffix = threads == 1 ? ", 1 thread" : ", 2 threads";
    for (size_t size : sizes)
      if (!sameBits(*session, fmt::format("batch {}", size) + suffix, order, size))
        return false;
    for (size_t size : {std::min<size_t>(3, order.size()), order.size()})
      if (!sameBits(*session, fmt::format("batch {}, shuffled", size) + suffix, shuffled, size))
        return false;
  }
  for (rt::Policy policy : rt::kOrders) {
    if (policy == rt::Policy::Depth)
      continue; // as above
    std::unique_ptr<rt::Session> session = makeSession(1, policy);
    if (!sameBits(*session, fmt::format("policy {}", rt::policyName(policy)), order, order.size()))
      return false;
  }
  report_.batches.assign(sizes.begin(), sizes.end());
  return true;
}

/// The same mini-batches on as many threads, twice.
bool Verifier::repeats() {
  uint32_t type = model_.model().entry.resultType;
  Flattener flattener;
  size_t batch = static_cast<size_t>(options_.batch);
  for (unsigned threads : {1u, 2u}) {
    std::unique_ptr<rt::Session> first = makeSession(threads), second = makeSession(threads);
    for (size_t begin = 0; begin < instances_.size(); begin += batch) {
      std::span<const rt::Instance> some =
          instances_.subspan(begin, std::min(batch, instances_.size() - begin));
      std::span<const rt::Outcome> one = first->run(some), other = second->run(some);
      for (size_t i = 0; i < some.size(); ++i) {
        progress("again", static_cast<int64_t>(begin + i));
        if (!one[i].ok() || !other[i].ok())
          continue;
        FlatValue a, b;
        flattener.flatten(*first, type, one[i].slots, a);
        flattener.flatten(*second, type, other[i].slots, b);
        if (std::string difference = firstDifference(a, b); !difference.empty())
          return fail(fmt::format("instance {}: the same mini-batch gives other results the second "
                                  "time, on {} thread(s): {}",
                                  some[i].index, threads, difference));
      }
    }
  }
  return true;
}

} // namespace

std::string verifyText(const VerifyReport &r) {
  std::string text;
  if (r.agrees) {
    text += fmt::format("oracle (f64): {} instances agree; largest error {:.2g} of "
                        "max(1, max|b|), allowed {:.0g}{}\n",
                        r.instances, r.largestError, r.allowed,
                        r.precision == Precision::Bf16 ? " (products in bf16)"
                        : r.narrowFloats               ? " (16-bit floats)"
                                                       : "");
    if (r.byConditioning)
      text += fmt::format("  {} of them by {:.0f}x the worst of runs whose roundings go either "
                          "way, at most {:.2g}: their conditioning makes {:.0g} impossible\n",
                          r.byConditioning, kConditioningFactor, r.conditioned, r.allowed);
    if (r.nearTies)
      text += fmt::format("  {} of them decide near-ties otherwise than the oracle would, which "
                          "takes what they read\n",
                          r.nearTies);
    if (r.failed)
      text += fmt::format("  {} of them fail, in both; the first: {}\n", r.failed, r.firstFailure);
  }
  std::string list;
  for (int64_t size : r.batches)
    list += (list.empty() ? "" : size == r.batches.back() ? " and " : ", ") + std::to_string(size);
  if (r.sameBits)
    text += fmt::format("bit-identical in batches of {}, in order and shuffled, on 1 and 2 "
                        "threads, under every policy\n",
                        list);
  if (r.repeats)
    text += fmt::format("products by {}, whose bits depend on the batch: results agree with the "
                        "oracle in batches of {}, in order and shuffled, on 1 and 2 threads, under "
                        "every policy; the same mini-batch twice is bit-identical\n",
                        fmt::join(r.libraries, ", "), list);
  if (!r.problem.empty())
    text += r.problem + "\n";
  return text + (r.ok ? "verified\n" : "NOT verified\n");
}

std::string verifyJson(const VerifyReport &r) {
  Json json = reportJson("verify", 2,
                         {{"model", r.model},
                          {"ok", r.ok},
                          {"instances", r.instances},
                          {"precision", r.precision == Precision::Bf16 ? "bf16" : "f32"},
                          {"agrees_with_oracle", r.agrees},
                          {"largest_error", r.largestError},
                          {"allowed_error", r.allowed},
                          {"by_conditioning", r.byConditioning},
                          {"conditioned_error", r.conditioned},
                          {"reads", r.reads},
                          {"near_ties", r.nearTies},
                          {"failed", r.failed},
                          {"same_bits", r.sameBits},
                          {"batches", r.batches},
                          {"libraries", r.libraries},
                          {"repeats", r.repeats}});
  if (r.failed)
    json["first_failure"] = r.firstFailure;
  if (!r.problem.empty())
    json["problem"] = r.problem;
  return jsonText(json);
}

VerifyReport verify(const CompiledModel &model, std::span<const rt::Instance> instances,
                    const std::function<void(rt::Session &)> &initialise,
                    const VerifyOptions &options) {
  return Verifier(model, instances, initialise, options).run();
}

} // namespace sheaf::driver
