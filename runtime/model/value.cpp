#include "runtime/model/value.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace sheaf::rt {

void FreeBytes::operator()(uint8_t *p) const { std::free(p); }

AlignedBytes allocateAligned(size_t bytes) {
  size_t size = (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  if (size == 0)
    size = kGranuleBytes;
  // Large blocks, packed weights above all, on huge pages where there are any.
  constexpr size_t kHugePage = size_t(2) << 20;
  bool huge = size >= 2 * kHugePage;
  if (huge)
    size = (size + kHugePage - 1) / kHugePage * kHugePage;
  auto *p = static_cast<uint8_t *>(std::aligned_alloc(huge ? kHugePage : kGranuleBytes, size));
  if (!p)
    throw std::bad_alloc();
  if (huge)
    madvise(p, size, MADV_HUGEPAGE);
  std::memset(p, 0, size);
  return AlignedBytes(p);
}

HostTensor::HostTensor(DType dtype, std::vector<int64_t> shapeArg)
    : dtype(dtype), shape(std::move(shapeArg)),
      bytes(allocateAligned(static_cast<size_t>(tensorGranules(shape, dtype)) * kGranuleBytes)) {}

int64_t TensorView::elements() const {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

int64_t TensorView::rowStride() const {
  return (shape.empty() ? 1 : rowGranules(shape.back(), dtype)) * kGranuleBytes;
}

int64_t TensorView::rows() const {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    n *= shape[i];
  return n;
}

void TensorView::copyTo(void *out) const { fromRowLayout(shape, dtype, data, out); }
std::vector<uint8_t> TensorView::rowMajor() const {
  std::vector<uint8_t> bytes(static_cast<size_t>(elements() * dtypeBytes(dtype)));
  copyTo(bytes.data());
  return bytes;
}

namespace {
/// Calls f(offset in row-major bytes, offset in row layout, bytes) for each innermost row.
template <typename F> void forEachRow(std::span<const int64_t> shape, DType dtype, F f) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  int64_t innermost = shape.empty() ? 1 : shape.back();
  int64_t bytes = innermost * dtypeBytes(dtype);
  int64_t stride = rowGranules(innermost, dtype) * kGranuleBytes;
  if (bytes == 0)
    return;
  for (int64_t i = 0; i < rows; ++i)
    f(i * bytes, i * stride, static_cast<size_t>(bytes));
}
} // namespace

void toRowLayout(std::span<const int64_t> shape, DType dtype, const void *rowMajor, uint8_t *rows) {
  auto *from = static_cast<const uint8_t *>(rowMajor);
  forEachRow(shape, dtype, [&](int64_t a, int64_t b, size_t n) { memcpy(rows + b, from + a, n); });
}

void fromRowLayout(std::span<const int64_t> shape, DType dtype, const uint8_t *rows,
                   void *rowMajor) {
  auto *to = static_cast<uint8_t *>(rowMajor);
  forEachRow(shape, dtype, [&](int64_t a, int64_t b, size_t n) { memcpy(to + a, rows + b, n); });
}

} // namespace sheaf::rt
