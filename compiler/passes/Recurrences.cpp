//===- Recurrences.cpp ----------------------------------------------------===//

#include "compiler/passes/Recurrences.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/RecordFlow.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Whether an operator computes a tensor of the instance's own, and not one of constants and
/// weights.
bool computes(Operation *op) {
  return isTensorCode(op) && !isFill(op) && llvm::any_of(op->getOperands(), [](Value operand) {
           return isa<RankedTensorType>(operand.getType()) &&
                  !isa_and_nonnull<ir::ParamRefOp>(operand.getDefiningOp());
         });
}

} // namespace

Recurrences::Recurrences(ModuleOp module)
    : module_(module), symbols_(module), calls_(module), readers_(calls_.readers()) {}

/// Adds what may hold tensors that follow from those of `work`. Calls inside of a cycle of
/// functions give their arguments, which callees get, to `handedOn`.
void Recurrences::spread(Values &values, SmallVector<Value> work, func::FuncOp cycle,
                         SmallVectorImpl<Value> *handedOn) const {
  auto add = [&](Value value) {
    if (mayHoldTensors(value.getType()) && values.insert(value).second)
      work.push_back(value);
  };
  for (Value value : std::exchange(work, {}))
    add(value);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      unsigned number = use.getOperandNumber();
      if (isa<ir::YieldOp, scf::YieldOp>(user)) {
        Operation *parent = user->getParentOp();
        if (isa<scf::IfOp, ir::MatchOp>(parent)) {
          add(parent->getResult(number));
        } else if (!isa<ir::FilterOp>(parent)) {
          if (carriesState(parent))
            add(parent->getRegion(0).getArgument(0));
          add(parent->getResult(0));
        }
      } else if (isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(user)) {
        bool isList = number + 1 == user->getNumOperands();
        if (isa<ir::FilterOp>(user) || (isa<ir::FoldOp>(user) && !isList))
          add(user->getResult(0));
        add(user->getRegion(0).getArgument(isList && carriesState(user) ? 1 : 0));
      } else if (auto match = dyn_cast<ir::MatchOp>(user)) {
        for (Region &region : match->getRegions())
          if (!region.empty())
            llvm::for_each(region.getArguments(), add);
      } else if (auto call = dyn_cast<func::CallOp>(user)) {
        auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
        if (cycle && calls_.sameCycle(callee, cycle)) {
          Value argument = callee.getArgument(number);
          add(argument);
          if (handedOn)
            handedOn->push_back(argument);
        }
        llvm::for_each(call.getResults(), add);
      } else {
        llvm::for_each(user->getResults(), add);
      }
    }
  }
}

const Recurrences::Recursion &Recurrences::ofLoop(Operation *loop) {
  std::unique_ptr<Recursion> &known = recursions_[loop];
  if (known)
    return *known;
  known = std::make_unique<Recursion>();
  spread(known->carried, {loop->getRegion(0).getArgument(0)}, {}, nullptr);
  known->reads = loop->getRegion(0)
                     .walk([&](Operation *op) {
                       auto call = dyn_cast<func::CallOp>(op);
                       bool mayWait =
                           isa<ir::ReadOp>(op) ||
                           (call && readers_.contains(symbols_.lookup(call.getCallee())));
                       return mayWait ? WalkResult::interrupt() : WalkResult::advance();
                     })
                     .wasInterrupted();
  return *known;
}

const Recurrences::Recursion &Recurrences::ofFunction(func::FuncOp func) {
  SmallVector<func::FuncOp> cycle;
  for (auto other : module_.getOps<func::FuncOp>())
    if (calls_.sameCycle(other, func))
      cycle.push_back(other);
  std::unique_ptr<Recursion> &known = recursions_[cycle.front()];
  if (known)
    return *known;
  known = std::make_unique<Recursion>();
  SmallVector<Value> given, computed;
  for (func::FuncOp member : cycle) {
    known->reads |= readers_.contains(member);
    member.walk([&](Operation *op) {
      auto call = dyn_cast<func::CallOp>(op);
      if (call && calls_.sameCycle(symbols_.lookup<func::FuncOp>(call.getCallee()), func))
        llvm::append_range(given, call.getResults());
      else if (computes(op))
        llvm::append_range(computed, op->getResults());
    });
  }
  // What is computed and handed on is carried, as well as what the calls give.
  Values any;
  SmallVector<Value> carried(given);
  llvm::append_range(computed, given);
  spread(any, computed, func, &carried);
  spread(known->carried, carried, func, nullptr);
  return *known;
}

const std::vector<const Recurrences::Recursion *> &Recurrences::around(Operation *at) {
  auto known = around_.find(at->getBlock());
  if (known != around_.end())
    return known->second;
  std::vector<const Recursion *> recursions;
  for (Operation *op = at->getParentOp(); op; op = op->getParentOp()) {
    if (carriesState(op))
      recursions.insert(recursions.begin(), &ofLoop(op));
    if (auto func = dyn_cast<func::FuncOp>(op)) {
      if (calls_.isRecursive(func))
        recursions.insert(recursions.begin(), &ofFunction(func));
      break;
    }
  }
  return around_[at->getBlock()] = std::move(recursions);
}

unsigned Recurrences::depth(Value value, Operation *at) {
  const std::vector<const Recursion *> &recursions = around(at);
  unsigned number = static_cast<unsigned>(recursions.size());
  while (number > 0 && !recursions[number - 1]->carried.contains(value))
    --number;
  return number;
}

bool Recurrences::reads(Operation *at, unsigned number) { return around(at)[number - 1]->reads; }

} // namespace sheaf::passes
