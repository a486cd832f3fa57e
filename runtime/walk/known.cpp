#include "runtime/walk/known.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace sheaf::rt {

namespace {

/// Of a kernel whose records repeat less than once in 64 nothing is to be gained. The pause makes
/// trying again cost a thirtieth of that.
constexpr uint32_t kWindow = 1024;
constexpr uint32_t kFewHits = kWindow / 64;
/// A table that the caches do not hold costs many times as much.
constexpr uint64_t kLargeTable = uint64_t(1) << 20;
constexpr uint32_t kFewHitsInLarge = kWindow / 8;
constexpr uint32_t kPause = 32 * kWindow;
constexpr uint32_t kLongestPause = 32 * kPause;

/// Whether all look-ups together pay is decided every so many: one kernel's records repeat only
/// where those that they come from were found, so light ones are looked up for heavy ones.
constexpr uint32_t kLooks = 4 * kWindow;
/// Each time in a row that they do not, the pause is twice as long. They pay when they save twice
/// of what they are taken to cost: what is saved is an estimate.
constexpr double kWorthwhile = 2;

/// A mini-batch of a training knows nothing of others. It tries so many first: where these save
/// next to nothing, a whole window would cost a small mini-batch more than looking up may. Pauses
/// are shorter by as much.
constexpr uint32_t kTrial = kLooks / 32;
constexpr double kNextToNothing = 0.125;

/// What a look-up takes longer than a record, in nanoseconds (bench/record_bench, and more where
/// the table shares the caches with rows).
double lookTime(uint64_t tableBytes) {
  constexpr uint64_t near = uint64_t(32) << 10;
  return tableBytes <= near ? 12 : tableBytes <= kLargeTable ? 30 : 100;
}

/// A kernel whose records take so long, in nanoseconds, is looked up all the same: that costs it
/// nothing.
constexpr double kHeavy = 2000;

/// What a record takes at least, in nanoseconds: what it computes, at a speed that few cores
/// exceed, and rows that are near. Extents of the instance are taken for short ones.
double recordTime(const KernelDesc &kernel) {
  constexpr double flopPerNanosecond = 100, bytesPerNanosecond = 20, made = 5, extent = 32;
  auto sum = [](const std::vector<FlopTerm> &terms) {
    double all = 0;
    for (const FlopTerm &term : terms)
      all += term.coefficient * std::pow(extent, static_cast<double>(term.extentWords.size()));
    return all;
  };
  return made + sum(kernel.flop) / flopPerNanosecond +
         (kernel.bytes ? sum(*kernel.bytes) / bytesPerNanosecond : 0);
}

/// In training, the backward record computes twice as much, and takes so long besides.
constexpr double kBackTime = 50;

/// Kept rows are charged in steps.
constexpr uint64_t kStepBytes = uint64_t(1) << 20;

/// Multiplicative hashing by the golden ratio (Knuth), word by word.
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
uint64_t hashOn(uint64_t hash, uint32_t word) { return std::rotl((hash ^ word) * kFactor, 32); }

} // namespace

//===----------------------------------------------------------------------===//
// RecordTable
//===----------------------------------------------------------------------===//

RecordTable::RecordTable(uint32_t keyWords, MemoryMeter &meter, MemoryKind &count,
                         uint64_t firstEntries)
    : meter_(&meter), count_(&count), firstEntries_(firstEntries), keyWords_(keyWords),
      stride_(keyWords + static_cast<uint32_t>(sizeof(Entry) / sizeof(uint32_t))) {}

RecordTable::RecordTable(RecordTable &&other) noexcept
    : meter_(other.meter_), count_(other.count_), words_(std::exchange(other.words_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)), used_(std::exchange(other.used_, 0)),
      firstEntries_(other.firstEntries_), stamp_(other.stamp_), keyWords_(other.keyWords_),
      stride_(other.stride_), shift_(other.shift_) {}

void RecordTable::free() {
  std::free(words_);
  meter_->uncharge(*count_, bytes());
  words_ = nullptr;
  capacity_ = used_ = 0;
}

uint64_t RecordTable::start(const int32_t *key) const {
  uint64_t hash = 0;
  // The words were written one by one a moment ago: reading two at once would wait for them.
  for (uint32_t i = 0; i < keyWords_; ++i)
    hash = hashOn(hash, static_cast<uint32_t>(key[i]));
  return (hash * kFactor) >> shift_;
}

bool RecordTable::resize(uint64_t capacity) {
  uint64_t size = capacity * stride_ * sizeof(uint32_t);
  if (!meter_->charge(*count_, size))
    return false;
  auto *fresh = static_cast<uint32_t *>(std::calloc(capacity, stride_ * sizeof(uint32_t)));
  if (!fresh) {
    meter_->uncharge(*count_, size);
    return false;
  }
  uint32_t *old = std::exchange(words_, fresh);
  uint64_t count = std::exchange(capacity_, capacity);
  shift_ = 64 - std::countr_zero(capacity);
  for (uint64_t i = 0; i < count; ++i) {
    auto *entry = reinterpret_cast<Entry *>(old + i * stride_);
    if (entry->stamp == stamp_)
      std::memcpy(find(entry->key(), stamp_).entry, entry, stride_ * sizeof(uint32_t));
  }
  std::free(old);
  meter_->uncharge(*count_, count * stride_ * sizeof(uint32_t));
  return true;
}

/// The first look-up under a new stamp.
bool RecordTable::begin(uint32_t stamp) {
  // A number that comes round must not meet the entries of the first time; and one large
  // mini-batch is no reason to hold its table for ever.
  if (stamp < stamp_ || (capacity_ > 64 * firstEntries_ && used_ < capacity_ / 64))
    free();
  stamp_ = stamp;
  used_ = 0;
  return capacity_ > 0 || resize(firstEntries_);
}

RecordTable::Place RecordTable::find(const int32_t *key, uint32_t stamp) {
  if (stamp != stamp_ || capacity_ == 0) [[unlikely]]
    if (!begin(stamp))
      return {};
  // Some empty places must remain, or a search would not end, or not soon.
  bool room = true;
  if (used_ * 2 >= capacity_) [[unlikely]]
    room = resize(capacity_ * 2) || used_ + 1 + capacity_ / 8 < capacity_;
  for (uint64_t i = start(key);; ++i) {
    Entry *entry = at(i & (capacity_ - 1));
    if (entry->stamp != stamp)
      return {room ? entry : nullptr, false};
    uint32_t equal = 0;
    while (equal < keyWords_ && entry->key()[equal] == key[equal])
      ++equal;
    if (equal == keyWords_)
      return {entry, true};
  }
}

void RecordTable::put(Place place, const int32_t *key, TensorHandle result, uint32_t run) {
  place.entry->stamp = stamp_;
  place.entry->id = result.id;
  place.entry->depth = result.depth;
  place.entry->run = run;
  for (uint32_t i = 0; i < keyWords_; ++i)
    place.entry->key()[i] = key[i];
  ++used_;
}

//===----------------------------------------------------------------------===//
// KnownRecords
//===----------------------------------------------------------------------===//

KnownRecords::KnownRecords(const Model &model, RowSpace &rows, MemoryMeter &meter,
                           MemoryUse &memory, uint64_t keepBytes, bool hostile)
    : rows_(rows), meter_(meter), count_(memory.tables), pauses_(model.kernels.size()),
      lists_(std::tuple_size_v<decltype(List::key)>, meter, memory.records, hostile ? 2 : 64),
      paramGranules_(model.paramGranules), forgetsWindows_(model.training),
      keepBytes_(std::min(keepBytes, rows.capacity() / 4 * kGranuleBytes)), window_(kLooks),
      pause_(kPause), leastMissed_(hostile ? 4 : kWindow) {
  uint64_t first = hostile ? 2 : 64;
  kernels_.reserve(model.kernels.size());
  for (const KernelDesc &desc : model.kernels) {
    uint32_t words = desc.words - 1;
    double time = recordTime(desc);
    Kernel kernel{RecordTable(words, meter, memory.records, first),
                  RecordTable(words, meter, memory.tables, first),
                  {},
                  true,
                  model.training ? 3 * time + kBackTime : time};
    uint32_t word = 0;
    for (const RecordWord &entry : desc.layout) {
      bool scalar = entry.kind == RecordWord::Int || entry.kind == RecordWord::Float;
      if (entry.kind == RecordWord::Row || entry.kind == RecordWord::List)
        kernel.rowWords.push_back(word);
      // There is no end of numbers: a table of them would only fill up.
      kernel.mayKeep &= !scalar;
      word += entry.words();
    }
    // Without a description there is no telling which words are rows.
    kernel.mayKeep &= word == desc.words;
    kernels_.push_back(std::move(kernel));
  }
}

KnownRecords::~KnownRecords() { meter_.uncharge(count_, charged_); }

bool KnownRecords::isOfParameters(const Kernel &kernel, const int32_t *key) const {
  for (uint32_t word : kernel.rowWords)
    if (static_cast<uint32_t>(key[word]) >= paramGranules_)
      return false;
  return true;
}

/// Counts a look-up in a table that no longer fills.
void KnownRecords::account(Kernel &kernel, const RecordTable &table, bool known) {
  spent_ += lookTime(table.usedBytes());
  if (known) {
    ++kernel.hits;
    ++kernel.saved;
    gained_ += kernel.time;
  }
  if (++looks_ < window_)
    return;
  if (window_ < kLooks && gained_ >= kNextToNothing * spent_) {
    window_ = kLooks;
    pause_ = kPause;
    return;
  }
  bool pays = gained_ >= kWorthwhile * spent_;
  pause_ = pays ? kPause : std::min(2 * pause_, kLongestPause);
  if (!pays)
    for (size_t i = 0; i < kernels_.size(); ++i)
      if (kernels_[i].time < kHeavy)
        pauses_[i] = pause_;
  looks_ = 0;
  spent_ = gained_ = 0;
}

void KnownRecords::pauseAll(bool pause) {
  if (pause && !allPause_) {
    for (Kernel &kernel : kernels_)
      kernel.seen.free();
    lists_.free();
  }
  allPause_ = pause;
  std::fill(pauses_.begin(), pauses_.end(), pause ? UINT32_MAX : 0);
}

KnownRecords::Place KnownRecords::find(Kernel &kernel, const int32_t *key) {
  bool keep = kernel.mayKeep && keepBytes_ > 0 && !gaveWay_ && isOfParameters(kernel, key);
  if (keep) {
    Place place{&kernel.kept, kernel.kept.find(key, version_), true};
    if (place.in.known) {
      account(kernel, kernel.kept, true);
      ++kernel.looked;
      return place;
    }
    // A table that still fills says nothing about how often its entries will be used.
    full_ |= !place.in.entry;
    if (!full_)
      return place;
  }
  if (++kernel.looked >= kWindow) {
    bool isLarge = kernel.seen.usedBytes() > kLargeTable;
    if (kernel.hits < (isLarge ? kFewHitsInLarge : kFewHits))
      pauses_[static_cast<size_t>(&kernel - kernels_.data())] = kPause;
    kernel.looked = kernel.hits = 0;
  }
  Place place{&kernel.seen, kernel.seen.find(key, run_), false};
  account(kernel, kernel.seen, place.in.known);
  foundSeen_ += place.in.known;
  // What is kept is computed once more at most for each of these.
  if (keep && !place.in.known)
    gaveWay_ = ++missed_ >= std::max(kept_, leastMissed_);
  if (!place.in.entry)
    place.table = nullptr;
  return place;
}

KnownRecords::List KnownRecords::lookList(uint32_t kernel, std::span<const Slot> handles) {
  if (pauses_[kernel])
    return {};
  uint64_t hash = 0;
  for (Slot handle : handles)
    hash = hashOn(hash, TensorHandle::unpack(handle).id);
  List list{{},
            {},
            {static_cast<int32_t>(hash), static_cast<int32_t>(hash >> 32),
             static_cast<int32_t>(handles.size())}};
  list.in = lists_.find(list.key.data(), run_);
  if (!list.in.known)
    return list;
  uint32_t table = list.in.entry->id;
  list.in = {};
  auto *ids = reinterpret_cast<const uint32_t *>(rows_.address(table));
  for (size_t i = 0; i < handles.size(); ++i)
    if (ids[i] != TensorHandle::unpack(handles[i]).id)
      return list; // another one with this hash
  list.table = table;
  return list;
}

uint64_t KnownRecords::keepRows(int64_t granules) {
  uint64_t most = keepBytes_ - std::min(keepBytes_, charged_);
  uint64_t id = RowSpace::kFull;
  uint64_t need = rows_.keptBytesWith(granules);
  if (need <= charged_) {
    id = rows_.keep(granules);
  } else if (need - charged_ <= most) {
    uint64_t step = std::min(std::max(need - charged_, kStepBytes), most);
    if (!meter_.charge(count_, step)) {
      step = need - charged_;
      if (!meter_.charge(count_, step))
        step = 0;
    }
    charged_ += step;
    if (need <= charged_)
      id = rows_.keep(granules);
  }
  if (id == RowSpace::kFull)
    full_ = true;
  return id;
}

void KnownRecords::forgetSeen() {
  foundSeen_ = 0;
  if (++run_ == 0)
    ++run_;
}

void KnownRecords::beginRun() {
  if (running_ || gaveWay_)
    forgetKept();
  running_ = true;
  forgetSeen();
  if (forgetsWindows_) {
    looks_ = 0;
    spent_ = gained_ = 0;
    window_ = kTrial;
    pause_ = kPause / (kLooks / kTrial);
  }
  for (Kernel &kernel : kernels_) {
    kernel.saved = 0;
    if (forgetsWindows_)
      kernel.looked = kernel.hits = 0;
  }
  if (forgetsWindows_ || allPause_)
    pauseAll(allPause_);
}

void KnownRecords::endRun(Counters &counters) {
  running_ = false;
  counters.evictions += takeEvictions();
  for (size_t i = 0; i < kernels_.size(); ++i) {
    counters.kernels[i].saved += kernels_[i].saved;
    counters.saved += std::exchange(kernels_[i].saved, 0);
  }
}

void KnownRecords::forgetKept() {
  if (++version_ == 0)
    ++version_;
  rows_.forgetKept();
  evictions_ += gaveWay_;
  full_ = gaveWay_ = false;
  kept_ = missed_ = 0;
}

bool KnownRecords::giveBack() {
  if (count_.now == 0)
    return false;
  forgetKept();
  rows_.releaseKept();
  meter_.uncharge(count_, std::exchange(charged_, 0));
  for (Kernel &kernel : kernels_)
    kernel.kept.free();
  keepBytes_ = keepBytes_ < kStepBytes ? 0 : keepBytes_ / 2;
  return true;
}

} // namespace sheaf::rt
