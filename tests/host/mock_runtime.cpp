#include "tests/host/mock_runtime.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

using namespace sheaf;
using namespace sheaf::tests;
using rt::Context;
using rt::ListObject;
using rt::Slot;

namespace {

Mock &mock(Context *context) { return *reinterpret_cast<Mock *>(context); }

int32_t *record(Context *context, uint32_t kernel, uint32_t depth, int64_t granules) {
  Mock &m = mock(context);
  m.records.push_back({kernel, depth, granules, std::vector<int32_t>(m.wordsOf.at(kernel), -1)});
  std::vector<int32_t> &words = m.records.back().words;
  words.back() = static_cast<int32_t>(m.nextGranule);
  m.nextGranule += static_cast<uint32_t>(granules);
  return words.data();
}

/// Memoised records are the runtime's business: here each is made.
Slot recordOnce(Context *context, uint32_t kernel, uint32_t depth, int64_t granules,
                const int32_t *key) {
  int32_t *words = record(context, kernel, depth, granules);
  uint32_t last = mock(context).wordsOf.at(kernel) - 1;
  std::copy_n(key, last, words);
  return rt::TensorHandle{static_cast<uint32_t>(words[last]), depth + 1}.pack();
}

Slot recordOnce2(Context *context, uint32_t kernel, uint32_t depth, int64_t granules,
                 uint64_t words) {
  auto key = std::bit_cast<std::array<int32_t, 2>>(words);
  return recordOnce(context, kernel, depth, granules, key.data());
}

Slot recordOnce4(Context *context, uint32_t kernel, uint32_t depth, int64_t granules,
                 uint64_t words, uint64_t more) {
  auto key = std::bit_cast<std::array<int32_t, 4>>(std::array{words, more});
  return recordOnce(context, kernel, depth, granules, key.data());
}

/// No kernel runs here.
void temporaries(Context *, int64_t) {}

Slot *alloc(Context *context, int64_t slots) {
  return mock(context).memory.emplace_back(static_cast<size_t>(slots)).data();
}

ListObject *listNew(Context *context, int64_t elementSlots, int64_t size) {
  return mock(context).makeList(elementSlots, size);
}

ListObject *join(Context *context, const Slot *a, int64_t na, const Slot *b, int64_t nb,
                 int64_t width) {
  ListObject *list = mock(context).makeList(width, na + nb);
  std::copy_n(a, na * width, list->elements);
  std::copy_n(b, nb * width, list->elements + na * width);
  return list;
}

ListObject *cons(Context *context, const Slot *head, ListObject *tail) {
  return join(context, head, 1, tail->elements, tail->size, tail->elementSlots);
}

ListObject *append(Context *context, ListObject *init, const Slot *last) {
  return join(context, init->elements, init->size, last, 1, init->elementSlots);
}

ListObject *concat(Context *context, ListObject *a, ListObject *b) {
  return join(context, a->elements, a->size, b->elements, b->size, a->elementSlots);
}

ListObject *slice(Context *context, ListObject *list, int64_t lo, int64_t hi) {
  return join(context, list->elements + lo * list->elementSlots, hi - lo, nullptr, 0,
              list->elementSlots);
}

/// The mock's lists are never in pieces.
ListObject *flat(Context *, ListObject *list) { return list; }

/// A table of ids, in the memory of the mock: the handle counts granules like those of records.
Slot listRows(Context *context, uint32_t, ListObject *list, uint32_t) {
  Mock &m = mock(context);
  uint32_t depth = 0, id = m.nextGranule++;
  std::vector<uint32_t> &ids = m.tables[id];
  for (int64_t i = 0; i < list->size; ++i) {
    rt::TensorHandle handle = rt::TensorHandle::unpack(list->elements[i]);
    ids.push_back(handle.id);
    depth = std::max(depth, handle.depth);
  }
  return rt::TensorHandle{id, depth}.pack();
}

ListObject *reverse(Context *context, ListObject *list) {
  ListObject *out = mock(context).makeList(list->elementSlots, list->size);
  for (int64_t i = 0; i < list->size; ++i)
    std::copy_n(list->elements + i * list->elementSlots, list->elementSlots,
                out->elements + (list->size - 1 - i) * list->elementSlots);
  return out;
}

void fail(Context *context, uint32_t message, int64_t a, int64_t b) {
  Mock &m = mock(context);
  m.failed = true;
  m.message = message;
  m.a = a;
  m.b = b;
  std::longjmp(m.out, 1);
}

/// A test grants all steps at once.
void moreSteps(Context *context, uint32_t message) { fail(context, message, 0, 0); }

void moreRounds(Context *context) { context->roundsLeft = 1 << 20; }

uint32_t deepen(Context *context, const uint8_t *, uint32_t message) {
  fail(context, message, 0, 0);
  return 0;
}

} // namespace

ListObject *Mock::makeList(int64_t elementSlots, int64_t size) {
  std::vector<Slot> &slots = memory.emplace_back(static_cast<size_t>(elementSlots * size));
  lists.push_back({slots.data(), size, elementSlots, nullptr});
  return &lists.back();
}

void *sheaf::tests::abiFunction(const std::string &name) {
  static const std::map<std::string, void *> functions = {
      {"sheaf_record", reinterpret_cast<void *>(record)},
      {"sheaf_temporaries", reinterpret_cast<void *>(temporaries)},
      {"sheaf_record_once", reinterpret_cast<void *>(recordOnce)},
      {"sheaf_record_once2", reinterpret_cast<void *>(recordOnce2)},
      {"sheaf_record_once4", reinterpret_cast<void *>(recordOnce4)},
      {"sheaf_alloc", reinterpret_cast<void *>(alloc)},
      {"sheaf_list_new", reinterpret_cast<void *>(listNew)},
      {"sheaf_list_cons", reinterpret_cast<void *>(cons)},
      {"sheaf_list_append", reinterpret_cast<void *>(append)},
      {"sheaf_list_concat", reinterpret_cast<void *>(concat)},
      {"sheaf_list_slice", reinterpret_cast<void *>(slice)},
      {"sheaf_list_flat", reinterpret_cast<void *>(flat)},
      {"sheaf_list_rows", reinterpret_cast<void *>(listRows)},
      {"sheaf_list_reverse", reinterpret_cast<void *>(reverse)},
      {"sheaf_deepen", reinterpret_cast<void *>(deepen)},
      {"sheaf_more_steps", reinterpret_cast<void *>(moreSteps)},
      {"sheaf_more_rounds", reinterpret_cast<void *>(moreRounds)},
      {"sheaf_fail", reinterpret_cast<void *>(fail)},
  };
  auto it = functions.find(name);
  return it == functions.end() ? nullptr : it->second;
}
