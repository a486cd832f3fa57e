//===- order_search.h - A beam search for fewer launches --------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SCHEDULE_ORDER_SEARCH_H
#define SHEAF_RUNTIME_SCHEDULE_ORDER_SEARCH_H

#include "runtime/schedule/record_graph.h"

namespace sheaf::rt {

/// Families of `graph` as an order of fewer than `fewerThan` launches: whichever comes next runs
/// all of its records that are ready, and all have run in the end. Empty when none was found, or
/// memory is short; time and memory are bounded whatever the graph, so a very large one is searched
/// less widely or not at all.
///
/// What has run of an instance follows from the sequence of families so far, so an instance has
/// few states (lattices: one and a half for each record), which all sequences have in common. A
/// beam keeps, of all sequences of one length, those that leave the least to do. Each is a state
/// for each instance or, more precisely, each part of the graph that hangs together.
std::vector<uint32_t> searchOrder(const RecordGraph &graph, size_t fewerThan, MemoryMeter &meter,
                                  MemoryKind &count);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_ORDER_SEARCH_H
