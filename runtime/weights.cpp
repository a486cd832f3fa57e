#include "runtime/weights.h"

#include "runtime/convert.h"

#include <cstring>
#include <map>

namespace sheaf::rt {

namespace {

/// A parameter as a matrix: leading axes and rows together, and the last axis.
struct Matrix {
  int64_t rows, columns;
};
Matrix matrixOf(const ParamDesc &param) {
  Matrix m{1, param.shape.empty() ? 1 : param.shape.back()};
  for (size_t i = 0; i + 1 < param.shape.size(); ++i)
    m.rows *= param.shape[i];
  return m;
}

/// A use as a key: equal keys, equal bytes.
std::vector<int64_t> keyOf(const WeightUse &use) {
  std::vector<int64_t> key{use.width, use.lanes, use.vectors, use.factors, use.depthMultiple};
  for (const PackView &view : use.views) {
    key.push_back(-1);
    key.push_back(view.column);
    for (const PackSegment &s : view.segments)
      key.insert(key.end(), {s.param, s.kBegin, s.kEnd, s.transposed});
  }
  return key;
}

int64_t alignUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// The extent of the contraction as it is packed.
int64_t packedDepth(const PackView &view, const WeightUse &use) {
  int64_t depth = 0;
  for (const PackSegment &s : view.segments)
    depth += alignUp(s.kEnd - s.kBegin, use.depthMultiple);
  return depth;
}

/// The same, after checking that every element asked for exists.
int64_t checkedDepth(const Model &model, const KernelDesc &kernel, const WeightUse &use) {
  auto refuse = [&](const char *why) {
    throw InternalError("kernel '" + kernel.name + "': packed weight " + why);
  };
  if (use.lanes <= 0 || use.vectors <= 0 || use.width < 0 || use.views.empty())
    refuse("without lanes, vectors or views");
  if (use.depthMultiple <= 0 || use.depthMultiple % (use.factors ? 2 : 1) != 0)
    refuse("of an impossible depth");
  int64_t depth = -1;
  for (const PackView &view : use.views) {
    for (const PackSegment &s : view.segments) {
      if (s.param >= model.params.size())
        refuse("of no parameter");
      Matrix m = matrixOf(model.params[s.param]);
      if (s.transposed)
        std::swap(m.rows, m.columns);
      if (s.kBegin < 0 || s.kBegin > s.kEnd || s.kEnd > m.rows)
        refuse("with rows outside of its parameter");
      if (view.column < 0 || view.column + use.width > m.columns)
        refuse("with columns outside of its parameter");
    }
    int64_t k = packedDepth(view, use);
    if (depth >= 0 && depth != k)
      refuse("whose views differ in depth");
    depth = k;
  }
  return depth;
}

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
    for (int64_t j = 0; j < n; ++j) {
      const uint8_t *p = data_ + (row + j) * stride_ + column * dtypeBytes(dtype_);
      for (int64_t i = 0; i < m; ++i)
        std::memcpy(out + i * stride + j, p + i * static_cast<int64_t>(sizeof(float)),
                    sizeof(float));
    }
  }

private:
  const uint8_t *data_;
  DType dtype_;
  int64_t stride_;
};

void packPanels(const Model &model, const uint8_t *rows, const WeightUse &use, int64_t depth,
                float *out) {
  int64_t views = static_cast<int64_t>(use.views.size());
  int64_t block = use.vectors * use.lanes; // columns of a panel
  int64_t panels = panelCount(use);
  for (int64_t g = 0; g < views; ++g) {
    const PackView &view = use.views[static_cast<size_t>(g)];
    int64_t k = 0;
    for (const PackSegment &s : view.segments) {
      ParamReader reader(model.params[s.param], rows);
      if (s.transposed) {
        // The elements of a row lie side by side: a few of them at a time go to as many places.
        constexpr int64_t run = 16;
        for (int64_t p = 0; p < panels; ++p)
          for (int64_t row = s.kBegin; row < s.kEnd; row += run)
            reader.readTransposed(view.column + p * block, row, std::min(run, s.kEnd - row),
                                  std::min(block, use.width - p * block),
                                  out + ((p * depth + k + row - s.kBegin) * views + g) * block,
                                  views * block);
        k += s.kEnd - s.kBegin;
        continue;
      }
      for (int64_t row = s.kBegin; row < s.kEnd; ++row, ++k) {
        for (int64_t p = 0; p < panels; ++p) {
          int64_t first = p * block;
          int64_t n = std::min(block, use.width - first);
          float *to = out + ((p * depth + k) * views + g) * block;
          reader.readRow(row, view.column + first, n, to);
        }
      }
    }
  }
}

/// Two rows at a time, panel by panel.
void packFactors(const Model &model, const uint8_t *rows, const WeightUse &use, int64_t depth,
                 uint32_t *out) {
  int64_t views = static_cast<int64_t>(use.views.size());
  int64_t block = use.vectors * use.lanes;
  std::vector<float> even(static_cast<size_t>(block)), odd(static_cast<size_t>(block));
  for (int64_t p = 0; p < panelCount(use); ++p)
    for (int64_t g = 0; g < views; ++g) {
      const PackView &view = use.views[static_cast<size_t>(g)];
      int64_t first = view.column + p * block, n = std::min(block, use.width - p * block);
      uint32_t *to = out + (p * (depth / 2) * views + g) * block;
      for (const PackSegment &s : view.segments) {
        ParamReader reader(model.params[s.param], rows);
        auto read = [&](int64_t row, std::vector<float> &into) {
          if (row >= s.kEnd)
            std::fill(into.begin(), into.end(), 0.0f);
          else if (s.transposed)
            reader.readColumn(first, row, n, into.data());
          else
            reader.readRow(row, first, n, into.data());
        };
        int64_t end = s.kBegin + alignUp(s.kEnd - s.kBegin, use.depthMultiple);
        for (int64_t row = s.kBegin; row < end; row += 2, to += views * block) {
          read(row, even);
          read(row + 1, odd);
          for (int64_t j = 0; j < block; ++j) {
            uint32_t low = j < n ? floatToFactor(even[static_cast<size_t>(j)]) : 0;
            uint32_t high = j < n ? floatToFactor(odd[static_cast<size_t>(j)]) : 0;
            to[j] = low | high << 16;
          }
        }
      }
    }
}

} // namespace

int64_t panelCount(const WeightUse &use) {
  int64_t block = use.vectors * use.lanes;
  return (use.width + block - 1) / block;
}

std::optional<uint64_t> packedBytes(const WeightUse &use) {
  uint64_t bytes = use.factors ? sizeof(uint16_t) : sizeof(float);
  for (int64_t factor : {panelCount(use), packedDepth(use.views.front(), use), use.vectors,
                         use.lanes, static_cast<int64_t>(use.views.size())})
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(factor), &bytes))
      return std::nullopt;
  return bytes;
}

namespace {

/// The packed copies of a model: which use is the first of each, and which copy every use reads.
struct Copies {
  struct Copy {
    const WeightUse *use;
    int64_t depth;
    uint64_t bytes;
  };
  std::vector<Copy> copies;
  std::vector<std::vector<int64_t>> which; ///< [kernel][use]: index into copies, -1: raw

  explicit Copies(const Model &model) {
    std::map<std::vector<int64_t>, int64_t> known;
    for (const KernelDesc &kernel : model.kernels) {
      auto &uses = which.emplace_back();
      for (const WeightUse &use : kernel.weights) {
        if (use.kind == WeightUse::Raw) {
          if (use.param >= model.params.size())
            throw InternalError("kernel '" + kernel.name + "': raw weight of no parameter");
          uses.push_back(-1);
          continue;
        }
        auto [it, fresh] = known.try_emplace(keyOf(use), static_cast<int64_t>(copies.size()));
        if (fresh)
          copies.push_back(copyOf(model, kernel, use));
        uses.push_back(it->second);
      }
    }
  }

private:
  static Copy copyOf(const Model &model, const KernelDesc &kernel, const WeightUse &use) {
    int64_t depth = checkedDepth(model, kernel, use);
    std::optional<uint64_t> bytes = packedBytes(use);
    if (!bytes)
      throw InternalError("kernel '" + kernel.name + "': packed weight of no possible size");
    return {&use, depth, *bytes};
  }
};

} // namespace

std::vector<uint64_t> packedSizes(const Model &model) {
  std::vector<uint64_t> sizes;
  for (const Copies::Copy &copy : Copies(model).copies)
    sizes.push_back(copy.bytes);
  return sizes;
}

PackedWeights::PackedWeights(const Model &model, uint8_t *rows, MemoryMeter &meter,
                             MemoryKind &count)
    : model_(model), rows_(rows), meter_(meter), count_(count) {
  Copies copies(model);
  for (const Copies::Copy &copy : copies.copies)
    packed_.push_back({copy.use, copy.depth, copy.bytes, nullptr});
  which_ = std::move(copies.which);
  for (const KernelDesc &kernel : model.kernels) {
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
    throw UserError("the memory limit of " + std::to_string(meter_.limit() >> 20) +
                    " MB does not hold the packed weights: " + std::to_string(packed.size >> 20) +
                    " MB more are needed");
}

void PackedWeights::pack() {
  for (Packed &packed : packed_) {
    if (!packed.bytes)
      charge(packed);
    if (!packed.own) {
      packed.own = allocateAligned(packed.size);
      packed.bytes = packed.own.get();
    }
    if (packed.use->factors)
      packFactors(model_, rows_, *packed.use, packed.depth,
                  reinterpret_cast<uint32_t *>(packed.own.get()));
    else
      packPanels(model_, rows_, *packed.use, packed.depth,
                 reinterpret_cast<float *>(packed.own.get()));
  }
  publish();
}

void PackedWeights::use(std::span<const std::span<const uint8_t>> copies) {
  if (copies.size() != packed_.size())
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

std::vector<std::span<const uint8_t>> PackedWeights::copies() const {
  std::vector<std::span<const uint8_t>> all;
  for (const Packed &packed : packed_)
    all.emplace_back(packed.bytes, packed.size);
  return all;
}

} // namespace sheaf::rt
