#include "runtime/cpu/native.h"

#include "runtime/cpu/native_tiles.h"
#include "runtime/model/convert.h"

#include <algorithm>
#include <cstring>

namespace sheaf::rt {

namespace {

/// Vectors of L floats, and how many of them the registers hold.
template <int L> struct Lanes;
template <> struct Lanes<16> {
  typedef float Vector __attribute__((vector_size(64), aligned(4)));
  static constexpr int kRows = 6, kVectors = 4;
};
template <> struct Lanes<8> {
  typedef float Vector __attribute__((vector_size(32), aligned(4)));
  static constexpr int kRows = 6, kVectors = 2;
};
template <> struct Lanes<4> {
  typedef float Vector __attribute__((vector_size(16), aligned(4)));
  static constexpr int kRows = 4, kVectors = 2;
};

/// Rows that are copied side by side, at most so many: where they come from their distances would
/// have them displace each other in the caches. Of the left ones kStripRows columns at a time lie
/// in the first level, of the right ones all that a record needs in the second.
constexpr int64_t kBlockRows = 96, kStripRows = 48;

#define SHEAF_INLINE [[gnu::always_inline]] inline

//===----------------------------------------------------------------------===//
// Product
//===----------------------------------------------------------------------===//

/// What one tile is computed from: rows of kStripRows and of kPanel floats.
struct TileInput {
  const float *left, *right;
  int64_t count;
  bool add; ///< to what is there
};

/// Columns of a panel.
template <int L> constexpr int64_t kPanel = Lanes<L>::kVectors * L;

/// The first of `columns` lanes of a vector: all, if there are as many.
template <int L, bool Whole>
SHEAF_INLINE typename Lanes<L>::Vector loadLanes(const float *from, int64_t columns) {
  typename Lanes<L>::Vector vector;
  if constexpr (Whole) {
    __builtin_memcpy(&vector, from, sizeof vector);
  } else {
    float lanes[L] = {};
    for (int64_t l = 0; l < L && l < columns; ++l)
      lanes[l] = from[l];
    __builtin_memcpy(&vector, lanes, sizeof vector);
  }
  return vector;
}

template <int L, bool Whole>
SHEAF_INLINE void storeLanes(typename Lanes<L>::Vector vector, float *to, int64_t columns) {
  if constexpr (Whole) {
    __builtin_memcpy(to, &vector, sizeof vector);
  } else {
    float lanes[L];
    __builtin_memcpy(lanes, &vector, sizeof vector);
    for (int64_t l = 0; l < L && l < columns; ++l)
      to[l] = lanes[l];
  }
}

/// An R x C tile of vectors: one chain of multiply-adds for each element. Whole: it is no wider
/// than the matrix.
template <int L, int R, int C, bool Fma, bool Whole>
SHEAF_INLINE void tile(const TileInput &in, float *to, int64_t stride, int64_t columns) {
  using Vector = typename Lanes<L>::Vector;
  Vector sums[R][C];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      sums[r][c] =
          in.add ? loadLanes<L, Whole>(to + r * stride + c * L, columns - c * L) : Vector{};
  // The next tile is that of the rows below.
  if (in.add && Whole)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c)
        __builtin_prefetch(to + (R + r) * stride + c * L, 1);
  auto step = [&](int64_t i) __attribute__((always_inline)) {
    const float *left = in.left + i * kStripRows, *right = in.right + i * kPanel<L>;
    Vector b[C];
    for (int c = 0; c < C; ++c)
      __builtin_memcpy(&b[c], right + c * L, sizeof(Vector));
    for (int r = 0; r < R; ++r) {
      Vector a = left[r] - Vector{};
      for (int c = 0; c < C; ++c) {
        if constexpr (Fma)
          sums[r][c] = __builtin_elementwise_fma(a, b[c], sums[r][c]);
        else
          sums[r][c] = sums[r][c] + a * b[c];
      }
    }
  };
  // Two a turn: see Emitter::emitRun.
  int64_t i = 0;
  for (; i + 2 <= in.count; i += 2) {
    step(i);
    step(i + 1);
  }
  if (i < in.count)
    step(i);
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      storeLanes<L, Whole>(sums[r][c], to + r * stride + c * L, columns - c * L);
}

template <int L, int R, bool Fma>
SHEAF_INLINE void rowsOfTile(TileInput in, float *to, int64_t stride, int64_t columns) {
  if (columns == kPanel<L>) {
    tile<L, R, Lanes<L>::kVectors, Fma, true>(in, to, stride, columns);
    return;
  }
  for (; columns > 0; columns -= L, to += L, in.right += L)
    if (columns >= L)
      tile<L, R, 1, Fma, true>(in, to, stride, L);
    else
      tile<L, R, 1, Fma, false>(in, to, stride, columns);
}

/// Copies `count` floats at `column` of each row to `to`, `stride` floats apart.
SHEAF_INLINE void gather(const float *rows, const uint32_t *ids, int64_t begin, int64_t end,
                         int64_t column, int64_t count, float *to, int64_t stride) {
  for (int64_t i = begin; i < end; ++i, to += stride) {
    const float *from = rows + int64_t(ids[i]) * kGranuleFloats + column;
    int64_t at = 0;
    for (; at + kGranuleFloats <= count; at += kGranuleFloats)
      __builtin_memcpy(to + at, from + at, kGranuleBytes);
    for (; at < count; ++at)
      to[at] = from[at];
  }
}

/// Adds rows of a panel to `to`, one after the other.
template <int L>
SHEAF_INLINE void addRows(const float *rows, int64_t count, float *to, int64_t columns) {
  using Vector = typename Lanes<L>::Vector;
  for (int64_t column = 0; column < columns; column += L) {
    float lanes[L] = {};
    int64_t size = std::min<int64_t>(columns - column, L);
    for (int64_t l = 0; l < size; ++l)
      lanes[l] = to[column + l];
    Vector sum;
    __builtin_memcpy(&sum, lanes, sizeof sum);
    for (int64_t i = 0; i < count; ++i) {
      Vector x;
      __builtin_memcpy(&x, rows + i * kPanel<L> + column, sizeof x);
      sum += x;
    }
    __builtin_memcpy(lanes, &sum, sizeof sum);
    for (int64_t l = 0; l < size; ++l)
      to[column + l] = lanes[l];
  }
}

/// Rows that are copied later: their lines are asked for, a part at a time, while tiles are
/// computed.
struct RowsAhead {
  const float *rows = nullptr;
  const uint32_t *ids = nullptr;
  int64_t count = 0, column = 0, width = 0;

  SHEAF_INLINE void ask(int64_t part, int64_t parts) const {
    for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
      const float *from = rows + int64_t(ids[i]) * kGranuleFloats + column;
      for (int64_t at = 0; at < width; at += kGranuleFloats)
        __builtin_prefetch(from + at, 0, 2);
    }
  }
};

/// Records one after the other that take the same columns of the same right rows, which are copied
/// for all of them at once.
struct ProductGroup {
  static constexpr int64_t kMost = 4;
  ProductRecord records[kMost];
  int64_t count = 0;

  bool takes(const ProductRecord &record) const {
    const ProductRecord &first = records[0];
    return count == 0 ||
           (count < kMost && record.right == first.right && record.count == first.count &&
            record.columns == first.columns && record.rightBegin == first.rightBegin);
  }

  /// Rows of a matrix whose left columns are copied together.
  struct Strip {
    const ProductRecord *record;
    int64_t begin, rows;
  };
  static int64_t stripsOf(const ProductRecord &record) {
    return (record.rows + kStripRows - 1) / kStripRows;
  }
  int64_t strips() const {
    int64_t all = 0;
    for (int64_t i = 0; i < count; ++i)
      all += stripsOf(records[i]);
    return all;
  }
  /// `back`: from the last to the first.
  Strip strip(int64_t number, bool back) const {
    const ProductRecord *record = records;
    if (back)
      number = strips() - 1 - number;
    for (; number >= stripsOf(*record); ++record)
      number -= stripsOf(*record);
    int64_t begin = number * kStripRows;
    return {record, begin, std::min<int64_t>(kStripRows, record->rows - begin)};
  }
};

/// The rows of one strip in all columns.
template <int L, bool Fma>
SHEAF_INLINE void stripOfProduct(const ProductGroup::Strip &strip, float *base, const float *lefts,
                                 const float *rights, int64_t count, bool add,
                                 const auto &askForPanel) {
  const ProductRecord &record = *strip.record;
  int64_t stride = int64_t(record.rowStride) * kGranuleFloats;
  float *matrix = base + int64_t(record.to) * kGranuleFloats +
                  (record.rowBegin + strip.begin) * stride + record.columnBegin;
  for (int64_t column = 0; column < record.columns; column += kPanel<L>) {
    int64_t columns = std::min<int64_t>(kPanel<L>, record.columns - column);
    askForPanel(column / kPanel<L>);
    for (int64_t row = 0; row < strip.rows;) {
      TileInput in{lefts + row, rights + column * kBlockRows, count, add};
      float *to = matrix + row * stride + column;
      if (strip.rows - row >= Lanes<L>::kRows) {
        rowsOfTile<L, Lanes<L>::kRows, Fma>(in, to, stride, columns);
        row += Lanes<L>::kRows;
      } else if (strip.rows - row >= 2) {
        rowsOfTile<L, 2, Fma>(in, to, stride, columns);
        row += 2;
      } else {
        rowsOfTile<L, 1, Fma>(in, to, stride, columns);
        ++row;
      }
    }
  }
}

/// `back`: matrices are walked from their last rows to their first, the next block the other way.
/// `next` comes after the group, or is null.
template <int L, bool Fma>
SHEAF_INLINE void product(const ProductGroup &group, const ProductRecord *next, uint8_t *rows,
                          float *scratch, bool back) {
  float *base = reinterpret_cast<float *>(rows);
  float *lefts = scratch, *rights = scratch + kBlockRows * kStripRows;
  const ProductRecord &first = group.records[0];
  int64_t strips = group.strips(), panels = (first.columns + kPanel<L> - 1) / kPanel<L>;
  // Blocks are as equal as they can be.
  auto lengthOf = [](const ProductRecord &record, int64_t begin) {
    int64_t count = record.count, blocks = (count + kBlockRows - 1) / kBlockRows;
    return std::min((count + blocks - 1) / blocks, count - begin);
  };
  auto rightAhead = [&](const ProductRecord &record, int64_t begin) {
    return RowsAhead{base, record.right + begin, lengthOf(record, begin), record.rightBegin,
                     record.columns};
  };
  for (int64_t begin = 0, end; begin < first.count; begin = end, back = !back) {
    int64_t count = lengthOf(first, begin);
    end = begin + count;
    for (int64_t column = 0; column < first.columns; column += kPanel<L>) {
      int64_t columns = std::min<int64_t>(kPanel<L>, first.columns - column);
      float *panel = rights + column * kBlockRows;
      gather(base, first.right, begin, end, first.rightBegin + column, columns, panel, kPanel<L>);
      for (int64_t i = 0; i < group.count; ++i)
        if (uint32_t sums = group.records[i].sums)
          addRows<L>(panel, count,
                     base + int64_t(sums) * kGranuleFloats + first.rightBegin + column, columns);
    }
    RowsAhead right;
    if (end < first.count)
      right = rightAhead(first, end);
    else if (next)
      right = rightAhead(*next, 0);
    for (int64_t number = 0; number < strips; ++number) {
      ProductGroup::Strip strip = group.strip(number, back);
      gather(base, strip.record->left, begin, end, strip.record->leftBegin + strip.begin,
             strip.rows, lefts, kStripRows);
      RowsAhead left;
      if (number + 1 < strips) {
        ProductGroup::Strip behind = group.strip(number + 1, back);
        left = {base, behind.record->left + begin, count, behind.record->leftBegin + behind.begin,
                behind.rows};
      }
      stripOfProduct<L, Fma>(strip, base, lefts, rights, count, strip.record->add || begin > 0,
                             [&](int64_t panel) {
                               left.ask(panel, panels);
                               right.ask(number * panels + panel, strips * panels);
                             });
    }
  }
}

template <int L, bool Fma>
SHEAF_INLINE void products(const int32_t *records, int64_t begin, int64_t end, uint8_t *rows,
                           uint8_t *scratch, bool back) {
  ProductGroup group;
  for (int64_t n = 0; n <= end - begin; ++n) {
    ProductRecord record;
    bool isEnd = n == end - begin;
    if (!isEnd)
      memcpy(&record, records + (back ? end - 1 - n : begin + n) * kRecordWords<ProductRecord>,
             sizeof record);
    if (!isEnd && group.takes(record)) {
      group.records[group.count++] = record;
      continue;
    }
    if (group.count)
      product<L, Fma>(group, isEnd ? nullptr : &record, rows, reinterpret_cast<float *>(scratch),
                      back);
    group.records[0] = record;
    group.count = 1;
  }
}

//===----------------------------------------------------------------------===//
// Sum
//===----------------------------------------------------------------------===//

float toFloat(uint16_t x, DType dtype) {
  return dtype == DType::BF16 ? bf16ToFloat(x) : f16ToFloat(x);
}

/// A granule of 16-bit floats: summed in f32, rounded once.
void sumNarrow(const SumRecord &record, uint8_t *rows, int64_t granule) {
  constexpr int64_t n = kGranuleBytes / 2;
  auto dtype = static_cast<DType>(record.dtype);
  auto *to = reinterpret_cast<uint16_t *>(rows + (record.to + granule) * kGranuleBytes);
  float sums[n] = {};
  auto add = [&](const uint16_t *from) {
    for (int64_t i = 0; i < n; ++i)
      sums[i] += toFloat(from[i], dtype);
  };
  if (record.add)
    add(to);
  for (uint32_t s = 0; s < record.count; ++s)
    add(reinterpret_cast<const uint16_t *>(
        rows + (uint64_t(record.sources[s]) + record.offset + granule) * kGranuleBytes));
  for (int64_t i = 0; i < n; ++i)
    to[i] = dtype == DType::BF16 ? floatToBF16(sums[i]) : floatToF16(sums[i]);
}

/// G granules at a time in registers.
template <int L, int G>
SHEAF_INLINE void sumGranules(const SumRecord &record, uint8_t *rows, int64_t granule) {
  using Vector = typename Lanes<L>::Vector;
  constexpr int n = G * static_cast<int>(kGranuleFloats) / L;
  float *to = reinterpret_cast<float *>(rows + (record.to + granule) * kGranuleBytes);
  Vector sums[n] = {};
  uint32_t s = 0;
  if (record.add)
    __builtin_memcpy(sums, to, sizeof sums);
  else if (record.count) // the sum of one keeps its bits, the sign of zero included
    __builtin_memcpy(
        sums, rows + (uint64_t(record.sources[s++]) + record.offset + granule) * kGranuleBytes,
        sizeof sums);
  for (; s < record.count; ++s) {
    const uint8_t *from =
        rows + (uint64_t(record.sources[s]) + record.offset + granule) * kGranuleBytes;
    for (int i = 0; i < n; ++i) {
      Vector x;
      __builtin_memcpy(&x, from + i * sizeof(Vector), sizeof x);
      sums[i] += x;
    }
  }
  __builtin_memcpy(to, sums, sizeof sums);
}

template <int L>
SHEAF_INLINE void sums(const int32_t *records, int64_t begin, int64_t end, uint8_t *rows, uint8_t *,
                       bool) {
  for (int64_t i = begin; i < end; ++i) {
    SumRecord record;
    memcpy(&record, records + i * kRecordWords<SumRecord>, sizeof record);
    int64_t granule = 0;
    if (static_cast<DType>(record.dtype) != DType::F32) {
      for (; granule < record.granules; ++granule)
        sumNarrow(record, rows, granule);
      continue;
    }
    for (; granule + 4 <= record.granules; granule += 4)
      sumGranules<L, 4>(record, rows, granule);
    for (; granule < record.granules; ++granule)
      sumGranules<L, 1>(record, rows, granule);
  }
}

//===----------------------------------------------------------------------===//
// For each machine
//===----------------------------------------------------------------------===//

#define SHEAF_KERNEL(name, target, body)                                                           \
  target void name(const int32_t *records, int64_t begin, int64_t end, int64_t panelBegin,         \
                   int64_t panelEnd, uint8_t *rows, const void *const *, uint8_t *scratch) {       \
    body(records, begin, end, rows, scratch, panelBegin > panelEnd);                               \
  }

#if defined(__x86_64__)
SHEAF_KERNEL(products512, [[gnu::target("avx512f,fma")]], (products<16, true>))
SHEAF_KERNEL(products256, [[gnu::target("avx2,fma")]], (products<8, true>))
SHEAF_KERNEL(products128, , (products<4, false>))
SHEAF_KERNEL(sums512, [[gnu::target("avx512f")]], sums<16>)
SHEAF_KERNEL(sums256, [[gnu::target("avx2")]], sums<8>)
SHEAF_KERNEL(sums128, , sums<4>)

KernelFn productsFor(bool fma) {
  if (!fma)
    return products128;
  return __builtin_cpu_supports("avx512f") ? products512 : products256;
}
KernelFn sumsFor() {
  return __builtin_cpu_supports("avx512f") ? sums512
         : __builtin_cpu_supports("avx2")  ? sums256
                                           : sums128;
}
#else
SHEAF_KERNEL(productsFused, , (products<4, true>))
SHEAF_KERNEL(productsPlain, , (products<4, false>))
SHEAF_KERNEL(sums128, , sums<4>)

KernelFn productsFor(bool fma) { return fma ? productsFused : productsPlain; }
KernelFn sumsFor() { return sums128; }
#endif

KernelDesc describe(const char *name, uint32_t words) {
  KernelDesc kernel;
  kernel.name = name;
  kernel.words = words;
  kernel.source = "gradients";
  return kernel;
}

/// The word of a record that a member begins with; of a longer one the low word.
template <typename Record, typename Member> uint32_t wordOf(Member Record::*member) {
  Record record{};
  auto *at = reinterpret_cast<std::byte *>(&(record.*member));
  return static_cast<uint32_t>(static_cast<size_t>(at - reinterpret_cast<std::byte *>(&record)) /
                               sizeof(int32_t));
}

/// Whether gradients of weights are products of bf16 factors, by AMX.
bool hasTileProducts(const CpuCode &code) { return code.tiles && kTileProducts; }

} // namespace

/// Rows of whole tiles, and columns of whole panels, of any machine. The costs, of copying a float
/// and of packing it for AMX, are estimates.
ProductUnits CpuCode::productUnits() const {
  return hasTileProducts(*this) ? ProductUnits{32, 64, 64} : ProductUnits{12, 64, 8};
}

void addNativeKernels(Model &model, bool fma, bool serpentine) {
  CpuCode &code = cpuCode(model);
  model.kernels.push_back(describe("gradient sums", kRecordWords<SumRecord>));
  uint32_t granules = wordOf(&SumRecord::granules);
  model.kernels.back().bytes = {{kGranuleBytes, {granules, wordOf(&SumRecord::count)}},
                                {kGranuleBytes, {granules}}};
  code.kernels.emplace_back().fn = sumsFor();
  bool tiles = hasTileProducts(code);
  model.kernels.push_back(describe("weight gradients", kRecordWords<ProductRecord>));
  KernelDesc &product = model.kernels.back();
  uint32_t rows = wordOf(&ProductRecord::rows), columns = wordOf(&ProductRecord::columns);
  uint32_t count = wordOf(&ProductRecord::count);
  product.flop = {{2, {rows, columns, count}}};
  product.bytes = {{4, {rows, count}}, {4, {columns, count}}, {8, {rows, columns}}};
  CpuKernel &products = code.kernels.emplace_back();
  products.fn = tiles ? tileProducts : productsFor(fma);
  products.serpentine = serpentine;
  products.scratchBytes =
      tiles ? tileProductScratchBytes()
            : kBlockRows * (kStripRows + kProductColumns) * static_cast<int64_t>(sizeof(float));
}

} // namespace sheaf::rt
