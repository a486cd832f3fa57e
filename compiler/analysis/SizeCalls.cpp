//===- SizeCalls.cpp - Recursions, with bounds ----------------------------===//

#include "compiler/analysis/SizeWalk.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Calls that are open when one is written out, and calls in all: with more a recursion is bounded
/// in another way, if at all.
constexpr size_t kMostOpen = 100;
constexpr unsigned kMostUnrolled = 4000;
/// The same of products of terms: bounds get longer where each call makes something of the last.
constexpr uint64_t kMostProducts = 1'000'000;
/// Calls of one function that were written out in vain before that is not tried any more.
constexpr unsigned kMostInVain = 500;

bool hasExact(const SizeValue &value) {
  if (value.kind == SizeValue::Number)
    return value.number.exact().has_value();
  if (value.kind == SizeValue::List)
    return value.number.exact().has_value();
  return value.kind == SizeValue::Tuple && llvm::any_of(value.parts, hasExact);
}

} // namespace

SizeWalk::Values SizeWalk::call(func::FuncOp func, Values args, Operation *op) {
  if (isInVisit(func))
    return callInVisit(func, args);
  if (!graph_.isRecursive(func))
    return run(func, args);
  if (llvm::any_of(open_, [&](const Open &open) { return graph_.sameCycle(open.func, func); }))
    return unroll(func, args);
  for (SizeValue &arg : args)
    arg = withoutWays(std::move(arg));
  // A loop around it looks at it again and again.
  for (const Known &known : summaries_[func])
    if (known.args == args) {
      addSum(*use_, known.use, Bound(1), {}, symbols_);
      return known.results;
    }
  Values results;
  MemoryUseBound own = usedBy([&] { results = summarise(func, args, op); });
  for (SizeValue &result : results)
    result = withoutWays(std::move(result));
  addSum(*use_, own, Bound(1), {}, symbols_);
  summaries_[func].push_back({func, std::move(args), results, std::move(own), {}});
  return results;
}

/// What it gives, if that does not come to nothing; what it takes is added only then.
template <typename Run> std::optional<SizeWalk::Values> SizeWalk::attempt(Run run) {
  llvm::SaveAndRestore visit(visit_, static_cast<Visit *>(nullptr));
  llvm::SaveAndRestore env(env_, env_);
  try {
    Values results;
    MemoryUseBound own = usedBy([&] { results = run(); });
    addSum(*use_, own, Bound(1), {}, symbols_);
    return results;
  } catch (const GivenUp &) {
    return std::nullopt;
  }
}

SizeWalk::Values SizeWalk::summarise(func::FuncOp func, const Values &args, Operation *op) {
  if (llvm::any_of(args, hasExact) && inVain_[func] < kMostInVain) {
    // In what is written out itself it is a part of that.
    if (open_.empty()) {
      unrolled_ = 0;
      unrolledSince_ = Bound::work();
    }
    unsigned before = unrolled_;
    auto results = attempt([&] {
      Values results = unroll(func, args);
      endTurns(func, *use_, [](const Bound &bound) { return bound; });
      return results;
    });
    if (results)
      return *results;
    inVain_[func] += unrolled_ - before;
  }
  for (unsigned i = 0; i < args.size(); ++i)
    if (args[i].kind == SizeValue::Tree && args[i].tree)
      if (auto results = attempt([&] { return visitNodes(func, args, i); }))
        return *results;
  unsigned number = symbols_.calls(ir::nameOf(func), op->getLoc());
  auto visitCounted = [&](bool ofLists) -> std::optional<Values> {
    std::optional<Bound> counted = countedCalls(func, args, ofLists);
    if (!counted)
      return std::nullopt;
    // Who asks may know of fewer.
    bool isLess =
        symbols_.most(number) < static_cast<double>(symbols_.mostOf(SizeNumber::upTo(*counted)));
    Bound calls = isLess ? Bound::symbol(number) : *counted;
    return attempt([&] { return visitCalls(func, args, calls, /*once=*/true); });
  };
  if (auto results = visitCounted(/*ofLists=*/false))
    return *results;
  for (unsigned i = 0; i < args.size(); ++i)
    if (args[i].kind == SizeValue::List)
      if (auto results = attempt([&] { return visitTails(func, args, i); }))
        return *results;
  // Lists that are made anew, and shorter.
  if (auto results = visitCounted(/*ofLists=*/true))
    return *results;
  Bound calls = Bound::symbol(number);
  auto results = attempt([&] { return visitCalls(func, args, calls, /*once=*/false); });
  if (results)
    return *results;
  // It has no end that could be found.
  Values unknown;
  for (Type type : func.getResultTypes())
    unknown.push_back(this->unknown(type, op->getLoc(), "what a recursion gives"));
  use_->heapBytes += Bound::symbol(symbols_.unknown(op->getLoc(), "what a recursion takes"));
  return unknown;
}

/// Call by call: numbers that are known end it.
SizeWalk::Values SizeWalk::unroll(func::FuncOp func, const Values &args) {
  // What the call takes; what all turns take together is the most that any of them may.
  auto add = [&](const MemoryUseBound &use, const MemoryUseBound::Turns &turns) {
    addSum(*use_, use, Bound(1), {}, symbols_);
    if (!open_.empty() && open_.back().func == func)
      larger(open_.back().turns, turns);
    else
      use_->turns[func] = turns;
  };
  for (const Known &known : known_)
    if (known.func == func && known.args == args) {
      add(known.use, known.turns);
      return known.results;
    }
  for (const Open &open : open_)
    if (open.func == func && *open.args == args)
      throw GivenUp();
  if (open_.size() >= kMostOpen || ++unrolled_ > kMostUnrolled ||
      Bound::work() > unrolledSince_ + kMostProducts)
    throw GivenUp();
  Values results;
  MemoryUseBound own;
  MemoryUseBound::Turns turns;
  {
    open_.push_back({func, &args});
    turning_.push_back(func);
    llvm::scope_exit closed([&] {
      open_.pop_back();
      turning_.pop_back();
    });
    own = usedBy([&] { results = run(func, args); });
    turns = std::move(open_.back().turns);
  }
  if (auto last = own.turns.extract(func))
    larger(turns, last.mapped());
  own.frames += Bound(1);
  known_.push_back({func, args, results, own, turns});
  add(own, turns);
  return results;
}

} // namespace sheaf::passes
