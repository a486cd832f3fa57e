//===- Growth.cpp - What grows step by step -------------------------------===//

#include "compiler/analysis/Growth.h"

#include "compiler/analysis/KnownValues.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/TypeSwitch.h"

#include <map>
#include <optional>

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Places, and ways on from one, that are looked at before it counts as not known.
constexpr size_t kMostPlaces = 2000, kMostWays = 200;

/// From a tuple to its field of that number, or from a list to any of its elements.
constexpr int64_t kElement = -1;
using Path = SmallVector<int64_t, 2>;

/// Something in a value: the value itself where the path is empty.
struct Place {
  Value value;
  Path path;

  Place into(Value part) const { return {part, Path(ArrayRef(path).drop_front())}; }
  Place within(Value whole, ArrayRef<int64_t> steps) const {
    Path longer(steps);
    longer.append(path.begin(), path.end());
    return {whole, longer};
  }
  bool isElement() const { return !path.empty() && path.front() == kElement; }
  bool isField(int64_t field) const { return !path.empty() && path.front() == field; }

  bool operator==(const Place &other) const { return value == other.value && path == other.path; }
  bool operator<(const Place &other) const {
    return std::make_pair(value.getAsOpaquePointer(), ArrayRef(path)) <
           std::make_pair(other.value.getAsOpaquePointer(), ArrayRef(other.path));
  }
};

bool grows(Operation *op) { return isa_and_nonnull<ir::AppendOp>(op) || appendsRows(op); }

bool isLoop(Operation *op) { return isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(op); }
bool isBranch(Operation *op) { return isa<scf::IfOp, ir::MatchOp>(op); }

/// Whether only one of both runs.
bool areApart(Operation *a, Operation *b) {
  for (Region *region = a->getParentRegion(); region; region = region->getParentRegion()) {
    if (!region->getParentOp()->isProperAncestor(b))
      continue;
    return !region->isAncestor(b->getParentRegion()) && isBranch(region->getParentOp());
  }
  return false;
}

/// Calls that a function makes of itself.
SmallVector<func::CallOp> callsOfItself(func::FuncOp func) {
  SmallVector<func::CallOp> calls;
  func.walk([&](func::CallOp call) {
    if (call.getCallee() == func.getSymName())
      calls.push_back(call);
  });
  return calls;
}

/// Loops between an operation and a region that it stands in, from the inside.
SmallVector<Operation *, 2> loopsBetween(Operation *op, Region *home) {
  SmallVector<Operation *, 2> loops;
  for (Region *region = op->getParentRegion(); region && region != home;
       region = region->getParentRegion())
    if (isLoop(region->getParentOp()))
      loops.push_back(region->getParentOp());
  return loops;
}

/// Which argument of its body is the element of a loop's list; the number of that comes after.
unsigned elementArgument(Operation *loop) { return carriesState(loop) ? 1 : 0; }

/// What a turn of a loop gives.
Value yieldedBy(Operation *loop) {
  return loop->getRegion(0).front().getTerminator()->getOperand(0);
}

/// Whether an index is another one at each turn of a loop: it is the element of a range, or the
/// number that a map counts.
bool isCountedBy(Value index, Operation *loop) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument || argument.getOwner()->getParentOp() != loop)
    return false;
  unsigned number = argument.getArgNumber(), element = elementArgument(loop);
  return number == element + 1 ||
         (number == element && loop->getOperands().back().getDefiningOp<ir::RangeOp>());
}

/// What one turn after the other makes longer.
class Growth {
public:
  Growth(Operation *owner) : owner_(owner) {}

  bool isInPlace(Operation *op) {
    // Where it comes from: one place of what a turn begins with.
    trace({op->getOperand(0), {}}, /*goesOn=*/false);
    if (failed_ || !origin_)
      return false;
    // What the next turn begins with there: the same, or made longer.
    for (const Place &next : nextTurns())
      trace(next, /*goesOn=*/true);
    if (failed_)
      return false;
    // No version may be made longer twice, or go on and be made longer.
    return llvm::all_of(places_, [&](const auto &place) { return isUsedOnce(place.first); });
  }

private:
  void fail() { failed_ = true; }

  /// The origin as the next turn has it.
  std::vector<Place> nextTurns() {
    std::vector<Place> next;
    if (auto func = dyn_cast<func::FuncOp>(owner_)) {
      unsigned parameter = cast<BlockArgument>(origin_->value).getArgNumber();
      for (func::CallOp call : callsOfItself(func))
        next.push_back({call.getOperand(parameter), origin_->path});
    } else {
      next.push_back({yieldedBy(owner_), origin_->path});
    }
    return next;
  }

  void trace(Place first, bool goesOn) {
    struct Step {
      Place place;
      bool goesOn; ///< to the next turn
      bool isPart; ///< it was taken out of a list
    };
    SmallVector<Step> work{{std::move(first), goesOn, false}};
    while (!failed_ && !work.empty()) {
      Step step = work.pop_back_val();
      const Place &place = step.place;
      // In a list without elements there is nothing, however often it is taken.
      if (auto make = place.value.getDefiningOp<ir::ListMakeOp>();
          make && place.isElement() && make.getElements().empty())
        continue;
      if (places_.size() == kMostPlaces)
        return fail();
      auto [it, isNew] = places_.try_emplace(place, 0u);
      unsigned way = 1u << ((step.goesOn ? 2 : 0) + (step.isPart ? 1 : 0));
      if (!isNew && (it->second & way))
        continue;
      it->second |= way;
      auto add = [&](Place next, bool isPart = false) {
        work.push_back({std::move(next), step.goesOn, step.isPart || isPart});
      };
      if (auto argument = dyn_cast<BlockArgument>(place.value)) {
        Operation *parent = argument.getOwner()->getParentOp();
        unsigned number = argument.getArgNumber();
        if (parent == owner_) {
          bool isCarried = isa<func::FuncOp>(parent) || number == 0;
          // An element that goes on as it is may change its place with others.
          if (!isCarried || (origin_ && !(place == *origin_)) || (step.goesOn && step.isPart))
            return fail();
          origin_ = place;
        } else if (!owner_->isProperAncestor(parent) || !isLoop(parent)) {
          return fail();
        } else if (carriesState(parent) && number == 0) {
          add({parent->getOperand(0), place.path});
          add({yieldedBy(parent), place.path});
        } else if (number == elementArgument(parent)) {
          add(place.within(parent->getOperands().back(), {kElement}), /*isPart=*/true);
        } else {
          return fail();
        }
        continue;
      }
      Operation *op = place.value.getDefiningOp();
      if (!owner_->isProperAncestor(op))
        return fail();
      if (place.path.empty() && grows(op)) {
        work.push_back({{op->getOperand(0), {}}, false, false});
        continue;
      }
      bool known =
          llvm::TypeSwitch<Operation *, bool>(op)
              .Case([&](ir::TupleOp tuple) {
                if (place.path.empty() || place.isElement())
                  return false;
                add(place.into(tuple.getOperand(static_cast<unsigned>(place.path.front()))));
                return true;
              })
              .Case([&](ir::GetOp get) {
                add(place.within(get.getTuple(), {static_cast<int64_t>(get.getIndex())}));
                return true;
              })
              .Case<scf::IfOp, ir::MatchOp>([&](Operation *branch) {
                unsigned number = cast<OpResult>(place.value).getResultNumber();
                for (Region &region : branch->getRegions())
                  if (!region.empty())
                    add({region.front().getTerminator()->getOperand(number), place.path});
                return true;
              })
              .Case([&](ir::GhostOp ghost) {
                add({ghost.getTensor(), place.path});
                return true;
              })
              .Case([&](ir::ListGetOp get) {
                add(place.within(get.getList(), {kElement}), /*isPart=*/true);
                return true;
              })
              .Case([&](ir::ListMakeOp make) {
                if (place.isElement())
                  for (Value element : make.getElements())
                    add(place.into(element));
                return place.isElement();
              })
              .Case([&](ir::AppendOp append) {
                if (!place.isElement())
                  return false;
                add({append.getInit(), place.path});
                add(place.into(append.getLast()));
                return true;
              })
              .Case([&](ir::MapOp map) {
                if (place.isElement())
                  add(place.into(yieldedBy(map)));
                return place.isElement();
              })
              .Case([&](ir::ZipOp zip) {
                if (place.path.size() < 2 || !place.isElement())
                  return false;
                Place list =
                    place.into({}).into(zip.getLists()[static_cast<unsigned>(place.path[1])]);
                add(list.within(list.value, {kElement}));
                return true;
              })
              .Case([&](ir::FoldOp fold) {
                add({fold.getInit(), place.path});
                add({yieldedBy(fold), place.path});
                return true;
              })
              .Default([](Operation *) { return false; });
      if (!known)
        return fail();
    }
  }

  /// One way on which something in a value may be kept or made longer: the operations on it.
  using Way = SmallVector<Operation *, 4>;

  /// Ways on from a place; `failed_` where something may go them at several turns of a loop.
  void waysOn(const Place &place, const Way &before, std::vector<Way> &ways) {
    for (OpOperand &use : place.value.getUses()) {
      if (failed_)
        return;
      Operation *op = use.getOwner();
      Way way = before;
      way.push_back(op);
      size_t known = ways.size();
      follow(place, use, way, ways);
      auto loops = loopsBetween(op, Value(place.value).getParentRegion());
      auto get = dyn_cast<ir::ListGetOp>(op);
      bool isEach = get && loops.size() == 1 && isCountedBy(get.getIndex(), loops.front());
      if ((ways.size() > known && !loops.empty() && !isEach) || ways.size() > kMostWays)
        fail();
    }
  }

  void follow(const Place &place, OpOperand &use, const Way &way, std::vector<Way> &ways) {
    Operation *op = use.getOwner();
    unsigned number = use.getOperandNumber();
    auto end = [&] { ways.push_back(way); };
    if (isa<ir::LenOp, ir::DimOp, ir::RecordOp, ir::ReadOp, ir::RangeOp, ir::CheckOp>(op) ||
        (isa<ir::JoinedOp>(op) && number >= op->getNumResults()) || takesList(op) ||
        (appendsRows(op) && number > 0))
      return;
    if (auto apply = dyn_cast<ir::ApplyOp>(op); apply && batchRule<ops::HostAddress>(op))
      return;
    if (grows(op) && number == 0 && place.path.empty())
      return end();
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](ir::GetOp get) {
          if (place.isField(static_cast<int64_t>(get.getIndex())))
            waysOn(place.into(get.getResult()), way, ways);
        })
        .Case([&](ir::TupleOp tuple) {
          waysOn(place.within(tuple.getResult(), {static_cast<int64_t>(number)}), way, ways);
        })
        .Case([&](ir::GhostOp ghost) { waysOn({ghost.getResult(), place.path}, way, ways); })
        .Case([&](ir::ListGetOp get) {
          if (place.isElement())
            waysOn(place.into(get.getResult()), way, ways);
        })
        .Case<scf::YieldOp, ir::YieldOp>([&](Operation *yield) {
          Operation *parent = yield->getParentOp();
          if (isBranch(parent))
            waysOn({parent->getResult(number), place.path}, way, ways);
          else
            end();
        })
        .Case<ir::ListMakeOp>([&](ir::ListMakeOp make) {
          waysOn(place.within(make.getResult(), {kElement}), way, ways);
        })
        .Case([&](ir::AppendOp append) {
          if (number == 0)
            waysOn({append.getResult(), place.path}, way, ways);
          else
            waysOn(place.within(append.getResult(), {kElement}), way, ways);
        })
        .Case([&](ir::ZipOp zip) {
          if (place.isElement())
            waysOn(place.into({}).within(zip.getResult(), {kElement, int64_t(number)}), way, ways);
        })
        .Case<ir::MapOp, ir::FoldOp, ir::ScanOp>([&](Operation *loop) {
          bool isList = number + 1 == loop->getNumOperands();
          if (!isList)
            return end();
          if (place.isElement())
            waysOn(place.into(loop->getRegion(0).front().getArgument(elementArgument(loop))), way,
                   ways);
        })
        .Default([&](Operation *) { end(); });
  }

  bool isUsedOnce(const Place &place) {
    std::vector<Way> ways;
    waysOn(place, {}, ways);
    for (size_t i = 0; i < ways.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (!areApart(ways[i], ways[j]))
          return false;
    return !failed_;
  }

  static bool areApart(const Way &a, const Way &b) {
    auto first = dyn_cast<ir::ListGetOp>(a.front()), second = dyn_cast<ir::ListGetOp>(b.front());
    if (first && second) {
      std::optional<int64_t> i = intConstant(first.getIndex()), j = intConstant(second.getIndex());
      if (i && j && *i != *j)
        return true;
    }
    return llvm::any_of(a, [&](Operation *x) {
      return llvm::any_of(b, [&](Operation *y) { return passes::areApart(x, y); });
    });
  }

  Operation *owner_;
  bool failed_ = false;
  std::optional<Place> origin_;
  std::map<Place, unsigned> places_; ///< and the ways on which each was come to
};

/// Whether a function calls itself once at most, and not from inside of a loop.
bool callsItselfOnce(func::FuncOp func) {
  SmallVector<func::CallOp> calls = callsOfItself(func);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!loopsBetween(calls[i], &func.getBody()).empty())
      return false;
    for (size_t j = 0; j < i; ++j)
      if (!areApart(calls[i].getOperation(), calls[j].getOperation()))
        return false;
  }
  return !calls.empty();
}

} // namespace

Operation *growsInTurnsOf(Operation *op) {
  if (!grows(op))
    return nullptr;
  for (Operation *owner = op->getParentOp(); owner && !isa<ModuleOp>(owner);
       owner = owner->getParentOp()) {
    auto func = dyn_cast<func::FuncOp>(owner);
    if (func ? !callsItselfOnce(func) : !carriesState(owner))
      continue;
    if (Growth(owner).isInPlace(op))
      return owner;
  }
  return nullptr;
}

} // namespace sheaf::passes
