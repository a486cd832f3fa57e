//===- Arithmetic.cpp - What numbers are rounded to -----------------------===//

#include "compiler/oracle/Compute.h"
#include "runtime/model/convert.h"

namespace sheaf::oracle {
namespace {

struct ToF32 : ops::Arithmetic {
  double round(double x) const override { return static_cast<float>(x); }
  void roundAll(std::span<double> values) const override {
    for (double &value : values)
      value = static_cast<float>(value);
  }
};
struct ToBf16 : ToF32 {
  double roundFactor(double x) const override {
    return rt::bf16ToFloat(rt::floatToFactor(static_cast<float>(x)));
  }
};
struct ToF64 : ops::Arithmetic {
  double round(double x) const override { return x; }
  void roundAll(std::span<double>) const override {}
};

} // namespace

const ops::Arithmetic &arithmeticOf(Precision precision) {
  static const ToF32 toF32;
  static const ToBf16 toBf16;
  static const ToF64 toF64;
  switch (precision) {
  case Precision::F64:
    return toF64;
  case Precision::F32:
    return toF32;
  case Precision::Bf16:
    return toBf16;
  }
  return toF64;
}

} // namespace sheaf::oracle
