//===- SizeVisits.cpp - Recursions that are not written out, with bounds --===//

#include "compiler/analysis/SizeWalk.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Rounds until what functions are given and give does not change any more.
constexpr int kMostRounds = 40;
/// Bodies that are looked at: with more, those of recursions in recursions, the rest is not known.
constexpr unsigned kMostVisits = 20'000;

void waysIn(const SizeValue &value, std::vector<std::string> &ways) {
  if (value.way)
    ways.push_back(*value.way);
  for (const SizeValue &part : value.parts)
    waysIn(part, ways);
}

/// Without what tells the turns of one loop from those of another over the same list.
std::string withoutTurns(const std::string &way) {
  std::string plain;
  bool isTurn = false;
  for (char c : way) {
    isTurn |= c == kTurn;
    if (!isTurn)
      plain += c;
    isTurn &= c != ';';
  }
  return plain;
}

bool isBelow(const std::string &way, const std::vector<std::string> &ways) {
  return llvm::any_of(ways,
                      [&](const std::string &above) { return StringRef(way).starts_with(above); });
}

void dropWays(SizeValue &value, const std::vector<std::string> &ways) {
  if (value.way && !isBelow(*value.way, ways))
    value.way.reset();
  for (SizeValue &part : value.parts)
    dropWays(part, ways);
}

/// The rest of a bound that has symbols of these by themselves, once each.
template <typename Is> Bound withoutOne(const Bound &bound, Is is) {
  Bound rest;
  for (const auto &[term, factor] : bound.terms()) {
    if (term.size() == 1 && factor <= 1 && is(term.front()))
      continue;
    if (llvm::any_of(term, is))
      throw SizeWalk::NotLinear();
    rest.add(term, factor);
  }
  return rest;
}

/// Whether what an operation gives is what the function around it gives, whatever it is.
bool isLast(Operation *op) {
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (use.getOperandNumber() != cast<OpResult>(use.get()).getResultNumber())
      return false;
    if (isa<func::ReturnOp>(user))
      return true;
    return isa<scf::YieldOp, ir::YieldOp>(user) &&
           isa<scf::IfOp, ir::MatchOp>(user->getParentOp()) && isLast(user->getParentOp());
  });
}

SizeValue never() {
  SizeValue value;
  value.kind = SizeValue::Never;
  return value;
}

} // namespace

/// What functions that call each other do for each part of what the first was called with, or for
/// each call.
struct SizeWalk::Visit {
  enum Kind { Nodes, Tails, Calls } kind;
  func::FuncOp first;
  bool once = false; ///< Calls: each makes one other at most
  bool last = false; ///< what a call gives is what its caller gives

  /// Nodes, Tails: what the first was called with, which parameter of each function has a part of
  /// it, the constructor of the node that is looked at, and what symbols of a node come to.
  SizeValue whole{};
  llvm::DenseMap<Operation *, unsigned> parameters{};
  unsigned ctor = 0;
  std::map<unsigned, Bound> names{};
  SizeSums sums{};

  std::set<std::string> taken{}; ///< parts that others were called with
  std::vector<std::vector<std::string>> loops{};
  std::vector<func::FuncOp> inlined{};

  llvm::MapVector<Operation *, Values> args{};
  llvm::DenseMap<Operation *, Values> results{};
  bool changed = false;
  int round = 0;

  /// What grows from call to call, as symbols until it is known by how much: what functions are
  /// called with, which each call may add `step` to, and what they give, which is what the calls
  /// that they make give and as much more as `made` says of each kind of node.
  enum Growth {
    Apart,    ///< what is given to calls does not follow from what others gave
    Threaded, ///< one symbol for both: what a call gives may be given to the next, but only that
              ///< or what the caller was called with, not both. So it is what it was at first and
              ///< all that any of them adds, each once.
    NoGrowth  ///< it is not known
  } growth = Apart;
  std::optional<unsigned> given{}, result{};
  Bound begin{}, step{};
  std::map<NodeKind, Bound> made{};
  std::vector<unsigned> copies{};       ///< of `result`, one for each call of a body
  MemoryUseBound end{};                 ///< what is taken once, by the call that makes no other
  llvm::DenseMap<Block *, bool> ends{}; ///< whether a branch is one that such a call takes

  bool isCopy(unsigned symbol) const {
    return symbol == result || llvm::is_contained(copies, symbol);
  }
};

bool SizeWalk::endsVisit(Operation *op, Block &way) {
  if (!visit_ || !(visit_->kind == Visit::Tails || visit_->once))
    return false;
  auto [it, isNew] = visit_->ends.try_emplace(&way, false);
  if (isNew) {
    // All calls stand in its other branches.
    func::FuncOp func = visit_->first;
    it->second = op->getBlock() == &func.getBody().front() && callsItselfAlone(func) &&
                 llvm::all_of(callsOfCycle(func), [&](func::CallOp call) {
                   return op->isProperAncestor(call) &&
                          !way.getParent()->isAncestor(call->getParentRegion());
                 });
  }
  return it->second;
}

void SizeWalk::countAtEnd(const MemoryUseBound &use) { larger(visit_->end, use); }

std::set<std::string> *SizeWalk::taken() { return visit_ ? &visit_->taken : nullptr; }

size_t SizeWalk::callResults() const { return visit_ ? visit_->copies.size() : 0; }

void SizeWalk::addCallResults(SizeSums &sums, size_t begin) {
  for (size_t i = begin, end = callResults(); i < end; ++i) {
    unsigned all = symbols_.element();
    sums[visit_->copies[i]] = Bound::symbol(all);
    visit_->copies.push_back(all);
  }
}

void SizeWalk::beginElements(const SizeValue &element) {
  if (!visit_)
    return;
  waysIn(element, visit_->loops.emplace_back());
}

void SizeWalk::endElements() {
  if (visit_)
    visit_->loops.pop_back();
}

SizeValue SizeWalk::keepWays(SizeValue made, const SizeValue &element) {
  std::vector<std::string> ways;
  waysIn(element, ways);
  dropWays(made, ways);
  return made;
}

/// A part of what this was called with is given to a call: no other may be given it, nor a part of
/// it.
void SizeWalk::take(const std::string &way) {
  for (const std::vector<std::string> &loop : visit_->loops)
    if (!isBelow(way, loop))
      throw GivenUp();
  std::string plain = withoutTurns(way);
  for (const std::string &other : visit_->taken)
    if (StringRef(plain).starts_with(other) || StringRef(other).starts_with(plain))
      throw GivenUp();
  visit_->taken.insert(plain);
}

//===----------------------------------------------------------------------===//
// Matches
//===----------------------------------------------------------------------===//

void SizeWalk::visitMatch(ir::MatchOp match) {
  const SizeValue scrutinee = of(match.getScrutinee());
  auto type = cast<ir::DataType>(match.getScrutinee().getType());
  auto declaration = symbolTable_.lookup<ir::DataOp>(type.getName().getAttr());
  size_t ctors = declaration.getCtors().size();
  bool isRoot = visit_ && visit_->kind == Visit::Nodes && scrutinee.way == "";
  auto isPossible = [&](size_t ctor) {
    if (isRoot)
      return ctor == visit_->ctor;
    return scrutinee.kind != SizeValue::Data || scrutinee.parts[ctor].kind != SizeValue::Never;
  };
  SmallVector<Block *> ways;
  std::set<size_t> rest;
  for (size_t ctor = 0; ctor < ctors; ++ctor)
    rest.insert(ctor);
  for (auto [i, region] : llvm::enumerate(match.getArms())) {
    Block &arm = region.front();
    if (i >= match.getCases().size()) {
      if (llvm::any_of(rest, isPossible))
        ways.push_back(&arm);
      continue;
    }
    auto ctor = static_cast<size_t>(match.getCases()[i]);
    rest.erase(ctor);
    if (!isPossible(ctor))
      continue;
    ways.push_back(&arm);
    SizeValue fields;
    if (scrutinee.kind == SizeValue::Data) {
      fields = scrutinee.parts[ctor];
    } else if (scrutinee.tree) {
      fields =
          nodeFields(scrutinee, {type.getName().getValue().str(), static_cast<unsigned>(ctor)});
      const SizeSums &sums = isRoot ? visit_->names : scrutinee.tree->sums;
      fields = mapBounds(fields, [&](const Bound &bound) { return largestOf(bound, sums); });
    } else {
      for (BlockArgument argument : arm.getArguments())
        fields.parts.push_back(unknown(argument.getType(), match.getLoc(),
                                       "a size in a value that the program makes"));
    }
    for (auto [argument, field] : llvm::zip_equal(arm.getArguments(), fields.parts))
      set(argument, field);
  }
  visitBranches(match, ways);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

bool SizeWalk::isInVisit(func::FuncOp func) {
  return visit_ && graph_.sameCycle(visit_->first, func) && graph_.isRecursive(func);
}

SizeWalk::Values SizeWalk::runInVisit(func::FuncOp func, MemoryUseBound &use) {
  if (++visits_ > kMostVisits)
    throw GivenUp();
  Visit &visit = *visit_;
  visit.taken.clear();
  visit.loops.clear();
  visit.inlined.assign(1, func);
  Values args = visit.args.find(func)->second;
  if (visit.kind != Visit::Calls)
    args[visit.parameters.lookup(func)] = visit.whole;
  llvm::SaveAndRestore taking(use_, &use);
  Values results = run(func, args);
  for (SizeValue &result : results)
    result = withoutWays(std::move(result));
  return results;
}

SizeWalk::Values SizeWalk::callInVisit(func::FuncOp func, const Values &args) {
  Visit &visit = *visit_;
  auto inlineHere = [&] {
    if (llvm::is_contained(visit.inlined, func))
      throw GivenUp();
    visit.inlined.push_back(func);
    Values results = run(func, args);
    visit.inlined.pop_back();
    return results;
  };
  // It counts as a part of its caller.
  if (func->hasAttr(ir::kOutlinedAttr))
    return inlineHere();
  if (visit.kind != Visit::Calls) {
    auto parameter = visit.parameters.find(func);
    if (parameter == visit.parameters.end())
      throw GivenUp();
    const std::optional<std::string> &way = args[parameter->second].way;
    if (!way)
      throw GivenUp();
    if (way->empty())
      return inlineHere();
    take(*way);
  } else if (visit.once) {
    take("c;");
  }
  Values given;
  for (const SizeValue &arg : args)
    given.push_back(mapBounds(withoutWays(arg),
                              [&](const Bound &bound) { return largestOf(bound, visit.sums); }));
  if (visit.kind != Visit::Calls)
    given[visit.parameters.lookup(func)] = SizeValue();
  auto limit = [&](const Bound &, const Bound &both) {
    if (visit.growth == Visit::NoGrowth)
      return Bound::symbol(
          symbols_.unknown(func.getLoc(), "what '" + ir::nameOf(func) + "' calls itself with"));
    if (!visit.given)
      visit.given = symbols_.element();
    Bound own = Bound::symbol(*visit.given);
    // What is made of something that grows adds to it; anything else is what it begins with.
    Bound rest = withoutOne(both, [&](unsigned symbol) { return symbol == visit.given; });
    Bound &bound = rest == both ? visit.begin : visit.step;
    bound = Bound::max(bound, rest);
    return own;
  };
  auto [it, isNew] = visit.args.insert({func, given});
  visit.changed |= isNew;
  if (!isNew)
    for (auto [own, arg] : llvm::zip_equal(it->second, given)) {
      SizeValue next = visit.round < 3 ? joined(own, arg) : widened(own, arg, limit);
      visit.changed |= !(next == own);
      own = std::move(next);
    }
  use_->callsItself = true;
  auto results = visit.results.find(func);
  // What the last of them gives stands in one of the other branches.
  if (results == visit.results.end() || visit.last)
    return Values(func.getNumResults(), never());
  if (!visit.result || visit.growth == Visit::Threaded)
    return results->second;
  Values made;
  visit.copies.push_back(symbols_.element());
  Bound copy = Bound::symbol(visit.copies.back());
  for (const SizeValue &result : results->second)
    made.push_back(mapBounds(result, [&](const Bound &bound) {
      return bound.substitute(
          [&](unsigned symbol) { return symbol == visit.result ? &copy : nullptr; });
    }));
  return made;
}

/// Looks at all functions until what they are given and give does not change any more, and adds
/// what they take. What the first one gives.
SizeWalk::Values SizeWalk::finish(const Visit &visit, func::FuncOp func) {
  for (Visit::Growth growth : {Visit::Apart, Visit::Threaded, Visit::NoGrowth}) {
    Visit own = visit;
    own.growth = growth;
    if (growth == Visit::Threaded)
      own.given = own.result = symbols_.element();
    own.last = callsItselfAlone(func) && llvm::all_of(callsOfCycle(func), isLast);
    llvm::SaveAndRestore env(env_, env_);
    try {
      return settle(own, func);
    } catch (const NotLinear &) {
      visit_ = nullptr;
    }
  }
  throw GivenUp();
}

SizeWalk::Values SizeWalk::settle(Visit &visit, func::FuncOp func) {
  visit_ = &visit;
  auto dataOf = [&](func::FuncOp f) {
    return cast<ir::DataType>(f.getArgumentTypes()[visit.parameters.lookup(f)]);
  };
  auto kindsOf = [&](func::FuncOp f) {
    std::vector<NodeKind> kinds{{"", 0}};
    if (visit.kind == Visit::Nodes) {
      auto declaration = symbolTable_.lookup<ir::DataOp>(dataOf(f).getName().getAttr());
      kinds.clear();
      for (unsigned i = 0; i < declaration.getCtors().size(); ++i)
        kinds.emplace_back(declaration.getSymName().str(), i);
    }
    return kinds;
  };
  auto isCopy = [&](unsigned symbol) { return visit.isCopy(symbol); };
  do {
    visit.changed = false;
    if (++visit.round > kMostRounds)
      throw GivenUp();
    for (size_t i = 0; i < visit.args.size(); ++i) {
      auto f = cast<func::FuncOp>((visit.args.begin() + static_cast<ptrdiff_t>(i))->first);
      for (const NodeKind &kind : kindsOf(f)) {
        visit.ctor = kind.second;
        visit.copies.clear();
        MemoryUseBound nothing;
        Values results = runInVisit(f, nothing);
        auto largest = [&](const SizeValue &value) {
          return mapBounds(value, [&](const Bound &bound) { return largestOf(bound, visit.sums); });
        };
        auto limit = [&](const Bound &before, const Bound &both) {
          if (largestOf(both, visit.sums).isWithin(before))
            return before;
          if (visit.growth == Visit::NoGrowth)
            return Bound::symbol(symbols_.unknown(f.getLoc(), "what '" + ir::nameOf(f) +
                                                                  "' gives when it calls itself"));
          if (!visit.result)
            visit.result = symbols_.element();
          if (before == Bound::symbol(*visit.result)) {
            Bound &made = visit.made[kind];
            made = Bound::max(made, withoutOne(both, isCopy));
          }
          return Bound::symbol(*visit.result);
        };
        auto it = visit.results.find(f);
        if (it == visit.results.end()) {
          for (SizeValue &result : results)
            result = largest(result);
          visit.results[f] = std::move(results);
          visit.changed = true;
          continue;
        }
        for (auto [own, result] : llvm::zip_equal(it->second, results)) {
          // What comes from no call grows no more than what the function is called with.
          SizeValue next = visit.round < 3 || visit.last ? joined(own, largest(result))
                                                         : widened(own, result, limit);
          visit.changed |= !(next == own);
          own = std::move(next);
        }
      }
    }
  } while (visit.changed);

  auto countOf = [&](const NodeKind &kind) {
    return visit.kind == Visit::Nodes   ? visit.whole.tree->nodes.at(kind)
           : visit.kind == Visit::Tails ? visit.whole.number.most + Bound(1)
                                        : visit.whole.number.most;
  };
  visit.copies.clear();
  visit.end = {};
  std::map<NodeKind, MemoryUseBound> uses;
  // Of one function that calls itself alone all calls are turns of it.
  {
    bool isAlone = visit.args.size() == 1;
    llvm::SaveAndRestore turning(turning_);
    if (isAlone)
      turning_.push_back(visit.first);
    for (auto &[operation, args] : visit.args) {
      auto f = cast<func::FuncOp>(operation);
      for (const NodeKind &kind : kindsOf(f)) {
        visit.ctor = kind.second;
        MemoryUseBound own;
        runInVisit(f, own);
        larger(uses[kind], own);
      }
    }
  }
  visit_ = nullptr;

  // What has grown, when all calls are made.
  Bound frames, inside, result, given;
  for (const auto &[kind, own] : uses) {
    frames += countOf(kind);
    inside = Bound::max(inside, largestOf(own.frames, visit.sums));
  }
  for (const auto &[kind, made] : visit.made)
    result += sumOf(made, countOf(kind), visit.sums, symbols_);
  given = visit.begin + sumOf(visit.step, frames, {}, symbols_);
  if (visit.growth == Visit::Threaded)
    given = result = given + result;
  auto hasCopy = [&](const Bound &bound) {
    return llvm::any_of(bound.terms(),
                        [&](auto &term) { return llvm::any_of(term.first, isCopy); });
  };
  auto replace = [&](const Bound &bound) {
    return bound.substitute([&](unsigned symbol) -> const Bound * {
      return symbol == visit.given ? &given : isCopy(symbol) ? &result : nullptr;
    });
  };
  if (visit.given && result.has(*visit.given)) {
    if (hasCopy(given))
      throw NotLinear();
    result = replace(result);
  }
  if (hasCopy(result) || (visit.given && given.has(*visit.given)))
    throw NotLinear();
  // As sizes they are of each call.
  given = symbols_.asLength(replace(given));
  result = symbols_.asLength(result);

  // Each node has one call at most that is open, and one of all is not waiting for another.
  Bound open, live;
  for (auto &[kind, own] : uses) {
    open += sumOf(replace(own.open), countOf(kind), visit.sums, symbols_);
    live = Bound::max(live, largestOf(replace(own.live), visit.sums));
  }
  use_->live = Bound::max(use_->live, open + live);
  MemoryUseBound last;
  for (auto &[kind, own] : uses) {
    own.frames = own.live = own.open = Bound();
    own.callsItself = false;
    if (auto most = own.turns.extract(visit.first))
      larger(last.turns[visit.first], most.mapped());
    addSum(*use_, sheaf::passes::mapBounds(own, replace), countOf(kind), visit.sums, symbols_);
  }
  if (auto most = visit.end.turns.extract(visit.first))
    larger(last.turns[visit.first], most.mapped());
  addSum(*use_, sheaf::passes::mapBounds(visit.end, replace), Bound(1), visit.sums, symbols_);
  endTurns(visit.first, last,
           [&](const Bound &bound) { return largestOf(replace(bound), visit.sums); });
  use_->frames = Bound::max(use_->frames, frames + replace(inside));
  Values results = visit.results.find(func)->second;
  for (SizeValue &value : results)
    value = mapBounds(value, [&](const Bound &bound) { return symbols_.asLength(replace(bound)); });
  return results;
}

SizeWalk::Values SizeWalk::visitNodes(func::FuncOp func, const Values &args, unsigned parameter) {
  Visit visit{Visit::Nodes, func};
  visit.whole = args[parameter];
  visit.whole.way = "";
  for (func::FuncOp other : graph_.bottomUp()) {
    if (!graph_.sameCycle(other, func) || other->hasAttr(ir::kOutlinedAttr))
      continue;
    for (auto [i, type] : llvm::enumerate(other.getArgumentTypes())) {
      auto data = dyn_cast<ir::DataType>(type);
      if (!data || (other == func && i != parameter) ||
          !visit.whole.tree->nodes.contains({data.getName().getValue().str(), 0}))
        continue;
      visit.parameters[other] = static_cast<unsigned>(i);
      break;
    }
  }
  for (const auto &[symbol, sum] : visit.whole.tree->sums) {
    unsigned fresh = symbols_.element();
    visit.names[symbol] = Bound::symbol(fresh);
    visit.sums[fresh] = sum;
  }
  visit.args.insert({func, args});
  visit.args.front().second[parameter] = SizeValue();
  return finish(visit, func);
}

SizeWalk::Values SizeWalk::visitTails(func::FuncOp func, const Values &args, unsigned parameter) {
  Visit visit{Visit::Tails, func};
  // Of one that is shorter nothing more is known.
  visit.whole = args[parameter];
  std::optional<SizeValue> element = elementOf(visit.whole);
  visit.whole.isWhole = false;
  visit.whole.joinCounted = false;
  visit.whole.number.least = 0;
  visit.whole.parts.clear();
  if (element)
    visit.whole.parts.push_back(std::move(*element));
  else
    throw GivenUp();
  visit.whole.way = "";
  visit.parameters[func] = parameter;
  visit.args.insert({func, args});
  visit.args.front().second[parameter] = SizeValue();
  return finish(visit, func);
}

SizeWalk::Values SizeWalk::visitCalls(func::FuncOp func, const Values &args, const Bound &calls,
                                      bool once) {
  Visit visit{Visit::Calls, func, once};
  visit.whole = numberValue(SizeNumber::upTo(calls));
  visit.args.insert({func, args});
  return finish(visit, func);
}

} // namespace sheaf::passes
