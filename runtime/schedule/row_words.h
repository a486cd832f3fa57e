//===- row_words.h - Which words of records name rows -----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SCHEDULE_ROW_WORDS_H
#define SHEAF_RUNTIME_SCHEDULE_ROW_WORDS_H

#include "runtime/memory/rows.h"
#include "runtime/model/model.h"
#include "runtime/schedule/schedule.h"

#include <type_traits>
#include <vector>

namespace sheaf::rt {

/// The rows that records read, by their words (KernelDesc::layout) and the tables that these name.
class RowWords {
public:
  explicit RowWords(const Model &model);

  /// Calls `visit(word, id, granules)` for all rows that a record of `kernel` reads.
  template <typename Visit>
  void forEach(uint32_t kernel, const int32_t *words, const RowSpace &space, Visit &&visit) const {
    walk(kernel, words, space,
         [&](const Row &row, uint32_t id) { visit(row.word, id, granulesOf(row, words)); });
  }
  /// Calls `visit(id)` for the same, which it may change: tables in the host's range, too.
  template <typename Visit>
  void forEachId(uint32_t kernel, int32_t *words, const RowSpace &space, Visit &&visit) const {
    walk(kernel, words, space, [&](const Row &, uint32_t &id) { visit(id); });
  }
  /// Calls `visit(id)` for all rows that the records of a launch read, which it may change.
  template <typename Visit>
  void forEachId(const ScheduledBucket &launch, const RowSpace &space, Visit &&visit) const {
    uint32_t words = kernels_[launch.kernel].words;
    // The records are the session's own: who makes a schedule shows them, and does not change them.
    auto *record = const_cast<int32_t *>(launch.records);
    for (int64_t i = 0; i < launch.count; ++i, record += words)
      forEachId(launch.kernel, record, space, visit);
  }
  /// The same for those that stand in tables only, which it may not change.
  template <typename Visit>
  void forEachListed(uint32_t kernel, const int32_t *words, const RowSpace &space,
                     Visit &&visit) const {
    walk(kernel, words, space, [&](const Row &row, uint32_t id) {
      if (row.isList)
        visit(id);
    });
  }
  /// Whether the model says it of all kernels. Native ones (gradient.h) name rows of gradients,
  /// of which none is asked for here.
  bool areAllKnown() const { return areAllKnown_; }
  /// How many rows the records of a launch read.
  uint64_t count(const ScheduledBucket &launch) const;

private:
  /// A row that a kernel's records read, or a list of rows.
  struct Row {
    uint32_t word;
    bool isList;
    int64_t granules;           ///< when all extents are static
    std::vector<int64_t> shape; ///< else
    DType dtype;
  };
  struct Kernel {
    std::vector<Row> rows;
    uint32_t words; ///< of a record
  };
  static uint64_t granulesOf(const Row &row, const int32_t *words);
  /// Calls `visit(row, id)`; the id is const where the words are.
  template <typename Word, typename Visit>
  void walk(uint32_t kernel, Word *words, const RowSpace &space, Visit &&visit) const {
    using Id = std::conditional_t<std::is_const_v<Word>, const uint32_t, uint32_t>;
    for (const Row &row : kernels_[kernel].rows) {
      auto *id = reinterpret_cast<Id *>(words + row.word);
      if (!row.isList) {
        visit(row, *id);
        continue;
      }
      auto *ids = reinterpret_cast<Id *>(space.address(*id));
      for (int32_t i = 0; i < words[row.word + 1]; ++i)
        visit(row, ids[i]);
    }
  }

  std::vector<Kernel> kernels_;
  bool areAllKnown_ = true;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_ROW_WORDS_H
