#include "runtime/cpu/weights.h"

#include "runtime/cpu/packing.h"
#include "runtime/model/convert.h"
#include "runtime/model/error.h"
#include "runtime/model/param_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace sheaf::rt {

namespace {

class ParamReader {
public:
  ParamReader(const ParamDesc &param, const uint8_t *rows)
      : data_(rows + uint64_t(param.id) * kGranuleBytes), dtype_(param.dtype),
        stride_(rowGranules(matrixOf(param).columns, param.dtype) * kGranuleBytes) {}

  /// out[j] = element (row, column + j), j < n
  void readRow(int64_t row, int64_t column, int64_t n, float *out) const {
    const uint8_t *p = data_ + row * stride_ + column * dtypeBytes(dtype_);
    if (dtype_ == DType::F32) {
      std::memcpy(out, p, static_cast<size_t>(n) * sizeof(float));
      return;
    }
    for (int64_t j = 0; j < n; ++j)
      out[j] = elementAsFloat(p + j * dtypeBytes(dtype_), dtype_);
  }
  /// out[j] = element (row + j, column), j < n
  void readColumn(int64_t row, int64_t column, int64_t n, float *out) const {
    const uint8_t *p = data_ + row * stride_ + column * dtypeBytes(dtype_);
    for (int64_t j = 0; j < n; ++j)
      out[j] = elementAsFloat(p + j * stride_, dtype_);
  }
  /// out[i * stride + j] = element (row + j, column + i), i < m, j < n; `out` stays in the cache.
  void readTransposed(int64_t row, int64_t column, int64_t m, int64_t n, float *out,
                      int64_t stride) const {
    if (dtype_ != DType::F32) {
      for (int64_t i = 0; i < m; ++i)
        readColumn(row, column + i, n, out + i * stride);
      return;
    }
    auto rowAt = [&](int64_t j) {
      return data_ + (row + j) * stride_ + column * static_cast<int64_t>(sizeof(float));
    };
    int64_t wholeM = m / 4 * 4, wholeN = n / 4 * 4;
    for (int64_t j = 0; j < wholeN; j += 4)
      for (int64_t i = 0; i < wholeM; i += 4)
        transposeFour(rowAt(j) + i * static_cast<int64_t>(sizeof(float)), stride_,
                      out + i * stride + j, stride);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j < wholeN ? wholeM : 0; i < m; ++i)
        std::memcpy(out + i * stride + j, rowAt(j) + i * static_cast<int64_t>(sizeof(float)),
                    sizeof(float));
  }

private:
  /// 4 x 4 floats; `from` counts in bytes.
  static void transposeFour(const uint8_t *from, int64_t fromStride, float *to, int64_t toStride) {
    using Four = float __attribute__((vector_size(16)));
    Four rows[4];
    for (int64_t j = 0; j < 4; ++j)
      std::memcpy(&rows[j], from + j * fromStride, sizeof(Four));
    Four low[2], high[2];
    for (int64_t j = 0; j < 2; ++j) {
      low[j] = __builtin_shufflevector(rows[2 * j], rows[2 * j + 1], 0, 4, 1, 5);
      high[j] = __builtin_shufflevector(rows[2 * j], rows[2 * j + 1], 2, 6, 3, 7);
    }
    Four columns[4] = {__builtin_shufflevector(low[0], low[1], 0, 1, 4, 5),
                       __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7),
                       __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5),
                       __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7)};
    for (int64_t i = 0; i < 4; ++i)
      std::memcpy(to + i * toStride, &columns[i], sizeof(Four));
  }

  const uint8_t *data_;
  DType dtype_;
  int64_t stride_;
};

/// Those of the changed rows that lie between `first` and `last` of a parameter.
std::pair<int64_t, int64_t> rowsOf(const MatrixRows &changed, size_t param, int64_t first,
                                   int64_t last) {
  if (!changed.param)
    return {first, last};
  if (*changed.param != param)
    return {first, first};
  int64_t begin = std::max(first, changed.begin);
  return {begin, std::max(begin, std::min(last, changed.end))};
}

/// Calls `visit(first, end)` for the columns of each panel that lie between two columns.
template <typename Visit>
void forPanels(const WeightUse &use, int64_t begin, int64_t end, Visit visit) {
  int64_t block = use.vectors * use.lanes; // columns of a panel
  for (int64_t p = begin / block; p * block < end; ++p)
    visit(std::max(begin, p * block), std::min(end, (p + 1) * block));
}

/// Elements of a row lie side by side: so many of them at a time go to as many places.
constexpr int64_t kTransposedRun = 16;

/// Writes what changed rows of parameters become in a copy. Padding is never written: it is zero.
void packPanels(const Model &model, const uint8_t *rows, const WeightUse &use, int64_t depth,
                const MatrixRows &changed, float *out) {
  int64_t views = static_cast<int64_t>(use.views.size());
  int64_t block = use.vectors * use.lanes;
  bool byView = use.kind == WeightUse::PanelsByView;
  int64_t step = byView ? block : views * block;
  for (int64_t g = 0; g < views; ++g) {
    const PackView &view = use.views[static_cast<size_t>(g)];
    auto at = [&](int64_t column, int64_t k) {
      int64_t panel = column / block * depth * views * block;
      return out + panel + g * (byView ? depth * block : block) + k * step + column % block;
    };
    int64_t k = 0;
    for (const PackSegment &s : view.segments) {
      ParamReader reader(model.params[s.param], rows);
      int64_t before = k - s.kBegin;
      k += s.kEnd - s.kBegin;
      if (s.transposed) {
        auto [begin, end] = rowsOf(changed, s.param, view.column, view.column + use.width);
        forPanels(use, begin - view.column, end - view.column, [&](int64_t first, int64_t last) {
          for (int64_t row = s.kBegin; row < s.kEnd; row += kTransposedRun)
            reader.readTransposed(view.column + first, row, std::min(kTransposedRun, s.kEnd - row),
                                  last - first, at(first, before + row), step);
        });
        continue;
      }
      auto [begin, end] = rowsOf(changed, s.param, s.kBegin, s.kEnd);
      for (int64_t row = begin; row < end; ++row)
        forPanels(use, 0, use.width, [&](int64_t first, int64_t last) {
          reader.readRow(row, view.column + first, last - first, at(first, before + row));
        });
    }
  }
}

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void packPair(const float *even, const float *odd, int64_t n, uint32_t *to) {
  for (int64_t j = 0; j < n; ++j)
    to[j] = floatToFactor(even[j]) | static_cast<uint32_t>(floatToFactor(odd[j])) << 16;
}

/// The same where two rows that follow each other share 32 bits.
void packFactors(const Model &model, const uint8_t *rows, const WeightUse &use, int64_t depth,
                 const MatrixRows &changed, uint32_t *out) {
  int64_t views = static_cast<int64_t>(use.views.size());
  int64_t block = use.vectors * use.lanes;
  std::array<float, kMostPackedBlock * kTransposedRun> read; // no more of it than is read
  for (int64_t g = 0; g < views; ++g) {
    const PackView &view = use.views[static_cast<size_t>(g)];
    auto at = [&](int64_t column, int64_t k) {
      return out + ((column / block * (depth / 2) + k / 2) * views + g) * block + column % block;
    };
    int64_t k = 0;
    for (const PackSegment &s : view.segments) {
      ParamReader reader(model.params[s.param], rows);
      int64_t before = k - s.kBegin;
      k += alignUp(s.kEnd - s.kBegin, use.depthMultiple);
      // `count` rows that were read, the first of which is the first of a pair.
      auto write = [&](int64_t row, int64_t count, int64_t first, int64_t last) {
        for (int64_t i = 0; i < count; i += 2) {
          const float *even = read.data() + i * block;
          if (i + 1 == count) // what is behind the last row is zero
            std::fill_n(read.data() + (i + 1) * block, block, 0.0F);
          packPair(even, even + block, last - first, at(first, before + row + i));
        }
      };
      if (s.transposed) {
        auto [begin, end] = rowsOf(changed, s.param, view.column, view.column + use.width);
        forPanels(use, begin - view.column, end - view.column, [&](int64_t first, int64_t last) {
          for (int64_t row = s.kBegin; row < s.kEnd; row += kTransposedRun) {
            int64_t count = std::min(kTransposedRun, s.kEnd - row);
            reader.readTransposed(view.column + first, row, count, last - first, read.data(),
                                  block);
            write(row, count, first, last);
          }
        });
        continue;
      }
      auto [begin, end] = rowsOf(changed, s.param, s.kBegin, s.kEnd);
      begin -= (begin - s.kBegin) % 2;
      for (int64_t row = begin; row < end; row += 2)
        forPanels(use, 0, use.width, [&](int64_t first, int64_t last) {
          int64_t count = std::min<int64_t>(2, s.kEnd - row);
          for (int64_t i = 0; i < count; ++i)
            reader.readRow(row + i, view.column + first, last - first, read.data() + i * block);
          write(row, count, first, last);
        });
    }
  }
}

} // namespace

PackedWeights::PackedWeights(const Model &model, uint8_t *rows, MemoryMeter &meter,
                             MemoryKind &count)
    : model_(model), rows_(rows), meter_(meter), count_(count) {
  PackedCopies copies(model);
  for (const PackedCopies::Copy &copy : copies.copies)
    packed_.push_back({copy.use, copy.depth, copy.bytes, nullptr, nullptr, {nullptr, nullptr}});
  always_ = copies.always;
  for (size_t i = 0; i < model.params.size(); ++i)
    onlyIn_.push_back(copies.onlyIn(i));
  which_ = std::move(copies.which);
  copiesOf_ = std::move(copies.of);
  isKept_.resize(model.params.size());
  for (const CpuKernel &kernel : cpuCode(model).kernels) {
    auto &uses = uses_.emplace_back();
    for (const WeightUse &use : kernel.weights)
      uses.push_back(use.kind == WeightUse::Raw
                         ? rows + uint64_t(model.params[use.param].id) * kGranuleBytes
                         : nullptr);
  }
}

PackedWeights::~PackedWeights() {
  for (const Packed &packed : packed_)
    if (packed.bytes)
      meter_.uncharge(count_, packed.size);
}

void PackedWeights::charge(const Packed &packed) {
  if (!meter_.charge(count_, packed.size))
    throw UserError("the memory limit of " + bytesText(meter_.limit()) +
                    " does not hold the packed weights: " + bytesText(packed.size) +
                    " more are needed beside " + meter_.held().text());
}

void PackedWeights::pack() {
  for (size_t i = 0; i < packed_.size(); ++i) {
    if (i >= always_ && !packed_[i].bytes)
      continue;
    if (!packed_[i].bytes)
      charge(packed_[i]);
    make(packed_[i]);
  }
  publish();
}

bool PackedWeights::packJoined() {
  for (Packed &packed : std::span(packed_).subspan(always_)) {
    if (packed.bytes)
      continue;
    if (!meter_.charge(count_, packed.size))
      return false;
    make(packed);
  }
  publish();
  return true;
}

void PackedWeights::make(Packed &packed) {
  if (packed.use->kind == WeightUse::Foreign)
    return makeForeign(packed);
  if (!packed.own)
    allocate(packed);
  std::set<size_t> rest; // parameters whose rows are there
  bool isWhole = true;
  for (const PackView &view : packed.use->views)
    for (const PackSegment &s : view.segments) {
      isWhole &= !isKept_[s.param];
      if (!isKept_[s.param])
        rest.insert(s.param);
    }
  if (isWhole)
    return packRange(packed, {});
  for (size_t param : rest)
    packRange(packed, {param, 0, matrixOf(model_.params[param]).rows});
}

void PackedWeights::allocate(Packed &packed) {
  packed.own = allocateAligned(packed.size);
  packed.bytes = packed.own.get();
}

bool PackedWeights::keep(size_t param) {
  const std::vector<size_t> &copies = onlyIn_[param];
  auto isOwn = [&](size_t which) { return packed_[which].own || !packed_[which].bytes; };
  if (copies.empty() || !std::all_of(copies.begin(), copies.end(), isOwn))
    return false;
  for (size_t which : copies) {
    if (!packed_[which].own) {
      charge(packed_[which]);
      allocate(packed_[which]);
    }
    packRange(packed_[which], {param, 0, matrixOf(model_.params[param]).rows});
  }
  isKept_[param] = true;
  return true;
}

void PackedWeights::packRange(Packed &packed, const MatrixRows &changed) {
  if (packed.use->isBf16())
    packFactors(model_, rows_, *packed.use, packed.depth, changed,
                reinterpret_cast<uint32_t *>(packed.own.get()));
  else
    packPanels(model_, rows_, *packed.use, packed.depth, changed,
               reinterpret_cast<float *>(packed.own.get()));
}

/// One panel as wide as the views is their matrices side by side.
void PackedWeights::makeForeign(Packed &packed) {
  const WeightUse &use = *packed.use;
  int64_t n = use.width * static_cast<int64_t>(use.views.size());
  std::vector<float> matrix(static_cast<size_t>(packed.depth * n));
  packPanels(model_, rows_, use, packed.depth, {}, matrix.data());
  ProductShape shape{packed.depth, n, use.aStride, use.cStride};
  LibraryProduct *made = use.library->product(&shape, matrix.data());
  if (!made)
    throw UserError(std::string(use.library->name) + " cannot multiply by a matrix of " +
                    std::to_string(packed.depth) + " x " + std::to_string(n));
  packed.foreign = ForeignProduct(made, made->destroy);
  packed.bytes = reinterpret_cast<const uint8_t *>(made);
}

bool PackedWeights::packsRows() const {
  std::span<const Packed> always = std::span(packed_).first(always_);
  return std::all_of(always.begin(), always.end(),
                     [](const Packed &packed) { return packed.own != nullptr; });
}

void PackedWeights::packRows(size_t param, int64_t begin, int64_t end) {
  for (size_t which : copiesOf_[param])
    if (packed_[which].own)
      packRange(packed_[which], {param, begin, end});
}

bool PackedWeights::packsApart(size_t param, int64_t unit) const {
  // Factors hold two rows in 32 bits.
  for (size_t which : copiesOf_[param])
    if (packed_[which].use->isBf16())
      for (const PackView &view : packed_[which].use->views)
        for (const PackSegment &s : view.segments)
          if (s.param == param && !s.transposed && (unit - s.kBegin) % 2 != 0)
            return false;
  return true;
}

void PackedWeights::use(std::span<const std::span<const uint8_t>> copies) {
  if (copies.size() != always_)
    throw InternalError("a model with packed weights of another");
  for (size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].size() != packed_[i].size)
      throw InternalError("a model with packed weights of another");
    charge(packed_[i]);
    packed_[i].bytes = copies[i].data();
  }
  publish();
}

void PackedWeights::publish() {
  for (size_t k = 0; k < which_.size(); ++k)
    for (size_t i = 0; i < which_[k].size(); ++i)
      if (which_[k][i] >= 0)
        uses_[k][i] = packed_[static_cast<size_t>(which_[k][i])].bytes;
}

int64_t PackedWeights::largestCopy(size_t kernel) const {
  int64_t largest = -1;
  for (int64_t copy : which_[kernel])
    if (copy >= 0 && (largest < 0 || packed_[static_cast<size_t>(copy)].size >
                                         packed_[static_cast<size_t>(largest)].size))
      largest = copy;
  return largest;
}

std::vector<std::span<const uint8_t>> PackedWeights::copies() const {
  std::vector<std::span<const uint8_t>> all;
  for (const Packed &packed : std::span(packed_).first(always_)) {
    if (packed.foreign)
      throw InternalError("weights of a library cannot be copied");
    all.emplace_back(packed.bytes, packed.size);
  }
  return all;
}

} // namespace sheaf::rt
