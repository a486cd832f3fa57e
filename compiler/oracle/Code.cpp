//===- Code.cpp - Programs prepared for interpretation --------------------===//

#include "compiler/oracle/Code.h"

#include "compiler/ir/Program.h"
#include "runtime/model/error.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/TypeSwitch.h"

namespace sheaf::oracle {
namespace {

using mlir::Block;
using mlir::Operation;

Step::Kind kindOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Step::Kind>(op)
      .Case<ir::ApplyOp>([](auto) { return Step::Kind::Apply; })
      .Case<mlir::func::CallOp>([](auto) { return Step::Kind::Call; })
      .Case<mlir::func::ReturnOp>([](auto) { return Step::Kind::Return; })
      .Case<mlir::scf::IfOp>([](auto) { return Step::Kind::If; })
      .Case<ir::MatchOp>([](auto) { return Step::Kind::Match; })
      .Case<ir::MapOp>([](auto) { return Step::Kind::Map; })
      .Case<ir::FilterOp>([](auto) { return Step::Kind::Filter; })
      .Case<ir::FoldOp>([](auto) { return Step::Kind::Fold; })
      .Case<ir::ScanOp>([](auto) { return Step::Kind::Scan; })
      .Case<ir::YieldOp, mlir::scf::YieldOp>([](auto) { return Step::Kind::Yield; })
      .Default([](auto) { return Step::Kind::Compute; });
}

/// Whether the results of `op` are handed on, unchanged, until the function returns them.
bool isTail(Operation *op) {
  while (true) {
    Operation *next = op->getNextNode();
    if (!next || !next->hasTrait<mlir::OpTrait::IsTerminator>() ||
        next->getOperands() != op->getResults())
      return false;
    if (mlir::isa<mlir::func::ReturnOp>(next))
      return true;
    op = next->getParentOp();
    if (!mlir::isa<mlir::scf::IfOp, ir::MatchOp>(op))
      return false;
  }
}

void prepareApply(ir::ApplyOp apply, Step &step) {
  step.record = ops::OpTable::get().find(std::string_view(apply.getOp()));
  if (!step.record)
    throw InternalError("no operator named " + apply.getOp().str());
  auto taken = ops::takeApart(*step.record, apply->getOperandTypes(), apply.getAttrs(),
                              apply->getResultTypes());
  if (auto *error = std::get_if<std::string>(&taken))
    throw InternalError("operator " + apply.getOp().str() + ": " + *error);
  step.parts = std::get<ops::ApplyParts>(std::move(taken));
}

class Numbering {
public:
  /// Callees are looked up after the whole function is numbered: they may be this function.
  std::vector<std::pair<Step *, llvm::StringRef>> calls;

  void run(Function &function) {
    number(function.op.getBody().front(), function.body);
    // Two open calls never begin at the same slot: that is how their frames are told apart.
    function.slots = std::max(next_, 1u);
  }

private:
  uint32_t allocate(mlir::Value value) {
    uint32_t slot;
    if (free_.empty()) {
      slot = next_++;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[value] = slot;
    return slot;
  }

  /// The operation of `block` in which `value`, defined in that block, is used last.
  static Operation *lastUse(mlir::Value value, Block &block) {
    Operation *last = nullptr;
    for (Operation *user : value.getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      if (!last || last->isBeforeInBlock(here))
        last = here;
    }
    return last;
  }

  void number(Block &block, Code &code) {
    llvm::DenseMap<Operation *, llvm::SmallVector<mlir::Value, 4>> dying;
    llvm::SmallVector<mlir::Value, 4> unused;
    auto define = [&](mlir::Value value) {
      uint32_t slot = allocate(value);
      if (Operation *last = lastUse(value, block))
        dying[last].push_back(value);
      else
        unused.push_back(value);
      return slot;
    };
    for (mlir::Value arg : block.getArguments())
      code.args.push_back(define(arg));

    for (Operation &op : block) {
      Step step;
      step.op = &op;
      step.kind = kindOf(&op);
      for (mlir::Value operand : op.getOperands())
        step.operands.push_back(slots_.at(operand));
      for (mlir::Region &region : op.getRegions()) {
        step.regions.push_back(region.empty() ? nullptr : std::make_unique<Code>());
        if (!region.empty())
          number(region.front(), *step.regions.back());
      }
      for (mlir::Value result : op.getResults())
        step.results.push_back(define(result));
      if (auto it = dying.find(&op); it != dying.end())
        for (mlir::Value value : it->second)
          step.deaths.push_back(slots_.at(value));
      for (mlir::Value value : unused)
        step.deaths.push_back(slots_.at(value));
      unused.clear();
      free_.insert(free_.end(), step.deaths.begin(), step.deaths.end());
      if (auto apply = mlir::dyn_cast<ir::ApplyOp>(op))
        prepareApply(apply, step);
      step.isTail = step.kind == Step::Kind::Call && isTail(&op);
      code.steps.push_back(std::move(step));
    }
    for (Step &step : code.steps)
      if (step.kind == Step::Kind::Call)
        calls.push_back({&step, mlir::cast<mlir::func::CallOp>(step.op).getCallee()});
  }

  llvm::DenseMap<mlir::Value, uint32_t> slots_;
  std::vector<uint32_t> free_;
  uint32_t next_ = 0;
};

} // namespace

Function &Functions::get(llvm::StringRef name) {
  auto op = module_.lookupSymbol<mlir::func::FuncOp>(name);
  if (!op || op.isExternal())
    throw InternalError("the program has no function " + name.str());
  std::vector<mlir::func::FuncOp> pending = {op};
  std::vector<std::pair<Step *, mlir::func::FuncOp>> calls;
  while (!pending.empty()) {
    mlir::func::FuncOp next = pending.back();
    pending.pop_back();
    auto &function = functions_[next];
    if (function)
      continue;
    function = std::make_unique<Function>();
    function->op = next;
    Function &made = *function;
    Numbering numbering;
    numbering.run(made);
    for (auto [step, callee] : numbering.calls) {
      auto target = module_.lookupSymbol<mlir::func::FuncOp>(callee);
      if (!target || target.isExternal())
        throw InternalError("the program has no function " + callee.str());
      pending.push_back(target);
      calls.push_back({step, target});
    }
  }
  for (auto [step, target] : calls)
    step->callee = functions_[target].get();
  return *functions_[op];
}

} // namespace sheaf::oracle
