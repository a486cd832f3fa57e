//===- Phases.cpp - What waits until all instances are so far -------------===//
//
// A record runs at the depth at which its arguments are ready. After a recursion that depth
// differs from instance to instance, so what comes once for each of them (the classifier over a
// tree, the decoder after an encoder, a projection of every state) would run in as many small
// launches as there are depths. It need not: nothing in the recursion depends on it. Such records
// are given a later phase. Phases run one after the other, and inside of one, depths begin anew.
//
// The places that record form a graph: one depends on another when it may take what the other made.
// Its strongly connected parts are the recursions and the single places between them; an order of
// parts is an order of phases. A part needs a new phase when the depth at which it would begin
// varies; else it stays in the phase of what it depends on, at a known depth.
//
// With every place that is not in a recursion at a known depth of its phase, each of its kernels is
// launched once; and a recursion of one kernel is launched as often as its longest chain is long:
// no order can do with less.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/RecordFlow.h"
#include "compiler/passes/Pass.h"
#include "runtime/model/layout.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

using Sites = llvm::BitVector;
using Parts = llvm::BitVector;

/// A recursion, or places that are in none and record the same kernel.
struct Part {
  SmallVector<unsigned> sites;
  Parts needs; ///< the parts that it depends on, directly or not
  bool recursive = false;
  unsigned phase = 0;
  unsigned depth = 0; ///< in its phase, where it begins
};

class PhaseFinder {
public:
  PhaseFinder(ModuleOp module, PassContext &context)
      : module_(module), context_(context), flow_(module), demanded_(flow_.demanded()),
        reads_(module->walk([](ir::ReadOp) { return WalkResult::interrupt(); }).wasInterrupted()) {}

  void run() {
    if (flow_.sites().empty())
      return;
    findParts();
    joinEqualKernels();
    for (unsigned part : inOrder())
      place(part);
    mark();
  }

private:
  const RecordSite &site(unsigned number) const { return flow_.sites()[number]; }
  std::pair<Attribute, Attribute> kernel(unsigned number) const {
    return {site(number).block, site(number).weights};
  }
  bool isDemanded(const Part &part) const { return demanded_[part.sites.front()]; }

  void findParts() {
    std::vector<Sites> needs = flow_.closure();
    unsigned count = needs.size();
    constexpr unsigned none = ~0u;
    partOf_.assign(count, none);
    for (unsigned i = 0; i < count; ++i) {
      if (partOf_[i] != none)
        continue;
      Part &part = parts_.emplace_back();
      part.recursive = needs[i][i];
      part.sites.push_back(i);
      for (unsigned j : needs[i].set_bits())
        if (j > i && needs[j][i])
          part.sites.push_back(j);
      for (unsigned member : part.sites)
        partOf_[member] = parts_.size() - 1;
    }
    for (Part &part : parts_) {
      part.needs.resize(parts_.size());
      for (unsigned i : needs[part.sites.front()].set_bits())
        if (&parts_[partOf_[i]] != &part)
          part.needs.set(partOf_[i]);
    }
  }

  /// Places of one kernel run together where neither needs the other, so they share a phase.
  void joinEqualKernels() {
    llvm::MapVector<std::pair<Attribute, Attribute>, SmallVector<unsigned>> places;
    for (unsigned i = 0; i < partOf_.size(); ++i)
      places[kernel(i)].push_back(i);
    for (auto &[kernel, sites] : places)
      for (unsigned a : sites)
        for (unsigned b : sites)
          if (a < b)
            join(partOf_[a], partOf_[b]);
  }

  void join(unsigned a, unsigned b) {
    if (a == b || parts_[a].needs[b] || parts_[b].needs[a])
      return;
    Part &to = parts_[a], from = std::move(parts_[b]);
    parts_[b] = {};
    parts_[b].needs.resize(parts_.size());
    for (unsigned member : from.sites)
      partOf_[member] = a;
    to.sites.append(from.sites);
    to.recursive |= from.recursive;
    to.needs |= from.needs;
    for (Part &part : parts_)
      if (!part.needs.empty() && (part.needs[a] || part.needs[b])) {
        part.needs |= to.needs;
        part.needs.reset(b);
        part.needs.set(a);
      }
  }

  /// The parts, what they need before them.
  std::vector<unsigned> inOrder() const {
    std::vector<unsigned> order;
    for (unsigned i = 0; i < parts_.size(); ++i)
      if (!parts_[i].sites.empty())
        order.push_back(i);
    // Whoever needs a part needs all that the part needs, and the part.
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return std::pair(parts_[a].needs.count(), a) < std::pair(parts_[b].needs.count(), b);
    });
    return order;
  }

  /// The depths in a phase at which something may be ready.
  struct Range {
    bool any = false;
    unsigned least = 0, most = 0;
    void include(unsigned depth) {
      *this = {true, any ? std::min(least, depth) : depth, any ? std::max(most, depth) : depth};
    }
    void include(const Range &other) {
      if (!other.any)
        return;
      include(other.least);
      include(other.most);
    }
  };

  /// The depths at which what comes from other parts is ready. False: they have no bounds.
  bool rangeOf(unsigned number, const Part &part, unsigned phase, Range &range) const {
    bool bounded = true;
    for (const Sites &argument : flow_.arguments(number)) {
      Range own;
      for (unsigned maker : argument.set_bits()) {
        const Part *other = flow_.isSite(maker) ? &parts_[partOf_[maker]] : nullptr;
        if (other == &part)
          continue;
        if (!other || other->phase < phase)
          own.include(0);
        else if (other->recursive)
          bounded = false;
        else
          own.include(other->depth + 1);
      }
      if (own.any)
        range = {true, std::max(range.least, own.least), std::max(range.most, own.most)};
    }
    return bounded;
  }

  void place(unsigned number) {
    Part &part = parts_[number];
    // Instances that wait for a read do not wait for each other's phases.
    if (isDemanded(part)) {
      part.recursive = true;
      return;
    }
    part.phase = reads_;
    for (unsigned i : part.needs.set_bits())
      part.phase = std::max(part.phase, parts_[i].phase);
    bool even = true;
    llvm::MapVector<std::pair<Attribute, Attribute>, Range> ranges;
    for (unsigned i : part.sites) {
      Range own;
      even &= rangeOf(i, part, part.phase, own);
      if (!own.any && !part.recursive)
        own.include(0);
      ranges[kernel(i)].include(own);
    }
    for (auto &[kernel, range] : ranges) {
      even &= range.least == range.most;
      part.depth = range.least;
    }
    if (!even && part.phase + 1 < rt::kMaxPhases) {
      ++part.phase;
      part.depth = 0;
    }
  }

  void mark() {
    auto number = [&](unsigned phase) {
      return IntegerAttr::get(IntegerType::get(module_.getContext(), 64), phase);
    };
    unsigned last = 0;
    for (const Part &part : parts_) {
      last = std::max(last, part.phase);
      if (part.phase == 0)
        continue;
      for (unsigned i : part.sites) {
        StringRef role = site(i).role;
        site(i).op->setAttr(role.empty() ? "sheaf.phase" : (role + ".phase").str(),
                            number(part.phase));
      }
      if (part.recursive)
        context_.remark(site(part.sites.front()).op->getLoc(),
                        "the recursion of " + blocks(part) + " begins in phase " +
                            Twine(part.phase) +
                            ": its depths count from there, whatever ran before");
      else
        context_.remark(site(part.sites.front()).op->getLoc(),
                        blocks(part) + " waits for phase " + Twine(part.phase) +
                            ": nothing that runs earlier needs it");
    }
    if (last > 0)
      context_.remark(module_.getLoc(), "records run in " + Twine(last + 1) + " phases");
  }

  std::string blocks(const Part &part) const {
    std::string text;
    SmallVector<Attribute> named;
    for (unsigned i : part.sites)
      if (!llvm::is_contained(named, Attribute(site(i).block))) {
        named.push_back(site(i).block);
        text += (text.empty() ? "" : ", ") + site(i).block.getValue().str();
      }
    return text;
  }

  ModuleOp module_;
  PassContext &context_;
  RecordFlow flow_;
  llvm::BitVector demanded_;
  bool reads_;
  std::vector<Part> parts_;
  std::vector<unsigned> partOf_; ///< by site
};

LogicalResult assignPhases(ModuleOp module, PassContext &context) {
  PhaseFinder(module, context).run();
  return success();
}

} // namespace

PassRecord phasesPass() {
  return {.name = "phases",
          .description = "What depends on a recursion but is no part of it waits until all "
                         "instances are through, wherever it stands, so that unequal instances "
                         "run it together.",
          .run = assignPhases,
          .after = Level::Blocks};
}

} // namespace sheaf::passes
