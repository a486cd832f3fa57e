//===- half.h - From double to 16-bit floating point ------------*- C++ -*-===//
//
// In one rounding (to nearest, ties to even), which going through float would not be: numbers in
// files are decimals or doubles. NaN becomes a quiet NaN, what is too large infinity.
// runtime/model/convert.h has the conversions from and to float.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_HALF_H
#define SHEAF_RUNTIME_IO_HALF_H

#include <cmath>
#include <cstdint>

namespace sheaf::io {

/// Rounds to `fractionBits` bits of fraction with the given exponent range, in one step.
inline uint16_t roundToHalf(double value, int fractionBits, int minExponent, int maxExponent) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint16_t infinity = static_cast<uint16_t>((maxExponent - minExponent + 2) << fractionBits);
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | infinity | 1u << (fractionBits - 1));
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  if (std::isinf(magnitude))
    return sign | infinity;
  int exponent = std::ilogb(magnitude);
  if (exponent < minExponent)
    exponent = minExponent;
  if (exponent > maxExponent)
    return sign | infinity;
  // Units in the last place; nearbyint rounds to nearest even in the default mode.
  double units = std::nearbyint(std::ldexp(magnitude, fractionBits - exponent));
  // A carry into the exponent comes out right by plain addition, up to infinity.
  int64_t bits =
      (static_cast<int64_t>(exponent - minExponent) << fractionBits) + static_cast<int64_t>(units);
  return static_cast<uint16_t>(sign | (bits >= infinity ? infinity : bits));
}

inline uint16_t toF16(double value) { return roundToHalf(value, 10, -14, 15); }
inline uint16_t toBF16(double value) { return roundToHalf(value, 7, -126, 127); }

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_HALF_H
