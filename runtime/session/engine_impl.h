//===- engine_impl.h - What an engine is made of ----------------*- C++ -*-===//
//
// Private to engine.cpp (a round, from the whole to its parts) and engine_ends.cpp (what happens
// between instances, and how they end).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SESSION_ENGINE_IMPL_H
#define SHEAF_RUNTIME_SESSION_ENGINE_IMPL_H

#include "runtime/session/engine.h"
#include "runtime/session/engine_inbox.h"
#include "runtime/session/kept_values.h"
#include "runtime/session/session_impl.h"
#include "runtime/session/slices.h"

#include <deque>
#include <map>
#include <set>
#include <unordered_map>

namespace sheaf::rt {

class Executor;

/// Where so much of the limit is in use, no more instances begin, and the youngest is taken back.
inline constexpr double kShort = 0.8, kVeryShort = 0.9;

/// A request on its way.
struct Engine::Entry : Walk {
  explicit Entry(std::unique_ptr<EngineInbox::Submitted> from) : submitted(std::move(from)) {}

  std::unique_ptr<EngineInbox::Submitted> submitted;
  const Request &request = submitted->request;
  const uint64_t number = submitted->number;
  unsigned generation = 0;
  unsigned shorts = 0; ///< times that memory did not do; from the second on it runs alone
  uint64_t emitted = request.instance.delivered; ///< so many have been handed out
  uint64_t computed = 0;                         ///< so many may be
  uint32_t laterGoal = 0; ///< of the last cohort that has launches of it of later phases, the goal
  bool joins = false;     ///< at last with the kernels that need the fewest rows
  bool again = false;     ///< it has begun before
  bool certainly = false; ///< it is walked in order
  enum class Why : uint8_t { None, Deadline, Cancelled, TakenBack } why = Why::None;
  /// Due: of a cohort.
  enum class State : uint8_t { Queued, Walking, Walked, Due } state = State::Queued;

  bool runsAlone() const { return shorts > 1; }
};

struct Engine::Impl {
  /// Instances that have ended and have their results at one time: when all of the first phase that
  /// stands above the depth `goal` has run, and then `later`.
  struct Cohort {
    std::vector<Entry *> entries;
    uint32_t goal = 0;
    Schedule later; ///< launches of later phases
    size_t ran = 0; ///< of these, whole
  };

  Impl(Session::Impl &session, EngineOptions given);
  ~Impl();

  // A round, from the whole to its parts.
  bool step();
  void takeIn();
  void forgetKept();
  void endStopped();
  bool isInterrupted(Entry &entry) const;
  bool mayAdvance() const;
  /// Whether the launches of later phases of the first cohort may run: all else of it has.
  bool mayRunLater() const { return !cohorts.empty() && cohorts.front().goal <= left; }
  void advance();
  void admit();
  void begin(Entry &entry, HostStack *stack);
  void walk();
  void gatherCohort();
  void slice();
  void computeSome();
  void takeLater(Cohort &cohort, Schedule &schedule);
  void finishCohorts();

  // When no instance runs.
  void beginAnew();
  void computeKept();
  // When nothing is recorded that has not run.
  void collect();
  void beginGeneration();

  // An instance leaves those that run.
  void ended(Entry &entry);
  void finish(Entry &entry);
  bool keep(Outcome &outcome);
  void fail(Entry &entry, const std::string &message, RunError::Cause cause);
  void tooLittleMemory(Entry &entry);
  void putBack(Entry &entry);
  void leave(Entry &entry);
  void hand(Entry &entry, Outcome outcome);
  void noteEmissions();
  void deliver();
  void deliverEnded();
  void deliverEmissions(Entry &entry);

  bool isShortOfMemory(double part);
  /// Hostile, in every third round: nothing can be joined that is collected after.
  bool mayCollect() const {
    return session.mayCollect() && (!session.options.hostile || rounds % 3 == 0);
  }
  /// Whether it pays to look what is needed; or others need what is held here.
  bool isToCollect() const { return mayCollect() && (session.collector.isDue() || mustCollect()); }
  bool mustCollect() const;
  uint64_t now() const { return options.clock ? options.clock() : clockNow(); }
  /// Higher priorities first, then in order of arrival.
  static std::pair<int64_t, uint64_t> place(const Entry &entry) {
    return {-int64_t(entry.request.priority), entry.number};
  }

  Session::Impl &session;
  Recorder &recorder;
  EngineOptions options;
  SharedBudget::Share share; ///< of options.budget
  Counts counts;

  EngineInbox inbox;
  KeptValues kept;      ///< goes before the inbox does
  uint64_t weights = 0; ///< Session::Impl::weightsVersion when that was last looked at

  std::deque<std::function<void()>> changes;                    ///< to be made when none runs
  std::unordered_map<uint64_t, std::unique_ptr<Entry>> entries; ///< that have no outcome yet
  std::set<std::pair<uint64_t, uint64_t>> deadlines;            ///< of these, with numbers
  std::map<std::pair<int64_t, uint64_t>, Entry *> queue;
  std::map<uint64_t, Entry *> running; ///< by number: the oldest first
  std::vector<Entry *> walked;         ///< of these; they are to be in the next cohort
  uint64_t firstWalked = 0;            ///< since when there is one
  struct Delivery {
    std::unique_ptr<Entry> entry;
    Outcome outcome;
  };
  std::deque<Delivery> deliveries;

  size_t most;     ///< that run at a time, as far as memory has done so far
  size_t calm = 0; ///< that ended since it did not
  /// Instances of one generation count depths from the same first one. A new one begins when depths
  /// grow large; the two then run in turn, each with nothing of the other pending.
  unsigned young = 0, turn = 0;
  std::array<int64_t, 2> computed{}; ///< Context::computed of each
  std::array<size_t, 2> walking{};   ///< instances of each that run

  std::deque<Cohort> cohorts; ///< the next ones to have them first
  /// Of those that were given up since later phases were last taken out of the buckets.
  struct GivenUp {
    uint32_t goal = 0;
    bool foundLater = false;
  } givenUp;
  bool ranLater = false; ///< the last slice was of a later phase
  /// Of what is recorded all above this depth has run, but for what is deferred, as the last slice
  /// left it.
  uint32_t left = BucketTable::kNone;
  uint64_t oldest = 0;     ///< of those that run, its number
  uint32_t frontier = 0;   ///< how far `left` has come while it was that
  unsigned catchingUp = 0; ///< slices since anything below that has run
  /// Some wait for what stands there; slices that can end there, so that those go on in step.
  uint32_t window = 0;
  uint64_t rounds = 0;   ///< in which some went on
  bool draining = false; ///< no one goes on before all that is recorded has run
  Slices slices;
  std::exception_ptr broken; ///< why it can do nothing any more
  Executor *executor = nullptr;
  bool fresh = false; ///< nothing has begun since beginAnew()
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_ENGINE_IMPL_H
