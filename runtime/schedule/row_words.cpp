#include "runtime/schedule/row_words.h"

#include <algorithm>

namespace sheaf::rt {

RowWords::RowWords(const Model &model) {
  size_t compiled = model.kernels.size();
  if (model.training && compiled >= kNativeKernels)
    compiled -= kNativeKernels;
  for (const KernelDesc &desc : model.kernels) {
    Kernel &kernel = kernels_.emplace_back();
    kernel.words = desc.words;
    uint32_t word = 0;
    for (const RecordWord &entry : desc.layout) {
      bool isList = entry.kind == RecordWord::List;
      if (isList || entry.kind == RecordWord::Row) {
        bool isStatic = std::find(entry.shape.begin(), entry.shape.end(), -1) == entry.shape.end();
        kernel.rows.push_back({word, isList,
                               isStatic ? tensorGranules(entry.shape, entry.dtype) : -1,
                               entry.shape, entry.dtype});
      }
      word += entry.words();
    }
    areAllKnown_ = areAllKnown_ && (word == desc.words || kernels_.size() > compiled);
  }
}

uint64_t RowWords::granulesOf(const Row &row, const int32_t *words) {
  if (row.granules >= 0)
    return static_cast<uint64_t>(row.granules);
  // Its extents follow it.
  return static_cast<uint64_t>(tensorGranules(row.shape, row.dtype, words + row.word + 1));
}

uint64_t RowWords::count(const ScheduledBucket &launch) const {
  uint64_t rows = 0;
  const Kernel &kernel = kernels_[launch.kernel];
  for (const Row &row : kernel.rows) {
    if (!row.isList) {
      rows += static_cast<uint64_t>(launch.count);
      continue;
    }
    const int32_t *length = launch.records + row.word + 1;
    for (int64_t r = 0; r < launch.count; ++r, length += kernel.words)
      rows += static_cast<uint32_t>(*length);
  }
  return rows;
}

} // namespace sheaf::rt
