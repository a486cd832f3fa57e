//===- forking.h - Which calls run beside those that make them --*- C++ -*-===//
//
// A call that could be forked costs more when it is: a task, a stack, two switches. What it brings
// is that its reads wait together with others, so that fewer launches, of more rows, do the same.
// A launch less is worth the same however many have rows in it, so each of these gains the less,
// the more there are: where enough instances wait already, the call runs in place.
//
// What a flush costs beside the work of its rows is estimated from its launches in order of depth,
// never measured: which calls are forked follows from program, options and mini-batch alone, under
// any policy. No result depends on it.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_WALK_FORKING_H
#define SHEAF_RUNTIME_WALK_FORKING_H

#include "runtime/model/model.h"
#include "runtime/schedule/schedule.h"

#include <optional>
#include <string_view>
#include <vector>

namespace sheaf::rt {

enum class Forking : uint8_t {
  Worth, ///< while so few wait that it pays
  Always,
  Never,
  Alternately ///< every other call, to try both
};
std::string_view forkingName(Forking forking);
std::optional<Forking> forkingByName(std::string_view name);

class ForkWorth {
public:
  explicit ForkWorth(const Model &model);

  /// A mini-batch begins.
  void begin() { cost_ = usual_; }
  /// The launches from `begin` on, in order of depth, run because instances wait.
  void noteFlush(const Schedule &schedule, size_t begin);
  /// A call is worth forking while fewer than so many other instances will wait with its own.
  uint32_t most() const;

private:
  std::vector<double> launchCost_; ///< of each kernel, in ns
  double usual_ = 0;               ///< of a flush, before one has run
  double cost_ = 0;                ///< of the last flushes
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_WALK_FORKING_H
