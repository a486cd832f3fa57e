#include "runtime/backward/backward.h"

#include "runtime/model/convert.h"
#include "runtime/model/value.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sheaf::rt {

namespace {

/// Gradient rows take so much of the memory of forward rows, or this much, before parameters take
/// what is theirs and the rows are used again.
constexpr uint64_t kSegmentShare = 8, kLeastSegment = (uint64_t(1) << 19) / kGranuleBytes;
/// In the hostile setting, as often as can be.
constexpr uint64_t kHostileSegment = 64;
/// What is made again for a piece takes so much of a segment, or this much.
constexpr uint64_t kPieceShare = 4, kLeastPiece = (uint64_t(1) << 17) / kGranuleBytes;
/// Records of one launch, and where pieces may cut it.
constexpr int64_t kLaunchRecords = 8192, kPieceRecords = 256;

bool mayTrain(const ParamDesc &param) { return !param.synthetic && param.dtype == DType::F32; }

} // namespace

bool Backward::freeze(size_t param, bool frozen) {
  trainable_[param] = !frozen && mayTrain(model_.params[param]);
  bool before = frozen_[param];
  frozen_[param] = frozen;
  return before;
}

bool Backward::trains(size_t param) const {
  return !frozen_[param] && mayTrain(model_.params[param]);
}

Backward::Backward(const Model &model, Device &device, RowSpace &rows, Scratch &scratch,
                   MemoryMeter &meter, MemoryKind &records, bool hostile)
    : model_(model), device_(device), rows_(rows), scratch_(scratch), meter_(meter),
      records_(records), hostile_(hostile), chunks_(rows, hostile), held_(rows, hostile),
      arena_(meter, records, alignof(uint64_t), size_t(64) << 10, /*redzones=*/false),
      trainable_(model.params.size()), frozen_(model.params.size()) {
  for (size_t i = 0; i < model.params.size(); ++i)
    trainable_[i] = mayTrain(model.params[i]);

  auto jobFor = [&](const WeightGradient &weight) {
    for (uint32_t i = 0; i < jobs_.size(); ++i) {
      const Job &job = jobs_[i];
      if (job.kind == weight.kind && job.param == weight.param && job.rowBegin == weight.rowBegin &&
          job.rowCount == weight.rowCount && job.columnBegin == weight.columnBegin &&
          job.columnCount == weight.columnCount)
        return i;
    }
    jobs_.push_back({weight.kind,
                     weight.param,
                     weight.rowBegin,
                     weight.rowCount,
                     weight.columnBegin,
                     weight.columnCount,
                     {},
                     {}});
    return static_cast<uint32_t>(jobs_.size() - 1);
  };
  for (const KernelGradient &gradient : model.gradients) {
    Kernel kernel{&gradient, {}, {}, {}, {}, {}, {}};
    for (const RecordTensor &tensor : model.kernels[kernels_.size()].results)
      kernel.results.push_back(sizeOf(tensor));
    for (const RecordTensor &tensor : gradient.outputs)
      kernel.outputs.push_back(sizeOf(tensor));
    for (const RecordTensor &tensor : gradient.temporaries)
      kernel.temporaries.push_back(sizeOf(tensor));
    for (const ArgumentGradient &argument : gradient.arguments)
      kernel.arguments.push_back(sizeOf(argument.tensor));
    for (const WeightGradient &weight : gradient.weights) {
      kernel.jobs.push_back(jobFor(weight));
      kernel.rows.push_back(isConstant(weight.rows) ? evaluate(weight.rows, nullptr) : -1);
    }
    kernels_.push_back(std::move(kernel));
  }
}

Backward::~Backward() { meter_.uncharge(records_, charged_); }

Backward::Size Backward::sizeOf(const RecordTensor &tensor) {
  std::vector<int64_t> shape;
  for (const WordSum &extent : tensor.extents) {
    if (!isConstant(extent))
      return {&tensor, -1};
    shape.push_back(evaluate(extent, nullptr));
  }
  return {&tensor, tensorGranules(shape, tensor.dtype)};
}

int64_t Backward::granulesOf(const Size &size, const int32_t *words) {
  if (size.granules >= 0)
    return size.granules;
  shape_.clear();
  for (const WordSum &extent : size.tensor->extents)
    shape_.push_back(evaluate(extent, words));
  return tensorGranules(shape_, size.tensor->dtype);
}

uint32_t Backward::idOf(const RowSource &source, const Ids &ids) const {
  switch (source.kind) {
  case RowSource::Argument:
    return static_cast<uint32_t>(ids.words[source.index]);
  case RowSource::Result:
    return ids.results[source.index];
  case RowSource::Gradient:
    return ids.gradients[source.index];
  case RowSource::Output:
    return ids.outputs[source.index];
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Backward::outOfMemory() const {
  throw OutOfMemory("out of memory for gradients: the mini-batch already holds " +
                    meter_.held().text());
}

/// What the walk itself needs counts as records do.
void Backward::account() {
  auto bytesOf = [](const auto &vector) { return uint64_t(vector.capacity()) * sizeof(vector[0]); };
  uint64_t bytes = bytesOf(sources_) + bytesOf(summands_) + bytesOf(schedule_) + bytesOf(waiting_) +
                   bytesOf(stay_) + bytesOf(leave_) + bytesOf(ends_) + bytesOf(scattered_) +
                   bytesOf(paramRows_) + bytesOf(inputs_);
  for (const Job &job : jobs_)
    bytes += bytesOf(job.left) + bytesOf(job.right);
  if (bytes > charged_ && !meter_.charge(records_, bytes - charged_))
    outOfMemory();
  if (bytes < charged_)
    meter_.uncharge(records_, charged_ - bytes);
  charged_ = bytes;
}

void Backward::giveBack() {
  auto free = [](auto &vector) { std::exchange(vector, {}); };
  free(sources_);
  free(summands_);
  free(schedule_);
  free(waiting_);
  free(stay_);
  free(leave_);
  free(ends_);
  free(scattered_);
  free(paramRows_);
  free(inputs_);
  for (Job &job : jobs_) {
    job.clear();
    free(job.left);
    free(job.right);
  }
  gradients_.clear();
  account();
  arena_.reset();
  arena_.giveBack();
}

/// Rows that stay until the next run.
uint32_t Backward::allocateLasting(int64_t granules) {
  uint64_t id = rows_.allocate(granules);
  if (id == RowSpace::kFull)
    outOfMemory();
  return static_cast<uint32_t>(id);
}

uint32_t Backward::allocateRows(int64_t granules) {
  uint64_t id = chunks_.allocate(granules);
  if (id == RowSpace::kFull)
    outOfMemory();
  return static_cast<uint32_t>(id);
}

int32_t *Backward::allocateWords(int64_t count) {
  void *words = arena_.allocate(static_cast<size_t>(count) * sizeof(int32_t));
  if (!words)
    outOfMemory();
  return static_cast<int32_t *>(words);
}

uint32_t Backward::zeros(int64_t granules) {
  if (granules > zeroGranules_) {
    zeroGranules_ = std::max<int64_t>(granules, 16);
    zeros_ = allocateLasting(zeroGranules_);
    device_.fill({zeros_, static_cast<uint64_t>(zeroGranules_)}, 0);
  }
  return zeros_;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// Of the results of a record.
int64_t Backward::granulesMade(const Kernel &kernel, const int32_t *record) {
  int64_t granules = 0;
  for (const Size &result : kernel.results)
    granules += granulesOf(result, record);
  return granules;
}

/// Of those of a launch's records.
int64_t Backward::granulesMade(const ScheduledBucket &bucket) {
  const Kernel &kernel = kernels_[bucket.kernel];
  if (std::all_of(kernel.results.begin(), kernel.results.end(),
                  [](const Size &result) { return result.granules >= 0; }))
    return bucket.count * granulesMade(kernel, bucket.records);
  int64_t granules = 0;
  for (int64_t i = 0; i < bucket.count; ++i)
    granules += granulesMade(kernel, bucket.records + i * model_.kernels[bucket.kernel].words);
  return granules;
}

void Backward::begin(std::span<const ScheduledBucket> forward) {
  schedule_.clear();
  arena_.reset();
  summands_.clear();
  sums_.clear();
  scattered_.clear();
  paramRows_.clear();
  waiting_.clear();
  endsFound_ = false;
  stay_.clear();
  leave_.clear();
  chunks_.forget();
  held_.forget();
  dropped_->begin();
  again_ = 0;
  scatteredPlaced_ = 0;
  ran_ = 0;
  depth_ = 0;
  for (Job &job : jobs_)
    job.clear();
  namesAt_ = static_cast<uint32_t>(rows_.next());
  uint64_t granulesKnown = rows_.next() + dropped_->granules();
  if (granulesKnown * 4 < sources_.capacity())
    std::vector<uint32_t>().swap(sources_); // of a mini-batch that was far larger
  sources_.assign(granulesKnown, 0);
  account();
  made_ = 0;
  uint64_t granules = 0;
  for (const ScheduledBucket &bucket : forward)
    granules += static_cast<uint64_t>(granulesMade(bucket));
  segment_ = hostile_ ? kHostileSegment : std::max(kLeastSegment, granules / kSegmentShare);
  piece_ = hostile_ ? 1 : std::max(kLeastPiece, segment_ / kPieceShare);
  gradientBase_ = allocateLasting(model_.paramGranules);
  gradients_.assign(model_.params.size(), {});
  zeroGranules_ = 0;
  inputs_.clear();
  inputGradients_ = {};
}

/// Where the results of a forward record begin.
uint32_t Backward::outOf(const Kernel &kernel, const int32_t *record) const {
  uint32_t words = model_.kernels[static_cast<size_t>(&kernel - kernels_.data())].words;
  return static_cast<uint32_t>(record[words - 1]);
}

/// Fills in the ids of a record's results and of their gradients. False when it has none.
bool Backward::enter(const Kernel &kernel, Ids &ids) {
  const KernelGradient &gradient = *kernel.gradient;
  uint32_t id = outOf(kernel, ids.words);
  ids.results.clear();
  ids.gradients.clear();
  bool any = false;
  for (size_t i = 0; i < kernel.results.size(); ++i) {
    int64_t granules = granulesOf(kernel.results[i], ids.words);
    ids.results.push_back(id);
    ids.gradients.push_back(0);
    if (gradient.wanted[i] && hasGradient(at(id), granules)) {
      ids.gradients.back() = takeGradient(at(id), granules, kernel.results[i].tensor->dtype);
      any = true;
    }
    std::fill_n(sources_.begin() + at(id), granules, 0u);
    id += static_cast<uint32_t>(granules);
  }
  return any;
}

void Backward::writeRecord(const Kernel &kernel, Ids &ids, int32_t *words) {
  const KernelGradient &gradient = *kernel.gradient;
  ids.outputs.clear();
  int64_t total = 0;
  for (const Size &output : kernel.outputs) {
    ids.outputs.push_back(static_cast<uint32_t>(total));
    total += granulesOf(output, ids.words);
  }
  if (!kernel.temporaries.empty()) {
    int64_t needed = 0;
    for (const Size &temporary : kernel.temporaries)
      needed += granulesOf(temporary, ids.words);
    if (!scratch_.want(needed))
      outOfMemory();
  }
  made_ += static_cast<uint64_t>(total);
  uint32_t out = allocateRows(total);
  for (uint32_t &id : ids.outputs)
    id += out;
  for (const BackwardWord &word : gradient.words) {
    switch (word.kind) {
    case BackwardWord::Copy:
      *words++ = ids.words[word.source.index];
      break;
    case BackwardWord::Row: {
      uint32_t id = idOf(word.source, ids);
      if (id == 0 && word.source.kind == RowSource::Gradient)
        id = zeros(granulesOf(kernel.results[word.source.index], ids.words));
      *words++ = static_cast<int32_t>(id);
      break;
    }
    case BackwardWord::Extent:
      *words++ = static_cast<int32_t>(evaluate(word.extent, ids.words));
      break;
    }
  }
  *words = static_cast<int32_t>(out);
}

/// A gradient of a result that is not there: no other row has the id 0.
static bool isAbsent(const RowSource &source, uint32_t id) {
  return source.kind == RowSource::Gradient && id == 0;
}

void Backward::addWeights(const Kernel &kernel, const Ids &ids) {
  const KernelGradient &gradient = *kernel.gradient;
  for (size_t i = 0; i < gradient.weights.size(); ++i) {
    const WeightGradient &weight = gradient.weights[i];
    uint32_t right = idOf(weight.right, ids);
    if (!trainable_[weight.param] || isAbsent(weight.right, right))
      continue;
    Job &job = jobs_[kernel.jobs[i]];
    if (weight.kind == WeightGradient::Whole) {
      job.right.push_back(right);
      continue;
    }
    uint32_t left = idOf(weight.left, ids);
    if (isAbsent(weight.left, left))
      continue;
    int64_t rows = kernel.rows[i] >= 0 ? kernel.rows[i] : evaluate(weight.rows, ids.words);
    if (weight.kind == WeightGradient::Scatter) {
      scattered_.push_back({&weight, left, right, rows});
      continue;
    }
    auto leftStride = static_cast<uint32_t>(rowGranules(weight.rowCount, DType::F32));
    auto rightStride = static_cast<uint32_t>(rowGranules(weight.columnCount, DType::F32));
    for (int64_t row = 0; row < rows; ++row, left += leftStride, right += rightStride) {
      job.left.push_back(left);
      job.right.push_back(right);
    }
  }
}

/// Nothing goes on from what these records made.
void Backward::drop(const ScheduledBucket &bucket) {
  const Kernel &kernel = kernels_[bucket.kernel];
  uint32_t words = model_.kernels[bucket.kernel].words;
  for (int64_t i = 0; i < bucket.count; ++i) {
    const int32_t *record = bucket.records + i * words;
    std::fill_n(sources_.begin() + at(static_cast<uint32_t>(record[words - 1])),
                granulesMade(kernel, record), 0u);
    dropped_->goBack(static_cast<uint32_t>(record[words - 1]));
  }
}

/// What a kernel passes on is all there is for some.
void Backward::close(const Launch &launch) {
  if (launch.count && !launch.kernel.outputs.empty())
    schedule_.push_back({launch.depth, static_cast<uint32_t>(launch.kernel.gradient->kernel),
                         launch.records, launch.count});
}

/// A record, after which at most `left` come.
void Backward::goBack(Launch &launch, const int32_t *record, int64_t left) {
  const Kernel &kernel = launch.kernel;
  const KernelGradient &gradient = *kernel.gradient;
  ids_.words = record;
  uint64_t again = dropped_->goBack(outOf(kernel, record));
  if (!enter(kernel, ids_))
    return;
  again_ += again;
  uint32_t words = model_.kernels[static_cast<size_t>(gradient.kernel)].words;
  if (launch.count == launch.room) {
    close(launch);
    launch.room = std::min(left + 1, dropped_->isEmpty() ? kLaunchRecords : kPieceRecords);
    launch.records = allocateWords(launch.room * words);
    launch.count = 0;
  }
  writeRecord(kernel, ids_, launch.records + launch.count++ * words);
  for (size_t a = 0; a < gradient.arguments.size(); ++a) {
    const ArgumentGradient &argument = gradient.arguments[a];
    uint32_t from = idOf(argument.gradient, ids_);
    if (!isAbsent(argument.gradient, from))
      contribute(at(static_cast<uint32_t>(record[argument.word])), from,
                 granulesOf(kernel.arguments[a], record), argument.tensor.dtype);
  }
  addWeights(kernel, ids_);
}

/// Records of a bucket from `begin` on, until their rows are as many as a segment may have; gives
/// the first that is left.
int64_t Backward::goBack(std::span<const ScheduledBucket> forward, size_t which, int64_t begin,
                         uint32_t depth) {
  const ScheduledBucket &bucket = forward[which];
  const Kernel &kernel = kernels_[bucket.kernel];
  if (kernel.gradient->kernel < 0) {
    drop(bucket);
    return bucket.count;
  }
  uint32_t words = model_.kernels[bucket.kernel].words;
  Launch launch{kernel, depth};
  int64_t i = begin;
  for (; i < bucket.count && (i == begin || !(isFull() || isPiece())); ++i)
    if (!endsFound_ || !gone_[placeOf_[which] + static_cast<size_t>(i)])
      goBack(launch, bucket.records + i * words, bucket.count - 1 - i);
  close(launch);
  return i;
}

/// Sums that were asked for since the schedule had this length run before what reads them.
void Backward::sumFirst(size_t begin) {
  size_t end = schedule_.size();
  flushSums(depth_);
  if (schedule_.size() > end)
    std::rotate(schedule_.begin() + static_cast<ptrdiff_t>(begin),
                schedule_.begin() + static_cast<ptrdiff_t>(end), schedule_.end());
  depth_ += 2;
}

/// Buckets of one depth do not depend on each other, nor do those that go back.
void Backward::walk(std::span<const ScheduledBucket> forward, const Runner &run) {
  for (size_t end = forward.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && forward[begin - 1].depth == forward[begin].depth)
      --begin;
    size_t first = schedule_.size();
    for (size_t i = end; i-- > begin;)
      for (int64_t record = 0; record < forward[i].count;) {
        record = goBack(forward, i, record, depth_ + 1);
        if (isFull()) {
          sumFirst(first);
          goBackEnds(forward, i, record, run);
          endSegment(run, /*last=*/false);
          goBackEnds(forward, i, record, run);
          first = schedule_.size();
        } else if (isPiece()) {
          sumFirst(first);
          runPiece(run, /*endsSegment=*/false);
          first = schedule_.size();
        }
      }
    sumFirst(first);
    end = begin;
  }
}

/// Writes down what arrives at a tensor.
void Backward::sow(const GradientSeed &seed, std::vector<Instruction> &instructions) {
  int64_t granules = tensorGranules(seed.shape, seed.dtype);
  if (granules == 0)
    return;
  uint32_t row = allocateLasting(granules);
  uint8_t *to = rows_.address(row);
  memset(to, 0, static_cast<size_t>(granules * kGranuleBytes));
  if (seed.dtype == DType::F32) {
    toRowLayout(seed.shape, seed.dtype, seed.gradient, to);
  } else {
    int64_t elements = 1;
    for (int64_t extent : seed.shape)
      elements *= extent;
    std::vector<uint16_t> narrow(static_cast<size_t>(elements));
    std::transform(seed.gradient, seed.gradient + elements, narrow.begin(), [&](float x) {
      return seed.dtype == DType::BF16 ? floatToBF16(x) : floatToF16(x);
    });
    toRowLayout(seed.shape, seed.dtype, narrow.data(), to);
  }
  instructions.push_back(CopyIn{{row, static_cast<uint64_t>(granules)}});
  contribute(seed.row, row, granules, seed.dtype);
}

/// All that gives to inputs has had its turn: their gradients are summed where they stay.
void Backward::takeInputs(std::span<const GradientInput> inputs) {
  int64_t granules = 0;
  for (const GradientInput &input : inputs)
    granules += input.granules;
  if (granules == 0)
    return;
  uint32_t to = allocateLasting(granules);
  inputGradients_ = {to, static_cast<uint64_t>(granules)};
  for (const GradientInput &input : inputs) {
    sumTo(to, input.row, input.granules, input.dtype, /*add=*/false);
    std::fill_n(sources_.begin() + input.row, input.granules, 0u);
    inputs_.push_back({input.row, to});
    to += input.granules;
  }
  flushSums(depth_++);
  std::sort(inputs_.begin(), inputs_.end(),
            [](const InputRow &a, const InputRow &b) { return a.row < b.row; });
}

std::optional<uint32_t> Backward::inputGradient(uint32_t row) const {
  auto found = std::lower_bound(inputs_.begin(), inputs_.end(), row,
                                [](const InputRow &each, uint32_t r) { return each.row < r; });
  if (found == inputs_.end() || found->row != row)
    return std::nullopt;
  return found->gradient;
}

void Backward::run(std::span<const ScheduledBucket> forward, const FoldedLaunches &folded,
                   DroppedRows &dropped, std::span<const GradientSeed> seeds,
                   std::span<const GradientInput> inputs, Counters &counters, bool keepRows) {
  forward_ = forward;
  dropped_ = &dropped;
  counters_ = &counters;
  begin(forward);
  if (keepRows)
    segment_ = UINT64_MAX;
  std::span<const ScheduledBucket> before = forward.first(folded.launches);
  findTrainable(before, folded.rows);
  std::vector<Instruction> instructions;
  for (const GradientSeed &seed : seeds)
    sow(seed, instructions);
  Runner run = [&](std::span<const ScheduledBucket> launches, size_t number) {
    instructions.push_back(
        Launches{launches, static_cast<uint32_t>(number), scratch_.temporaryBytes(), &counters});
    device_.run(instructions);
    instructions.clear();
  };
  walk(forward.subspan(folded.launches), run);
  takeInputs(inputs);
  if (!folded.rows.empty()) {
    endSegment(run, /*last=*/keepRows);
    endsFound_ = false;
    seedFolded(folded.rows);
    walk(before, run);
    for (uint32_t param : model_.folded)
      gradients_[param] = {};
  }
  endSegment(run, /*last=*/true);
  showGradients();
  for (size_t i = 0; i < gradients_.size(); ++i)
    if (gradients_[i].kind != ParamGradient::None) {
      uint64_t granule = gradientBase_ + model_.params[i].id;
      gradients_[i].data = reinterpret_cast<float *>(rows_.address(granule));
      gradients_[i].at = FloatsAt::rows(granule);
    }
}

} // namespace sheaf::rt
