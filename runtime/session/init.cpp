#include "runtime/session/init.h"

#include "runtime/model/convert.h"
#include "runtime/model/error.h"

#include <cmath>
#include <cstring>

// The same bits on every machine: no fused multiply-add unless it is written.
#pragma clang fp contract(off)

namespace sheaf::rt {

namespace {

uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

uint64_t fnv1a(const std::string &text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001B3;
  return hash;
}

// The C library's log, sin and cos differ from machine to machine in the last bit; these use
// additions, multiplications and divisions only.

/// Natural logarithm of x in (0, 1].
double logOf(double x) {
  int exponent;
  double m = std::frexp(x, &exponent); // exact: m in [0.5, 1)
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  // ln m = 2 atanh(t), |t| <= 0.1716, so 12 terms leave less than 2^-60.
  double t = (m - 1) / (m + 1);
  double t2 = t * t;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2)
    sum = sum * t2 + 1.0 / k;
  return exponent * 0.69314718055994530942 + 2 * t * sum;
}

/// sin and cos of 2 pi u, u in [0, 1).
void sinCosTurn(double u, double &sine, double &cosine) {
  int quarter = static_cast<int>(u * 4 + 0.5);
  double x = (u - quarter * 0.25) * 6.28318530717958647693; // the difference is exact
  double x2 = x * x;
  // Taylor series, |x| <= pi/4: the next terms are below 2^-60.
  double s = 1, c = 1;
  for (int k = 17; k >= 3; k -= 2)
    s = 1 - s * x2 / (static_cast<double>(k) * (k - 1));
  s = x * s;
  for (int k = 18; k >= 2; k -= 2)
    c = 1 - c * x2 / (static_cast<double>(k) * (k - 1));
  switch (quarter & 3) {
  case 0:
    sine = s, cosine = c;
    break;
  case 1:
    sine = c, cosine = -s;
    break;
  case 2:
    sine = -s, cosine = -c;
    break;
  default:
    sine = -c, cosine = s;
  }
}

class Generator {
public:
  Generator(uint64_t seed, const std::string &name) : key_(mix(seed ^ fnv1a(name))) {}

  double uniform(uint64_t i) const {
    return static_cast<double>(mix(key_ + (i + 1) * 0x9E3779B97F4A7C15) >> 11) * 0x1p-53;
  }
  double normal(uint64_t i) const {
    uint64_t pair = i & ~uint64_t(1);
    double r = std::sqrt(-2 * logOf(1 - uniform(pair)));
    double sine, cosine;
    sinCosTurn(uniform(pair + 1), sine, cosine);
    return r * (i & 1 ? sine : cosine);
  }

private:
  uint64_t key_;
};

void store(uint8_t *out, DType dtype, size_t i, double value) {
  auto put = [&](auto v) { std::memcpy(out + i * sizeof v, &v, sizeof v); };
  switch (dtype) {
  case DType::F32:
    return put(static_cast<float>(value));
  case DType::BF16:
    return put(floatToBF16(static_cast<float>(value)));
  case DType::F16:
    return put(floatToF16(static_cast<float>(value)));
  case DType::I32:
    return put(static_cast<int32_t>(value));
  case DType::I64:
    return put(static_cast<int64_t>(value));
  case DType::Bool:
    return put(static_cast<int32_t>(value != 0));
  }
}

/// Row-major [rows, columns], rows <= columns: orthonormal rows out of normal numbers, by
/// Gram-Schmidt done twice.
std::vector<double> orthonormalRows(const Generator &generator, uint64_t first, int64_t rows,
                                    int64_t columns) {
  std::vector<double> m(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < m.size(); ++i)
    m[i] = generator.normal(first + i);
  for (int64_t r = 0; r < rows; ++r) {
    double *row = &m[static_cast<size_t>(r * columns)];
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t q = 0; q < r; ++q) {
        const double *other = &m[static_cast<size_t>(q * columns)];
        double dot = 0;
        for (int64_t c = 0; c < columns; ++c)
          dot += row[c] * other[c];
        for (int64_t c = 0; c < columns; ++c)
          row[c] -= dot * other[c];
      }
    }
    double square = 0;
    for (int64_t c = 0; c < columns; ++c)
      square += row[c] * row[c];
    double length = std::sqrt(square);
    for (int64_t c = 0; c < columns; ++c)
      row[c] = length > 0 ? row[c] / length : 0;
  }
  return m;
}

[[noreturn]] void refuse(const ParamDesc &param, const std::string &why) {
  throw UserError("parameter '" + param.name + "': " + why);
}

} // namespace

std::vector<uint8_t> initialise(const ParamDesc &param, uint64_t seed) {
  int64_t count = 1;
  for (int64_t extent : param.shape)
    count *= extent;
  size_t n = static_cast<size_t>(count);
  std::vector<uint8_t> out(n * static_cast<size_t>(dtypeBytes(param.dtype)));
  size_t rank = param.shape.size();
  int64_t columns = rank ? param.shape[rank - 1] : 1;
  int64_t rows = rank >= 2 ? param.shape[rank - 2] : columns;

  Generator generator(seed, param.name);
  const std::vector<double> &args = param.initArgs;
  auto expect = [&](size_t least, size_t most) {
    if (args.size() < least || args.size() > most)
      refuse(param, "initialiser '" + param.init + "' takes " +
                        (least == most ? std::to_string(least)
                                       : std::to_string(least) + " to " + std::to_string(most)) +
                        (most == 1 ? " argument" : " arguments") + ", got " +
                        std::to_string(args.size()));
    // The compiler's own constants may be infinite, or NaN, as the program has them.
    for (double arg : args)
      if (!std::isfinite(arg) && !param.synthetic)
        refuse(param, "initialiser '" + param.init + "' takes finite numbers");
  };
  auto fill = [&](auto element) {
    for (size_t i = 0; i < n; ++i)
      store(out.data(), param.dtype, i, element(i));
  };
  auto uniform = [&](double lo, double hi) {
    fill([&](size_t i) { return lo + (hi - lo) * generator.uniform(i); });
  };
  auto normal = [&](double mean, double std) {
    fill([&](size_t i) { return mean + std * generator.normal(i); });
  };

  const std::string &kind = param.init;
  if (kind.empty() || kind == "zeros") {
    expect(0, 0);
  } else if (kind == "ones") {
    expect(0, 0);
    fill([](size_t) { return 1.0; });
  } else if (kind == "constant") {
    expect(1, 1);
    fill([&](size_t) { return args[0]; });
  } else if (kind == "identity") {
    expect(0, 0);
    if (rank < 2)
      refuse(param, "initialiser 'identity' needs a matrix");
    size_t c = static_cast<size_t>(columns), r = static_cast<size_t>(rows);
    fill([&](size_t i) { return i % c == i / c % r ? 1.0 : 0.0; });
  } else if (kind == "normal") {
    expect(1, 2);
    args.size() == 2 ? normal(args[0], args[1]) : normal(0, args[0]);
  } else if (kind == "uniform") {
    expect(1, 2);
    args.size() == 2 ? uniform(args[0], args[1]) : uniform(-args[0], args[0]);
  } else if (kind == "glorot") {
    expect(0, 0);
    double bound = std::sqrt(6.0 / static_cast<double>(std::max<int64_t>(rows + columns, 1)));
    uniform(-bound, bound);
  } else if (kind == "he") {
    expect(0, 0);
    normal(0, std::sqrt(2.0 / static_cast<double>(std::max<int64_t>(rows, 1))));
  } else if (kind == "orthogonal") {
    expect(0, 1);
    if (rank < 2)
      refuse(param, "initialiser 'orthogonal' needs a matrix");
    double gain = args.empty() ? 1 : args[0];
    int64_t size = rows * columns;
    bool wide = rows <= columns;
    for (int64_t first = 0; size > 0 && first < count; first += size) {
      std::vector<double> m = orthonormalRows(generator, static_cast<uint64_t>(first),
                                              wide ? rows : columns, wide ? columns : rows);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          store(out.data(), param.dtype, static_cast<size_t>(first + r * columns + c),
                gain * m[static_cast<size_t>(wide ? r * columns + c : c * rows + r)]);
    }
  } else {
    refuse(param, "unknown initialiser '" + kind + "'");
  }
  return out;
}

} // namespace sheaf::rt
