//===- known.h - Memoised records -------------------------------*- C++ -*-===//
//
// A block that is recorded twice with the same words (row ids, extents, ints, floats by their bits)
// computes the same bits twice. Where the compiler asks for it (sheaf_record_once), the second
// record is not made: it is given the results of the first.
//
// What was seen in a mini-batch is memoised until its end. Records whose arguments are all rows of
// parameters, a word's embedding for instance, are memoised until the weights change: their results
// are placed in the kept part of the row space and are ready before the next mini-batch begins. So
// a table of everything that depends on a token alone fills itself, token by token, within a bound.
// When that is reached and others are asked for as often as there are records in it, it is emptied
// and fills anew.
//
// Looking costs some nanoseconds. A kernel whose records hardly ever repeat is not looked for any
// more, for a while; nor is any when all that is found saves less than looking costs.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_KNOWN_H
#define SHEAF_RUNTIME_WALK_KNOWN_H

#include "runtime/memory/rows.h"
#include "runtime/model/model.h"

#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sheaf::rt {

/// Words of one length with what belongs to them: open addressing, linear probes. Entries of an
/// earlier stamp are as good as empty, so forgetting everything costs nothing.
class RecordTable {
public:
  RecordTable(uint32_t keyWords, MemoryMeter &meter, MemoryKind &count, uint64_t firstEntries);
  ~RecordTable() { free(); }
  RecordTable(RecordTable &&other) noexcept;
  RecordTable(const RecordTable &) = delete;

  struct Entry {
    uint32_t stamp;
    uint32_t id;
    uint32_t depth; ///< of the results in the mini-batch `run`; 0 in later ones
    uint32_t run;
    int32_t *key() { return reinterpret_cast<int32_t *>(this + 1); } ///< keyWords words
  };

  struct Place {
    Entry *entry = nullptr; ///< null: the budget has no room for another
    bool known = false;
  };
  /// Where `key` is, or may be put at once.
  Place find(const int32_t *key, uint32_t stamp);
  /// Fills the place that find() gave for an unknown key.
  void put(Place place, const int32_t *key, TensorHandle result, uint32_t run);

  void free();
  uint64_t bytes() const { return capacity_ * stride_ * sizeof(uint32_t); }
  /// What the entries of the current stamp take, of a table that is no larger than they need.
  uint64_t usedBytes() const { return 2 * used_ * stride_ * sizeof(uint32_t); }

private:
  Entry *at(uint64_t i) const { return reinterpret_cast<Entry *>(words_ + i * stride_); }
  uint64_t start(const int32_t *key) const;
  bool begin(uint32_t stamp);
  bool resize(uint64_t capacity);

  MemoryMeter *meter_;
  MemoryKind *count_;
  uint32_t *words_ = nullptr;
  uint64_t capacity_ = 0; ///< entries, a power of two or none
  uint64_t used_ = 0;     ///< of the current stamp; at most half
  uint64_t firstEntries_;
  uint32_t stamp_ = 0;
  uint32_t keyWords_, stride_;
  int shift_ = 64;
};

class KnownRecords {
public:
  /// Keeps at most `keepBytes` from one mini-batch to the next.
  KnownRecords(const Model &model, RowSpace &rows, MemoryMeter &meter, MemoryUse &memory,
               uint64_t keepBytes, bool hostile);
  ~KnownRecords();
  KnownRecords(const KnownRecords &) = delete;

  struct Place {
    RecordTable *table = nullptr; ///< null: nothing is to be noted
    RecordTable::Place in;
    bool keep = false; ///< the results belong to the kept part of the row space
  };

  /// Looks a record up. Its words are the key: those of its arguments. When `in.known`, nothing is
  /// left to do but to take result(); else the record is made, in keepRows() if `keep`, and noted.
  Place look(uint32_t kernel, const int32_t *key) { return find(kernels_[kernel], key); }
  /// Whether looking the kernel's records up pauses; if so, for one record less from now on.
  bool skips(uint32_t kernel) {
    uint32_t &pause = pauses_[kernel];
    if (pause == 0)
      return false;
    --pause;
    return true;
  }
  /// From now on no record is looked up, or they are again: what many share is needed from the
  /// first of them to the last, and tables to find it take memory. Between mini-batches.
  void pauseAll(bool pause);
  TensorHandle result(const Place &place) const {
    const RecordTable::Entry &entry = *place.in.entry;
    // What an earlier mini-batch computed is ready before anything runs.
    return {entry.id, entry.run == run_ ? entry.depth : 0};
  }
  /// Kept granules for the results, or RowSpace::kFull.
  uint64_t keepRows(int64_t granules);
  void note(const Place &place, const int32_t *key, TensorHandle result) {
    if (!place.table)
      return;
    place.table->put(place.in, key, result, run_);
    kept_ += place.keep;
  }

  /// A list of tensors, by their ids.
  struct List {
    std::optional<uint32_t> table; ///< the granule id of its table, if there is one
    RecordTable::Place in;         ///< where else it is to be noted, if it is
    std::array<int32_t, 3> key;
  };
  /// Looks for a list that was noted in this mini-batch. Not while records of the kernel are not
  /// looked up: equal tables serve to find these.
  List lookList(uint32_t kernel, std::span<const Slot> handles);
  void noteList(const List &list, uint32_t table) {
    if (list.in.entry)
      lists_.put(list.in, list.key.data(), {table, 0}, run_);
  }

  /// A mini-batch begins: what the last one saw is forgotten; what it kept too, unless it ended.
  void beginRun();
  /// All records have run. Adds up what was saved.
  void endRun(Counters &counters);

  /// Rows of this mini-batch are given back. What is kept is computed, and stays.
  void forgetSeen();
  /// How often something was found since then that is not kept.
  uint64_t foundSeen() const { return foundSeen_; }

  /// The weights changed: nothing that was kept is true any more. Or none of it is in use.
  void forgetKept();
  /// Whether what is kept has given way: others were asked for as often as it has records, and
  /// there was no room for them. It is not found any more, and goes when none of it is in use.
  bool gaveWay() const { return gaveWay_; }
  /// How often it went for that since this was last asked.
  uint64_t takeEvictions() { return std::exchange(evictions_, 0); }
  /// Memory is short: frees all that is kept, and will keep half as much in future. False when
  /// there was nothing to free.
  bool giveBack();

private:
  struct Kernel {
    RecordTable seen, kept;
    std::vector<uint32_t> rowWords; ///< which words are rows
    bool mayKeep;
    double time;                   ///< of a record, in nanoseconds, roughly
    uint32_t looked = 0, hits = 0; ///< in this window
    uint64_t saved = 0;            ///< in this mini-batch
  };

  Place find(Kernel &kernel, const int32_t *key);
  bool isOfParameters(const Kernel &kernel, const int32_t *key) const;
  void account(Kernel &kernel, const RecordTable &table, bool known);

  RowSpace &rows_;
  MemoryMeter &meter_;
  MemoryKind &count_;
  std::vector<Kernel> kernels_;
  std::vector<uint32_t> pauses_; ///< of each kernel: records until it is looked for again
  RecordTable lists_;            ///< by hash and length
  uint64_t paramGranules_;
  /// In training, what is looked up follows from the mini-batch alone: which records ran decides in
  /// which order gradients are summed.
  bool forgetsWindows_;
  bool allPause_ = false;
  uint64_t keepBytes_;            ///< at most so many
  uint64_t charged_ = 0;          ///< bytes of kept rows, in steps
  uint32_t looks_ = 0;            ///< in this window of all kernels
  uint32_t window_;               ///< how long it is
  double spent_ = 0, gained_ = 0; ///< nanoseconds in it
  uint32_t pause_;                ///< of all kernels, the next time
  uint64_t foundSeen_ = 0;
  uint32_t run_ = 0;     ///< the stamp of this mini-batch
  uint32_t version_ = 1; ///< the stamp of these weights
  bool full_ = false;    ///< nothing more can be kept
  uint64_t kept_ = 0;    ///< records
  uint64_t missed_ = 0;  ///< that might be kept, if there were room
  uint64_t leastMissed_; ///< so many at least have to be, until what is kept gives way
  bool gaveWay_ = false;
  uint64_t evictions_ = 0;
  bool running_ = false;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_KNOWN_H
