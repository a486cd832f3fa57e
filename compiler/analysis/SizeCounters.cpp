//===- SizeCounters.cpp - Recursions that count, with bounds --------------===//

#include "compiler/analysis/SizeWalk.h"

#include "compiler/analysis/KnownValues.h"
#include "compiler/analysis/OpQueries.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace sheaf::passes {

/// What may count in a parameter of a function, or in a field of one: an int, the length of a list,
/// an extent of a tensor.
struct Counter {
  enum What { Int, Length, Extent } what = Int;
  unsigned parameter = 0;
  int64_t axis = 0;                 ///< Extent
  SmallVector<int64_t, 2> fields{}; ///< from the outside to the inside

  bool operator==(const Counter &) const = default;
};

namespace {

/// Operations that a limit is computed with: with more it is not looked at.
constexpr size_t kMostInLimit = 32;

/// The counter of a function that a value is: what it was called with.
std::optional<Counter> counterOf(func::FuncOp func, Value value, Counter::What what, int64_t axis) {
  Counter counter{what, 0, axis};
  if (auto ghost = value.getDefiningOp<ir::GhostOp>())
    value = ghost.getTensor();
  while (auto get = value.getDefiningOp<ir::GetOp>()) {
    counter.fields.push_back(static_cast<int64_t>(get.getIndex()));
    value = get.getTuple();
  }
  std::reverse(counter.fields.begin(), counter.fields.end());
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &func.getBody().front())
    return std::nullopt;
  counter.parameter = argument.getArgNumber();
  return counter;
}

std::optional<Counter> counterOf(func::FuncOp func, Value value) {
  if (auto len = value.getDefiningOp<ir::LenOp>())
    return counterOf(func, len.getList(), Counter::Length, 0);
  if (auto dim = value.getDefiningOp<ir::DimOp>())
    return counterOf(func, dim.getTensor(), Counter::Extent, static_cast<int64_t>(dim.getAxis()));
  return counterOf(func, value, Counter::Int, 0);
}

/// From a tuple that is made to the fields of it, as far as they are.
void fieldsOf(Value &value, ArrayRef<int64_t> &fields) {
  while (!fields.empty()) {
    auto tuple = value.getDefiningOp<ir::TupleOp>();
    if (!tuple)
      return;
    value = tuple.getOperand(static_cast<unsigned>(fields.front()));
    fields = fields.drop_front();
  }
}

/// Whether a call goes on with what the function was called with.
bool isHandedOn(func::FuncOp func, func::CallOp call, const Counter &counter) {
  Value given = call.getOperand(counter.parameter);
  ArrayRef<int64_t> fields = counter.fields;
  fieldsOf(given, fields);
  std::optional<Counter> own = counterOf(func, given, counter.what, counter.axis);
  if (!own)
    return false;
  own->fields.append(fields.begin(), fields.end());
  return *own == counter;
}

/// A comparison, and whether it holds.
using Fact = std::pair<arith::CmpIOp, bool>;

arith::CmpIPredicate predicateOf(Fact fact) {
  arith::CmpIPredicate predicate = fact.first.getPredicate();
  return fact.second ? predicate : arith::invertPredicate(predicate);
}

/// Comparisons that decide a condition, and what each gives where the condition gives `holds`:
/// `a < b && read(c)` holds only where `a < b` does.
void decidedBy(Value condition, bool holds, SmallVectorImpl<Fact> &comparisons) {
  SmallVector<std::pair<Value, bool>> work{{condition, holds}};
  auto either = [&](Value which, Value yes, Value no, bool is) {
    // The side that gives the other answer was not taken.
    if (intConstant(no) && (*intConstant(no) != 0) != is) {
      work.emplace_back(which, true);
      work.emplace_back(yes, is);
    } else if (intConstant(yes) && (*intConstant(yes) != 0) != is) {
      work.emplace_back(which, false);
      work.emplace_back(no, is);
    }
  };
  while (!work.empty()) {
    auto [value, is] = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (auto cmp = dyn_cast_or_null<arith::CmpIOp>(op)) {
      comparisons.emplace_back(cmp, is);
    } else if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) {
      if (isa<arith::AndIOp>(op) == is)
        for (Value side : op->getOperands())
          work.emplace_back(side, is);
    } else if (auto differ = dyn_cast_or_null<arith::XOrIOp>(op)) {
      if (std::optional<int64_t> other = intConstant(differ.getRhs()))
        work.emplace_back(differ.getLhs(), is != (*other != 0));
    } else if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
      either(select.getCondition(), select.getTrueValue(), select.getFalseValue(), is);
    } else if (auto branch = dyn_cast_or_null<scf::IfOp>(op)) {
      unsigned result = cast<OpResult>(value).getResultNumber();
      either(branch.getCondition(), branch.thenYield().getOperand(result),
             branch.elseYield().getOperand(result), is);
    }
  }
}

/// What is known of a counter of these arguments.
std::optional<SizeNumber> numberIn(const SizeWalk::Values &args, const Counter &counter) {
  const SizeValue *value = &args[counter.parameter];
  for (int64_t field : counter.fields) {
    if (value->kind != SizeValue::Tuple)
      return std::nullopt;
    value = &value->parts[static_cast<size_t>(field)];
  }
  switch (counter.what) {
  case Counter::Int:
    return value->kind == SizeValue::Number ? std::optional(value->number) : std::nullopt;
  case Counter::Length:
    return value->kind == SizeValue::List ? std::optional(value->number) : std::nullopt;
  case Counter::Extent:
    return value->kind == SizeValue::Tensor
               ? std::optional(value->dims[static_cast<size_t>(counter.axis)])
               : std::nullopt;
  }
  return std::nullopt;
}

/// The number that a value is in all calls of a function by itself, none of which changes it.
std::optional<SizeNumber> heldNumber(Value value, func::FuncOp func, ArrayRef<func::CallOp> calls,
                                     const SizeWalk::Values &args) {
  std::optional<Counter> held = counterOf(func, value);
  bool stays =
      held && llvm::all_of(calls, [&](func::CallOp call) { return isHandedOn(func, call, *held); });
  return stays ? numberIn(args, *held) : std::nullopt;
}

/// What holds wherever a call is made: conditions of the branches around it, and checks before it.
SmallVector<Fact> factsBefore(func::FuncOp func, func::CallOp call, bool withChecks) {
  SmallVector<Fact> facts;
  for (Operation *inner = call; inner != func; inner = inner->getParentOp()) {
    if (withChecks)
      for (auto check : inner->getBlock()->getOps<ir::CheckOp>())
        if (check->isBeforeInBlock(inner))
          decidedBy(check.getCondition(), true, facts);
    if (auto branch = dyn_cast<scf::IfOp>(inner->getParentOp()))
      decidedBy(branch.getCondition(), inner->getParentRegion() == &branch.getThenRegion(), facts);
  }
  return facts;
}

/// What a fact says of a number.
void refine(SizeNumber &number, Value value, Fact fact) {
  arith::CmpIOp cmp = fact.first;
  using P = arith::CmpIPredicate;
  P predicate = predicateOf(fact);
  Value other = cmp.getRhs();
  if (other == value) {
    other = cmp.getLhs();
    predicate = predicate == P::slt   ? P::sgt
                : predicate == P::sle ? P::sge
                : predicate == P::sgt ? P::slt
                : predicate == P::sge ? P::sle
                                      : predicate;
  } else if (cmp.getLhs() != value) {
    return;
  }
  auto atLeast = [&](int64_t least) { number.least = std::max(number.least, least); };
  if (std::optional<int64_t> limit = intConstant(other)) {
    if (predicate == P::sgt && *limit < INT64_MAX)
      atLeast(*limit + 1);
    else if (predicate == P::sge || predicate == P::eq)
      atLeast(*limit);
    else if (predicate == P::ne && number.least == *limit && *limit < INT64_MAX)
      atLeast(*limit + 1);
    return;
  }
  // The smaller of it and another is not it: it is larger than that.
  auto select = other.getDefiningOp<arith::SelectOp>();
  if (predicate != P::ne || !select || !isSmaller(select))
    return;
  Value yes = select.getTrueValue(), no = select.getFalseValue();
  if (yes != value && no != value)
    return;
  if (std::optional<int64_t> limit = intConstant(yes == value ? no : yes);
      limit && *limit < INT64_MAX)
    atLeast(*limit + 1);
}

} // namespace

/// What a recursion counts until it ends, and how often it calls itself at most.
struct SizeWalk::Counted {
  Counter counter;
  bool up;
  bool meets; ///< it ends only where the limit itself is met
  int64_t by; ///< at each call, at least
  Bound calls;
};

/// An int by what it is computed of: `leaf` gives what it begins with, `facts` say more of any of
/// it. None where there is no such leaf.
std::optional<SizeNumber>
SizeWalk::computed(Value value, llvm::function_ref<std::optional<SizeNumber>(Value)> leaf,
                   ArrayRef<std::pair<arith::CmpIOp, bool>> facts) {
  Env env;
  SetVector<Operation *> ops;
  SmallVector<Value> work{value};
  auto learn = [&](Value of) {
    for (const Fact &fact : facts)
      refine(env[of].number, of, fact);
  };
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (env.contains(next))
      continue;
    Operation *op = next.getDefiningOp();
    bool isComputed = op && (next.getType().isInteger(64) || next.getType().isInteger(1)) &&
                      (isa<arith::ArithDialect>(op->getDialect()) || isa<ir::DivOp, ir::RemOp>(op));
    if (!isComputed || ops.size() == kMostInLimit) {
      std::optional<SizeNumber> number = leaf(next);
      if (!number)
        return std::nullopt;
      env[next] = numberValue(*number);
      learn(next);
    } else if (ops.insert(op)) {
      llvm::append_range(work, op->getOperands());
    }
  }
  llvm::SaveAndRestore own(env_, &env);
  for (Operation *op : topologicalSort(ops)) {
    if (env.contains(op->getResult(0)))
      continue;
    visitArithmetic(op);
    learn(op->getResult(0));
  }
  return of(value).number;
}

/// An int that none of these calls of a function by itself changes: a literal, what the function
/// was called with, or what is computed of these.
std::optional<SizeNumber> SizeWalk::limitOf(Value value, func::FuncOp func,
                                            ArrayRef<func::CallOp> calls, const Values &args) {
  return computed(value, [&](Value leaf) { return heldNumber(leaf, func, calls, args); }, {});
}

/// By how much a call counts on, at least and at most, if anything is known of it.
std::optional<std::pair<int64_t, int64_t>> SizeWalk::stepOf(func::FuncOp func, func::CallOp call,
                                                            ArrayRef<func::CallOp> calls,
                                                            const Counter &counter,
                                                            const Values &args) {
  Value given = call.getOperand(counter.parameter);
  ArrayRef<int64_t> fields = counter.fields;
  fieldsOf(given, fields);
  SmallVector<Fact> facts = factsBefore(func, call, /*withChecks=*/true);
  // What it is at any call: a size is not negative, what no call changes is what it was at first.
  auto numberOf = [&](Value value) {
    return computed(
        value,
        [&](Value leaf) -> std::optional<SizeNumber> {
          SizeNumber unknown = this->unknown(leaf.getType(), call.getLoc(), "a number").number;
          SizeNumber number = heldNumber(leaf, func, calls, args).value_or(unknown);
          if (leaf.getDefiningOp<ir::LenOp>() || leaf.getDefiningOp<ir::DimOp>())
            number.least = std::max<int64_t>(number.least, 0);
          return number;
        },
        facts);
  };
  int64_t least = 0, most = 0, axis = counter.axis;
  Counter::What what = counter.what;
  // An extent of a tensor that a record makes is an int that this takes, or an extent of one.
  auto extentOf = [&](ir::RecordOp record) {
    const RecordMemory &memory = kernels_.kernels[kernels_.numberOf(record, "")];
    const Dim &extent =
        memory.results[cast<OpResult>(given).getResultNumber()].shape[static_cast<size_t>(axis)];
    std::optional<std::string> symbol = extent.asSymbol();
    if (!symbol)
      return false;
    auto [number, of] = StringRef(*symbol).split('.');
    unsigned argument;
    if (number.getAsInteger(10, argument))
      return false;
    given = record.getArgs()[argument];
    what = of.empty() ? Counter::Int : Counter::Extent;
    return of.empty() || !of.getAsInteger(10, axis);
  };
  auto isOwn = [&] {
    std::optional<Counter> own =
        what == Counter::Int ? counterOf(func, given) : counterOf(func, given, what, axis);
    if (!own)
      return false;
    own->fields.append(fields.begin(), fields.end());
    return *own == counter;
  };
  while (!isOwn()) {
    int64_t low = 1, high = 1;
    if (auto ghost = given.getDefiningOp<ir::GhostOp>()) {
      given = ghost.getTensor();
      continue;
    }
    if (what == Counter::Int) {
      Operation *op = given.getDefiningOp();
      if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
        return std::nullopt;
      std::optional<SizeNumber> by = numberOf(op->getOperand(1));
      if (!by)
        return std::nullopt;
      low = by->least, high = symbols_.mostOf(*by);
      // A bound of what is not negative says nothing of what is.
      if (high <= 0 && low != high)
        high = INT64_MAX;
      if (std::optional<int64_t> number = intConstant(op->getOperand(1)))
        low = high = *number;
      if (isa<arith::SubIOp>(op))
        std::tie(low, high) = std::make_pair(high == INT64_MAX ? INT64_MIN : -high,
                                             low == INT64_MIN ? INT64_MAX : -low);
      given = op->getOperand(0);
    } else if (auto slice = given.getDefiningOp<ir::ListSliceOp>()) {
      // To the end it is shorter by as much as is before; else no longer.
      std::optional<SizeNumber> before = reachesEnd(slice) ? numberOf(slice.getLo()) : std::nullopt;
      low = INT64_MIN, high = before ? -std::max<int64_t>(before->least, 0) : 0;
      given = slice.getList();
    } else if (auto append = given.getDefiningOp<ir::AppendOp>()) {
      given = append.getInit();
    } else if (auto cons = given.getDefiningOp<ir::ConsOp>()) {
      given = cons.getTail();
    } else if (auto concat = given.getDefiningOp<ir::ListConcatOp>()) {
      auto added = concat.getRhs().getDefiningOp<ir::ListMakeOp>();
      if (!added)
        return std::nullopt;
      low = high = static_cast<int64_t>(added.getElements().size());
      given = concat.getLhs();
    } else if (appendsRows(given.getDefiningOp())) {
      Operation *op = given.getDefiningOp();
      int64_t rows = cast<RankedTensorType>(op->getOperand(1).getType()).getDimSize(0);
      low = high = axis == 0 ? rows : 0;
      if (axis == 0 && ShapedType::isDynamic(rows))
        low = 0, high = INT64_MAX;
      given = op->getOperand(0);
    } else if (auto record = given.getDefiningOp<ir::RecordOp>(); record && extentOf(record)) {
      low = high = 0;
    } else {
      return std::nullopt;
    }
    // In numbers that cannot wrap; what is beyond is not known.
    auto add = [](int64_t &sum, int64_t by, int64_t none) {
      bool known = sum != none && by >= INT32_MIN && by <= INT32_MAX;
      sum = known ? sum + by : none;
      if (sum != none && (sum < INT32_MIN || sum > INT32_MAX))
        sum = none;
    };
    add(least, low, INT64_MIN);
    add(most, high, INT64_MAX);
  }
  return std::make_pair(least, most);
}

/// Adds how often a call is made that counts up or down to a limit, and one further than that by
/// `beyond`; with `meets` as long as the counter is not the limit.
void SizeWalk::countedBy(const Counter &counter, bool up, const SizeNumber &limit, bool meets,
                         int64_t beyond, func::CallOp call, ArrayRef<func::CallOp> calls,
                         const Values &args, std::vector<Counted> &counted) {
  auto func = call->getParentOfType<func::FuncOp>();
  auto step = stepOf(func, call, calls, counter, args);
  std::optional<SizeNumber> begin = numberIn(args, counter);
  if (!step || !begin || (up ? step->first <= 0 : step->second >= 0))
    return;
  int64_t by = up ? step->first : -step->second;
  const SizeNumber &from = up ? *begin : limit, &to = up ? limit : *begin;
  if (from.least < INT32_MIN)
    return;
  // Counted one by one it meets a limit that it does not begin beyond.
  if (meets) {
    bool isReached = from.least >= 0 && to.least >= symbols_.mostOf(from);
    if (step->first != step->second || by != 1 || !isReached)
      return;
  }
  auto first = static_cast<double>(from.least);
  Bound way = first >= 0 ? to.most.less(first) : to.most + Bound(-first);
  way += Bound(static_cast<double>(beyond + by - 1));
  counted.push_back({counter, up, meets, by, way * Bound(1 / static_cast<double>(by)) + Bound(1)});
}

/// The same of the counters that a fact is about.
void SizeWalk::countedBy(std::pair<arith::CmpIOp, bool> fact, func::CallOp call,
                         ArrayRef<func::CallOp> calls, const Values &args,
                         std::vector<Counted> &counted) {
  auto func = call->getParentOfType<func::FuncOp>();
  using P = arith::CmpIPredicate;
  P predicate = predicateOf(fact);
  Value low = fact.first.getLhs(), high = fact.first.getRhs();
  if (predicate == P::sgt || predicate == P::sge) {
    std::swap(low, high);
    predicate = predicate == P::sgt ? P::slt : P::sle;
  }
  if (predicate != P::slt && predicate != P::sle && predicate != P::ne)
    return;
  // What differs may be counted from either side.
  SmallVector<std::pair<Value, bool>> ways{{low, true}, {high, false}};
  if (predicate == P::ne)
    ways.append({{low, false}, {high, true}});
  for (auto [value, up] : ways)
    if (std::optional<Counter> counter = counterOf(func, value))
      if (auto limit = limitOf(value == low ? high : low, func, calls, args))
        countedBy(*counter, up, *limit, predicate == P::ne, predicate == P::sle, call, calls, args,
                  counted);
}

std::optional<Bound> SizeWalk::countedCalls(func::FuncOp func, const Values &args, bool ofLists) {
  if (!callsItselfAlone(func))
    return std::nullopt;
  SmallVector<func::CallOp> calls = callsOfCycle(func);
  // Each call must count the same on, or they could take turns.
  std::optional<std::vector<Counted>> all;
  for (func::CallOp call : calls) {
    std::vector<Counted> own;
    // A branch around it that is not taken any more when the number is large enough.
    for (Fact fact : factsBefore(func, call, /*withChecks=*/false))
      countedBy(fact, call, calls, args, own);
    // A size that gets smaller ends at nothing.
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
      if (ofLists && isa<ir::ListType>(type))
        countedBy({Counter::Length, static_cast<unsigned>(i)}, /*up=*/false, SizeNumber::exactly(0),
                  false, 0, call, calls, args, own);
      else if (auto tensor = dyn_cast<RankedTensorType>(type))
        for (int64_t axis = 0; axis < tensor.getRank(); ++axis)
          if (tensor.isDynamicDim(static_cast<unsigned>(axis)))
            countedBy({Counter::Extent, static_cast<unsigned>(i), axis}, /*up=*/false,
                      SizeNumber::exactly(0), false, 0, call, calls, args, own);
    if (!all) {
      all = std::move(own);
      continue;
    }
    std::vector<Counted> both;
    for (const Counted &a : *all)
      for (const Counted &b : own)
        if (a.counter == b.counter && a.up == b.up && a.meets == b.meets &&
            (!a.meets || a.calls == b.calls))
          // Where one takes longer steps, it may go on from where the other ends.
          both.push_back({a.counter, a.up, a.meets, std::min(a.by, b.by),
                          a.by == b.by ? Bound::max(a.calls, b.calls) : a.calls + b.calls});
    all = std::move(both);
  }
  // Any of them ends it: the least number, if one is known.
  std::optional<Bound> least;
  for (const Counted &counted : all ? *all : std::vector<Counted>()) {
    std::optional<double> number = counted.calls.constant();
    if (!least || (number && (!least->constant() || *number < *least->constant())))
      least = counted.calls;
  }
  return least;
}

} // namespace sheaf::passes
