//===- emissions.h - Hands out what instances emit --------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_EMISSIONS_H
#define SHEAF_RUNTIME_SESSION_EMISSIONS_H

#include "runtime/session/session.h"
#include "runtime/walk/inputs.h"
#include "runtime/walk/recorder.h"

#include <functional>
#include <span>
#include <vector>

namespace sheaf::rt {

/// Delivers each emission once, however often its instance is walked.
class Emissions {
public:
  Emissions(const Model &model, Recorder &recorder, ValueMover &values)
      : model_(model), recorder_(recorder), values_(values) {}

  void onEmit(Session::OnEmit deliver) { deliver_ = std::move(deliver); }
  bool isHeard() const { return deliver_ != nullptr; }
  void beginRun(std::span<const Instance> instances);
  /// Of an instance on its way, so many may be handed out after a flush. What was emitted before it
  /// has been computed: a read may depend on it, so every flush runs it.
  uint64_t ready(const Walk &walk) const;
  /// The same when only what stands at `depth` or above has been computed, of those from `next` on.
  uint64_t ready(const Walk &walk, uint64_t next, uint32_t depth);
  /// Calls `deliver` for those of `walk` from `next` to `end`, and moves `next` on before each.
  void handOut(const Walk &walk, uint64_t &next, uint64_t end,
               const std::function<void(const Slot *)> &deliver);
  /// `walks`: of the first instances.
  void afterFlush(std::span<const Walk> walks, std::span<const Outcome> outcomes);
  uint64_t delivered(size_t number) const { return delivered_[number]; }

private:
  bool flatten(const Slot *value);
  uint32_t depthOf(const Slot *value);

  const Model &model_;
  Recorder &recorder_;
  ValueMover &values_;
  Session::OnEmit deliver_;
  std::span<const Instance> instances_;
  std::vector<uint64_t> delivered_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_EMISSIONS_H
