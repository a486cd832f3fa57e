//===- Replayed.cpp - The oracle beside a compiled program ----------------===//
#include "compiler/verify/Replayed.h"

#include "compiler/oracle/Convert.h"
#include "runtime/model/members.h"

#include "mlir/IR/BuiltinTypes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sheaf::driver {

namespace {

/// Made in a tenth of a second or so.
constexpr int64_t kMoreCalls = 10'000;

/// Whether values of this type hold tensors of ints or bools.
bool hasIntTensors(const rt::TypeTable &types, uint32_t type) {
  std::vector<bool> held = rt::reachableTypes(types, {type});
  for (size_t i = 0; i < held.size(); ++i) {
    const rt::TypeDesc &desc = types.types[i];
    bool isInt = desc.dtype == rt::DType::I32 || desc.dtype == rt::DType::I64 ||
                 desc.dtype == rt::DType::Bool;
    if (held[i] && desc.kind == rt::TypeKind::Tensor && isInt)
      return true;
  }
  return false;
}

} // namespace

double allowedError(const CompiledModel &model) { return roundsTo16Bits(model) ? 2e-2 : 1e-5; }

int64_t mostCalls(int64_t maxSteps) {
  return std::min(maxSteps, std::numeric_limits<int64_t>::max() - kMoreCalls) + kMoreCalls;
}

Replayed::Replayed(const CompiledModel &model, mlir::ModuleOp program, oracle::Weights weights,
                   oracle::Precision precision, uint64_t sampleSeed)
    : replay(model.readPaths(), allowedError(model),
             hasIntTensors(model.model().types, model.model().entry.resultType)),
      model_(model.model()), oracle_(program, std::move(weights), precision,
                                     {.sampleSeed = sampleSeed, .replay = &replay}) {}

oracle::Value Replayed::run(const rt::Instance &instance, std::span<const rt::LoggedRead> reads,
                            int64_t maxCalls) {
  replay.expect(reads);
  oracle_.limitCalls(maxCalls);
  std::vector<oracle::Value> values = oracle_.run(
      model_.entry.name, oracle::fromInstance(model_.types, model_.entry.argTypes, instance.args),
      instance.index);
  oracle::Value emitted;
  if (model_.entry.emits) {
    emitted = std::move(values.back());
    values.pop_back();
  }
  oracle::Value result =
      values.size() == 1 ? std::move(values[0]) : oracle::makeTuple(std::move(values));
  return model_.entry.emits ? oracle::makeTuple({std::move(result), std::move(emitted)}) : result;
}

std::string wrongRead(const rt::Model &model, const oracle::Replay &replay,
                      std::span<const double> allowed) {
  std::span<const oracle::Replay::Read> reads = replay.reads();
  for (size_t i = 0; i < reads.size(); ++i) {
    const oracle::Replay::Read &read = reads[i];
    double distance = std::fabs(read.distance), bound = allowed[allowed.size() == 1 ? 0 : i];
    if (distance <= bound)
      continue;
    bool isResult = read.place == oracle::Replay::kResult;
    std::string text =
        fmt::format("{} {:.9g}, the oracle {:.9g}",
                    isResult ? "the result holds the decision"
                             : model.readPlaces.at(read.place) + ": the compiled program reads",
                    read.logged, read.own);
    if (!read.isComplete)
      return text + "; near-ties may explain it, but there are too many to try them all";
    if (std::isinf(distance))
      return text;
    return text + fmt::format(": {:.2g} of max(1, |b|) {}; allowed {:.2g}", distance,
                              read.isFloat ? "apart" : "from deciding so", bound);
  }
  return {};
}

std::string missingRead(const rt::Model &model, const oracle::Replay &replay) {
  auto read = replay.leftOver();
  return read ? model.readPlaces.at(read->place) +
                    ": the compiled program reads what the oracle does not come to"
              : "";
}

} // namespace sheaf::driver
