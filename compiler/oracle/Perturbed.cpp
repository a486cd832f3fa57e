//===- Perturbed.cpp - Roundings that go either way -----------------------===//

#include "compiler/oracle/Perturbed.h"
#include "runtime/model/keys.h"

#include "llvm/ADT/APFloat.h"

#include <bit>
#include <cmath>
#include <limits>

namespace sheaf::oracle {
namespace {

/// Kernels make 0 of some results that are next to subnormal: `exp` below -86.9, factors in bf16.
constexpr double kMayBeZero = 0x1p-125;

double convert(double x, const llvm::fltSemantics &semantics, llvm::RoundingMode mode) {
  llvm::APFloat value(x);
  bool losesInfo;
  value.convert(semantics, mode, &losesInfo);
  value.convert(llvm::APFloat::IEEEdouble(), llvm::RoundingMode::NearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

double toNarrow(double x, const llvm::fltSemantics &semantics, bool up) {
  double nearest = convert(x, semantics, llvm::RoundingMode::NearestTiesToEven);
  if (nearest == x || !std::isfinite(nearest))
    return nearest;
  double other = convert(
      x, semantics, up ? llvm::RoundingMode::TowardPositive : llvm::RoundingMode::TowardNegative);
  return std::isfinite(other) ? other : nearest;
}

} // namespace

PerturbedArithmetic::PerturbedArithmetic(uint64_t seed, const ops::Op &op,
                                         const ops::RefTensors &operands, Precision precision)
    : salt_(seed), zeros_(seed % 3 == 0   ? Zeros::None
                          : seed % 3 == 1 ? Zeros::All
                                          : Zeros::Some),
      ulps_(op.ulps), roundsFactors_(precision == Precision::Bf16) {
  // Operators that sum the same in another order round otherwise.
  for (char c : op.name)
    salt_ = rt::splitKey(salt_, static_cast<unsigned char>(c));
  for (size_t i = 0; i < operands.size(); ++i)
    for (int64_t extent : operands[i].shape)
      salt_ = rt::splitKey(salt_, static_cast<uint64_t>(extent));
}

uint64_t PerturbedArithmetic::bitsFor(double x) const {
  return rt::splitKey(salt_ ^ std::bit_cast<uint64_t>(x), 0);
}

double PerturbedArithmetic::round(double x) const {
  auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || !std::isfinite(nearest))
    return nearest;
  uint64_t bits = bitsFor(x);
  if (std::fabs(x) < kMayBeZero && (zeros_ == Zeros::All || (zeros_ == Zeros::Some && bits % 2)))
    return 0;
  if (ulps_ > 1) {
    double ulp = std::fabs(static_cast<double>(std::nextafter(nearest, INFINITY)) - nearest);
    // 32 of the bits as a number from -1 to 1.
    double by =
        static_cast<double>(static_cast<int64_t>(bits >> 32) - (int64_t(1) << 31)) * 0x1p-31;
    return static_cast<float>(x + by * ulps_ * ulp);
  }
  bool up = bits >> 63;
  if ((static_cast<double>(nearest) > x) == up)
    return nearest;
  float other = std::nextafter(nearest, up ? INFINITY : -INFINITY);
  return std::isfinite(other) ? other : nearest;
}

void PerturbedArithmetic::roundAll(std::span<double> values) const {
  for (double &value : values)
    value = round(value);
}

double PerturbedArithmetic::roundFactor(double x) const {
  if (!roundsFactors_)
    return x;
  double rounded = roundStored(x, ops::DType::BF16);
  return std::fabs(rounded) < static_cast<double>(std::numeric_limits<float>::min())
             ? std::copysign(0, x)
             : rounded;
}

double PerturbedArithmetic::roundStored(double x, ops::DType dtype) const {
  if (dtype != ops::DType::BF16 && dtype != ops::DType::F16)
    return x;
  return toNarrow(x,
                  dtype == ops::DType::BF16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf(),
                  bitsFor(x) >> 62 & 1);
}

} // namespace sheaf::oracle
