#include "runtime/walk/recorder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace sheaf::rt {

static_assert(offsetof(Context, rows) == 0 && offsetof(Context, instance) == 8 &&
                  offsetof(Context, computed) == 16 && offsetof(Context, visible) == 24 &&
                  offsetof(Context, stepsLeft) == 32 && offsetof(Context, roundsLeft) == 40 &&
                  offsetof(Context, key) == 48 && offsetof(Context, roots) == 56 &&
                  offsetof(Context, stackTaken) == 64 && offsetof(Context, readWatch) == 72 &&
                  offsetof(Context, joins) == 80,
              "generated code reads these offsets");

Recorder::Recorder(const Model &model, RowMemory &rowMemory, MemoryMeter &meter, MemoryUse &memory,
                   const Limits &limits, bool hostile)
    : rowSpace(model.paramGranules, rowMemory, meter, memory.rows, hostile),
      promised(meter, memory.records), scratch(model, limits.threads, meter, memory.scratch),
      buckets(model, meter, memory.records, hostile),
      known(model, rowSpace, meter, memory, limits.keepBytes, hostile),
      grown(rowSpace, meter, memory.records, hostile),
      heap(meter, memory.heap, limits.heapBytes, hostile), lists(heap, model.chainedLists),
      stacks({limits.stackBytes, limits.stacks, model.furtherStacks, model.frameBytes}, meter,
             memory.stack),
      meter(meter), tasks(*this, stacks, failure, limits.steps) {
  rows = rowSpace.address(0);
  stackTaken = nullptr;
  instance = stepsLeft = roundsLeft = 0;
  setComputed(0);
  key = 0;
  roots = nullptr;
  readWatch = nullptr;
  joins = 0;
}

bool Recorder::giveBack(bool keptStacks) {
  bool any = known.giveBack();
  any |= scratch.giveBack();
  any |= heap.giveBack();
  any |= buckets.giveBack();
  any |= stacks.giveBack() && keptStacks;
  return any;
}

void Recorder::setFailure(const Failure &why) {
  failure = why;
  shortage = {};
  if (!why.isOfMemory())
    return;
  shortage.held = meter.held();
  shortage.promised = promised.granules() * kGranuleBytes;
  if (uint64_t left = rowSpace.capacity() - std::min(rowSpace.capacity(), rowSpace.used());
      why.kind == Failure::Rows && why.wanted > left)
    shortage.addressesLeft = left * kGranuleBytes;
  tasks.shortage = shortage;
}

void Recorder::takeFailure(const Walk &walk) {
  failure = walk.failed->failure;
  shortage = walk.shortage;
}

void Recorder::fail(const Failure &why) {
  setFailure(why);
  tasks.abandon();
}

namespace {
/// Replaces each name in a text by what it stands for.
std::string fillIn(std::string_view text,
                   std::initializer_list<std::pair<std::string_view, std::string>> values) {
  std::string result;
  while (!text.empty()) {
    auto value = std::find_if(values.begin(), values.end(),
                              [&](auto &v) { return text.starts_with(v.first); });
    result += value == values.end() ? text.substr(0, 1) : value->second;
    text.remove_prefix(value == values.end() ? 1 : value->first.size());
  }
  return result;
}

/// "model.sheaf:3: " of the block that was to be recorded, if it is known.
std::string placeOf(const Failure &why, const Model &model) {
  auto kernel = static_cast<uint64_t>(why.a) - 1;
  if (kernel >= model.kernels.size() || model.kernels[kernel].source.empty())
    return "";
  return model.kernels[kernel].source + ": ";
}
} // namespace

RunError::Cause causeOf(const Failure &why, const Model &model) {
  using Cause = RunError::Cause;
  if (why.isOfMemory())
    return Cause::Memory;
  switch (why.kind) {
  case Failure::Message: {
    // Host code tells where a limit was reached; its message has the limit's place.
    bool known = why.message < model.messages.size();
    std::string_view text = known ? model.messages[why.message] : std::string_view();
    return text.find("{stack}") != text.npos || text.find("{steps}") != text.npos ? Cause::Limit
                                                                                  : Cause::Program;
  }
  default:
    return Cause::Limit;
  }
}

int64_t columnOf(const Failure &why, const Model &model) {
  return why.kind == Failure::Message && why.message < model.messageColumns.size()
             ? model.messageColumns[why.message]
             : 0;
}

/// What memory was short of, and all that is known of what held it and what is needed.
static std::string describeShortage(const Failure &why, const Shortage &at, uint64_t addresses,
                                    std::string_view holder, uint64_t enough) {
  std::string text = "out of memory for ";
  uint64_t bytes = why.wanted;
  switch (why.kind) {
  case Failure::Stack:
    text += "the host stack: ";
    break;
  case Failure::Rows:
    text += "tensors: ";
    // More granules than any machine has, or a negative extent, has no sensible byte count.
    if (why.wanted > RowSpace::kMaxGranules)
      return text + "one of more than " + bytesText(RowSpace::kMaxGranules * kGranuleBytes) +
             " is needed";
    bytes *= kGranuleBytes;
    break;
  case Failure::Heap:
    text += "data values and lists: ";
    break;
  case Failure::Scratch:
    text += "kernels' scratch memory: ";
    break;
  default:
    text += "records: ";
  }
  if (bytes > 0)
    text += bytesText(bytes) + " more are needed, ";
  if (at.addressesLeft)
    return text + "the row space of " + bytesText(addresses) + " has " +
           bytesText(*at.addressesLeft) + " left";
  text += std::string(holder) + " already holds " + at.held.text();
  if (at.promised > 0 && at.promised != bytes)
    text += "; " + bytesText(at.promised) + " of tensors have no place yet";
  if (enough > at.held.limit())
    text += "; it takes " + bytesTextUp(enough) + " at least";
  return text;
}

std::string Recorder::describe(const Model &model, const Walk::Limits &limits,
                               uint64_t enough) const {
  const Failure &why = failure;
  std::string place = placeOf(why, model);
  std::string steps = std::to_string(limits.steps > 0 ? std::min(limits.steps, tasks.maxSteps())
                                                      : tasks.maxSteps());
  std::string stack = bytesText(
      std::min(limits.stackBytes > 0 ? limits.stackBytes : stacks.bytes(), stacks.bytes()));
  if (why.isOfMemory())
    return place +
           describeShortage(why, shortage, rowSpace.capacity() * kGranuleBytes, holder, enough);
  switch (why.kind) {
  case Failure::Message:
    if (why.message >= model.messages.size())
      return "error " + std::to_string(why.message);
    return fillIn(model.messages[why.message], {{"{0}", std::to_string(why.a)},
                                                {"{1}", std::to_string(why.b)},
                                                {"{{", "{"},
                                                {"{stack}", stack},
                                                {"{steps}", steps}});
  case Failure::Depth:
    return place + "too many steps that wait for each other: depth " + std::to_string(why.wanted) +
           " of at most " + std::to_string(buckets.depthLimit());
  case Failure::Reads: {
    auto number = static_cast<size_t>(why.a);
    std::string read = number < model.readPlaces.size() ? model.readPlaces[number] + ": " : "";
    return read + (why.b ? "code of an older Sheaf takes no value from a log: build it again"
                         : "the log of reads has no value for this read: it was written by another "
                           "program, or for other instances");
  }
  case Failure::Stopped:
    return "the run was stopped";
  default:
    return "failed";
  }
}

} // namespace sheaf::rt

using namespace sheaf::rt;

namespace {
inline Recorder &recorder(Context *context) { return *static_cast<Recorder *>(context); }

[[noreturn, gnu::cold, gnu::noinline]] void failHeap(Recorder &r, int64_t slots) {
  r.fail({Failure::Heap, 0, 0, 0, static_cast<uint64_t>(slots) * sizeof(Slot)});
}

inline ListObject *orFail(Recorder &r, ListObject *list, int64_t slots) {
  if (!list) [[unlikely]]
    failHeap(r, slots);
  return list;
}

inline int64_t listSlots(const ListObject *list) { return list->size * list->elementSlots; }

[[gnu::cold, gnu::noinline]] BucketTable::Bucket *growBucket(Recorder &r, uint32_t kernel,
                                                             uint32_t depth) {
  if (uint32_t own = r.buckets.depthInPhase(kernel, depth); own >= r.buckets.depthLimit())
    r.fail({Failure::Depth, 0, int64_t{kernel} + 1, 0, own});
  if (!r.buckets.grow(kernel, depth))
    r.fail({Failure::Records, 0, int64_t{kernel} + 1, 0, 0});
  return r.buckets.find(kernel, depth);
}

inline BucketTable::Bucket *bucketFor(Recorder &r, uint32_t kernel, uint32_t depth) {
  BucketTable::Bucket *bucket = r.buckets.find(kernel, depth);
  if (!bucket) [[unlikely]]
    bucket = growBucket(r, kernel, depth);
  return bucket;
}

[[noreturn, gnu::cold, gnu::noinline]] void failRows(Recorder &r, uint32_t kernel,
                                                     int64_t granules) {
  r.fail({Failure::Rows, 0, int64_t{kernel} + 1, 0, static_cast<uint64_t>(granules)});
}

/// Rows that no plan has room for, or else what is short is names.
[[noreturn, gnu::cold, gnu::noinline]] void failPromise(Recorder &r, uint32_t kernel,
                                                        int64_t granules) {
  auto wanted = static_cast<uint64_t>(granules);
  if (wanted > r.rowSpace.used() + r.rowSpace.left())
    failRows(r, kernel, granules);
  r.fail({Failure::Names, 0, int64_t{kernel} + 1, 0, r.promised.bytesToName(wanted)});
}

inline uint64_t orFail(Recorder &r, uint64_t id, uint32_t kernel, int64_t granules) {
  if (id == RowSpace::kFull) [[unlikely]]
    failRows(r, kernel, granules);
  return id;
}

inline uint64_t rowsFor(Recorder &r, uint32_t kernel, int64_t granules) {
  uint64_t id = r.rowSpace.allocate(granules);
  if (id == RowSpace::kFull && r.rowSpace.promises()) [[unlikely]]
    failPromise(r, kernel, granules);
  return orFail(r, id, kernel, granules);
}

/// Rows that are written now, or that records to come write into, too.
inline uint64_t rowsNowFor(Recorder &r, uint32_t kernel, int64_t granules) {
  return orFail(r, r.rowSpace.allocateNow(granules), kernel, granules);
}

// Where the words of a record but for its last one come from.

/// The caller writes them.
struct WordsToCome {
  void write(int32_t *, uint32_t) const {}
};

struct WordsInMemory {
  const int32_t *words;
  void write(int32_t *to, uint32_t n) const {
    for (uint32_t i = 0; i < n; ++i) // few: a call of memcpy takes longer
      to[i] = words[i];
  }
  const int32_t *data() const { return words; }
};

/// An odd last one is written with what stands beside it, where the record's own last word goes.
template <size_t Registers> struct WordsInRegisters {
  std::array<int32_t, 2 * Registers> words;
  explicit WordsInRegisters(std::array<uint64_t, Registers> registers)
      : words(std::bit_cast<decltype(words)>(registers)) {}
  void write(int32_t *to, uint32_t) const { std::memcpy(to, words.data(), sizeof(words)); }
  const int32_t *data() const { return words.data(); }
};

template <typename Words>
inline int32_t *append(Recorder &r, BucketTable::Bucket *bucket, uint32_t kernel, uint64_t id,
                       const Words &given) {
  uint32_t n = r.buckets.words(kernel);
  int32_t *words = bucket->cursor;
  bucket->cursor = words + n;
  given.write(words, n - 1);
  words[n - 1] = static_cast<int32_t>(id);
  return words;
}

/// Of a record at this depth, which the instance is about to record or has found.
inline void noteDepth(Recorder &r, uint32_t depth) {
  if (depth < r.tasks.deepest)
    return;
  if (depth < r.buckets.depthLimit())
    r.tasks.deepest = depth + 1;
  else
    r.tasks.hasLater = true;
}

inline Slot resultOf(uint64_t id, uint32_t depth) {
  return TensorHandle{static_cast<uint32_t>(id), depth + 1}.pack();
}

// What few records need are functions of their own, which are called last: all others would save
// registers for them.

[[gnu::noinline]] int32_t *recordFar(Recorder &r, uint32_t kernel, uint32_t depth,
                                     int64_t granules) {
  BucketTable::Bucket *bucket = bucketFor(r, kernel, depth);
  return append(r, bucket, kernel, rowsFor(r, kernel, granules), WordsToCome());
}

template <typename Words>
[[gnu::noinline]] Slot recordFarOnce(Recorder &r, uint32_t kernel, uint32_t depth, int64_t granules,
                                     Words words) {
  BucketTable::Bucket *bucket = bucketFor(r, kernel, depth);
  uint64_t id = rowsFor(r, kernel, granules);
  append(r, bucket, kernel, id, words);
  return resultOf(id, depth);
}

template <typename Words>
[[gnu::noinline]] Slot lookUp(Recorder &r, uint32_t kernel, uint32_t depth, int64_t granules,
                              Words words) {
  const int32_t *key = words.data();
  KnownRecords::Place place = r.known.look(kernel, key);
  if (place.in.known) {
    r.tasks.found += static_cast<uint64_t>(granules);
    TensorHandle result = r.known.result(place);
    if (result.depth > 0)
      noteDepth(r, result.depth - 1);
    r.tasks.foundLater |= result.depth > r.buckets.depthLimit();
    // What is kept stands where the instance begins, as all that is there already.
    result.depth = std::max(result.depth, static_cast<uint32_t>(r.computed));
    return result.pack();
  }
  BucketTable::Bucket *bucket = bucketFor(r, kernel, depth);
  uint64_t id = RowSpace::kFull;
  if (place.keep) {
    id = r.known.keepRows(granules);
    // Not kept, it would have to be noted elsewhere: the next one like it will be.
    if (id == RowSpace::kFull)
      place = {};
    else
      r.tasks.found += static_cast<uint64_t>(granules);
  }
  if (id == RowSpace::kFull)
    id = rowsFor(r, kernel, granules);
  append(r, bucket, kernel, id, words);
  TensorHandle result{static_cast<uint32_t>(id), depth + 1};
  r.known.note(place, key, result);
  return result.pack();
}

template <typename Words>
inline Slot recordOnce(Recorder &r, uint32_t kernel, uint32_t depth, int64_t granules,
                       Words words) {
  noteDepth(r, depth);
  if (!r.known.skips(kernel))
    return lookUp(r, kernel, depth, granules, words);
  BucketTable::Bucket *bucket = r.buckets.find(kernel, depth);
  if (!bucket || !r.rowSpace.isNear(granules)) [[unlikely]]
    return recordFarOnce(r, kernel, depth, granules, words);
  uint64_t id = r.rowSpace.allocateNear(granules);
  append(r, bucket, kernel, id, words);
  return resultOf(id, depth);
}
} // namespace

int32_t *sheaf_record(Context *context, uint32_t kernel, uint32_t depth, int64_t granules) {
  Recorder &r = recorder(context);
  noteDepth(r, depth);
  BucketTable::Bucket *bucket = r.buckets.find(kernel, depth);
  if (!bucket || !r.rowSpace.isNear(granules)) [[unlikely]]
    return recordFar(r, kernel, depth, granules);
  return append(r, bucket, kernel, r.rowSpace.allocateNear(granules), WordsToCome());
}

Slot sheaf_record_once(Context *context, uint32_t kernel, uint32_t depth, int64_t granules,
                       const int32_t *words) {
  return recordOnce(recorder(context), kernel, depth, granules, WordsInMemory{words});
}

Slot sheaf_record_once2(Context *context, uint32_t kernel, uint32_t depth, int64_t granules,
                        uint64_t words) {
  return recordOnce(recorder(context), kernel, depth, granules, WordsInRegisters<1>({words}));
}

Slot sheaf_record_once4(Context *context, uint32_t kernel, uint32_t depth, int64_t granules,
                        uint64_t words, uint64_t more) {
  return recordOnce(recorder(context), kernel, depth, granules, WordsInRegisters<2>({words, more}));
}

Slot sheaf_list_rows(Context *context, uint32_t kernel, ListObject *given, uint32_t once) {
  Recorder &r = recorder(context);
  const ListObject *list = orFail(r, r.lists.flat(given), listSlots(given));
  std::span<const Slot> handles(list->elements, static_cast<size_t>(list->size));
  uint32_t depth = 0;
  for (Slot handle : handles)
    depth = std::max(depth, TensorHandle::unpack(handle).depth);
  int64_t granules = tensorGranules(std::array{list->size}, DType::I32);
  KnownRecords::List known;
  if (once) {
    known = r.known.lookList(kernel, handles);
    if (known.table) {
      r.tasks.found += static_cast<uint64_t>(granules);
      return TensorHandle{*known.table, depth}.pack();
    }
  }
  uint64_t id = rowsNowFor(r, kernel, granules);
  auto *ids = reinterpret_cast<uint32_t *>(r.rowSpace.address(id));
  for (size_t i = 0; i < handles.size(); ++i)
    ids[i] = TensorHandle::unpack(handles[i]).id;
  r.written.note(id, granules);
  r.known.noteList(known, static_cast<uint32_t>(id));
  return TensorHandle{static_cast<uint32_t>(id), depth}.pack();
}

Slot sheaf_append_rows(Context *context, uint32_t kernel, uint32_t wholeDepth, Slot whole,
                       int64_t granules, uint32_t rowsDepth, Slot rows, int64_t more) {
  Recorder &r = recorder(context);
  if (more == 0)
    return whole;
  auto copy = [&](uint32_t depth, uint32_t from, int64_t count, uint64_t to) {
    BucketTable::Bucket *bucket = bucketFor(r, kernel, depth);
    append(r, bucket, kernel, to,
           WordsInRegisters<1>({uint64_t(from) | static_cast<uint64_t>(count) << 32}));
    noteDepth(r, depth);
    return depth + 1;
  };
  TensorHandle old = TensorHandle::unpack(whole), last = TensorHandle::unpack(rows);
  r.tasks.found += static_cast<uint64_t>(more);
  if (r.grown.take(old.id, granules, more)) {
    uint32_t depth =
        copy(rowsDepth, last.id, more, uint64_t(old.id) + static_cast<uint64_t>(granules));
    return TensorHandle{old.id, std::max(old.depth, depth)}.pack();
  }
  uint64_t before = r.rowSpace.handedOut();
  GrownRows::Place place = r.grown.goOn(old, granules, more, wholeDepth);
  orFail(r, place.id, kernel, granules + more);
  // It counts as many rows either way: whether there is room depends on who else grew it.
  r.tasks.found -= r.rowSpace.handedOut() - before;
  uint32_t depth = place.depth;
  if (int64_t left = granules - place.there; left > 0)
    depth = std::max(depth, copy(wholeDepth, old.id + static_cast<uint32_t>(place.there), left,
                                 place.id + static_cast<uint64_t>(place.there)));
  TensorHandle result{static_cast<uint32_t>(place.id), depth};
  r.grown.copied(old.id, granules, result); // also without the rows to come
  result.depth =
      std::max(depth, copy(rowsDepth, last.id, more, place.id + static_cast<uint64_t>(granules)));
  return result.pack();
}

void sheaf_temporaries(Context *context, int64_t granules) {
  Recorder &r = recorder(context);
  if (r.scratch.want(granules)) [[likely]]
    return;
  if (auto wanted = static_cast<uint64_t>(granules); wanted > RowSpace::kMaxGranules)
    r.fail({Failure::Rows, 0, 0, 0, wanted});
  r.fail({Failure::Scratch, 0, 0, 0, r.scratch.bytesMore(granules)});
}

Slot *sheaf_alloc(Context *context, int64_t slots) {
  Recorder &r = recorder(context);
  auto *p = static_cast<Slot *>(r.heap.allocate(static_cast<size_t>(slots) * sizeof(Slot)));
  if (!p) [[unlikely]]
    failHeap(r, slots);
  return p;
}

ListObject *sheaf_list_new(Context *context, int64_t elementSlots, int64_t size) {
  Recorder &r = recorder(context);
  return orFail(r, r.lists.make(elementSlots, size), elementSlots * size);
}

ListObject *sheaf_list_cons(Context *context, const Slot *head, ListObject *tail) {
  Recorder &r = recorder(context);
  return orFail(r, r.lists.cons(head, tail), listSlots(tail));
}

ListObject *sheaf_list_append(Context *context, ListObject *init, const Slot *last) {
  Recorder &r = recorder(context);
  return orFail(r, r.lists.append(init, last), listSlots(init));
}

ListObject *sheaf_list_concat(Context *context, ListObject *a, ListObject *b) {
  Recorder &r = recorder(context);
  return orFail(r, r.lists.concat(a, b), listSlots(a) + listSlots(b));
}

ListObject *sheaf_list_slice(Context *context, ListObject *list, int64_t lo, int64_t hi) {
  Recorder &r = recorder(context);
  return orFail(r, r.lists.slice(list, lo, hi), listSlots(list));
}

ListObject *sheaf_list_reverse(Context *context, ListObject *list) {
  Recorder &r = recorder(context);
  return orFail(r, r.lists.reverse(list), listSlots(list));
}

ListObject *sheaf_list_flat(Context *context, ListObject *list) {
  Recorder &r = recorder(context);
  return orFail(r, r.lists.flat(list), listSlots(list));
}

void sheaf_fail(Context *context, uint32_t message, int64_t a, int64_t b) {
  recorder(context).fail({Failure::Message, message, a, b, 0});
}

uint32_t sheaf_deepen(Context *context, const uint8_t *frame, uint32_t message) {
  Recorder &r = recorder(context);
  switch (r.tasks.deepen(frame)) {
  case HostStacks::Deepened::Done:
    return 0;
  case HostStacks::Deepened::Further:
    return 1;
  case HostStacks::Deepened::UsedUp:
    r.fail({Failure::Message, message, 0, 0, 0});
  case HostStacks::Deepened::NoMemory:
    r.fail({Failure::Stack, 0, 0, 0, 0});
  }
}

void sheaf_go_on(Context *context, EntryFn fn, const Slot *args, Slot *results) {
  Recorder &r = recorder(context);
  if (!r.tasks.goOn(fn, args, results))
    r.fail({Failure::Stack, 0, 0, 0, 0});
}

void sheaf_more_steps(Context *context, uint32_t message) {
  Recorder &r = recorder(context);
  if (!r.tasks.moreSteps())
    r.fail({Failure::Message, message, 0, 0, 0});
}

void sheaf_more_rounds(Context *context) { recorder(context).tasks.moreRounds(); }

void sheaf_wait(Context *context, uint32_t place, Slot tensor, int64_t first, int64_t bytes) {
  Recorder &r = recorder(context);
  TensorHandle handle = TensorHandle::unpack(tensor);
  auto begin = static_cast<uint64_t>(first) / kGranuleBytes;
  auto end = (static_cast<uint64_t>(first + bytes) + kGranuleBytes - 1) / kGranuleBytes;
  RowRange rows{handle.id + begin, end - begin};
  if (int64_t(handle.depth) <= r.computed)
    return r.reads.fetch(rows);
  r.reads.note(rows, handle.depth);
  r.tasks.wait(place, handle.depth);
}

Slot sheaf_read(Context *context, uint32_t place, Slot value) {
  Recorder &r = recorder(context);
  std::optional<Slot> read = r.tasks.read({place, value});
  if (!read)
    r.fail({Failure::Reads, 0, int64_t{place}, 0, 0});
  return *read;
}

void sheaf_note_read(Context *context, uint32_t place, Slot value) {
  if (sheaf_read(context, place, value) != value)
    recorder(context).fail({Failure::Reads, 0, int64_t{place}, /*older code=*/1, 0});
}

/// A new task, which was to run on `stack`, if that is given.
static Task *newTask(Recorder &r, HostStack *stack = nullptr) {
  void *memory = r.heap.allocate(sizeof(Task));
  if (!memory) [[unlikely]] {
    if (stack)
      r.stacks.giveBack(stack);
    failHeap(r, sizeof(Task) / sizeof(Slot));
  }
  return new (memory) Task;
}

static Task *forkFrom(const uint8_t *frame, Recorder &r, EntryFn fn, const Slot *args,
                      Slot *results, bool wasAsked) {
  if (HostStack *stack = r.tasks.stackForFork(wasAsked)) {
    Task *task = newTask(r, stack);
    r.tasks.fork(*task, stack, fn, args, results, frame);
    return task;
  }
  // Its frames do not know that there is more to keep than what they need.
  struct {
    RootFrame frame;
    const Slot *results;
  } kept{{r.roots, RootFrame::kMemory}, results};
  r.roots = &kept.frame;
  r.tasks.runInline(fn, args, results, frame);
  r.roots = kept.frame.caller;
  return nullptr;
}

void sheaf_emit(Context *context, const Slot *value) {
  Recorder &r = recorder(context);
  Walk &walk = r.tasks.walk();
  auto *before = std::bit_cast<ListObject *>(*walk.emitted);
  ListObject *list = orFail(r, r.lists.append(before, value), before->elementSlots);
  *walk.emitted = std::bit_cast<Slot>(list);
  if (walk.open == 1)
    walk.certain = static_cast<uint64_t>(list->size);
}

uint32_t sheaf_forks(Context *context) { return recorder(context).tasks.asked(); }

Task *sheaf_fork(Context *context, EntryFn fn, const Slot *args, Slot *results) {
  return forkFrom(static_cast<const uint8_t *>(__builtin_frame_address(0)), recorder(context), fn,
                  args, results, /*wasAsked=*/true);
}

Task *sheaf_fork_behind(Context *context, EntryFn fn, RootFrame *needs, Slot *results,
                        const Slot *forks, int64_t count) {
  Recorder &r = recorder(context);
  const auto *frame = static_cast<const uint8_t *>(__builtin_frame_address(0));
  for (int64_t i = 0; i < count; ++i) {
    auto *other = std::bit_cast<Task *>(forks[2 * i]);
    if (!other || !other->leavesStack())
      continue;
    Task *task = newTask(r);
    r.tasks.forkBehind(*task, *other, fn, needs, results, frame);
    return task;
  }
  return forkFrom(frame, r, fn, needs->slots(), results, /*wasAsked=*/false);
}

void sheaf_join(Context *context, Task *task) {
  if (task)
    recorder(context).tasks.join(*task);
}
