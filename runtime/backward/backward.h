//===- backward.h - The backward pass ---------------------------*- C++ -*-===//
//
// The schedule of a run, read backwards: every forward record becomes one of the backward kernel,
// in the same order, so nothing is scheduled anew. The walk knows tensors by their granules:
// a granule has the list of granules that are summands of its gradient, so a row that is part of a
// larger tensor, or that several records wrote parts of, needs no special care. A tensor with one
// summand takes it as its gradient; sums of several are made in the order of the walk. Records
// without any gradient of a result are left out. The walk itself computes nothing: it ends with a
// schedule, which runs as a forward one does. So no number depends on threads.
//
// Gradient rows are many, and most are needed for a short time. So the walk goes by segments: when
// their rows come to a part of the memory of forward rows, they run, every weight takes one product
// over the rows of all depths of the segment, and the rows are used again; those that a record
// still waits for are put elsewhere first. At its end records take their turn, too, that would come
// much later but lack nothing: those that nothing waits for, such as the leaves of trees, once all
// records that use their results have had theirs.
//
// Rows of the forward pass that were dropped (schedule/dropped_rows.h) are made again when launches
// that read them run: then a segment runs in pieces, each as soon as it needs so many of them, and
// gives those back whose makers have gone back. The walk knows them by their names.
//
// The order of every sum follows from the records as they were recorded: from their depths, their
// order in a bucket and the sizes of their tensors, by which segments end. What memory is there,
// what of it was dropped, where rows lie and in which order forward launches ran changes none.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_BACKWARD_BACKWARD_H
#define SHEAF_RUNTIME_BACKWARD_BACKWARD_H

#include "runtime/backward/held_rows.h"
#include "runtime/backward/param_gradient.h"
#include "runtime/device/device.h"
#include "runtime/device/gradient_records.h"
#include "runtime/memory/rows.h"
#include "runtime/memory/scratch.h"
#include "runtime/model/error.h"
#include "runtime/schedule/dropped_rows.h"

#include <functional>
#include <optional>
#include <span>

namespace sheaf::rt {

/// A tensor of floats that gradients begin with, and what arrives at it.
struct GradientSeed {
  uint32_t row = 0;
  DType dtype = DType::F32;
  std::span<const int64_t> shape;
  const float *gradient = nullptr; ///< row-major, without padding
};

/// A tensor of an argument whose gradient is wanted.
struct GradientInput {
  uint32_t row = 0, granules = 0;
  DType dtype = DType::F32;
};

/// The part of a schedule, its first launches, that computes parameters which follow from others
/// (Model::folded), and the rows where each of these was made.
struct FoldedLaunches {
  size_t launches = 0;
  std::vector<uint32_t> rows;
};

class Backward {
public:
  /// `device`: where the rows are.
  Backward(const Model &model, Device &device, RowSpace &rows, Scratch &scratch, MemoryMeter &meter,
           MemoryKind &records, bool hostile);
  ~Backward();

  /// Which parameters have gradients: all of f32 but those that the compiler made, and those that
  /// are frozen. Gives whether it was.
  bool freeze(size_t param, bool frozen);
  bool trains(size_t param) const;

  /// Walks `forward`, in order of depth whatever order it ran in, backwards and runs what that
  /// makes; then, with the gradients of parameters that follow from others, through what computed
  /// these. `dropped`: which of the rows that `forward` made are not there.
  /// With `keepRows` all rows of schedule() stay as they were made. Throws OutOfMemory.
  void run(std::span<const ScheduledBucket> forward, const FoldedLaunches &folded,
           DroppedRows &dropped, std::span<const GradientSeed> seeds,
           std::span<const GradientInput> inputs, Counters &counters, bool keepRows);

  /// Bytes beside rows that it takes for launches of so many bytes of records which made so many
  /// granules, about, and that it has by now.
  static uint64_t walkBytes(uint64_t recordBytes, uint64_t granules) {
    return recordBytes + 2 * granules * sizeof(uint32_t);
  }
  uint64_t bytes() const { return charged_ + arena_.capacity(); }
  /// Gives these back, and forgets the gradients of the last run.
  void giveBack();

  std::span<const ParamGradient> gradients() const { return gradients_; }
  /// Where the gradient of an input begins; nothing for a row that is none.
  std::optional<uint32_t> inputGradient(uint32_t row) const;
  /// What the last run did.
  const Schedule &schedule() const { return schedule_; }

private:
  /// All that goes to one part of a parameter by one kind of product.
  struct Job {
    WeightGradient::Kind kind;
    uint32_t param;
    int64_t rowBegin, rowCount, columnBegin, columnCount;
    std::vector<uint32_t> left, right;
    bool add = true;                        ///< to what the parameter's gradient is so far
    size_t leftPlaced = 0, rightPlaced = 0; ///< of them, so many are no names any more

    void clear() {
      left.clear();
      right.clear();
      leftPlaced = rightPlaced = 0;
    }
  };
  /// A tensor whose extents do not change, or how many granules it has with these words.
  struct Size {
    const RecordTensor *tensor;
    int64_t granules; ///< -1: follows from the words
  };
  struct Kernel {
    const KernelGradient *gradient;
    std::vector<Size> results, outputs, temporaries, arguments;
    std::vector<uint32_t> jobs; ///< one a weight gradient
    std::vector<int64_t> rows;  ///< likewise; -1: follows from the words
  };
  /// A summand in a ring: a granule's list is found by its last one.
  struct Summand {
    uint32_t source, next;
  };
  /// Records of one kernel that are being made for one launch.
  struct Launch {
    const Kernel &kernel;
    uint32_t depth;
    int32_t *records = nullptr;
    int64_t count = 0, room = 0;
  };
  /// A forward record that gives no gradient but to parameters. Places are counted in the order of
  /// the walk, from the bucket that it was in when ends were looked for.
  struct End {
    uint32_t bucket, record;
    uint32_t usersEnd; ///< the place after the last record that uses it
  };
  struct Scattered {
    const WeightGradient *weight;
    uint32_t left, right;
    int64_t count;
  };
  /// Rows of a product of weights that follow each other, where their ids stand.
  struct Factor {
    uint32_t *ids;
    uint32_t count, stride; ///< granules
  };
  struct ParamRows {
    uint32_t param, begin, granules;
  };
  /// Where an input is, and its gradient.
  struct InputRow {
    uint32_t row, gradient;
  };
  /// Ids of a record's tensors.
  struct Ids {
    const int32_t *words;
    std::vector<uint32_t> results, gradients, outputs;
  };

  static Size sizeOf(const RecordTensor &tensor);
  int64_t granulesOf(const Size &size, const int32_t *words);
  uint32_t idOf(const RowSource &source, const Ids &ids) const;
  /// Where in sources_ a row is found: names of dropped rows come after those that are there.
  uint32_t at(uint32_t id) const {
    return PromisedRows::has(id) ? static_cast<uint32_t>(id - PromisedRows::kFirst) + namesAt_ : id;
  }

  /// Rows that have gradients for records which are still to come, and where these gradients were
  /// put when a segment ended; 0: nowhere yet.
  struct Waiting {
    uint32_t begin, granules;
    DType dtype;
    uint32_t held = 0;
  };
  /// Granules and their gradients, when a segment ends.
  struct Held {
    uint32_t begin, row, granules;
  };
  /// Runs launches, the first of them with this number.
  using Runner = std::function<void(std::span<const ScheduledBucket> launches, size_t number)>;

  void account();
  uint32_t allocateLasting(int64_t granules);
  uint32_t allocateRows(int64_t granules);
  int32_t *allocateWords(int64_t count);
  uint32_t zeros(int64_t granules);

  void begin(std::span<const ScheduledBucket> forward);
  int64_t granulesMade(const Kernel &kernel, const int32_t *record);
  int64_t granulesMade(const ScheduledBucket &bucket);
  bool isFull() const { return made_ >= segment_; }
  /// Whether what has been made since the last piece reads so much that is made again.
  bool isPiece() const { return again_ >= piece_; }
  void walk(std::span<const ScheduledBucket> forward, const Runner &run);
  int64_t goBack(std::span<const ScheduledBucket> forward, size_t bucket, int64_t begin,
                 uint32_t depth);
  void goBack(Launch &launch, const int32_t *record, int64_t left);
  void close(const Launch &launch);
  void sumFirst(size_t begin);
  void findEnds(std::span<const ScheduledBucket> forward, size_t bucket);
  bool isEnd(const Kernel &kernel, const int32_t *record) const;
  void goBackEnds(std::span<const ScheduledBucket> forward, size_t bucket, int64_t record,
                  const Runner &run);
  void drop(const ScheduledBucket &bucket);
  void endSegment(const Runner &run, bool last);
  void runPiece(const Runner &run, bool endsSegment);
  void makeAgain(const Runner &run);
  std::vector<Factor> placeFactors();
  void copyFactors(std::span<const Factor> factors, const Runner &run);
  void forgetAgain(bool endsSegment);
  void holdWaiting();
  bool isHeld(const Waiting &waiting) const;
  uint32_t outOf(const Kernel &kernel, const int32_t *record) const;
  bool enter(const Kernel &kernel, Ids &ids);
  void writeRecord(const Kernel &kernel, Ids &ids, int32_t *words);
  void addWeights(const Kernel &kernel, const Ids &ids);

  void sow(const GradientSeed &seed, std::vector<Instruction> &instructions);
  void takeInputs(std::span<const GradientInput> inputs);
  void findTrainable(std::span<const ScheduledBucket> folded, std::span<const uint32_t> rows);
  void seedFolded(std::span<const uint32_t> rows);

  void contribute(uint32_t to, uint32_t from, int64_t granules, DType dtype);
  bool hasGradient(uint32_t begin, int64_t granules) const;
  uint32_t takeGradient(uint32_t begin, int64_t granules, DType dtype);
  void sumTo(uint32_t to, uint32_t begin, int64_t granules, DType dtype, bool add);
  void flushSums(uint32_t depth);

  std::vector<int> levelsOfJobs() const;
  bool isCovered(uint32_t param, std::span<const int> level) const;
  void addJobs(uint32_t &depth);
  void clearBeside(uint32_t param, const std::vector<uint32_t> &rows);
  void addProducts(const Job &job, const uint32_t *right, uint32_t sums,
                   std::vector<ProductRecord> &products) const;
  void flushProducts(std::vector<ProductRecord> &products, uint32_t depth);
  std::vector<uint32_t> sumsBesideProducts(std::span<int> level, int now) const;
  void showIndices();
  void scatter();
  void addParamRows(uint32_t depth);
  void showGradients();
  uint32_t paramOf(uint32_t granule) const;

  [[noreturn]] void outOfMemory() const;

  const Model &model_;
  Device &device_;
  RowSpace &rows_;
  Scratch &scratch_;
  MemoryMeter &meter_;
  MemoryKind &records_;
  bool hostile_;
  RowChunks chunks_; ///< of the segment
  HeldRows held_;    ///< what outlives it, and what is made again
  BumpArena arena_;
  std::vector<Kernel> kernels_; ///< by forward kernel
  std::vector<Job> jobs_;
  std::vector<bool> trainable_, frozen_;

  // One run.
  std::span<const ScheduledBucket> forward_;
  DroppedRows *dropped_ = nullptr;
  Counters *counters_ = nullptr;
  uint32_t namesAt_ = 0; ///< of sources_
  Schedule schedule_;
  size_t ran_ = 0;       ///< of it
  uint32_t depth_ = 0;   ///< of what comes next
  uint64_t segment_ = 0; ///< granules
  uint64_t made_ = 0;    ///< of the segment: granules of what records gave, and of sums they took
  uint64_t piece_ = 0;   ///< granules
  uint64_t again_ = 0;   ///< of the piece: granules that are made again for it
  std::vector<Waiting> waiting_;
  std::vector<Held> stay_;  ///< what is held, while a segment ends
  std::vector<Held> leave_; ///< what was, and is given back then; `begin` is of no use
  bool endsFound_ = false;
  std::vector<End> ends_;         ///< that are still to come, in the order of the walk
  std::vector<uint32_t> placeOf_; ///< by bucket: its first record's
  std::vector<bool> gone_;        ///< by place: records that ran before their turn
  Ids ids_;                       ///< of the backward record
  std::vector<uint32_t> sources_; ///< by granule: none, a granule, or the last of a ring
  uint64_t charged_ = 0;          ///< for these and other vectors that grow with a run
  std::vector<Summand> summands_;
  std::vector<int32_t> sums_; ///< records of the group that is being made
  std::vector<uint32_t> list_;
  std::vector<Scattered> scattered_;
  size_t scatteredPlaced_ = 0; ///< of them, so many have no names any more
  std::vector<ParamRows> paramRows_;
  std::vector<ParamGradient> gradients_;
  uint32_t gradientBase_ = 0;    ///< granule g of the parameters has its gradient at this + g
  std::vector<InputRow> inputs_; ///< ascending by `row`
  RowRange inputGradients_;
  uint32_t zeros_ = 0;
  int64_t zeroGranules_ = 0;
  std::vector<int64_t> shape_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_BACKWARD_BACKWARD_H
