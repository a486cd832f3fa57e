//===- Conditioning.cpp - What a program's conditioning excuses -----------===//
#include "compiler/verify/Conditioning.h"

#include "compiler/oracle/Compare.h"
#include "runtime/model/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace sheaf::driver {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Two ways to compute the same in f64.
constexpr double kSame = 1e-5;

bool isSameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

double greatest(std::span<const double> numbers) {
  double most = 0;
  for (double x : numbers)
    if (std::isfinite(x))
      most = std::max(most, std::fabs(x));
  return most;
}

/// What the wide oracle's reads may be off, as perturbed runs that took the same reads have it.
class ReadBounds {
public:
  ReadBounds(const oracle::Replay &wide, double allowed)
      : wide_(wide.reads()), allowed_(allowed), errors_(wide_.size(), 0),
        asCompiled_(wide_.size(), false) {}

  /// Nothing when the run went another way.
  bool add(const oracle::Replay &run) {
    std::span<const oracle::Replay::Read> n = run.reads();
    if (n.size() != wide_.size())
      return false;
    for (size_t i = 0; i < n.size(); ++i) {
      double error = std::fabs(wide_[i].distance - n[i].distance);
      if (std::fabs(n[i].distance) <= (n[i].isFloat ? allowed_ : 0))
        asCompiled_[i] = true;
      if (!std::isfinite(error))
        continue;
      errors_[i] = std::max(errors_[i], error);
      // What one read loses may happen to be small: the greatest at the same place counts. Where
      // the run decides as compiled this says nothing of others.
      if (wide_[i].isFloat || n[i].distance != 0)
        byPlace_[wide_[i].place] = std::max(byPlace_[wide_[i].place], error);
    }
    return true;
  }

  std::vector<double> bounds() const {
    std::vector<double> bounds;
    for (size_t i = 0; i < wide_.size(); ++i) {
      auto place = byPlace_.find(wide_[i].place);
      double error = std::max(errors_[i], place == byPlace_.end() ? 0 : place->second);
      if (std::isinf(wide_[i].distance))
        bounds.push_back(asCompiled_[i] ? kInfinity : allowed_);
      else
        bounds.push_back(std::max(allowed_, kConditioningFactor * error));
    }
    return bounds;
  }

private:
  std::span<const oracle::Replay::Read> wide_;
  double allowed_;
  std::vector<double> errors_;
  std::vector<bool> asCompiled_; ///< some run decides so
  std::map<uint32_t, double> byPlace_;
};

/// What an oracle beside it makes of the instance. Nothing when it fails, if there are results;
/// without, its reads up to there count.
std::optional<oracle::Value> valueBy(Replayed &oracle, const rt::Instance &instance,
                                     std::span<const rt::LoggedRead> reads, const Results *results,
                                     int64_t maxCalls) {
  oracle::Value value;
  try {
    value = results ? oracle.run(instance, reads) : oracle.run(instance, reads, maxCalls);
  } catch (const RunError &) {
    if (results)
      return std::nullopt;
  }
  if (results)
    oracle.replay.compareResult(value, results->actual);
  return value;
}

} // namespace

void Deviation::add(std::vector<double> perturbed) {
  if (perturbed.size() != exact_.size())
    return;
  bool isFinite = true;
  for (size_t i = 0; i < exact_.size(); ++i) {
    double error = std::fabs(perturbed[i] - exact_[i]);
    if (std::isfinite(error))
      worst_ = std::max(worst_, error);
    isFinite &= std::isfinite(perturbed[i]) && std::isfinite(exact_[i]);
  }
  if (!isFinite)
    notFinite_.push_back(std::move(perturbed));
}

bool Deviation::excuses(std::span<const double> actual, double allowed) const {
  allowed = std::max(allowed, bound());
  for (size_t i = 0; i < exact_.size(); ++i) {
    double a = i < actual.size() ? actual[i] : 0;
    if (isSameNumber(a, exact_[i]) || std::fabs(a - exact_[i]) <= allowed)
      continue;
    if (std::isfinite(a - exact_[i]))
      return false;
    bool hasSame = false;
    for (const std::vector<double> &run : notFinite_)
      hasSame |= isSameNumber(run[i], a) || std::fabs(run[i] - a) <= allowed;
    if (!hasSame)
      return false;
  }
  return true;
}

/// The oracle that rounds to bf16 interprets what passes have made of the program, since they
/// decide what is rounded. It must mean the same.
bool Conditioning::isSameUnrounded(const rt::Instance &instance,
                                   std::span<const rt::LoggedRead> reads,
                                   const oracle::Replay &wide, const Results *results) {
  if (!unrounded_)
    unrounded_ = std::make_unique<Replayed>(model_, model_.roundedProgram(), weights_,
                                            oracle::Precision::F64, sampleSeed_);
  std::optional<oracle::Value> value = valueBy(*unrounded_, instance, reads, results, maxCalls_);
  if (!value)
    return false;
  const oracle::Replay &other = unrounded_->replay;
  if (wide.reads().size() != other.reads().size())
    return false;
  for (size_t i = 0; i < wide.reads().size(); ++i) {
    double a = wide.reads()[i].distance, b = other.reads()[i].distance;
    if (a != b && !(std::fabs(a - b) <= kSame))
      return false;
  }
  return !results || oracle::compare(results->expected, *value, kSame).ok;
}

bool Conditioning::excuses(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
                           const oracle::Replay &wide, const Results *results) {
  // Constructors, lengths, ints.
  if (results && !oracle::compare(results->expected, results->actual, kInfinity).ok)
    return false;
  bool isBf16 = model_.precision() == Precision::Bf16;
  if (isBf16 && !isSameUnrounded(instance, reads, wide, results))
    return false;
  if (!narrow_)
    narrow_ = isBf16 ? std::make_unique<Replayed>(model_, model_.roundedProgram(), weights_,
                                                  oracle::Precision::Bf16, sampleSeed_)
                     : std::make_unique<Replayed>(model_, model_.program(), weights_,
                                                  oracle::Precision::F32, sampleSeed_);
  double allowed = wide.near();
  ReadBounds readBounds(wide, allowed);
  std::vector<Deviation> tensors;
  std::vector<std::vector<double>> actual;
  if (results) {
    for (std::vector<double> &numbers : oracle::floatsOf(results->expected))
      tensors.emplace_back(std::move(numbers));
    actual = oracle::floatsOf(results->actual);
  }
  auto isExcused = [&] {
    std::vector<double> bounds = readBounds.bounds();
    if (!bounds.empty() && !wrongRead(model_.model(), wide, bounds).empty())
      return false;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (!tensors[i].excuses(actual[i], allowed * std::max(1.0, greatest(tensors[i].exact()))))
        return false;
    return true;
  };
  for (uint64_t run = 0; run < kPerturbedRuns; ++run) {
    narrow_->perturb(run);
    std::optional<oracle::Value> value = valueBy(*narrow_, instance, reads, results, maxCalls_);
    if (!value || !readBounds.add(narrow_->replay))
      continue;
    if (results) {
      std::vector<std::vector<double>> floats = oracle::floatsOf(*value);
      for (size_t i = 0; i < std::min(tensors.size(), floats.size()); ++i)
        tensors[i].add(std::move(floats[i]));
    }
    if (!isExcused())
      continue;
    for (const Deviation &tensor : tensors)
      greatestBound_ =
          std::max(greatestBound_, tensor.bound() / std::max(1.0, greatest(tensor.exact())));
    return true;
  }
  return false;
}

} // namespace sheaf::driver
