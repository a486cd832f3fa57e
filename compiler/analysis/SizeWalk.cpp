//===- SizeWalk.cpp - Operations, with bounds -----------------------------===//

#include "compiler/analysis/SizeWalk.h"

#include "compiler/analysis/Growth.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/Slots.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace sheaf::passes {

Bound slotBytes(Type type) { return Bound(kSlotBytes * static_cast<double>(slotCount(type))); }

Bound listBytes(Type list, const Bound &length) {
  return Bound(kListBytes) + length * slotBytes(cast<ir::ListType>(list).getElement());
}

Bound rowBytes(const Bound &bytes) {
  if (std::optional<double> known = bytes.constant())
    return Bound(std::max(1.0, std::ceil(*known / kGranuleBytes)) * kGranuleBytes);
  return bytes + Bound(kGranuleBytes);
}

//===----------------------------------------------------------------------===//
// What is taken
//===----------------------------------------------------------------------===//

template <typename Add>
static void combine(MemoryUseBound::Turns &into, const MemoryUseBound::Turns &other, Add add) {
  for (const auto &[op, all] : other) {
    MemoryUseBound::AllTurns &own = into[op];
    add(own.grownBytes, all.grownBytes);
    add(own.heapBytes, all.heapBytes);
  }
}

/// Calls `add` with each part of both that is taken anew each time, and `take` with those that are
/// used again.
template <typename Add, typename Take>
static void combine(MemoryUseBound &into, const MemoryUseBound &other, Add add, Take take) {
  for (const auto &[number, use] : other.kernels) {
    KernelUse &own = into.kernels[number];
    add(own.records, use.records);
    add(own.rowBytes, use.rowBytes);
    add(own.tableBytes, use.tableBytes);
    take(own.scratch, use.scratch);
    take(own.largest, use.largest);
    own.exact &= use.exact;
  }
  add(into.grownBytes, other.grownBytes);
  add(into.heapBytes, other.heapBytes);
  take(into.frames, other.frames);
  take(into.live, other.live);
  take(into.open, other.open);
  into.callsItself |= other.callsItself;
  for (const auto &[loop, turns] : other.turns)
    combine(into.turns[loop], turns, add);
}

void larger(MemoryUseBound &into, const MemoryUseBound &other) {
  auto take = [](Bound &own, const Bound &bound) { own = Bound::max(own, bound); };
  combine(into, other, take, take);
}

void larger(MemoryUseBound::Turns &into, const MemoryUseBound::Turns &other) {
  combine(into, other, [](Bound &own, const Bound &bound) { own = Bound::max(own, bound); });
}

void addSum(MemoryUseBound &into, const MemoryUseBound &each, const Bound &count,
            const SizeSums &sums, const SizeSymbols &symbols) {
  combine(
      into, each,
      [&](Bound &own, const Bound &bound) { own += sumOf(bound, count, sums, symbols); },
      [&](Bound &own, const Bound &bound) { own = Bound::max(own, largestOf(bound, sums)); });
}

MemoryUseBound mapBounds(const MemoryUseBound &use,
                         const std::function<Bound(const Bound &)> &map) {
  MemoryUseBound result;
  for (const auto &[number, own] : use.kernels)
    result.kernels[number] = {map(own.records), map(own.rowBytes), map(own.tableBytes),
                              map(own.scratch), map(own.largest),  own.exact};
  result.grownBytes = map(use.grownBytes);
  result.heapBytes = map(use.heapBytes);
  result.frames = map(use.frames);
  result.live = map(use.live);
  result.open = map(use.open);
  result.callsItself = use.callsItself;
  for (const auto &[loop, turns] : use.turns)
    for (const auto &[op, all] : turns)
      result.turns[loop][op] = {map(all.grownBytes), map(all.heapBytes)};
  return result;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

SizeWalk::SizeWalk(ModuleOp module, const RecordingKernels &kernels, SizeSymbols &symbols)
    : module_(module), symbolTable_(module), graph_(module), kernels_(kernels), symbols_(symbols),
      use_(&whole_), mayChain_(chainsLists(module)) {}

MemoryUseBound::AllTurns *SizeWalk::allTurnsFor(Operation *op) {
  auto [it, isNew] = growsInTurnsOf_.try_emplace(op, nullptr);
  if (isNew) {
    Operation *loop = growsInTurnsOf(op);
    // A function that others of its recursion call, too, is begun anew in them.
    auto func = dyn_cast_or_null<func::FuncOp>(loop);
    it->second = !func || callsItselfAlone(func) ? loop : nullptr;
  }
  return llvm::is_contained(turning_, it->second) ? &use_->turns[it->second][op] : nullptr;
}

void SizeWalk::endTurns(Operation *loop, MemoryUseBound &use,
                        llvm::function_ref<Bound(const Bound &)> largest) {
  auto turns = use.turns.extract(loop);
  if (turns.empty())
    return;
  for (const auto &[op, all] : turns.mapped()) {
    use_->grownBytes += largest(all.grownBytes);
    use_->heapBytes += largest(all.heapBytes);
  }
}

SmallVector<func::CallOp> SizeWalk::callsOfCycle(func::FuncOp func) {
  SmallVector<func::CallOp> calls;
  func.walk([&](func::CallOp call) {
    func::FuncOp callee = calleeOf(call);
    if (graph_.isRecursive(callee) && graph_.sameCycle(callee, func))
      calls.push_back(call);
  });
  return calls;
}

bool SizeWalk::callsItselfAlone(func::FuncOp func) {
  return llvm::all_of(callsOfCycle(func),
                      [&](func::CallOp call) { return calleeOf(call) == func; });
}

SizeWalk::Values SizeWalk::run(func::FuncOp func, const Values &args) {
  Env env;
  Env *outer = std::exchange(env_, &env);
  Values results;
  try {
    for (auto [value, argument] : llvm::zip_equal(args, func.getArguments()))
      set(argument, value);
    results = walk(func.getBody().front());
  } catch (...) {
    env_ = outer;
    throw;
  }
  env_ = outer;
  return results;
}

SizeWalk::Values SizeWalk::runEntry(func::FuncOp func, const Values &args) {
  if (!graph_.isRecursive(func))
    inputs_ = &func.getBody().front();
  Values results = run(func, args);
  if (mayChain_)
    for (auto [result, type] : llvm::zip_equal(results, func.getResultTypes()))
      heap(joinBytes(result, type));
  return results;
}

SizeWalk::Values SizeWalk::of(ValueRange values) {
  Values sizes;
  for (Value value : values)
    sizes.push_back(of(value));
  return sizes;
}

void SizeWalk::set(Value value, SizeValue size) {
  if (mayChain_ && size.kind == SizeValue::List &&
      findJoins(value).contains(value.getParentBlock()))
    countJoin(value, size);
  (*env_)[value] = asType(std::move(size), value.getType());
}

void SizeWalk::setUnknown(Operation *op, const std::string &what) {
  for (Value result : op->getResults())
    set(result, unknown(result.getType(), op->getLoc(), what));
}

SizeWalk::Values SizeWalk::walk(Block &block) {
  const LiveTensors &live = liveIn(block);
  size_t at = 0;
  for (Operation &op : block.without_terminator()) {
    if (!live.matters(at)) {
      walk(&op);
    } else {
      Bound most = std::exchange(use_->live, {}), open = std::exchange(use_->open, {});
      bool callsItself = std::exchange(use_->callsItself, false);
      walk(&op);
      Bound beside = tensorsAt(live, at);
      use_->live = Bound::max(most, beside + use_->live);
      if (use_->callsItself)
        open = Bound::max(open, beside + use_->open);
      use_->open = std::move(open);
      use_->callsItself |= callsItself;
    }
    ++at;
  }
  use_->live = Bound::max(use_->live, tensorsAt(live, at));
  return of(block.getTerminator()->getOperands());
}

void SizeWalk::walk(Operation *op) {
  // What cannot be there makes nothing.
  bool never = llvm::any_of(op->getOperands(),
                            [&](Value value) { return of(value).kind == SizeValue::Never; });
  if (never) {
    SizeValue none;
    none.kind = SizeValue::Never;
    for (Value result : op->getResults())
      set(result, none);
    return;
  }
  if (!visitArithmetic(op) && !visitValues(op) && !visitLists(op))
    setUnknown(op, "what '" + op->getName().getStringRef().str() + "' gives");
}

//===----------------------------------------------------------------------===//
// Branches, tuples, data, tensors
//===----------------------------------------------------------------------===//

/// Either of these ways.
void SizeWalk::visitBranches(Operation *op, ArrayRef<Block *> ways) {
  MemoryUseBound *outer = use_;
  MemoryUseBound most;
  std::optional<Values> results;
  std::set<std::string> before, after;
  if (taken())
    before = *taken();
  for (Block *way : ways) {
    MemoryUseBound own;
    use_ = &own;
    if (taken())
      *taken() = before;
    Values values;
    // What others than this branch join of the same lists counts for them.
    SmallVector<std::pair<Value, SizeValue>> lists;
    if (auto joins = joins_.find(way); joins != joins_.end())
      for (Value list : joins->second)
        if (list.getParentBlock() != way) {
          lists.emplace_back(list, of(list));
          countJoin(list, of(list));
        }
    llvm::scope_exit restored([&] {
      for (auto &[list, size] : lists)
        of(list) = std::move(size);
    });
    try {
      values = walk(*way);
    } catch (...) {
      use_ = outer;
      throw;
    }
    if (endsVisit(op, *way)) {
      // What is there at one time is so beside all calls.
      MemoryUseBound atOnce;
      atOnce.frames = std::exchange(own.frames, {});
      atOnce.live = std::exchange(own.live, {});
      atOnce.open = std::exchange(own.open, {});
      countAtEnd(own);
      own = std::move(atOnce);
    }
    larger(most, own);
    if (taken())
      after.insert(taken()->begin(), taken()->end());
    if (!results)
      results = std::move(values);
    else
      for (auto [a, b] : llvm::zip_equal(*results, values))
        a = joined(a, b);
  }
  use_ = outer;
  if (taken() && !ways.empty())
    *taken() = std::move(after);
  addSum(*use_, most, Bound(1), {}, symbols_);
  SizeValue never;
  never.kind = SizeValue::Never;
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    set(result, results ? (*results)[i] : never);
}

bool SizeWalk::visitValues(Operation *op) {
  bool known = true;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](scf::IfOp branch) {
        std::optional<int64_t> taken = of(branch.getCondition()).number.exact();
        SmallVector<Block *, 2> ways;
        if (taken != 0)
          ways.push_back(branch.thenBlock());
        if (taken != 1 && branch.elseBlock())
          ways.push_back(branch.elseBlock());
        visitBranches(op, ways);
      })
      .Case([&](ir::MatchOp match) { visitMatch(match); })
      .Case([&](ir::TupleOp tuple) {
        SizeValue value;
        value.kind = SizeValue::Tuple;
        value.parts = of(tuple.getFields());
        set(op->getResult(0), std::move(value));
      })
      .Case([&](ir::GetOp get) {
        set(op->getResult(0), SizeValue(of(get.getTuple()).parts[get.getIndex()]));
      })
      .Case([&](ir::ConstructOp construct) {
        auto data = cast<ir::DataType>(construct.getType());
        heap(Bound(kSlotBytes));
        for (Type type : construct.getFields().getTypes())
          heap(slotBytes(type));
        SizeValue value;
        if (isRecursive(data, module_)) {
          value.kind = SizeValue::Tree;
          // What is in it is not known any more.
          if (mayChain_)
            for (Value field : construct.getFields())
              heap(joinBytes(of(field), field.getType()));
        } else {
          auto declaration = symbolTable_.lookup<ir::DataOp>(data.getName().getAttr());
          value.kind = SizeValue::Data;
          value.parts.resize(declaration.getCtors().size());
          for (SizeValue &part : value.parts)
            part.kind = SizeValue::Never;
          SizeValue &fields = value.parts[construct.getCtor()];
          fields.kind = SizeValue::Tuple;
          fields.parts = of(construct.getFields());
        }
        set(op->getResult(0), std::move(value));
      })
      .Case([&](ir::ConvertOp convert) {
        const SizeValue &from = of(convert.getValue());
        if (from.kind == SizeValue::Number && !isa<FloatType>(op->getResult(0).getType()))
          set(op->getResult(0), SizeValue(from));
        else
          setUnknown(op, "a number that a float was made");
      })
      .Case([&](ir::DimOp dim) {
        set(op->getResult(0), numberValue(SizeNumber(of(dim.getTensor()).dims[dim.getAxis()])));
      })
      .Case([&](ir::ReadOp read) {
        const SizeValue &tensor = of(read.getTensor());
        std::vector<SizeNumber> dims = tensor.dims;
        setUnknown(op, "a number that is read from a tensor");
        if (isa<ir::ListType>(op->getResult(0).getType())) {
          SizeValue &list = of(op->getResult(0));
          list.number = dims.front();
          list.inPieces = false;
          madeList(op->getResult(0).getType(), dims.front().most);
        }
      })
      .Case<ir::ParamRefOp>([&](Operation *) { setUnknown(op, ""); })
      .Case([&](ir::GhostOp ghost) { set(op->getResult(0), SizeValue(of(ghost.getTensor()))); })
      .Case<ir::CheckOp>([](Operation *) {})
      .Case([&](ir::EmitOp emit) {
        // As an element of a list that grows.
        heap(Bound(kListBytes) + Bound(6) * slotBytes(emit.getValue().getType()));
        if (mayChain_)
          heap(joinBytes(of(emit.getValue()), emit.getValue().getType()));
      })
      .Case([&](ir::RecordOp made) {
        record(kernels_.numberOf(op, ""), made.getArgs(), op, Bound(1));
      })
      .Case([&](ir::JoinedOp made) {
        // It is recorded in place of more.
        record(kernels_.numberOf(op, ""), made.getArgs(), op, Bound(1), /*onlyScratch=*/true);
        for (auto [result, value] :
             llvm::zip(made.getResults(), made.getInputs().take_front(made.getNumResults())))
          set(result, SizeValue(of(value)));
      })
      .Case([&](ir::ApplyOp apply) { visitApply(apply); })
      .Case([&](func::CallOp made) {
        Values results = call(calleeOf(made), of(made.getOperands()), op);
        for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
          set(result, value);
      })
      .Default([&](Operation *) { known = false; });
  return known;
}

/// What a node of a kind holds; children know where they are.
SizeValue SizeWalk::nodeFields(const SizeValue &tree, const NodeKind &kind) {
  SizeValue fields;
  fields.kind = SizeValue::Tuple;
  fields.parts = *tree.tree->fields.at(kind);
  std::function<void(SizeValue &, const std::optional<std::string> &)> place =
      [&](SizeValue &value, const std::optional<std::string> &way) {
        if (value.kind == SizeValue::Tree) {
          value.tree = tree.tree;
          value.way = way;
        }
        for (SizeValue &part : value.parts)
          place(part, way && value.kind == SizeValue::List ? std::optional(*way + "*;") : way);
      };
  for (auto [i, field] : llvm::enumerate(fields.parts))
    place(field, tree.way ? std::optional(*tree.way + std::to_string(kind.second) + "." +
                                          std::to_string(i) + ";")
                          : std::nullopt);
  return fields;
}

} // namespace sheaf::passes
