#include "runtime/cpu/native_tiles.h"

#include "runtime/cpu/native.h"
#include "runtime/model/error.h"

#include <algorithm>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace sheaf::rt {

namespace {

/// A hardware tile: 16 lines of 16 words; of bf16 a word holds two records.
constexpr int64_t kLines = 16, kTileWords = kLines * 16, kTileRecords = 32;
/// Records that are packed side by side, and the rows and columns of a result in registers.
constexpr int64_t kBlocks = 8, kSquare = 2 * kLines;
constexpr int64_t kRightWords = kProductColumns / kLines * kBlocks * kTileWords;
constexpr int64_t kLeftWords = 2 * kBlocks * kTileWords, kEdgeWords = kSquare * kSquare;

} // namespace

int64_t tileProductScratchBytes() {
  return (kRightWords + kLeftWords + kEdgeWords) * static_cast<int64_t>(sizeof(uint32_t));
}

#ifdef __x86_64__

#define SHEAF_TILES                                                                                \
  [[gnu::target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16"),                         \
    gnu::always_inline]] inline

namespace {

typedef uint32_t Words __attribute__((vector_size(64)));

/// The rows that a product takes of one side.
struct Side {
  const float *rows;
  const uint32_t *ids;
  int64_t count;
  const float *at(int64_t i, int64_t column) const {
    return rows + int64_t(ids[i]) * kGranuleFloats + column;
  }
};

/// 16 columns of two records that follow each other, rounded, the first in the low halves.
SHEAF_TILES Words pairOf(__m512 first, __m512 second) {
  alignas(64) static constexpr uint16_t kInterleave[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  __m512bh both = _mm512_cvtne2ps_pbh(second, first);
  return (Words)_mm512_permutexvar_epi16(_mm512_load_si512(kInterleave), (__m512i)both);
}

/// Swaps the squares of S words beside the diagonal.
template <int S> SHEAF_TILES void exchange(Words (&lines)[kLines]) {
#define SHEAF_LEFT(l) ((l & S) ? 16 + l - S : l)
#define SHEAF_RIGHT(l) ((l & S) ? 16 + l : l + S)
#define SHEAF_ALL(f)                                                                               \
  f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14),   \
      f(15)
  for (int i = 0; i < kLines; ++i)
    if ((i & S) == 0) {
      Words a = lines[i], b = lines[i + S];
      lines[i] = __builtin_shufflevector(a, b, SHEAF_ALL(SHEAF_LEFT));
      lines[i + S] = __builtin_shufflevector(a, b, SHEAF_ALL(SHEAF_RIGHT));
    }
#undef SHEAF_ALL
#undef SHEAF_RIGHT
#undef SHEAF_LEFT
}

/// A tile of 16 columns and of the records [begin, begin + 32), those after the last one zero: a
/// line has a pair of records. Adds the rows to `sum` one after the other.
SHEAF_TILES void pack(const Side &side, int64_t begin, int64_t column, Words (&lines)[kLines],
                      __m512 &sum) {
  for (int64_t i = 0; i < kLines; ++i) {
    int64_t at = begin + 2 * i;
    __m512 first = _mm512_setzero_ps(), second = first;
    if (at < side.count) {
      first = _mm512_loadu_ps(side.at(at, column));
      sum = _mm512_add_ps(sum, first);
    }
    if (at + 1 < side.count) {
      second = _mm512_loadu_ps(side.at(at + 1, column));
      sum = _mm512_add_ps(sum, second);
    }
    lines[i] = pairOf(first, second);
  }
}

/// 16 columns of all records of a step; with `sums`, also added to these `columns` floats.
SHEAF_TILES void packRight(const Side &side, int64_t begin, int64_t blocks, int64_t column,
                           uint32_t *to, float *sums, int64_t columns) {
  __mmask16 those = static_cast<__mmask16>((1U << columns) - 1);
  __m512 sum = sums ? _mm512_maskz_loadu_ps(those, sums) : _mm512_setzero_ps();
  for (int64_t block = 0; block < blocks; ++block, to += kTileWords) {
    Words lines[kLines];
    pack(side, begin + block * kTileRecords, column, lines, sum);
    memcpy(to, lines, sizeof lines);
  }
  if (sums)
    _mm512_mask_storeu_ps(sums, those, sum);
}

/// The same for the other side, whose lines are columns.
SHEAF_TILES void packLeft(const Side &side, int64_t begin, int64_t blocks, int64_t column,
                          uint32_t *to) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t block = 0; block < blocks; ++block, to += kTileWords) {
    Words lines[kLines];
    pack(side, begin + block * kTileRecords, column, lines, sum);
    exchange<8>(lines);
    exchange<4>(lines);
    exchange<2>(lines);
    exchange<1>(lines);
    memcpy(to, lines, sizeof lines);
  }
}

/// 32 x 32 elements of the result.
SHEAF_TILES void square(const uint32_t *left, const uint32_t *right, int64_t blocks, float *to,
                        int64_t stride, bool add) {
  auto bytes = static_cast<size_t>(stride) * sizeof(float);
  float *below = to + kLines * stride;
  if (add) {
    _tile_loadd(0, to, bytes);
    _tile_loadd(1, to + kLines, bytes);
    _tile_loadd(2, below, bytes);
    _tile_loadd(3, below + kLines, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t block = 0; block < blocks; ++block) {
    _tile_loadd(4, left + block * kTileWords, 64);
    _tile_loadd(6, right + block * kTileWords, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + (kBlocks + block) * kTileWords, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + (kBlocks + block) * kTileWords, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, to, bytes);
  _tile_stored(1, to + kLines, bytes);
  _tile_stored(2, below, bytes);
  _tile_stored(3, below + kLines, bytes);
}

/// A square of which only some rows and columns are the result's: the others are computed of what
/// lies there.
SHEAF_TILES void squareAtEdge(const uint32_t *left, const uint32_t *right, int64_t blocks,
                              float *to, int64_t stride, bool add, int64_t rows, int64_t columns,
                              float *edge) {
  auto bytes = static_cast<size_t>(columns) * sizeof(float);
  if (add)
    for (int64_t row = 0; row < rows; ++row)
      memcpy(edge + row * kSquare, to + row * stride, bytes);
  square(left, right, blocks, edge, kSquare, add);
  for (int64_t row = 0; row < rows; ++row)
    memcpy(to + row * stride, edge + row * kSquare, bytes);
}

/// `back`: the matrix is walked from its last rows to its first, the next step the other way.
SHEAF_TILES void product(const ProductRecord &record, uint8_t *rows, uint32_t *scratch, bool back) {
  auto *base = reinterpret_cast<float *>(rows);
  Side lefts{base, record.left, record.count}, rights{base, record.right, record.count};
  uint32_t *right = scratch, *left = right + kRightWords;
  auto *edge = reinterpret_cast<float *>(left + kLeftWords);
  int64_t stride = int64_t(record.rowStride) * kGranuleFloats;
  float *matrix =
      base + int64_t(record.to) * kGranuleFloats + record.rowBegin * stride + record.columnBegin;
  float *sums =
      record.sums ? base + int64_t(record.sums) * kGranuleFloats + record.rightBegin : nullptr;
  constexpr int64_t tile = kBlocks * kTileWords; // of all records of a step
  for (int64_t begin = 0; begin < record.count; begin += kBlocks * kTileRecords, back = !back) {
    int64_t blocks = std::min(kBlocks, (record.count - begin + kTileRecords - 1) / kTileRecords);
    bool add = record.add || begin > 0;
    for (int64_t column = 0; column < record.columns; column += kLines)
      packRight(rights, begin, blocks, record.rightBegin + column, right + column / kLines * tile,
                sums ? sums + column : nullptr, std::min<int64_t>(kLines, record.columns - column));
    for (int64_t walked = 0; walked < record.rows; walked += kSquare) {
      int64_t row = back ? (record.rows - 1 - walked) / kSquare * kSquare : walked;
      int64_t high = std::min<int64_t>(kSquare, record.rows - row);
      packLeft(lefts, begin, blocks, record.leftBegin + row, left);
      if (high > kLines)
        packLeft(lefts, begin, blocks, record.leftBegin + row + kLines, left + tile);
      for (int64_t column = 0; column < record.columns; column += kSquare) {
        int64_t wide = std::min<int64_t>(kSquare, record.columns - column);
        float *to = matrix + row * stride + column;
        const uint32_t *panel = right + column / kLines * tile;
        if (high == kSquare && wide == kSquare)
          square(left, panel, blocks, to, stride, add);
        else
          squareAtEdge(left, panel, blocks, to, stride, add, high, wide, edge);
      }
    }
  }
}

} // namespace

[[gnu::target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")]] void
tileProducts(const int32_t *records, int64_t begin, int64_t end, int64_t panelBegin,
             int64_t panelEnd, uint8_t *rows, const void *const *, uint8_t *scratch) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, unused[14] = {};
    uint16_t bytesOfLine[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  _tile_loadconfig(&config);
  bool back = panelBegin > panelEnd;
  for (int64_t n = 0; n < end - begin; ++n) {
    int64_t i = back ? end - 1 - n : begin + n;
    ProductRecord record;
    memcpy(&record, records + i * kRecordWords<ProductRecord>, sizeof record);
    product(record, rows, reinterpret_cast<uint32_t *>(scratch), back);
  }
  _tile_release();
}

#else

void tileProducts(const int32_t *, int64_t, int64_t, int64_t, int64_t, uint8_t *,
                  const void *const *, uint8_t *) {
  throw InternalError("a kernel of another processor");
}

#endif

} // namespace sheaf::rt
