//===- Tune.h - Chooses how kernels are cut, by timing them -----*- C++ -*-===//
#ifndef SHEAF_COMPILER_BENCH_TUNE_H
#define SHEAF_COMPILER_BENCH_TUNE_H

#include "compiler/bench/TilingSearch.h"
#include "compiler/driver/Compiler.h"
#include "runtime/session/session.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

/// A kernel that takes less of the time inside kernels is left as it is.
inline constexpr double kLeastShare = 0.005;

struct TuneOptions {
  rt::SessionOptions session;
  size_t batch = 64;   ///< instances a mini-batch
  double seconds = 30; ///< for everything, about
  /// Told how many trials have ended and how many there may be. May be empty.
  std::function<void(size_t done, size_t total)> progress;
};

/// A kernel, or several with equal blocks.
struct TunedRow {
  std::vector<std::string> names;
  std::string place; ///< file:line, of the first
  uint64_t launches = 0, records = 0;
  double ms = 0;                 ///< inside the kernel, with the default: the median
  double share = 0;              ///< of the time inside kernels
  std::string byDefault, chosen; ///< BlockInfo::tiling
  bool searched = false;         ///< it has several tilings, and takes time
  Choice choice;
};

struct TuneReport {
  std::string model;
  std::map<std::string, int64_t> dims;
  rt::Target target;
  std::vector<TunedRow> rows; ///< those that ran, the longest first
  size_t trials = 0;
  double seconds = 0;
  size_t batch = 0;                     ///< instances a mini-batch
  size_t batches = 0, batchesOfAll = 0; ///< mini-batches that were timed, and that there are
  Ratio all;                            ///< SearchResult::all
  store::Use kept;                      ///< the choices in the store
};

/// Throws UserError unless this program can keep something in the store. Returns what its owner
/// should know (store::Use).
std::vector<std::string> requireStore(const store::Options &options);

/// Times the kernels of a model on mini-batches of these instances, cut in different ways, each in
/// turn with the default, and keeps the choices in the store of `compile`. Ways without libraries
/// must give the same bits: throws InternalError when one does not, and RunError when an instance
/// fails. `initialise` gives a session its weights. A model that is compiled for training runs
/// forward and back.
TuneReport tune(const SourceFile &source, const CompileOptions &compile,
                std::span<const rt::Instance> instances,
                const std::function<void(rt::Session &)> &initialise, const TuneOptions &options);

/// The report for people, and for programs (docs/schemas/tune.schema.json).
std::string tuneText(const TuneReport &report);
std::string tuneJson(const TuneReport &report);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_BENCH_TUNE_H
