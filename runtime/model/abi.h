//===- abi.h - What generated code calls and is called by -------*- C++ -*-===//
//
// Generated host code walks one instance and records blocks; generated kernels run a bucket of
// records. Both see only what is in this header. Changing it changes compiler/host and
// compiler/kernels.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_ABI_H
#define SHEAF_RUNTIME_MODEL_ABI_H

#include "runtime/model/layout.h"

namespace sheaf::rt {

/// The tensors, lists and data that a function that waits, or calls one that may, still needs
/// afterwards: everything else may be given back meanwhile (collector.h). In the frame of the
/// function; linked while the call runs. Or of a fork that has not begun: its arguments.
struct RootFrame {
  static constexpr int64_t kMemory = -1; ///< a place: one slot, the address of memory to keep
  RootFrame *caller;
  int64_t place; ///< an index into Model::roots, which says what the slots after this are
  const Slot *slots() const { return reinterpret_cast<const Slot *>(this + 1); }
};

class ReadWatch;

/// The first members of a session's recorder, at fixed offsets: generated code reads them.
struct Context {
  uint8_t *rows;    ///< offset 0: address of granule 0 in the host's range
  int64_t instance; ///< offset 8: which instance is being walked (for errors)
  /// offset 16: what stands at this depth or above has been computed, unless no read may depend on
  /// it. What is recorded next stands deeper.
  int64_t computed;
  /// offset 24: what stands at this depth or above host code loads from `rows`; for all else it
  /// calls sheaf_wait() first. Below all depths where rows are a device's own.
  int64_t visible;
  int64_t stepsLeft;    ///< offset 32: calls of recursive functions before sheaf_more_steps()
  int64_t roundsLeft;   ///< offset 40: rounds of loops before sheaf_more_rounds()
  uint64_t key;         ///< offset 48: what the instance's draws follow from (keys.h)
  RootFrame *roots;     ///< offset 56: of the innermost call that runs and may wait
  uint8_t *stackTaken;  ///< offset 64: frames below this address call sheaf_deepen() first
  ReadWatch *readWatch; ///< offset 72: who follows what is read; null: no one
  /// offset 80: not 0: rows are short. Kernels that were hoisted are not recorded, and those with
  /// KernelDesc::joined are in place of what takes their rows. Not while an instance waits.
  uint64_t joins;
};

/// A call that runs beside the one that made it (runtime/walk/tasks.h).
struct Task;

/// One instance: reads the slots of its arguments, writes the slots of its result.
using EntryFn = void (*)(Context *, const Slot *args, Slot *results);

} // namespace sheaf::rt

extern "C" {

/// Appends a record to bucket (depth, kernel) and reserves `granules` granules for its results
/// and temporaries. Returns the record's words; the last one is set to the first granule's id,
/// the caller writes the others at once. Results have depth + 1.
int32_t *sheaf_record(sheaf::rt::Context *, uint32_t kernel, uint32_t depth, int64_t granules);

/// Records kernel `kernel` with these words, all but the last, unless its results are memoised from
/// a record with the same words (runtime/walk/known.h). Returns the handle of the results, new or
/// not.
sheaf::rt::Slot sheaf_record_once(sheaf::rt::Context *, uint32_t kernel, uint32_t depth,
                                  int64_t granules, const int32_t *words);
/// The same for a kernel with one or two words but the last, in one register, the first in its
/// lower half; and with three or four, in two.
sheaf::rt::Slot sheaf_record_once2(sheaf::rt::Context *, uint32_t kernel, uint32_t depth,
                                   int64_t granules, uint64_t words);
sheaf::rt::Slot sheaf_record_once4(sheaf::rt::Context *, uint32_t kernel, uint32_t depth,
                                   int64_t granules, uint64_t words, uint64_t more);

/// The handle of a table of i32 with the ids of a list of tensors, one slot each, for the next
/// record of `kernel`; it is as deep as the deepest of them. `once`: a list with the same ids may
/// get the same table, so that the record can be found by it.
sheaf::rt::Slot sheaf_list_rows(sheaf::rt::Context *, uint32_t kernel, sheaf::rt::ListObject *,
                                uint32_t once);

/// The handle of a tensor of the granules of `whole` and after them those of `rows`. `kernel`
/// copies so many granules; it is recorded for `rows`, at its depth, and for `whole`, unless the
/// rows have room after it (runtime/walk/grown.h).
sheaf::rt::Slot sheaf_append_rows(sheaf::rt::Context *, uint32_t kernel, uint32_t wholeDepth,
                                  sheaf::rt::Slot whole, int64_t granules, uint32_t rowsDepth,
                                  sheaf::rt::Slot rows, int64_t more);

/// The next record's kernel needs so many granules in the scratch of the thread that runs it,
/// beside KernelCode::scratchBytes.
void sheaf_temporaries(sheaf::rt::Context *, int64_t granules);

/// Slots for a data value or a tuple on the heap; they live as long as something needs them that
/// waits can tell of (RootFrame).
sheaf::rt::Slot *sheaf_alloc(sheaf::rt::Context *, int64_t slots);

/// Lists. All return lists that live as long, too; arguments stay valid.
sheaf::rt::ListObject *sheaf_list_new(sheaf::rt::Context *, int64_t elementSlots, int64_t size);
sheaf::rt::ListObject *sheaf_list_cons(sheaf::rt::Context *, const sheaf::rt::Slot *head,
                                       sheaf::rt::ListObject *tail);
sheaf::rt::ListObject *sheaf_list_append(sheaf::rt::Context *, sheaf::rt::ListObject *init,
                                         const sheaf::rt::Slot *last);
sheaf::rt::ListObject *sheaf_list_concat(sheaf::rt::Context *, sheaf::rt::ListObject *,
                                         sheaf::rt::ListObject *);
/// The caller has checked 0 <= lo <= hi <= size.
sheaf::rt::ListObject *sheaf_list_slice(sheaf::rt::Context *, sheaf::rt::ListObject *, int64_t lo,
                                        int64_t hi);
sheaf::rt::ListObject *sheaf_list_reverse(sheaf::rt::Context *, sheaf::rt::ListObject *);
/// The same list with all its elements one after the other. Only a model with
/// Model::chainedLists has lists of several pieces; its code calls this before it reads any element
/// but the first (element 0 is always at `elements`). O(1) unless the list is in pieces, and then
/// once for each list: the object itself is changed.
sheaf::rt::ListObject *sheaf_list_flat(sheaf::rt::Context *, sheaf::rt::ListObject *);

/// Before a read of elements of a tensor that is not visible (Context::visible): waits until it is
/// computed, with every tensor of its depth or above that a read may depend on, and until the bytes
/// [first, first + bytes) of it stand where `rows` says. `place`: which read it is, an index into
/// Model::readPlaces.
void sheaf_wait(sheaf::rt::Context *, uint32_t place, sheaf::rt::Slot tensor, int64_t first,
                int64_t bytes);
/// Tells what was read there, and gives what counts as that. Only when there is a
/// Context::readWatch.
sheaf::rt::Slot sheaf_read(sheaf::rt::Context *, uint32_t place, sheaf::rt::Slot value);
/// The same in older artefacts, which take no other value than theirs.
void sheaf_note_read(sheaf::rt::Context *, uint32_t place, sheaf::rt::Slot value);

/// Appends a value, in these slots, to what the instance emits (EntryDesc::emits).
void sheaf_emit(sheaf::rt::Context *, const sheaf::rt::Slot *value);

/// Whether a call that could be forked is; if so, that is done next. Else the caller makes the call
/// itself.
uint32_t sheaf_forks(sheaf::rt::Context *);
/// Starts `fn` on copies of these arguments beside the caller: a call that does not depend on what
/// the caller does next. Whoever forks keeps the results among its roots. Returns what
/// sheaf_join() takes; null when it has run already.
sheaf::rt::Task *sheaf_fork(sheaf::rt::Context *, sheaf::rt::EntryFn fn,
                            const sheaf::rt::Slot *args, sheaf::rt::Slot *results);
/// The same for a call whose arguments stand in a frame of its own, and which joins `count` others
/// first; `forks` has two slots for each, the first of them what sheaf_join() takes. It may begin
/// when one of these has ended, on its stack; so the frame must say what it needs until then, and
/// be in one piece of memory with the results, after these.
sheaf::rt::Task *sheaf_fork_behind(sheaf::rt::Context *, sheaf::rt::EntryFn fn,
                                   sheaf::rt::RootFrame *frame, sheaf::rt::Slot *results,
                                   const sheaf::rt::Slot *forks, int64_t count);
/// Waits until a forked call has left its results.
void sheaf_join(sheaf::rt::Context *, sheaf::rt::Task *);

/// End the instance with an error and never return. `message` indexes Model::messages: a text with
/// its source place; `{0}` and `{1}` in it stand for a and b, `{stack}` and `{steps}` for limits.
[[noreturn]] void sheaf_fail(sheaf::rt::Context *, uint32_t message, int64_t a, int64_t b);
/// Makes room on the host stack for what lies above `frame` (and sets Context::stackTaken), or ends
/// the instance: with this message when its stack is used up, else for want of memory. Not 0, with
/// Model::furtherStacks only: the call whose frame it is gives that up and calls sheaf_go_on().
uint32_t sheaf_deepen(sheaf::rt::Context *, const uint8_t *frame, uint32_t message);
/// Calls `fn`, the same function, where the stack has room for it.
void sheaf_go_on(sheaf::rt::Context *, sheaf::rt::EntryFn fn, const sheaf::rt::Slot *args,
                 sheaf::rt::Slot *results);
/// Context::stepsLeft has come to an end: grants more, or ends the instance, with this message when
/// it has had all that it may, else because it was stopped.
void sheaf_more_steps(sheaf::rt::Context *, uint32_t message);
/// Context::roundsLeft has come to an end: grants more, or ends an instance that was stopped.
void sheaf_more_rounds(sheaf::rt::Context *);
}

#endif // SHEAF_RUNTIME_MODEL_ABI_H
