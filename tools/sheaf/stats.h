//===- stats.h - What a command counted -------------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_STATS_H
#define SHEAF_TOOLS_SHEAF_STATS_H

#include "compiler/measure/KernelTable.h"
#include "compiler/measure/ProcessMemory.h"
#include "compiler/store/Store.h"
#include "runtime/session/session.h"

#include <string>

namespace sheaf::tool {

/// Gathers what the mini-batches of a session did, for `--stats`.
class Statistics {
public:
  /// Before the session is made. `store`: where the model's code came from; null for artefacts,
  /// which bring it.
  Statistics(const rt::Model &model, const store::Use *store)
      : model_(model), store_(store), loadPeak_(driver::processMemory().peak), kernels_(model) {}

  /// From now on counts what the session forgets while a mini-batch goes on.
  void watch(rt::Session &session) {
    session.onForget([this](const rt::Schedule &launches) { kernels_.add(launches); });
  }
  /// After each mini-batch.
  void add(const rt::Session &session) { kernels_.add(session.schedule()); }

  /// `loadMs`: all that came before the first mini-batch. `runMs`: the mini-batches, with reading
  /// their results.
  std::string text(const rt::Session &session, double loadMs, double runMs) const;
  std::string json(const rt::Session &session, double loadMs, double runMs) const;

private:
  std::vector<driver::KernelRow> rows(const rt::Session &session) const;

  const rt::Model &model_;
  const store::Use *store_;
  uint64_t loadPeak_; ///< bytes of the process, with compiling and reading
  driver::KernelStatistics kernels_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_STATS_H
