//===- launch_order.h - Records in launches, kernel after kernel -*- C++ -*-===//
//
// An order of launches is a sequence of kernels: whichever comes next runs all of its records that
// are ready. To find the shortest is to find the shortest common supersequence of the instances,
// which is NP-hard; these are heuristics for it. The first two take time in proportion to the
// records and what they read.
//
// - Agenda (DyNet's): the kernel whose records that have not run stand at the lowest depth on
//   average.
// - Look-ahead: forwards, the kernel of whose remaining records the largest share is ready, those
//   with a longer way after them counting more. Then backwards, from the last launch: one without
//   a record that must run there, because something that has its place already needs it, is left
//   out, and every other one takes all records that may run as late. What is left has no launch
//   that could be left out alone.
// - Search: look-ahead, then a beam search for an order of fewer launches (order_search.h).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_SCHEDULE_LAUNCH_ORDER_H
#define SHEAF_RUNTIME_SCHEDULE_LAUNCH_ORDER_H

#include "runtime/schedule/record_graph.h"

namespace sheaf::rt {

class LaunchOrder {
public:
  /// Of a family of the graph: records()[begin, end).
  struct Launch {
    uint32_t family;
    uint32_t begin, end;
    uint32_t level; ///< ascending; neighbours of one level do not need each other
  };
  enum class By : uint8_t { Agenda, LookAhead, Search };

  LaunchOrder(MemoryMeter &meter, MemoryKind &count) : meter_(meter), count_(count) {}
  ~LaunchOrder() { meter_.uncharge(count_, charged_); }
  LaunchOrder(const LaunchOrder &) = delete;

  /// Orders the records of `graph`. False when the budget does not allow it. Throws InternalError.
  bool find(By by, const RecordGraph &graph);

  std::span<const Launch> launches() const { return launches_; }
  /// The records of the graph, launch after launch.
  std::span<const uint32_t> records() const { return records_; }

  /// Gives all memory back.
  void release();

private:
  /// The records of one family.
  struct Kind {
    std::vector<uint32_t> ready;
    uint32_t since = 0;         ///< `ready` is so after this many launches
    uint32_t pending = 0;       ///< records that have not run
    uint64_t pendingWeight = 0; ///< of these; agenda: depths, look-ahead: urgencies
    uint64_t readyWeight = 0;
  };

  bool reserve(const RecordGraph &graph);
  void begin(const RecordGraph &graph);
  void findDepths(const RecordGraph &graph);
  void findUrgencies(const RecordGraph &graph);
  /// Runs the kind that `next` chooses until it gives null.
  template <typename Next> void forwards(const RecordGraph &graph, Next next);
  void backwards(const RecordGraph &graph);
  /// The kind whose records are to run next; null when none is ready.
  Kind *lowest();
  Kind *mostReady();
  template <typename Value> Kind *greatest(Value value);
  void appendLaunch(Kind &kind);

  MemoryMeter &meter_;
  MemoryKind &count_;
  uint64_t charged_ = 0;
  std::vector<Launch> launches_, forwards_;
  std::vector<uint32_t> records_, forwardRecords_;
  std::vector<Kind> kinds_;       ///< by family
  std::vector<uint32_t> waits_;   ///< by record: for so many others
  std::vector<uint32_t> weights_; ///< by record
  std::vector<uint32_t> powers_;
  size_t levelBegin_ = 0; ///< the first launch of the running level
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_LAUNCH_ORDER_H
