//===- kept_values.h - What an engine keeps ---------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_KEPT_VALUES_H
#define SHEAF_RUNTIME_SESSION_KEPT_VALUES_H

#include "runtime/memory/granule_bits.h"
#include "runtime/model/model.h"
#include "runtime/session/engine_inbox.h"
#include "runtime/session/kept_value.h"
#include "runtime/walk/recorder.h"
#include "runtime/walk/value_image.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::rt {

/// The rows of a value, which are the engine's, and whether anyone still has it.
struct KeptRows {
  std::vector<RowRange> rows; ///< of its tensors
  std::vector<RowRange> held; ///< with the room after them
  /// Where these lie (SharedRows::addMemory); changes under KeptValues::mutex_.
  std::vector<RowRange> memory;
  uint64_t imageBytes = 0; ///< charged
  uint64_t weights = 0;    ///< Session::Impl::weightsVersion that it follows from
  std::atomic<bool> isDropped = false;
  std::atomic<bool> isGone = false; ///< they may hold something else
};

/// Where handles say that they are gone; it outlives the engine.
struct KeptLink {
  std::mutex mutex;
  EngineInbox *inbox; ///< null: the engine is gone
};

/// A value: what handles of it share. Immutable.
class Kept {
public:
  Kept(const Model &of, uint32_t itsType, ValueImage &&value, std::shared_ptr<KeptRows> itsRows,
       std::shared_ptr<KeptLink> at)
      : model(of), type(itsType), image(std::move(value)), rows(std::move(itsRows)),
        link(std::move(at)) {}
  ~Kept();
  Kept(const Kept &) = delete;

  const Model &model;
  const uint32_t type;
  const ValueImage image;
  const std::shared_ptr<KeptRows> rows;
  const std::shared_ptr<KeptLink> link;
};

/// Of one engine. Used by whoever steps it, but for what is said to be for any thread.
class KeptValues {
public:
  KeptValues(const Model &model, Recorder &recorder, MemoryMeter &meter, MemoryUse &memory,
             EngineInbox &inbox);
  /// Handles mean nothing from then on.
  ~KeptValues();
  KeptValues(const KeptValues &) = delete;

  /// Keeps a value whose rows are all of the run's own. Null when memory is short.
  std::shared_ptr<const Kept> keep(uint32_t type, ValueImage &&image, uint64_t weights);

  bool isEmpty() const { return values_.empty(); }
  /// Lets those go that no one has. Whether there were any.
  bool sweep();
  /// And those that follow from other weights: no instance can begin from them.
  bool forgetOlder(uint64_t weights);
  /// Marks the rows that are kept.
  void mark(GranuleBits &live) const;
  /// Rows have become common: looks again which memory values have.
  void findMemory() const;
  /// Granules of values that have gone since, whoever has some of them still.
  uint64_t gone() const { return gone_; }

  /// For any thread. Throws InvalidArgument where an instance cannot begin with these arguments.
  void check(std::span<const KeptArgument> arguments) const;
  /// The same, of what may have changed since: why not, or nothing.
  std::string whyNot(std::span<const KeptArgument> arguments) const;
  /// As ValueMover takes them.
  static std::vector<PresentArgument> present(std::span<const KeptArgument> arguments);
  /// For any thread.
  KeptUse use() const;

private:
  template <typename IsGone> bool forget(IsGone isGone);
  std::vector<RowRange> memoryOf(const KeptRows &rows) const;

  const Model &model_;
  Recorder &recorder_;
  MemoryMeter &meter_;
  MemoryUse &memory_;
  std::shared_ptr<KeptLink> link_;
  mutable std::mutex mutex_; ///< of what follows, for those who count
  std::vector<std::shared_ptr<KeptRows>> values_;
  mutable std::optional<uint64_t> bytes_; ///< of all
  mutable uint64_t gone_ = 0;             ///< granules, since mark()
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_KEPT_VALUES_H
