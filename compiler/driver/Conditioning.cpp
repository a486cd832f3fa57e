//===- Conditioning.cpp - What a program's conditioning excuses -----------===//
#include "compiler/driver/Conditioning.h"

#include "compiler/oracle/Compare.h"
#include "runtime/error.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace sheaf::driver {

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
/// Two ways to compute the same in f64.
constexpr double kSame = 1e-5;

/// What the wide oracle's reads may be off; nothing when the two went different ways. The error of
/// one is a sample that may happen to be small: as for the elements of a tensor it is the greatest
/// of those at the same place that counts.
std::optional<std::vector<double>> boundsOf(const oracle::Replay &wide,
                                            const oracle::Replay &narrow, double allowed) {
  std::span<const oracle::Replay::Read> w = wide.reads(), n = narrow.reads();
  if (w.size() != n.size())
    return std::nullopt;
  std::map<uint32_t, double> errors;
  auto errorOf = [&](size_t i) { return std::fabs(w[i].distance - n[i].distance); };
  for (size_t i = 0; i < w.size(); ++i)
    // Where the narrow one decides as compiled this says nothing of others.
    if (std::isfinite(errorOf(i)) && (w[i].isFloat || n[i].distance != 0))
      errors[w[i].place] = std::max(errors[w[i].place], errorOf(i));
  std::vector<double> bounds;
  for (size_t i = 0; i < w.size(); ++i) {
    bool isAsCompiled = std::fabs(n[i].distance) <= (n[i].isFloat ? allowed : 0);
    if (std::isinf(n[i].distance) || (std::isinf(w[i].distance) && !isAsCompiled))
      bounds.push_back(allowed);
    else if (std::isinf(w[i].distance))
      bounds.push_back(kUnbounded);
    else
      bounds.push_back(std::max({allowed, 4 * errorOf(i), 4 * errors[w[i].place]}));
  }
  return bounds;
}

/// Of the tensors of a result.
bool isNear(const Results &results, const oracle::Value &narrow, double allowed) {
  std::vector<oracle::TensorError> own = oracle::compare(results.expected, narrow, allowed).tensors,
                                   others =
                                       oracle::compare(narrow, results.actual, allowed).tensors;
  std::vector<double> bounds;
  for (size_t i = 0; i < own.size(); ++i) {
    bool isAsCompiled = i < others.size() && others[i].relative() <= allowed;
    bounds.push_back(std::isinf(own[i].maxError) && !isAsCompiled ? 0 : 4 * own[i].maxError);
  }
  return oracle::compare(results.expected, results.actual, allowed, bounds).ok;
}

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
  bool isBf16 = model_.precision() == Precision::Bf16;
  if (isBf16 && !isSameUnrounded(instance, reads, wide, results))
    return false;
  if (!narrow_)
    narrow_ = isBf16 ? std::make_unique<Replayed>(model_, model_.roundedProgram(), weights_,
                                                  oracle::Precision::Bf16, sampleSeed_)
                     : std::make_unique<Replayed>(model_, model_.program(), weights_,
                                                  oracle::Precision::F32, sampleSeed_);
  std::optional<oracle::Value> narrow = valueBy(*narrow_, instance, reads, results, maxCalls_);
  if (!narrow)
    return false;
  double allowed = wide.near();
  std::optional<std::vector<double>> bounds = boundsOf(wide, narrow_->replay, allowed);
  if (!bounds || (!bounds->empty() && !wrongRead(model_.model(), wide, *bounds).empty()))
    return false;
  return !results || isNear(*results, *narrow, allowed);
}

} // namespace sheaf::driver
