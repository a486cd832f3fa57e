//===- convert.h - Elements as floats, 16-bit floats ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_MODEL_CONVERT_H
#define SHEAF_RUNTIME_MODEL_CONVERT_H

#include "runtime/model/layout.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace sheaf::rt {

inline float bf16ToFloat(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }

/// Rounds to nearest, ties to even; a NaN stays one.
inline uint16_t floatToBF16(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// As factors of bf16 products are rounded: as above, and subnormal numbers are zeros.
inline uint16_t floatToFactor(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7F800000) == 0)
    return static_cast<uint16_t>(bits >> 16 & 0x8000);
  return floatToBF16(f);
}

inline float f16ToFloat(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16;
  uint32_t exponent = h >> 10 & 0x1F, fraction = h & 0x3FF;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13);
  // A subnormal is fraction * 2^-24, exactly.
  if (exponent == 0) {
    float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// Rounds to nearest, ties to even; too large becomes infinite; a NaN stays one.
inline uint16_t floatToF16(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  bits &= 0x7FFFFFFF;
  if (bits > 0x7F800000)
    return static_cast<uint16_t>(sign | 0x7E00);
  if (bits >= 0x477FF000)
    return static_cast<uint16_t>(sign | 0x7C00);
  if (bits < 0x38800000) {
    // The sum's lowest bit is worth 2^-24, the step of subnormals, so the addition rounds.
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000));
  }
  uint32_t odd = bits >> 13 & 1;
  return static_cast<uint16_t>(sign | ((bits - 0x38000000 + 0xFFF + odd) >> 13));
}

/// The element of this type at any address; integers to the nearest float.
inline float elementAsFloat(const uint8_t *at, DType dtype) {
  auto get = [&](auto v) {
    std::memcpy(&v, at, sizeof v);
    return v;
  };
  switch (dtype) {
  case DType::F32:
    return get(float());
  case DType::BF16:
    return bf16ToFloat(get(uint16_t()));
  case DType::F16:
    return f16ToFloat(get(uint16_t()));
  case DType::I64:
    return static_cast<float>(get(int64_t()));
  case DType::I32:
  case DType::Bool:
    return static_cast<float>(get(int32_t()));
  }
  return 0;
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_CONVERT_H
