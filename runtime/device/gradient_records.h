//===- gradient_records.h - Launches of the backward pass -------*- C++ -*-===//
//
// The backward pass has two kernels that no compiler makes; each device has its own. They run as
// buckets like all kernels, after the compiled ones in Model::kernels, and every element of a
// result has one order of summation.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_DEVICE_GRADIENT_RECORDS_H
#define SHEAF_RUNTIME_DEVICE_GRADIENT_RECORDS_H

#include "runtime/model/model.h"

namespace sheaf::rt {

/// Their places after the other kernels of a model made for training; kNativeKernels of them.
enum class NativeKernel : uint8_t { Sum, Product };

inline uint32_t nativeKernel(const Model &model, NativeKernel which) {
  return static_cast<uint32_t>(model.kernels.size() - kNativeKernels + static_cast<size_t>(which));
}

/// Sum: to granules [to, to + granules) the sum of the same many granules at each of the
/// `sources`, in their order, `offset` granules on. With `add` it begins with what is there.
struct SumRecord {
  uint32_t to, granules, offset, add;
  uint32_t count, dtype; ///< of sources; an rt::DType
  const uint32_t *sources;
};

/// The sum of one keeps its bits, whatever its dtype: copies granules from where `source` says,
/// which is there until it has run.
inline SumRecord copyRecord(uint32_t to, uint32_t granules, const uint32_t *source) {
  return {to, granules, 0, 0, 1, static_cast<uint32_t>(DType::F32), source};
}

/// Most of the matrix that one record computes: what is copied of the right rows is used for all
/// of its rows, what is copied of the left ones for all of its columns.
constexpr int64_t kProductRows = 512, kProductColumns = 512;

/// Product: the part of transpose(left) @ right that belongs to a part of a matrix. With `add` it
/// is added to what is there.
struct ProductRecord {
  uint32_t to;                   ///< granule of the matrix' first row
  uint32_t rowStride;            ///< granules from row to row
  uint32_t rowBegin, rows;       ///< of the matrix
  uint32_t columnBegin, columns; ///< of the matrix
  uint32_t leftBegin;            ///< column of left that goes to rowBegin
  uint32_t rightBegin;           ///< column of right that goes to columnBegin; of 16
  const uint32_t *left, *right;
  uint32_t count, add;   ///< of rows
  uint32_t sums, unused; ///< granule of a row to which the right rows are added, too; 0: none
};

template <typename Record> constexpr uint32_t kRecordWords = sizeof(Record) / sizeof(int32_t);

template <typename Record> void appendRecord(std::vector<int32_t> &words, const Record &record) {
  const auto *from = reinterpret_cast<const int32_t *>(&record);
  words.insert(words.end(), from, from + kRecordWords<Record>);
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_DEVICE_GRADIENT_RECORDS_H
